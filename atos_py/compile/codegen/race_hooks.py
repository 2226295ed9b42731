"""Calls that a task compiled for a launch with `debug="races"` makes where it begins, pushes or accesses an element.

The functions that they call (`race_events.py`) are compiled once for a process, and find the tables of the launch by `tables`.
"""

from __future__ import annotations

import contextlib
import functools
import linecache
from collections.abc import Iterator
from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba.core import cgutils, types
from numba.core.ccallback import CFunc
from numba.core.typing.templates import signature

from ..host_kernel_cache import KernelCache
from . import race_events as events
from .lower_checks import in_racing_code, site_number
from .numba_patches import current_lowering
from .numba_private import set_cache
from .team_calls import pause
from .types import I64, TaskArray, bits_of

__all__ = [
    "begin_between",
    "begin_item",
    "begin_iteration",
    "install",
    "note_access",
    "note_fence",
    "note_push",
    "note_word",
    "watched",
]

RACES = "races"
#: The address of the tables of the launch that runs, one at a time in a process.
tables = np.zeros(1, np.int64)

_KEPT_BY_ITS_WORKER = ("readonly", "scratch", "local", "exclusive")  # nobody else writes such arrays during a launch
_KINDS = dict.fromkeys(("atomic_add", "accumulate", "atomic_mul", "atomic_xor", "atomic_exch"), events.ACCUMULATES)
_KINDS |= {"read": events.READS, "write": events.WRITES, "atomic_load": events.LOADS, "atomic_store": events.STORES}
_MEANT = {events.READS: events.LOADS, events.WRITES: events.STORES, events.ACCUMULATES: events.CHANGES}
_MARK = "# race: "  # and a reason: the accesses of the line are meant so, and count as relaxed atomics
_ORDERS = {
    "relaxed": 0,
    "acquire": events.ACQUIRES,
    "release": events.RELEASES,
    "acq_rel": events.ACQUIRES | events.RELEASES,
}
_ITEM_WORDS = 4


class _Cache(KernelCache):
    """The cache of code on disk, as a function with a C interface asks it, with a signature in place of types."""

    def _name(self, signature: Any, codegen: Any) -> str | None:
        return super()._name(signature.args, codegen)


@functools.cache
def install() -> None:
    """Compile the functions that are called, and let LLVM know their addresses."""
    functions = {
        "begin_item": (events.begin_item, types.int64, 6),
        "begin_iteration": (events.begin_iteration, types.int64, 2),
        "between_rounds": (events.between_rounds, types.void, 0),
        "pushed": (events.pushed, types.void, 4),
        "access": (events.access, types.void, 6),
        "synchronize": (events.synchronize, types.void, 3),
        "fence": (events.fence, types.void, 1),
        "asked_for_index": (events.asked_for_index, types.void, 0),
    }
    for name, (function, result, count) in functions.items():
        given = (types.CPointer(types.int64), *[types.int64] * count)
        compiled = CFunc(function.py_func, (given, result), {}, {})
        set_cache(compiled, _Cache(function.py_func))
        compiled.compile()
        _KEPT.append(compiled)
        binding.add_symbol(f"atos_race_{name}", compiled.address)


_KEPT: list[Any] = []  # code that is called by its address


def _call(builder: ir.IRBuilder, name: str, result: ir.Type, *values: ir.Value) -> ir.Value:
    words = I64.as_pointer()
    kind = ir.FunctionType(result, [words, *[I64] * len(values)])
    function = cgutils.get_or_insert_function(builder.module, kind, f"atos_race_{name}")
    return builder.call(function, [_tables(builder), *values])


def _tables(builder: ir.IRBuilder) -> ir.Value:
    """Return a pointer to the tables of the launch that runs."""
    return builder.load(builder.inttoptr(I64(tables.ctypes.data), I64.as_pointer().as_pointer()))


def _item_words(builder: ir.IRBuilder, item: ir.Value, stride: int) -> list[ir.Value]:
    """Return the words of the item that a pointer leads to, with zeros for those that it has not."""
    whole = ir.IntType(8 * stride)
    value = builder.load(builder.bitcast(item, whole.as_pointer()), align=4)
    wide = ir.IntType(64 * _ITEM_WORDS)
    value = builder.zext(value, wide) if whole.width < wide.width else value
    return [builder.trunc(builder.lshr(value, wide(64 * k)), I64) for k in range(_ITEM_WORDS)]


