"""The table of waits on the page about forward progress has every wait of the core, and none that is not there.

A *wait* is a loop of the sources that nothing counts, or a call that lasts until another thread, process or device does
something (`BLOCKING`). A loop is counted if it goes over a range, or if it is a `for` loop that compares a variable of its own
and changes it. Loops that end by their own steps are in `OWN_STEPS`, each with the reason.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping

import pytest
from repository import ROOT

CSRC = ROOT / "csrc"
PAGE = ROOT / "docs" / "protocol" / "progress.md"

# Loops that wait for nobody. `steps`: steps of a launch follow each other; the waits are in the functions that run a step.
OWN_STEPS = {
    "cpu/backend.cpp reserve": "asks for half as much each time, down to what is needed",
    "cpu/backend.cpp rounds": "steps",
    "cpu/crash_notice.cpp CrashNotice::CrashNotice": "goes over places",
    "cpu/peer_pushes.h publish": "goes over items",
    "cpu/thread_pool.h start": "starts threads",
    "cpu/worker.h move_far_chunk": "goes over the items of a chunk; the wait for an item is in `take`",
    "cpu/worker.h run_rounds": "steps",
    "cuda/device.cpp CudaDevice::release_due": "takes from a list",
    "cuda/spread_memory.cpp allocate_over": "goes over addresses",
    "device/far_work.cuh largest_chunk": "doubles",
    "device/group_worker.cuh work": "steps",
    "device/load_balance.cuh item_of": "a binary search",
    "device/task_api.cuh reduce": "halves",
    "device/task_groups.cuh reduce_in_group": "halves",
    "device/thread_worker.cuh work": "steps",
    "device/work_sharing.cuh next_chunk": "goes over the items of a batch",
    "host/backend.h stack_items": "doubles",
    "host/far_memory.cpp FarMemory::find_room": "goes over blocks",
    "host/far_memory.cpp FarMemory::read_items": "goes over blocks",
    "host/growable_range.h growths_within": "counts",
    "host/in_place_recovery.h put": "goes over tickets",
    "host/in_place_recovery.h ring_of": "goes over rings",
    "host/inbox.cpp atos_inbox::put": "goes over items",
    "host/kept_ranges.h take": "goes over ranges",
    "host/launch.cpp atos_queue::run_workers": "steps",
    "host/peers.cpp atos_queue::PeerLaunch::share_memory": "goes over parts of memory",
    "host/peers.cpp atos_queue::run_peers": "steps",
    "host/prioritized.cpp power_of_two": "doubles",
    "host/process_group.cpp atos_group::hand_out": "sends again after a signal",
    "host/queue_storage.cpp QueueStorage::add_rings": "counts",
    "host/queue_storage.cpp QueueStorage::provide_for_growth": "counts",
    "host/queue_storage.cpp QueueStorage::provide_stacks": "halves",
    "host/recovery.cpp visit": "goes over tickets",
    "host/resource_limits.h content_of": "reads a file",
    "host/resource_limits.h least_of_groups": "goes up a path",
    "host/spill_area.cpp SpillArea::visit": "goes over items",
    "protocol/far_items.cuh open_list": "doubles and halves",
    "protocol/far_items.cuh open_locked": "goes over lists",
}

COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', re.DOTALL | re.MULTILINE)
LOOP = re.compile(r"\b(for|while|do)\b")
BLOCKING = re.compile(
    r"(?:\.wait|\.again|\bwait_for|\btry_lock_for|\bsleep_for|\byield|(?<![.\w>])poll|\.join|__nanosleep|\bcu\w+Synchronize)\("
)
# What a name with a bracket before a block is, if it is no function.
CONTROL = ("if", "for", "while", "switch", "catch")
LAMBDA = re.compile(r"\]\s*(\((?:[^()]|\([^()]*\))*\))?\s*(mutable|noexcept)?\s*(->\s*[\w: *&]+)?$")
TYPE = re.compile(r"(template\s*<[^>]*>\s*)?(namespace|struct|class|enum|union|extern)\b")
NAME = re.compile(r"(~?[A-Za-z_][\w:]*)\s*\(")


class SourceError(Exception):
    """The reader does not understand a source."""


def end_of(text: str, at: int) -> int:
    """Return the place behind the bracket that closes the one at a place."""
    depth = 0
    for place in range(at, len(text)):
        depth += (text[place] in "([{") - (text[place] in ")]}")
        if not depth:
            return place + 1
    raise SourceError(f"a bracket is not closed: {text[at : at + 40]!r}")


def parts_of(head: str) -> list[str]:
    """Return what the semicolons of a loop's head part, but for those in brackets."""
    depth, parts = 0, [""]
    for letter in head:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == ";" and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def is_counted(text: str, at: int) -> bool:
    """Whether the loop whose keyword ends at a place is a `for` loop over a range, or one that counts."""
    begin = text.index("(", at)
    parts = parts_of(text[begin + 1 : end_of(text, begin) - 1])
    if len(parts) == 1:
        return True
    start, condition, step = parts
    return any(
        re.search(rf"\b{name}\b\s*(?:[+*]\s*\w+(?:\(\))?\s*)?(?:<|>|!=)", condition)
        and re.search(rf"(\+\+|--)\s*{name}\b|\b{name}\s*(\+\+|--|[-+*/]?=|>>=|<<=)", step)
        for name in re.findall(r"(\w+)\s*(?:=|\{)", start)
    )


