"""The protocol in csrc, model-checked: every interleaving of a few workers, and broken variants that have to be caught."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

MODEL = Path(__file__).parent / "model"
CSRC = Path(__file__).parent.parent / "csrc"
COMPILER = os.environ.get("CXX", "c++")
FLAGS = ["-std=c++17", "-Wall", "-Wextra", "-Wno-unknown-pragmas", "-Wno-clobbered"]


class Change(NamedTuple):
    """A place in a source file, by a regular expression, and what the model has there."""

    file: str
    old: str
    new: str


# For every model: warps of one lane, where a worker could begin anew, chance, the clock, plain stores that all see, limits.
# What a worker has concluded it must not conclude again, so the step is forgotten before it waits.
CHANGES = [
    Change("worker.cuh", r"unsigned size\(\) \{ return 32; \}", "unsigned size() { return 1; }"),
    Change("worker.cuh", r"stride = \(got \+ 31\) / 32", "stride = got"),
    Change("worker.cuh", r"Group::size\(\) > 32 && header", "model::bounds.cta && header"),
    Change("worker.cuh", r"Group::size\(\) > 32 && looks", "model::bounds.cta && looks"),
    Change("worker.cuh", r"Group::size\(\) == 32 && looks", "!model::bounds.cta && looks"),
    Change("worker.cuh", r"if \(header->pushes\) hand_on<Warp>\(\);", "\\g<0>\n    model::commit();"),
    Change("worker.cuh", r"int verdict = claim\(\);", r"begin_anew(header); \g<0> if (verdict > 0) begin_anew(header);"),
    Change("worker.cuh", r"(int fetch\(\).*?)if \(polls\) __nanosleep\(20\);", r"\1begin_anew(header);"),
    Change("worker.cuh", r"const float hungry = .*?: n;", "return uint32_t(model::any(n + 1));"),
    Change("worker.cuh", r"asm volatile\(.*?\);", "now = 0;"),
    Change("worker.cuh", r"const bool looks = ", r"\g<0>model::bounds.keep && "),
    Change("worker.cuh", r"const bool may_keep = ", r"\g<0>model::bounds.keep && "),
    Change("worker.cuh", r"static constexpr uint64_t kChunkPart = 16;", "const unsigned &kChunkPart = model::bounds.chunk;"),
    Change("worker.cuh", r"static constexpr int64_t kLong = 4096;", "const unsigned &kLong = model::bounds.long_from;"),
    Change("worker.cuh", r"constexpr int64_t kBacklog = 8;", "const unsigned &kBacklog = model::bounds.backlog;"),
    Change("worker.cuh", r"constexpr unsigned kFew = 32;", "const unsigned &kFew = model::bounds.few;"),
    Change("share.cuh", r"kShares = 64;", "kShares = 1;"),
    Change("queue.cuh", r"spill\[at\] = item;", "store_item(&spill[at], item);"),
    Change("queue.cuh", r"counters->failure = failure;", "store(&counters->failure.failed, failure.failed);"),
]
SCENARIOS: dict[str, dict[str, Any]] = {
    "wrap-around": {"workers": 3, "children": "2,1,0,0", "keep": 0},
    "full": {"workers": 3, "children": "2,0,0", "capacity": 1, "keep": 0},
    "full, two workers": {"workers": 2, "children": "1,1,0,0", "seeds": 2, "keep": 0},
    "full, large items": {"workers": 2, "children": "3,1,1,1,0,0,0", "item_bytes": 8, "capacity": 3, "keep": 0},
    "several tickets": {"workers": 2, "children": "1,1,0,0,1,0,0", "seeds": 4, "capacity": 4, "fetch": 2, "keep": 0},
    "growing": {"workers": 2, "children": "3,1,1,1,0,0,0", "capacity": 1, "max_capacity": 4, "keep": 0},
    "stopped from outside": {"workers": 2, "children": "2,1,1,0,0", "stops": 2},
    "stopped from outside, barrier": {"workers": 2, "children": "2,1,0,0", "barrier": 1, "stops": 1},
    "stopped from outside, idle": {"workers": 2, "children": "1,1,0", "aside": 4, "stops": 1},
    "kept": {"workers": 3, "children": "2,1,1,0,0"},
    "small buffer, two launches": {"workers": 3, "children": "2,1,0,0", "buffer": 1, "launches": 2},
    "backlog": {"workers": 2, "children": "3,1,1,0,0,0", "backlog": 0, "capacity": 3},
    "gift": {"workers": 3, "children": "2,2,0,0,0", "fetch": 2, "capacity": 4},
    "handed on by all": {"workers": 2, "children": "2,2,0,1,0,0", "cta": 1, "few": 1},
    "a check fails": {"workers": 3, "children": "2,1,1,0,0", "fails": 6},
    "a check fails, full": {"workers": 2, "children": "3,1,1,0,0,0", "fails": 12, "capacity": 1, "max_capacity": 4, "keep": 0},
    "idle": {"workers": 3, "children": "1,0", "aside": 2},
    "idle, two workers": {"workers": 2, "children": "1,1,0", "aside": 4},
    "idle, full": {"workers": 2, "children": "2,1,0,0", "aside": 8, "capacity": 1, "keep": 0},
    "barrier": {"workers": 3, "children": "1,1,0", "barrier": 1},
    "barrier, full": {"workers": 3, "children": "2,0,0", "barrier": 1, "capacity": 1},
    "barrier, shares": {"workers": 2, "children": "1,1,0", "nested": 1, "longs": 3, "barrier": 1},
    "barrier, idle": {"workers": 2, "children": "2,1,0,0", "barrier": 1, "aside": 8},
    "shares": {"workers": 2, "children": "1,1,0", "nested": 1, "longs": 3, "capacity": 3},
    "shares, full": {"workers": 2, "children": "3,0,0,0", "nested": 1},
    "shares, handed on by all": {"workers": 2, "children": "1,1,0", "nested": 1, "longs": 3, "cta": 1, "few": 0},
    "shares, idle": {"workers": 2, "children": "2,0,0", "nested": 1, "longs": 1, "aside": 2},
    "shares of one chunk": {"workers": 2, "children": "1,1,0", "nested": 1, "longs": 3, "capacity": 3, "chunk": 2},
    "kept, then shared": {
        "workers": 2,
        "children": "2,0,0",
        "nested": 1,
        "longs": 6,
        "long_from": 3,
        "chunk": 3,
        "fetch": 2,
        "capacity": 3,
    },
    "kept beside a long item": {
        "workers": 2,
        "children": "2,1,0,0",
        "nested": 1,
        "longs": 4,
        "long_from": 3,
        "chunk": 3,
        "fetch": 2,
        "capacity": 3,
    },
    "weak": {"workers": 2, "children": "1,1,0", "capacity": 1, "item_bytes": 8, "weak": 1, "keep": 0},
    "weak, small items": {"workers": 2, "children": "2,1,0,0", "weak": 1, "keep": 0},
    "weak, kept": {"workers": 2, "children": "2,1,0,0", "weak": 1},
    "weak, small buffer": {"workers": 2, "children": "2,0,0", "buffer": 1, "weak": 1},
    "weak, checks fail": {"workers": 2, "children": "2,0,0", "fails": 6, "weak": 1},
    "weak, idle": {"workers": 2, "children": "1,1,0", "item_bytes": 8, "aside": 4, "weak": 1},
    "weak, barrier": {"workers": 2, "children": "1,1,0", "item_bytes": 8, "barrier": 1, "weak": 1},
    "weak, shares": {"workers": 2, "children": "1,0", "nested": 1, "longs": 1, "weak": 1},
}

EARLY, STUCK, LOST, TWICE = "leaves early", "no way leads to the end", "was lost", "ran twice"
# Rules, each with what breaks it, the scenario that catches it, and what is found there.
BROKEN: dict[str, tuple[str, str, list[tuple[str, str, str]]]] = {
    "finish after publishing": (
        "full, two workers",
        EARLY,
        [
            (
                "worker.cuh",
                r"header->base = queue\(\)\.reserve\(n\);",
                r"if (header->step > 0 && header->counted) queue().finish(header->step), header->counted = 0; \g<0>",
            )
        ],
    ),
    "ended reads finished first": (
        "full, two workers",
        EARLY,
        [
            ("queue.cuh", r"(const uint64_t finished = [^;]*;)\s*fence\(\);(\s*\*published = [^;]*;)", r"\2 \1"),
            ("queue.cuh", r"add\(&counters->published, 0\)", "*published"),  # which would read it last
        ],
    ),
    "get before retire": (
        "full, large items",
        TWICE,
        [
            (
                "worker.cuh",
                r"if \(got == 0\) return 0;",
                r"\g<0> for (unsigned k = 0; k < got; ++k)"
                r" queue().slots[queue().at(first + k).index].retire(queue().at(first + k).turn);",
            )
        ],
    ),
    "publish looks at the turn": ("full, two workers", "", [("queue.cuh", r"!slot\.has\(place\.turn\)", "false")]),
    "turns tell laps apart": ("full, two workers", "", [("queue.cuh", r"return \{index, 2 \* lap\};", "return {index, 0};")]),
    "claim is one addition": (
        "full, two workers",
        "",
        [
            (
                "queue.cuh",
                r"return add\(&counters->head, n\);",
                "uint64_t h = load(&counters->head); store(&counters->head, h + n); return h;",
            )
        ],
    ),
    "reserve is one addition": (
        "full, two workers",
        "",
        [
            (
                "queue.cuh",
                r"return add\(&counters->published, n\);",
                "uint64_t p = load(&counters->published); store(&counters->published, p + n); return p;",
            )
        ],
    ),
    "spill_one keeps the item": ("full, two workers", LOST, [("queue.cuh", r"if \(at < spill_size\)", "if (false)")]),
    "spill_one asks for a stop": ("full, two workers", STUCK, [("queue.cuh", r"store\(&counters->stop, kStopFull\);", "")]),
    "while_waiting sees the stop": (
        "full, two workers",
        STUCK,
        [("worker.cuh", r"if \(queue\(\)\.stopped\(\)\) return kLeave;\s*uint64_t", "uint64_t")],
    ),
    "owed waits for what is kept": (
        "kept",
        EARLY,
        [
            (
                "worker.cuh",
                r"int verdict = header->kept;",
                r"\g<0> if (verdict && header->owed) queue().finish(header->owed), header->owed = 0;",
            )
        ],
    ),
    "kept items have no ticket": ("kept", "", [("worker.cuh", r"header->counted = counted;", "header->counted = 1;")]),
    "what is kept runs once": ("kept", TWICE, [("worker.cuh", r"header->kept = 0;", "")]),
    "what is kept is not given": ("kept", "", [("worker.cuh", r"worker\.buffer \+ kept, n - kept", "worker.buffer, n - kept")]),
    "what is given is not kept": ("gift", "", [("worker.cuh", r"header->kept = n - given;", "header->kept = n;")]),
    "what is given has tickets": (
        "gift",
        "",
        [("worker.cuh", r"if \(given\) header->base = queue\(\)\.reserve\(given\);", "")],
    ),
    "what the buffer did not hold is not handed on again": (
        "small buffer, two launches",
        "",
        [("worker.cuh", r"n = pushes < launch\.buffer \? pushes : launch\.buffer;", "n = pushes;")],
    ),
    "handing on is no step": (
        "handed on by all",
        STUCK,
        [("worker.cuh", r"return kHandOn;", "return header->step = kHandOn;")],
    ),
    "a step is concluded once": (
        "handed on by all",
        "",
        [("worker.cuh", r"return kHandOn;", "return conclude(), kHandOn;")],
    ),
    "a check that fails asks for a stop": ("a check fails", "", [("queue.cuh", r"store\(&counters->stop, kStopTask\);", "")]),
    "the first failure is kept": (
        "weak, checks fail",
        "unordered stores to failure",
        [("queue.cuh", r"if \((add\(&counters->failures, uint64_t\(1\)\)) == 0\)", r"\1;")],
    ),
    "owed is flushed": ("kept", STUCK, [("worker.cuh", r"queue\(\)\.finish\(header->owed\);\s*header->owed = 0;", "")]),
    "who pushes in idle is not quiet": (
        "idle, two workers",
        EARLY,
        [
            ("worker.cuh", r"pushes \? kNever : header->candidate", "header->candidate"),
            ("queue.cuh", r" && load\(&counters->published\) == published;", ";"),
        ],
    ),
    "a late registration undoes nothing": ("idle, two workers", STUCK, [("queue.cuh", r"if \(newer < 0\) return;", "")]),
    "all have to be quiet": (
        "idle, two workers",
        EARLY,
        [("queue.cuh", r"load\(&counters->quiet\) == \(published << kQuietBits\) \+ workers && ", "")],
    ),
    "head goes back to the end of a round": ("barrier", "", [("worker.cuh", r"store\(&counters->head, end\);", "")]),
    "the last block decides": (
        "stopped from outside, barrier",
        "",
        [
            (
                "worker.cuh",
                r"const uint64_t next = load\(&counters->round_end\);",
                "const uint64_t next = queue().stopped() ? kNever : load(&counters->published);",
            )
        ],
    ),
    "no round follows a stop": (
        "stopped from outside, barrier",
        "",
        [("worker.cuh", r"queue\(\)\.stopped\(\) \? kNever : load", "load")],
    ),
    "blocks wait for each other": ("barrier", "", [("worker.cuh", r"while \(load\(&counters->phase\) == phase\) \{\}", "")]),
    "direct is counted before chunks": (
        "kept, then shared",
        EARLY,
        [
            ("share.cuh", r"if \(!has_ticket\) add\(&counters->direct, 1\);", ""),
            (
                "share.cuh",
                r"store\(&share\.chunks, kChunkBias \+ chunks\);",
                r"\g<0> if (!has_ticket) add(&counters->direct, 1);",
            ),
        ],
    ),
    "the bit is set before chunks": (
        "shares of one chunk",
        "the counters are not as",
        [
            ("share.cuh", r"set_bit\(&counters->open, at\);", ""),
            ("share.cuh", r"store\(&share\.chunks, kChunkBias \+ chunks\);", r"\g<0> set_bit(&counters->open, at);"),
        ],
    ),
    "a chunk is published before it is done": (
        "shares",
        EARLY,
        [
            (
                "worker.cuh",
                r"header->base = queue\(\)\.reserve\(n\);",
                r"int32_t &at = header->chunk.share;"
                r" header->owed += at >= 0 && chunk_done(static_cast<Share *>(launch.shares), at);"
                r" at = -1; \g<0>",
            )
        ],
    ),
    "a chunk belongs to the batch before": (
        "kept, then shared",
        "",
        [("worker.cuh", r"if \(verdict > 0\) (header->counted = counted;)", r"\1")],
    ),
    "a shared item is counted once": (
        "shares",
        "",
        [("worker.cuh", r"header->owed \+= header->batch - header->shared;", "header->owed += header->batch;")],
    ),
    "nothing is kept beside a long item": ("kept beside a long item", "", [("worker.cuh", r" && !header->any_long;", ";")]),
    "a chunk does not end a round": ("barrier, shares", "", [("worker.cuh", r" && verdict != kChunk", "")]),
    "a place is free when all chunks are done": (
        "shares",
        "",
        [("share.cuh", r"clear_bit\(&counters->open, at\);", r"{ \g<0> store(&share.busy, 0); }")],
    ),
    "fence between put and fill": (
        "weak",
        "",
        [("queue.cuh", r"slot\.put\(items\[i\]\);\s*fence\(\);", "slot.put(items[i]);")],
    ),
    "fence between full and get": ("weak", "", [("worker.cuh", r"(if \(got == 0\) return 0;)\s*fence\(\);", r"\1")]),
    "fence in hand_on": ("weak, small items", "does not see", [("worker.cuh", r"if \(!local\) fence\(\);.*?\n", "")]),
    "fence in push": (
        "weak, small buffer",
        "does not see",
        [("worker.cuh", r"fence\(\);(\s*queue\(\)\.publish\(queue\(\)\.reserve\(1\))", r"\1")],
    ),
    "fence in hand_on, some kept": ("weak, kept", "does not see", [("worker.cuh", r"if \(local\) fence\(\);", "")]),
    "ended confirms": ("weak, small items", EARLY, [("queue.cuh", r"add\(&counters->published, 0\)", "*published")]),
    "fence in ended": (  # which matters where nothing else does
        "weak, kept",
        EARLY,
        [
            ("queue.cuh", r"fence\(\);(\s*\*published = )", r"\1"),
            ("queue.cuh", r"add\(&counters->published, 0\)", "*published"),
        ],
    ),
    "fence in grid_barrier": ("weak, barrier", "", [("worker.cuh", r"last\(\);\s*fence\(\);", "last();")]),
    "fence in open_share": ("weak, shares", "", [("share.cuh", r"fence\(\);(\s*store\(&share\.chunks)", r"\1")]),
    "fence in claim_chunk": (
        "weak, shares",
        "",
        [("share.cuh", r"fence\(\); // behind the opener's writes, also of the bit", "")],
    ),
}


class ModelError(Exception):
    """The model cannot be compiled over csrc as it is."""


def compile_(*arguments: object) -> None:
    built = subprocess.run([COMPILER, *FLAGS, *map(str, arguments)], capture_output=True, text=True, check=False)
    if built.returncode:
        raise ModelError(built.stderr)


def checker(directory: Path) -> Path:
    """Compile the model checker, which knows nothing of csrc."""
    directory.mkdir()
    compile_("-O2", "-c", MODEL / "check.cpp", "-o", directory / "check.o")
    return directory / "check.o"


def program(directory: Path, engine: Future[Path], item_bytes: int, broken: list[tuple[str, str, str]]) -> Path:
    """Compile the model over a changed copy of csrc."""
    directory.mkdir()
    for file in [*CSRC.glob("*.cuh"), *CSRC.glob("*.h"), *MODEL.iterdir()]:
        shutil.copy(file, directory / file.name)
    for name, old, new in [*map(Change._make, broken), *CHANGES]:
        file = directory / name
        text, times = re.subn(old, new, file.read_text(), flags=re.S)
        if times != 1:
            raise ModelError(f"the model changes {old!r}, which is {times} times in csrc/{name}")
        file.write_text(text)
    speed = "-O0" if broken else "-O2"  # what is broken is soon found
    compile_(speed, f"-DBYTES={item_bytes}", directory / "model.cpp", engine.result(), "-o", directory / "model")
    return directory / "model"


def explore(model: Future[Path], scenario: str) -> tuple[int, str]:
    """Run a model: the exit status, and what it said."""
    bounds = [f"{name}={value}" for name, value in SCENARIOS[scenario].items() if name != "item_bytes"]
    done = subprocess.run([model.result(), *bounds], capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def outcomes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[Any]]]:
    """What comes of the models that the chosen tests want, as many at a time as there are cores."""
    if shutil.which(COMPILER) is None:
        pytest.skip(f"there is no C++ compiler {COMPILER}")
    wanted = {
        item.callspec.params["name"]
        for item in request.session.items
        if item.path == request.path and hasattr(item, "callspec")
    }
    root = tmp_path_factory.mktemp("model")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        # What others wait for is begun before them.
        engine = pool.submit(checker, root / "checker")
        right = {size: pool.submit(program, root / f"right {size}", engine, size, []) for size in (4, 8)}
        found = {}
        for number, name in enumerate(sorted(wanted)):
            scenario, _, broken = BROKEN.get(name, (name, "", []))
            size = SCENARIOS[scenario].get("item_bytes", 4)
            model = pool.submit(program, root / str(number), engine, size, broken) if broken else right[size]
            found[name] = pool.submit(explore, model, scenario)
        yield found


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_state_keeps_the_rules(outcomes, name, record_property):
    status, said = outcomes[name].result()
    assert status == 0, said[-8000:]
    states = re.fullmatch(r"(\d+) states, (\d+) steps, depth \d+, (\d+) ends\n", said)
    assert states
    assert int(states[1]) > 1000
    assert int(states[3]) > 0
    record_property("states", int(states[1]))


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_caught(outcomes, name):
    status, said = outcomes[name].result()
    assert status == 1, said[-8000:]
    assert BROKEN[name][1] in said.splitlines()[-1]


def test_every_scenario_catches_something_or_is_the_rule():
    assert {scenario for scenario, _, _ in BROKEN.values()} <= set(SCENARIOS)
    assert not set(SCENARIOS) & set(BROKEN)
