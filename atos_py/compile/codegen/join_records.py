"""Records of joins in tasks: taken, given back, and arrived at. Plain Python that Numba compiles for both targets.

A thread has free records of its own, a list through their words, which nobody else touches. Blocks of `BLOCK` of them go to
lists that threads share, many lists, since on one of them threads would wait for each other; and come from there or, new, from
the pool. The head of a list has a tag that grows whenever a block is taken, so that a head that was read is not mistaken for a
later one with the same block first.

A value of 32 bits shares a word with the arrivals that are missing, so that an arrival is one atomic operation. The functions
whose names end in `_in_word` take the place of others for such joins.

`subtract` and `subtract_and_combine` stand for the arrival, `add_to_word` for an addition with release order, and
`thread_number` for the number of the calling thread (lower_joins.py); `bits_of` and `value_of` for the 32 bits of a value, and
back; `link_and_info`, `write_link_and_info` and `write_words` for accesses to several words of a record at once.
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
    "add_to_word",
    "arrive_at",
    "beginning",
    "bits_of",
    "change_word",
    "change_word_of_float",
    "expect",
    "has_parent",
    "is_complete",
    "is_stale",
    "link_and_info",
    "open_record",
    "peek",
    "push_at_end",
    "reserve",
    "subtract",
    "subtract_and_combine",
    "take_value",
    "thread_number",
    "value_of",
    "write_link_and_info",
    "write_words",
]

_SUM, _MIN, _MAX = 1, 2, 3
_LOOKS = 4  # at lists, before new records are taken


def subtract(array: Any, index: Any, n: Any) -> Any:
    """Stand for an arrival: 1 for the one that makes the counter zero, -1 if it is below zero now, otherwise 0."""


def subtract_and_combine(joins: Any, i: Any, n: Any, code: Any, value: Any) -> Any:
    """Stand for an arrival with a value of 32 bits, in one atomic operation, which returns what `subtract` does.

    `code` says how the value is combined with the value of the join, or is 0 if there is none.
    """


def add_to_word(joins: Any, i: Any, change: Any) -> Any:
    """Stand for an addition to the word MISSING, with release order, which returns the word before."""


def link_and_info(joins: Any, i: Any) -> Any:
    """Stand for the words LINK and INFO of a record."""


def write_link_and_info(joins: Any, i: Any, link: Any, info: Any) -> Any:
    """Stand for a write of the words LINK and INFO of a record."""


def write_words(joins: Any, i: Any, missing: Any, following: Any, link: Any, info: Any) -> Any:
    """Stand for a write of the words MISSING, NEXT, LINK and INFO of a record."""


def bits_of(joins: Any, value: Any) -> Any:
    """Stand for the bits of a value of 32 bits, as an int64 with its sign."""


def value_of(joins: Any, bits: Any) -> Any:
    """Stand for the value that the lower 32 bits are."""


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
    is_short = len(joins.records) + BLOCK * joins.own.shape[1] > words.shape[0]  # as many threads may take a block now
    for k in range(LISTS if is_short else _LOOKS):
        first = _pop(joins, (thread + k) % LISTS)
        if first >= 0:
            return first
    first = joins.records.take(BLOCK)
    if first >= 0:
        for i in range(first, first + BLOCK):
            link = i + 2 if i + 1 < first + BLOCK else 0
            write_link_and_info(joins, i, link, joins.free[FIRST_GENERATION] << INFO_GENERATION)
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
    count = own[COUNT, thread]
    while count < n:
        first = _take_block(joins, thread)
        if first < 0:
            return False
        words = joins.records.words
        words[_last_of_block(words, first), LINK] = own[HEAD, thread]
        count += BLOCK
        own[HEAD, thread], own[COUNT, thread] = first + 1, count
    if n > BLOCK:
        own[RESERVED, thread] = n
    return True


def open_record(worker, joins, count, parent, code, negates, first_value):
    """Return the handle of a record of the thread's own, which waits from now on; -1 if there is none."""
    own, thread = joins.own, thread_number(worker)
    if own[COUNT, thread] == 0 and not reserve(worker, joins, 1):
        atomic_add(joins.free, UNDECLARED, 1)
        return -1
    i = own[HEAD, thread] - 1
    link, info = link_and_info(joins, i)
    own[HEAD, thread] = link
    own[COUNT, thread] -= 1
    generation = ((info >> INFO_GENERATION) + 1) & GENERATIONS
    info = generation << INFO_GENERATION | code << INFO_CODE | (NEGATES if negates else 0) | IS_OPEN
    write_words(joins, i, _begin(joins, i, count, first_value), 0, parent, info)
    return generation << HANDLE_GENERATION | code << HANDLE_CODE | i + 1


def _close(worker, joins, i, info):
    """Give a record back to the thread, and a block to all if the thread has two, and what it has reserved without that one."""
    own, thread, words = joins.own, thread_number(worker), joins.records.words
    write_link_and_info(joins, i, own[HEAD, thread], info & ~(IS_OPEN | PUSHES | NEGATES))
    count = own[COUNT, thread] + 1
    if count < 2 * BLOCK or count - BLOCK < own[RESERVED, thread]:
        own[HEAD, thread], own[COUNT, thread] = i + 1, count
    else:
        last = _last_of_block(words, i)
        own[HEAD, thread], own[COUNT, thread] = words[last, LINK], count - BLOCK
        _give_block(joins, thread % LISTS, i)


def _combine(values, i, code, value):
    if code == _SUM:
        accumulate(values, i, value)
    elif code == _MIN:
        atomic_min(values, i, value)
    elif code == _MAX:
        atomic_max(values, i, value)


