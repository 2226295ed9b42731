"""Records of joins in tasks: taken, given back, and arrived at. Plain Python that Numba compiles for both targets.

A thread has free records of its own, a list through their words, which nobody else touches. Blocks of `BLOCK` of them go to
lists that threads share, many lists, since on one of them threads would wait for each other; and come from there or, new, from
the pool. The head of a list has a tag that grows whenever a block is taken, so that a head that was read is not mistaken for a
later one with the same block first.

`subtract` stands for the arrival at a counter, and `thread_number` for the number of the calling thread (lower_joins.py).
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin

from ...arrays.join_layout import (
    BLOCK,
    COUNT,
    FIRST_GENERATION,
    GENERATIONS,
    HANDLE_CODE,
    HANDLE_GENERATION,
    HEAD,
    INDEX,
    INFO,
    INFO_CODE,
    INFO_GENERATION,
    IS_OPEN,
    LINK,
    LISTS,
    MISSING,
    NEGATES,
    NEXT,
    PUSHES,
    RESERVED,
    TAG,
    UNDECLARED,
)
from ..atomics import accumulate, atomic_add, atomic_cas, atomic_load, atomic_max, atomic_min, atomic_store

__all__ = [
    "arrive_at",
    "beginning",
    "expect",
    "has_parent",
    "is_complete",
    "is_stale",
    "open_record",
    "peek",
    "push_at_end",
    "reserve",
    "subtract",
    "take_value",
    "thread_number",
]

_SUM, _MIN, _MAX = 1, 2, 3
_LOOKS = 4  # at lists, before new records are taken


def subtract(array: Any, index: Any, n: Any) -> Any:
    """Stand for an arrival: 1 for the one that makes the counter zero, -1 if it is below zero now, otherwise 0."""


def thread_number(worker: Any) -> Any:
    """Stand for the number of the calling thread among all of the launch."""


def beginning(task: Any) -> Any:
    """Return a function that says whether a thread can run a task on an item, for which it then has records.

    Otherwise the item is in the queue again, as it was. All threads of a worker begin, or none.
    """
    opens = task.opens

    def begin(worker, item, joins):
        if worker.all(reserve(worker, joins, opens)):
            return True
        if worker.rank == 0:
            worker.push(item, task=task)
        return False

    return begin


def _take_block(joins, thread):
    """Return the first record of a free block, or -1 if there is none."""
    words = joins.records.words
    is_short = len(joins.records) + BLOCK * joins.own.shape[0] > words.shape[0]  # as many threads may take a block now
    for k in range(LISTS if is_short else _LOOKS):
        first = _pop(joins, (thread + k) % LISTS)
        if first >= 0:
            return first
    first = joins.records.take(BLOCK)
    if first >= 0:
        for i in range(first, first + BLOCK):
            words[i, INFO] = joins.free[FIRST_GENERATION] << INFO_GENERATION
            words[i, LINK] = i + 2 if i + 1 < first + BLOCK else 0
    return first


def _pop(joins, number):
    """Take the first block from one of the lists; return its first record, or -1."""
    head = atomic_load(joins.free, number, memory_order="acquire")
    while head & INDEX:
        first = (head & INDEX) - 1
        rest = joins.records.words[first, NEXT]  # if another thread has the block by now, what this is does not matter
        found = atomic_cas(joins.free, number, head, (head & ~INDEX) + TAG | rest, memory_order="acq_rel")
        if found == head:
            return first
        head = found
    return -1


def _give_block(joins, number, first):
    """Put a block on one of the lists."""
    head = atomic_load(joins.free, number)
    while True:
        joins.records.words[first, NEXT] = head & INDEX
        found = atomic_cas(joins.free, number, head, head & ~INDEX | first + 1, memory_order="release")
        if found == head:
            return
        head = found


def _last_of_block(words, first):
    """Return the last of `BLOCK` records from one on."""
    last = first
    for _ in range(BLOCK - 1):
        last = words[last, LINK] - 1
    return last


def reserve(worker, joins, n):
    """Whether the thread has `n` records of its own now."""
    own, thread = joins.own, thread_number(worker)
    count = own[thread, COUNT]
    while count < n:
        first = _take_block(joins, thread)
        if first < 0:
            return False
        words = joins.records.words
        words[_last_of_block(words, first), LINK] = own[thread, HEAD]
        count += BLOCK
        own[thread, HEAD], own[thread, COUNT] = first + 1, count
    if n > BLOCK:
        own[thread, RESERVED] = n
    return True


def open_record(worker, joins, count, parent, code, negates, first_value):
    """Return the handle of a record of the thread's own, which waits from now on; -1 if there is none."""
    own, thread, words = joins.own, thread_number(worker), joins.records.words
    if own[thread, COUNT] == 0 and not reserve(worker, joins, 1):
        atomic_add(joins.free, UNDECLARED, 1)
        return -1
    i = own[thread, HEAD] - 1
    own[thread, HEAD] = words[i, LINK]
    own[thread, COUNT] -= 1
    generation = ((words[i, INFO] >> INFO_GENERATION) + 1) & GENERATIONS
    words[i, MISSING], words[i, LINK] = count, parent
    words[i, INFO] = generation << INFO_GENERATION | code << INFO_CODE | (NEGATES if negates else 0) | IS_OPEN
    if code >= _MIN:
        words[i, NEXT] = 0
    joins.records.value[i] = first_value
    return generation << HANDLE_GENERATION | code << HANDLE_CODE | i + 1