def begin_item(builder: ir.IRBuilder, round_number: ir.Value, item: ir.Value, stride: int, with_kind: bool) -> ir.Value:
    """Begin the task of an item; return whether it runs now, rather than being pushed again."""
    words = _item_words(builder, item, stride)
    last = 8 * stride - 8
    kind = builder.lshr(words[last // 64], I64(last % 64)) if with_kind else I64(0)
    kind = builder.and_(kind, I64(255))
    return builder.icmp_signed("!=", _call(builder, "begin_item", I64, round_number, kind, *words), I64(0))


def begin_iteration(builder: ir.IRBuilder, i: ir.Value, n: ir.Value) -> ir.Value:
    """Begin the next iteration of an item; return its number."""
    return _call(builder, "begin_iteration", I64, i, n)


def begin_between(builder: ir.IRBuilder) -> None:
    """Begin an idle function, or the one between rounds."""
    _call(builder, "between_rounds", ir.VoidType())


def note_push(builder: ir.IRBuilder, item: ir.Value, stride: int) -> None:
    """Note a push of the item that a pointer leads to."""
    _call(builder, "pushed", ir.VoidType(), *_item_words(builder, item, stride))


def note_fence(builder: ir.IRBuilder, order: str) -> None:
    """Note a fence."""
    if in_racing_code():
        _call(builder, "fence", ir.VoidType(), I64(_ORDERS[order]))


def note_index(builder: ir.IRBuilder) -> None:
    """Note that the task asks for the number of its worker."""
    if in_racing_code():
        _call(builder, "asked_for_index", ir.VoidType())


def note_word(builder: ir.IRBuilder, checked: bool | str, pointer: ir.Value, is_last: ir.Value | None) -> None:
    """Note an arrival at a counter, where the last one acquires; or, without `is_last`, that the counter begins anew."""
    if checked == RACES:
        kind = I64(events.STORES)
        if is_last is not None:
            arrival = events.ACCUMULATES | events.RELEASES
            kind = builder.select(is_last, I64(arrival | events.ACQUIRES), I64(arrival))
        _call(builder, "synchronize", ir.VoidType(), builder.ptrtoint(pointer, I64), kind, I64(1))


def _is_watched(array: TaskArray) -> bool:
    return array.checked == RACES and array.access not in _KEPT_BY_ITS_WORKER and in_racing_code()


def note_access(
    context: Any, builder: ir.IRBuilder, array_type: TaskArray, array: ir.Value, pointer: ir.Value, kind: int, what: str
) -> None:
    """Note an access, of which the bits that it reads or leaves do not matter, before it is made."""
    pause(builder, array_type)
    if _is_watched(array_type):
        _access(context, builder, array_type, array, pointer, I64(kind), what, I64(0), I64(1))


@contextlib.contextmanager
def watched(
    context: Any,
    builder: ir.IRBuilder,
    array_type: TaskArray,
    array: ir.Value,
    pointer: ir.Value,
    what: str,
    order: str = "relaxed",
) -> Iterator[None]:
    """Note the access that is lowered in here: `what` is "read", "write", or the name of an atomic operation."""
    pause(builder, array_type)
    if not _is_watched(array_type):
        yield
        return
    kind = _KINDS.get(what, events.CHANGES)
    if _is_meant():
        kind = _MEANT.get(kind, kind)
    old = _bits(builder, pointer)
    yield
    new = old if kind in (events.READS, events.LOADS) else _bits(builder, pointer)
    _access(context, builder, array_type, array, pointer, I64(kind | _ORDERS[order]), what, old, new)


def _is_meant() -> bool:
    """Whether the line that is being lowered has a mark."""
    place = current_lowering().loc
    return _MARK in linecache.getline(place.filename, place.line)


def _bits(builder: ir.IRBuilder, pointer: ir.Value) -> ir.Value:
    """Return the bits of an element as a word."""
    bits = bits_of(pointer.type.pointee)
    value = builder.load_atomic(builder.bitcast(pointer, bits.as_pointer()), "monotonic", bits.width // 8)
    return value if bits == I64 else builder.zext(value, I64)


def _access(
    context: Any,
    builder: ir.IRBuilder,
    array_type: TaskArray,
    array: ir.Value,
    pointer: ir.Value,
    kind: ir.Value,
    what: str,
    old: ir.Value,
    new: ir.Value,
) -> None:
    number = cgutils.create_struct_proxy(array_type)(context, builder, value=array).number
    site = site_number("access", what)
    address, is_done = builder.ptrtoint(pointer, I64), cgutils.false_bit
    if isinstance(kind, ir.Constant) and kind.constant == events.READS:
        given = signature(types.boolean, types.CPointer(types.int64), *[types.int64] * 3)
        is_done = context.compile_internal(builder, events.read, given, [_tables(builder), site, number, address])
    with builder.if_then(builder.not_(is_done)):
        _call(builder, "access", ir.VoidType(), kind, site, number, address, old, new)