def _begin(joins, i, count, first_value):
    """Return the word MISSING of a record that waits for so many arrivals; give it a first value."""
    joins.records.value[i] = first_value
    return count


def _begin_in_word(joins, i, count, first_value):
    return bits_of(joins, first_value) << 32 | count


def _arrive(joins, i, n, code, value):
    """Combine a value with that of a record, unless `code` is 0, and then subtract from the arrivals; see `subtract`."""
    if code:
        _combine(joins.records.value, i, code, value)
    return subtract(joins.records.words, (i, MISSING), n)


def _arrive_in_word(joins, i, n, code, value):
    return subtract_and_combine(joins, i, n, code, value)


def _value(joins, i):
    """Return the value of a record."""
    return joins.records.value[i]


def _value_in_word(joins, i):
    return value_of(joins, joins.records.words[i, MISSING] >> 32)


def _missing(joins, i):
    """Return how many arrivals a record lacks."""
    return joins.records.words[i, MISSING]


def _missing_in_word(joins, i):
    return joins.records.words[i, MISSING] & 0xFFFF_FFFF


def change_word(joins, i, n, code, value):
    """Subtract from the arrivals of a join, and combine an integer of 32 bits with its value; return the word before."""
    words = joins.records.words
    if code <= _SUM:
        return add_to_word(joins, i, (bits_of(joins, value) << 32 if code else 0) - n)
    before = atomic_load(words, (i, MISSING))
    while True:
        old = value_of(joins, before >> 32)
        new = min(old, value) if code == _MIN else max(old, value)
        after = bits_of(joins, new) << 32 | (before - n) & 0xFFFF_FFFF
        found = atomic_cas(words, (i, MISSING), before, after, memory_order="release")
        if found == before:
            return before
        before = found


def change_word_of_float(joins, i, n, code, value):
    """As `change_word`, of a join whose value is a float."""
    words = joins.records.words
    before = atomic_load(words, (i, MISSING))
    while True:
        new = value_of(joins, before >> 32)
        if code == _SUM:
            new += value
        elif (code == _MIN and value < new) or (code == _MAX and value > new):  # a NaN changes nothing
            new = value
        after = bits_of(joins, new) << 32 | (before - n) & 0xFFFF_FFFF
        found = atomic_cas(words, (i, MISSING), before, after, memory_order="release")
        if found == before:
            return before
        before = found


def arrive_at(worker, joins, handle, value, has_value, n, root_code):
    """Arrive at a join, and at its parents as far as this is the last arrival.

    Return the index of a record, and 1, whose item is to be pushed; -1 if more have arrived than the join waited for; else 0.
    """
    words = joins.records.words
    while handle > 0:
        i, code = (handle & INDEX) - 1, handle >> HANDLE_CODE & 3
        if has_value and code >= _MIN:
            atomic_store(words, (i, NEXT), 1)
        parent, info = link_and_info(joins, i)  # on their way during the arrival
        state = _arrive(joins, i, n, code if has_value else 0, value)
        if state != 1:
            return state
        value, n = _value(joins, i), 1
        has_value = code == _SUM or (code >= _MIN and words[i, NEXT] != 0)  # no minimum or maximum of nothing
        if info & PUSHES:
            return i + 1
        handle = parent
        if info & NEGATES:
            value = -value
        _close(worker, joins, i, info)
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
    value = _value(joins, i)
    _, info = link_and_info(joins, i)
    _close(worker, joins, i, info)
    return value


def expect(joins, handle, n):
    """Let a join wait for `n` more arrivals."""
    atomic_add(joins.records.words, ((handle & INDEX) - 1, MISSING), n)


def peek(joins, handle):
    """Return what has arrived at a join so far, combined."""
    return joins.root[0] if handle <= 0 else _value(joins, (handle & INDEX) - 1)


def has_parent(joins, handle):
    """Whether a join that is open arrives at another one."""
    return joins.records.words[(handle & INDEX) - 1, LINK] != 0


def is_complete(joins, handle):
    """Whether a join that is open has pushed its item."""
    i = (handle & INDEX) - 1
    return joins.records.words[i, INFO] & PUSHES != 0 and _missing(joins, i) == 0


def is_stale(joins, handle):
    """Whether a handle is of no join that is open: of one that has ended, or none at all."""
    if handle == 0:
        return False
    i = (handle & INDEX) - 1
    if handle < 0 or i < 0 or i >= len(joins.records):
        return True
    info = joins.records.words[i, INFO]
    return info & IS_OPEN == 0 or info >> INFO_GENERATION != handle >> HANDLE_GENERATION


def _let_call(function: Any, result: types.Type | None, in_word: Any = None) -> None:
    """Let functions that are compiled for tasks call one of this module, which returns a value of type `result`.

    Without one the result is a value of the joins. `in_word` takes the place of the function for values of 32 bits.
    """

    @infer_global(function)
    class Call(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            return signature(args[0].value if result is None else result, *map(types.unliteral, args))

    @lower_builtin(function, types.VarArg(types.Any))
    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        chosen = in_word if in_word and sig.args[0].value.bitwidth == 32 else function
        return context.compile_internal(builder, chosen, sig, args)


_RESULTS: dict[types.Type, tuple[Any, ...]] = {
    types.int64: (_take_block, _pop, _last_of_block),
    types.none: (_give_block, _close, _combine),
    types.boolean: (reserve,),
}
for _result, _functions in _RESULTS.items():
    for _function in _functions:
        _let_call(_function, _result)
_let_call(_begin, types.int64, _begin_in_word)
_let_call(_arrive, types.int64, _arrive_in_word)
_let_call(_missing, types.int64, _missing_in_word)
_let_call(_value, None, _value_in_word)