def _close(worker, joins, i):
    """Give a record back to the thread, and a block to all if the thread has two, and what it has reserved without that one."""
    own, thread, words = joins.own, thread_number(worker), joins.records.words
    words[i, INFO] &= ~(IS_OPEN | PUSHES | NEGATES)
    words[i, LINK] = own[thread, HEAD]
    count = own[thread, COUNT] + 1
    if count < 2 * BLOCK or count - BLOCK < own[thread, RESERVED]:
        own[thread, HEAD], own[thread, COUNT] = i + 1, count
    else:
        last = _last_of_block(words, i)
        own[thread, HEAD], own[thread, COUNT] = words[last, LINK], count - BLOCK
        _give_block(joins, thread % LISTS, i)


def _combine(values, i, code, value):
    if code == _SUM:
        accumulate(values, i, value)
    elif code == _MIN:
        atomic_min(values, i, value)
    elif code == _MAX:
        atomic_max(values, i, value)


def arrive_at(worker, joins, handle, value, has_value, n, root_code):
    """Arrive at a join, and at its parents as far as this is the last arrival.

    Return the index of a record, and 1, whose item is to be pushed; -1 if more have arrived than the join waited for; else 0.
    """
    words, values = joins.records.words, joins.records.value
    while handle > 0:
        i, code = (handle & INDEX) - 1, handle >> HANDLE_CODE & 3
        if has_value:
            _combine(values, i, code, value)
            if code >= _MIN:
                atomic_store(words, (i, NEXT), 1)
        state = subtract(words, (i, MISSING), n)
        if state != 1:
            return state
        info, value, n = words[i, INFO], values[i], 1
        has_value = code == _SUM or (code >= _MIN and words[i, NEXT] != 0)  # no minimum or maximum of nothing
        if info & PUSHES:
            return i + 1
        handle = words[i, LINK]
        if info & NEGATES:
            value = -value
        _close(worker, joins, i)
    if handle == 0 and has_value:
        _combine(joins.root, 0, root_code, value)
    return 0


def push_at_end(joins, handle, priority):
    """Note that a join ends by a push; return the index of its record."""
    i = (handle & INDEX) - 1
    words = joins.records.words
    words[i, INFO] |= PUSHES
    words[i, LINK] = priority
    return i


def take_value(worker, joins, handle):
    """Return the value of a join that has pushed its item, and give its record back."""
    i = (handle & INDEX) - 1
    value = joins.records.value[i]
    _close(worker, joins, i)
    return value


def expect(joins, handle, n):
    """Let a join wait for `n` more arrivals."""
    atomic_add(joins.records.words, ((handle & INDEX) - 1, MISSING), n)


def peek(joins, handle):
    """Return what has arrived at a join so far, combined."""
    return joins.root[0] if handle <= 0 else joins.records.value[(handle & INDEX) - 1]


def has_parent(joins, handle):
    """Whether a join that is open arrives at another one."""
    return joins.records.words[(handle & INDEX) - 1, LINK] != 0


def is_complete(joins, handle):
    """Whether a join that is open has pushed its item."""
    i = (handle & INDEX) - 1
    return joins.records.words[i, INFO] & PUSHES != 0 and joins.records.words[i, MISSING] == 0


def is_stale(joins, handle):
    """Whether a handle is of no join that is open: of one that has ended, or none at all."""
    if handle == 0:
        return False
    i = (handle & INDEX) - 1
    if handle < 0 or i < 0 or i >= len(joins.records):
        return True
    info = joins.records.words[i, INFO]
    return info & IS_OPEN == 0 or info >> INFO_GENERATION != handle >> HANDLE_GENERATION


def _let_call(function: Any, result: types.Type) -> None:
    """Let functions that are compiled for tasks call one of this module, which returns a value of type `result`."""

    @infer_global(function)
    class Call(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            return signature(result, *map(types.unliteral, args))

    @lower_builtin(function, types.VarArg(types.Any))
    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        return context.compile_internal(builder, function, sig, args)


_RESULTS: dict[types.Type, tuple[Any, ...]] = {
    types.int64: (_take_block, _pop, _last_of_block),
    types.none: (_give_block, _close, _combine),
    types.boolean: (reserve,),
}
for _result, _functions in _RESULTS.items():
    for _function in _functions:
        _let_call(_function, _result)
