"""The fences and orders of the core, read from its sources, and whether a program has them.

A label of an instruction is a function and a call in that function: ``publish fence#2`` is the second call of `fence` in
`publish`. With words in parentheses, ``finish fetch_add(finished)``, only calls with these words among their arguments count.
`FUNCTIONS` says which function of which file is meant. Of a function of Python that tasks call, ``release`` and ``acquire``
are the fences before and after an atomic operation with such an order.

What a call is in PTX is read from `csrc/protocol/atomic.cuh`, and what the functions of a slot are from `slot.cuh`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from litmus.form import Instruction, Program

ROOT = Path(__file__).parents[2]
CSRC = ROOT / "csrc"
JOINS = "atos_py/compile/codegen/join_records.py"

# The function of each label: its file, its name there, and which definition of that name it is.
FUNCTIONS = {
    "publish": ("csrc/protocol/queue_ref.cuh", "publish", 1),
    "publish_all": ("csrc/protocol/queue_ref.cuh", "publish", 2),
    "finish": ("csrc/protocol/queue_ref.cuh", "finish", 1),
    "ended": ("csrc/protocol/queue_ref.cuh", "ended", 1),
    "reserve": ("csrc/protocol/growth.cuh", "reserve", 1),
    "reserve_with_space": ("csrc/protocol/growth.cuh", "reserve_with_space", 1),
    "grow": ("csrc/protocol/growth.cuh", "grow", 1),
    "split_item": ("csrc/protocol/split_item.cuh", "split_item", 1),
    "claim_chunk": ("csrc/protocol/split_item.cuh", "claim_chunk", 1),
    "finish_chunk": ("csrc/protocol/split_item.cuh", "finish_chunk", 1),
    "count": ("csrc/protocol/far_items.cuh", "count", 1),
    "begin_block": ("csrc/protocol/far_items.cuh", "begin_block", 1),
    "FarItems::put": ("csrc/protocol/far_items.cuh", "put", 1),
    "FarItems::claim_chunk": ("csrc/protocol/far_items.cuh", "claim_chunk", 1),
    "FarItems::finish_chunk": ("csrc/protocol/far_items.cuh", "finish_chunk", 1),
    "entries": ("csrc/protocol/far_items.cuh", "entries", 1),
    "find": ("csrc/protocol/far_items.cuh", "find", 1),
    "take_block": ("csrc/protocol/far_items.cuh", "take_block", 1),
    "open": ("csrc/protocol/far_items.cuh", "open", 2),
    "open_locked": ("csrc/protocol/far_items.cuh", "open_locked", 1),
    "open_list": ("csrc/protocol/far_items.cuh", "open_list", 1),
    "FarItem::put": ("csrc/protocol/far_layout.cuh", "put", 1),
    "FarItem::take": ("csrc/protocol/far_layout.cuh", "take", 1),
    "begin_delivery": ("csrc/protocol/inbox.cuh", "begin_delivery", 1),
    "deliver": ("csrc/protocol/inbox.cuh", "deliver", 1),
    "end_delivery": ("csrc/protocol/inbox.cuh", "end_delivery", 1),
    "Peers::ended": ("csrc/protocol/peers.cuh", "ended", 1),
    "meet": ("csrc/protocol/peers.cuh", "meet", 1),
    "has_met": ("csrc/protocol/peers.cuh", "has_met", 1),
    "end_meeting": ("csrc/protocol/peers.cuh", "end_meeting", 1),
    "take": ("csrc/device/thread_worker.cuh", "take", 1),
    "take_ready": ("csrc/device/group_worker.cuh", "take_ready", 1),
    "work": ("csrc/device/group_worker.cuh", "work", 1),
    "take_far_chunk": ("csrc/device/group_worker.cuh", "take_far_chunk", 1),
    "push": ("csrc/device/push_buffer.cuh", "push", 1),
    "flush_pushes": ("csrc/device/push_buffer.cuh", "flush_pushes", 1),
    "push_on_stack": ("csrc/device/newest_first.cuh", "push_on_stack", 1),
    "settle_pushes": ("csrc/device/newest_first.cuh", "settle_pushes", 1),
    "push_with_level": ("csrc/device/far_work.cuh", "push_with_level", 1),
    "run_far": ("csrc/device/far_work.cuh", "run_far", 1),
    "fence_of_items": ("csrc/device/worker_state.cuh", "fence_of_items", 1),
    "fence_before_publishing": ("csrc/device/peer_pushes.cuh", "fence_before_publishing", 1),
    "take_from_inbox": ("csrc/device/inbox.cuh", "take_from_inbox", 1),
    "arrive": ("csrc/device/bsp_rounds.cuh", "arrive", 1),
    "take_back_arrival": ("csrc/device/bsp_rounds.cuh", "take_back_arrival", 1),
    "open_or_wait": ("csrc/device/bsp_rounds.cuh", "open_or_wait", 1),
    "grid_barrier": ("csrc/device/bsp_rounds.cuh", "grid_barrier", 1),
    "look_at_round": ("csrc/device/bsp_rounds.cuh", "look_at_round", 1),
    "run_each_round": ("csrc/device/bsp_rounds.cuh", "run_each_round", 1),
    "next_round": ("csrc/device/bsp_rounds.cuh", "next_round", 1),
    "leave": ("csrc/device/host_report.cuh", "leave", 1),
    "release_add": ("csrc/device/dependency_counters.cuh", "release_add", 1),
    "arrive_at": ("csrc/device/dependency_counters.cuh", "arrive_at", 1),
    "tell": ("csrc/host/inbox.cpp", "tell", 1),
    "atos_inbox::put": ("csrc/host/inbox.cpp", "put", 1),
    "_give_block": (JOINS, "_give_block", 1),
    "_pop": (JOINS, "_pop", 1),
}
# Fences that are in no program, and why.
OTHER_FENCES = {
    "csrc/device/task_api.cuh fence": "the fence that a task asks for",
    "csrc/device/worker_state.cuh fence_device": "fence_of_items, which the programs have where it is called",
    "csrc/device/worker_state.cuh fence": "fence_of_items, which the programs have where it is called",
    "csrc/device/peer_pushes.cuh fence_before_publishing#1": "the programs have what it does",
    "csrc/device/peer_pushes.cuh fence_before_publishing#2": "the programs have what it does",
    "csrc/device/debug_rendezvous.cuh __threadfence_block#1": "threads of a worker that checks a task, in shared memory",
    "csrc/device/debug_rendezvous.cuh __threadfence_block#2": "threads of a worker that checks a task, in shared memory",
    "csrc/device/debug_rendezvous.cuh __threadfence_block#3": "threads of a worker that checks a task, in shared memory",
}
FENCES = ("fence", "fence_device", "fence_system", "fence_of_items", "fence_before_publishing", "__threadfence_block")
FENCES = (*FENCES, "__threadfence_system", "__threadfence")
OPERATIONS = ("load", "load_system", "load_pair", "store", "store_system", "store_pair", "fetch_add", "compare_exchange")
OPERATIONS = (*OPERATIONS, "set_bits", "set_bit", "clear_bit", "lower_to", "release_add")
BARRIERS = ("__syncthreads", "__syncthreads_or", "__syncwarp", "Group::sync")
OF_SLOT = ("is_free", "is_ready", "put", "commit", "get", "release")
CALL = re.compile(rf"(?<![\w:~])({'|'.join(sorted((*FENCES, *BARRIERS, *OPERATIONS, *OF_SLOT), key=len, reverse=True))})\(")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
LABEL = re.compile(r"(?P<function>\S+) (?P<call>[\w:]+)(?:\((?P<words>[^)]*)\))?(?:#(?P<number>\d+))?")


class SourceError(Exception):
    """The sources do not have what a label says."""


class Call(NamedTuple):
    """A call in a function: its name, its arguments as text, and where it is in its file."""

    name: str
    arguments: str
    at: int


def read(path: str) -> str:
    return (ROOT / path).read_text()


@cache
def text_of(path: str) -> str:
    """Return a file without its comments, whose places stay as they are."""
    return COMMENT.sub(lambda found: " " * len(found[0]), read(path))


def end_of(text: str, at: int, pair: str) -> int:
    """Return the place behind the bracket that closes the one at a place."""
    depth = 0
    for place in range(at, len(text)):
        depth += (text[place] == pair[0]) - (text[place] == pair[1])
        if not depth:
            return place + 1
    raise SourceError(f"a bracket is not closed: {text[at : at + 40]!r}")


@cache
def body(path: str, name: str, number: int) -> tuple[int, int]:
    """Return where the body of a function begins and ends in its file."""
    text = text_of(path)
    found = []
    for head in re.finditer(rf"(?<![\w.>]){name}\(", text):
        behind = end_of(text, head.end() - 1, "()")
        begins = re.match(r"(?: const)?\s*\{", text[behind:])
        if begins and not re.search(r"\breturn\s*$", text[: head.start()]):
            found.append((behind + begins.end() - 1, end_of(text, behind + begins.end() - 1, "{}")))
    if len(found) < number:
        raise SourceError(f"{path} has no definition {number} of {name}")
    return found[number - 1]


@cache
def calls(function: str) -> list[Call]:
    """Return the calls of memory operations and fences in a function, in order."""
    path, name, number = FUNCTIONS[function]
    if path.endswith(".py"):
        return list(calls_of_python(path, name))
    return list(calls_between(path, *body(path, name, number)))


def calls_between(path: str, begin: int, end: int) -> Iterator[Call]:
    text = text_of(path)
    for found in CALL.finditer(text, begin, end):
        last = end_of(text, found.end() - 1, "()")
        yield Call(found[1], text[found.end() : last - 1], found.start())


def calls_of_python(path: str, name: str) -> Iterator[Call]:
    (function,) = (node for node in ast.parse(text_of(path)).body if isinstance(node, ast.FunctionDef) and node.name == name)
    found = [node for node in ast.walk(function) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    for node in sorted((node for node in found if node.func.id.startswith("atomic_")), key=lambda node: node.lineno):
        (order,) = [ast.literal_eval(word.value) for word in node.keywords if word.arg == "memory_order"] or ["relaxed"]
        if order in ("release", "acq_rel"):
            yield Call("release", "", node.lineno * 3)
        yield Call(node.func.id, ast.unparse(node), node.lineno * 3 + 1)
        if order in ("acquire", "acq_rel"):
            yield Call("acquire", "", node.lineno * 3 + 2)


def found_by(label: str) -> tuple[str, Call]:
    """Return the function that a label names, and the call."""
    parts = LABEL.fullmatch(label)
    if not parts or parts["function"] not in FUNCTIONS:
        raise SourceError(f"no label: {label!r}")
    words = parts["words"] or ""
    fits = [call for call in calls(parts["function"]) if call.name == parts["call"] and words in call.arguments]
    number = int(parts["number"] or 1)
    if len(fits) < number or (parts["call"] in FENCES and not parts["number"] and len(fits) > 1):
        raise SourceError(f"{label!r}: {len(fits)} such calls in {FUNCTIONS[parts['function']][0]}")
    return parts["function"], fits[number - 1]


@cache
def primitives() -> dict[str, tuple[str, str]]:
    """Return the instruction and the scope of each operation on a GPU, by `atomic.cuh`; scope "" is the scope of the launch."""
    text = read("csrc/protocol/atomic.cuh")
    gpu, _ = text[text.index("#if defined(__CUDA_ARCH__)") :].split("#else", 1)
    gpu += read("csrc/device/dependency_counters.cuh")
    found = {}
    for name, code in re.findall(r"^ATOS_DEVICE [\w ]+?(\w+)\([^)]*\) \{(.*?)\}\n", gpu, re.MULTILINE | re.DOTALL):
        if asm := re.search(
            r'"(?:\{[^"]*?; )?((?:ld|st|atom|red|fence)\.\w+)(\.sys|\.gpu)?([^"]*)"(?:, "\.global\.?(\w*))?', code
        ):
            scoped = "" if "ATOS_SCOPED" in code else (asm[2] or "").lstrip(".")
            op = re.search(r"\.global\.(add|cas|or|min|and)\b", code)
            found[name] = (asm[1] + (f".{op[1]}" if op else ""), scoped)
    found["set_bit"] = found["set_bits"]
    return found


@cache
def orders_on_cpu() -> dict[str, str]:
    """Return the order of each kind of operation on the CPU, as `atomic.cuh` has it; its fences are empty."""
    text = read("csrc/protocol/atomic.cuh")
    cpu = text[text.index("#else\n\nconstexpr bool kHasPairs") :]
    found = dict(re.findall(r"(\w+)\([^)]*\) \{\s*(?:return )?__atomic_\w+\([^;]*?__ATOMIC_(\w+)", cpu))
    of_atom = {found.get(name) for name in ("fetch_add", "compare_exchange", "set_bits")}
    if len(of_atom) > 1:
        raise SourceError(f"atomic operations of the CPU have orders {of_atom}")
    if re.search(r"fence\w*\(\) \{[^}]", cpu):
        raise SourceError("fences of the CPU are not empty")
    return {"ld": found["load"].lower(), "st": found["store"].lower(), "atom": found["fetch_add"].lower()}


def forget() -> None:
    """Forget what the sources say."""
    for function in (text_of, body, calls, primitives, orders_on_cpu):
        function.cache_clear()


def instruction_of(function: str, call: Call, gpus: int) -> set[str]:
    """Return the instructions that a call may be, in a launch over so many GPUs."""
    launch = "sys" if gpus > 1 else "gpu"
    path = FUNCTIONS[function][0]
    if path == JOINS:
        fence = f"fence.acq_rel.{launch}"
        return (
            {fence} if call.name in ("release", "acquire") else {f"{'ld' if 'load' in call.name else 'atom'}.relaxed.{launch}"}
        )
    if path.startswith("csrc/host"):
        word = "ld" if "load" in call.name else "st"
        return {f"{word}.{orders_on_cpu()[word]}.sys"}
    if call.name in BARRIERS:
        return {"bar.sync"}
    if call.name == "__threadfence_system":
        return {"fence.acq_rel.sys"}  # or a stronger one
    if call.name == "fence_of_items":
        return {word for inner in calls("fence_of_items") for word in instruction_named(inner.name, launch)}
    if call.name in OF_SLOT:
        of_slot = {inner.name for number in (1, 2) for inner in calls_of_slot(call.name, number)}
        return {word for name in of_slot for word in instruction_named(name, launch)}
    return instruction_named(call.name, launch)


def calls_of_slot(name: str, number: int) -> Iterator[Call]:
    """Go over the memory operations in a function of a slot."""
    for call in calls_between("csrc/protocol/slot.cuh", *body("csrc/protocol/slot.cuh", name, number)):
        if call.name in OF_SLOT:
            yield from calls_of_slot(call.name, number)
        else:
            yield call


def instruction_named(name: str, launch: str) -> set[str]:
    text, scope = primitives()[name]
    word, order, *op = text.split(".")
    return {".".join([word, order, scope or launch, *op])}


def first_words(line: Instruction) -> str:
    """Return an instruction of a program as the sources have it."""
    return "bar.sync" if line.kind == "bar" else ".".join(filter(None, [line.kind, line.order, line.scope, line.op]))


def disagreements(program: Program) -> Iterator[str]:
    """Go over what a program has and the sources do not, and the other way round.

    Each labelled instruction is what the call is. The calls of a function that a thread has are in the order of the function,
    and no fence of it between them is missing, but for one in a branch of which the thread has no call.
    """
    gpus = len({thread.gpu for thread in program.threads if thread.gpu >= 0})
    for thread in program.threads:
        done: dict[str, list[Call]] = {}
        for line in thread.instructions:
            for label in line.at:
                try:
                    function, call = found_by(label)
                except SourceError as error:
                    yield f"{program.name}: {error}"
                    continue
                may_be = instruction_of(function, call, gpus)
                said = first_words(line)
                if said not in may_be and not any(each == said.rpartition(".")[0] for each in may_be if line.op):
                    yield f"{program.name}: {label} is {' or '.join(sorted(may_be))}, and not {said}"
                done.setdefault(function, []).append(call)
        for function, mine in done.items():
            places = [call.at for call in mine]
            if places != sorted(places):
                yield f"{program.name}: {thread.name} has calls of {function} in another order"
            for call in calls(function):
                is_fence = call.name in FENCES or (FUNCTIONS[function][0] == JOINS and call.name in ("release", "acquire"))
                if (
                    is_fence
                    and min(places) < call.at < max(places)
                    and call.at not in places
                    and is_passed(function, call, places)
                ):
                    yield f"{program.name}: {thread.name} lacks {call.name} between calls of {function}"


def is_passed(function: str, call: Call, places: list[int]) -> bool:
    """Whether a thread with calls at some places passes another call: whether one of them is in the same block of braces."""
    path, name, number = FUNCTIONS[function]
    if path == JOINS:
        return True
    begin, end = body(path, name, number)
    text, opened = text_of(path), []
    for at in range(begin, call.at):
        if text[at] == "{":
            opened.append(at)
        elif text[at] == "}":
            opened.pop()
    return any(opened[-1] < place < min(end, end_of(text, opened[-1], "{}")) for place in places)


def fences_in_sources() -> dict[tuple[str, int], str]:
    """Return all fences of the protocol and of workers on GPUs: their files and places, and a name for each."""
    found = {}
    for folder in ("protocol", "device"):
        for file in sorted((CSRC / folder).glob("*.cuh")):
            path = file.relative_to(ROOT).as_posix()
            if path == "csrc/protocol/atomic.cuh":
                continue
            text = text_of(path)
            of_name: dict[str, list[int]] = {}
            for call in calls_between(path, 0, len(text)):
                is_call = text[end_of(text, call.at + len(call.name), "()") :].lstrip()[:1] == ";"
                if call.name in FENCES and is_call:
                    of_name.setdefault(call.name, []).append(call.at)
            for name, places in of_name.items():
                for number, place in enumerate(places, 1):
                    found[path, place] = f"{path} {name}" + (f"#{number}" if len(places) > 1 else "")
    return found