def head_before(text: str, at: int) -> str:
    """Return what stands before the block that begins at a place, back to the statement or block before."""
    begin, depth = at, 0
    while begin > 0:
        letter = text[begin - 1]
        if depth == 0 and letter in ";{}([":
            break
        depth += (letter in ")]") - (letter in "([")
        begin -= 1
    return text[begin:at].strip()


def function_at(text: str, at: int) -> str | None:
    """Return the name of the function that a place is in."""
    depth = 0
    for place in range(at - 1, -1, -1):
        depth += (text[place] == "}") - (text[place] == "{")
        if depth >= 0:
            continue
        depth = 0
        head = head_before(text, place)
        if TYPE.match(head):
            return None
        name = NAME.search(re.sub(r"^template\s*<[^>]*>|\bif constexpr\b|\b__launch_bounds__\([^)]*\)", "if", head))
        if name and name[1] not in CONTROL and not LAMBDA.search(head):
            return name[1]
    return None


def waits_in(sources: Mapping[str, str]) -> dict[str, set[str]]:
    """Return the functions of each file that have an uncounted loop or a call that blocks."""
    found: dict[str, set[str]] = defaultdict(set)
    for path, source in sources.items():
        text = COMMENT.sub(lambda comment: re.sub(r"[^\n]", " ", comment[0]), source)
        for loop in LOOP.finditer(text):
            if loop[1] == "for" and is_counted(text, loop.end()):
                continue
            function = function_at(text, loop.start())
            if function is None:
                raise SourceError(f"{path}: a loop in no function: {text[loop.start() : loop.start() + 40]!r}")
            found[path].add(function)
        for call in BLOCKING.finditer(text):
            if function := function_at(text, call.start()):  # elsewhere it is a declaration
                found[path].add(function)
    return found


def pairs(found: Mapping[str, set[str]]) -> set[str]:
    return {f"{path} {function}" for path, functions in found.items() for function in functions}


def rows(page: str) -> list[list[str]]:
    """Return the rows of the page's tables of waits: file, functions, and the words after them."""
    lines = [line for line in page.splitlines() if re.match(r"\| `\w+/\w+\.\w+` \|", line)]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def waits_on(page: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for path, functions, *_ in rows(page):
        found[path.strip("`")] |= set(re.findall(r"`([^`]+)`", functions))
    return found


def sources_of_core() -> dict[str, str]:
    paths = [path for path in CSRC.rglob("*") if path.suffix in (".cuh", ".cu", ".h", ".cpp")]
    return {path.relative_to(CSRC).as_posix(): path.read_text() for path in paths}


def differences(sources: Mapping[str, str], page: str) -> set[str]:
    """Return the waits that the sources or the page alone have."""
    return (pairs(waits_in(sources)) - set(OWN_STEPS)) ^ pairs(waits_on(page))


def test_the_table_has_every_wait_of_the_core():
    assert differences(sources_of_core(), PAGE.read_text()) == set()


def test_loops_that_wait_for_nobody_are_there():
    assert set(OWN_STEPS) - pairs(waits_in(sources_of_core())) == set()


def test_every_wait_needs_guarantees_that_the_page_names():
    page = PAGE.read_text()
    named = set(re.findall(r"^\| \*([\w ]+)\* \|", page, re.MULTILINE))
    needed = [set(re.findall(r"\*([\w ]+)\*", cells[-1])) for cells in rows(page)]
    assert len(needed) > 30
    assert all(needed)
    assert set().union(*needed) == named


def test_a_row_that_is_left_out_is_missed():
    page = PAGE.read_text()
    for row in [line for line in page.splitlines() if line.startswith(("| `protocol/", "| `device/"))]:
        assert differences(sources_of_core(), page.replace(row + "\n", ""))


@pytest.mark.parametrize(
    "loop",
    [
        "while (load(&queue.counters->tail) == 0) {}",
        "for (Spin spin;; spin.again()) if (load(&queue.counters->tail)) break;",
        "for (unsigned polls = 0; !load(&queue.counters->tail); ++polls) {}",
        "do { fence(); } while (load(&queue.counters->tail) == 0);",
        "const auto done = [&] { while (load(&queue.counters->tail) == 0) {} };",
        "__nanosleep(100);",
    ],
)
def test_a_wait_that_is_added_is_noticed(loop):
    sources, begin = sources_of_core(), "Inbox *inbox = static_cast<Inbox *>(where);"
    assert begin in sources["device/inbox.cuh"]
    sources["device/inbox.cuh"] = sources["device/inbox.cuh"].replace(begin, f"{begin}\n  {loop}")
    assert differences(sources, PAGE.read_text()) == {"device/inbox.cuh take_from_inbox"}


@pytest.mark.parametrize(
    "loop",
    ["for (unsigned k = 0; k < 4; ++k) fence();", "for (const Item<bytes> &item : items) put(item);", "// while (true) {}"],
)
def test_a_loop_that_counts_is_no_wait(loop):
    sources = {"device/some.cuh": f"namespace atos {{\nvoid some() {{\n  {loop}\n}}\n}}\n"}
    assert pairs(waits_in(sources)) == set()
