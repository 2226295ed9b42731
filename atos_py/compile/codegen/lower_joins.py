"""Joins in tasks: `worker.open`, `then`, `arrive_at` and `take`, and `joins.expect` and `peek`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_getattr, infer_global, signature
from numba.extending import lower_builtin
from numba.np.numpy_support import as_dtype

from ...arrays.join_layout import CODES, LINK, MISSING, MOST_MISSING, combine_of, identity
from . import join_records as records
from .lower_arguments import store_item
from .lower_arrays import element
from .lower_arrive import subtract
from .lower_checks import cast, fail, in_checked_code
from .lower_push import number_of_kind, push, push_item, type_how
from .memory_order import acquire
from .race_hooks import RACES, note_word
from .scoped_atomics import release_add
from .types import I32, I64, POINTER, ItemLayout, JoinsType, PoolType, TaskArray, WorkerType, on_cuda, refuse

__all__ = ["type_arrive_at", "type_open", "type_take", "type_then"]

_OPEN = inspect.signature(lambda joins, count, parent=0, combine="default", negate=False: None)
_THEN = inspect.signature(lambda joins, j, item, priority=None, task=None: None)
_ARRIVE = inspect.signature(lambda joins, j, value=None, n=1: None)


def _check(word: str, joins: types.Type, **integers: types.Type) -> None:
    """Refuse what is no joins, or no integer where one has to be."""
    if not isinstance(joins, JoinsType):
        refuse(f"{word} takes the joins that the task has as an argument, made with atos.Joins, not {joins}")
    for name, kind in integers.items():
        if not isinstance(kind, (types.Integer, types.Omitted)):
            what = "the handle of a join" if name in ("j", "parent") else f"{name}, an integer"
            refuse(f"{word} takes {what}, not {kind}")


def _refuse_nested(word: str, worker: WorkerType) -> None:
    if worker.nested:
        refuse(f"{word} is for flat tasks; the iterations of a nested task, each of which would call it, arrive")


def _bound(word: str, pysig: inspect.Signature, args: Any, kws: Any) -> dict[str, Any]:
    """Return the arguments of a call by their names, with `types.Omitted` for those left out."""
    try:
        bound = pysig.bind(*args, **kws)
    except TypeError:
        refuse(f"{word} is called as {word}{pysig}")
    given = {name: types.Omitted(each.default) for name, each in pysig.parameters.items() if each.default is not each.empty}
    return {**given, **bound.arguments}


def _passed(kind: types.Type) -> types.Type:
    return kind if isinstance(kind, types.Omitted) else types.int64


def _literal(kind: types.Type) -> Any:
    if isinstance(kind, types.Omitted):
        return kind.value
    return kind.literal_value if isinstance(kind, types.Literal) else None if isinstance(kind, types.NoneType) else kind


def type_open(worker: WorkerType, args: Any, kws: Any) -> Any:
    """Return the signature of `worker.open`, whose count may be given by position."""
    word = "worker.open"
    given = _bound(word, _OPEN, args, kws)
    _check(word, given["joins"], count=given["count"], parent=given["parent"])
    _refuse_nested(word, worker)
    combine = _literal(given["combine"])
    if combine != "default" and not (combine is None or (isinstance(combine, str) and combine in CODES)):
        refuse(f"{word} takes combine='sum', 'min', 'max' or None, known when the task is compiled, not {given['combine']}")
    if not isinstance(given["negate"], (types.Boolean, types.Integer, types.Omitted)):
        refuse(f"{word} takes negate=True or False, not {given['negate']}")
    if combine == "default":
        combine = combine_of(given["joins"].instance_class)
    negate = given["negate"] if isinstance(given["negate"], types.Omitted) else types.unliteral(given["negate"])
    passed = given["joins"], types.int64, _passed(given["parent"]), given["combine"], negate
    return signature(types.int64, *passed, recvr=worker).replace(pysig=_OPEN)


def type_then(worker: WorkerType, args: Any, kws: Any) -> Any:
    """Return the signature of `worker.then`."""
    word = "worker.then"
    given = _bound(word, _THEN, args, kws)
    _check(word, given["joins"], j=given["j"])
    _refuse_nested(word, worker)
    if worker.over_hosts:
        refuse(f"{word} pushes nothing over several hosts, where a vertex may be another host's")
    _, item = push_item(worker, given["item"])
    how = type_how(word, worker, given["priority"], given["task"])
    return signature(types.none, given["joins"], types.int64, item, *how, recvr=worker).replace(pysig=_THEN)


def type_arrive_at(worker: WorkerType, args: Any, kws: Any) -> Any:
    """Return the signature of `worker.arrive_at`."""
    word = "worker.arrive_at"
    given = _bound(word, _ARRIVE, args, kws)
    _check(word, given["joins"], j=given["j"], n=given["n"])
    value = given["value"]
    if isinstance(value, (types.NoneType, types.Omitted)):
        value = value if isinstance(value, types.Omitted) else types.none
    elif not isinstance(value, (types.Integer, types.Float, types.Boolean)):
        refuse(f"{word} takes a number as the value, not {value}")
    else:
        value = types.unliteral(value)
    passed = given["joins"], types.int64, value, _passed(given["n"])
    return signature(types.none, *passed, recvr=worker).replace(pysig=_ARRIVE)


def type_take(worker: WorkerType, args: Any, kws: Any) -> Any:
    """Return the signature of `worker.take`."""
    if kws or len(args) != 2:
        refuse("worker.take takes (joins, j) by position")
    _check("worker.take", args[0], j=args[1])
    _refuse_nested("worker.take", worker)
    return signature(args[0].value, args[0], types.int64, recvr=worker)


def _of_joins(name: str, names: tuple[str, ...], result: Callable[[Any], types.Type]) -> type[AbstractTemplate]:
    """Return the template of a method of joins that takes a handle, and maybe a number."""

    class Method(AbstractTemplate):
        key = f"atos.joins.{name}"

        def generic(self, args: Any, kws: Any) -> Any:
            word = f"joins.{name}"
            if kws or len(args) != len(names):
                refuse(f"{word} takes ({', '.join(names)}) by position")
            _check(word, self.this, **dict(zip(names, args, strict=True)))
            return signature(result(self.this), *[types.int64] * len(args), recvr=self.this)

    return Method


_METHODS = {
    "expect": _of_joins("expect", ("j", "n"), lambda joins: types.none),
    "peek": _of_joins("peek", ("j",), lambda joins: joins.value),
}


@infer_getattr
class JoinsAttributes(AttributeTemplate):
    key = JoinsType

    def generic_resolve(self, joins: JoinsType, name: str) -> types.Type | None:
        if name not in _METHODS and name not in joins.fields:
            words = "worker.open, then, arrive_at and take"
            refuse(f"joins have no {name!r} in a task; they offer expect and peek, and are an argument of {words}")
        return types.BoundFunction(_METHODS[name], joins) if name in _METHODS else None


@infer_global(records.subtract)
class Subtract(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        return signature(types.int64, args[0], args[1], types.int64)


@lower_builtin(records.subtract, TaskArray, types.Any, types.int64)
def lower_subtract(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    pointer = element(context, builder, sig, args)
    is_last, is_below = subtract(context, builder, pointer, args[2])
    note_word(builder, sig.args[0].checked, pointer, is_last)
    return builder.select(is_last, I64(1), builder.select(is_below, I64(-1), I64(0)))


@infer_global(records.subtract_and_combine)
class SubtractAndCombine(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        joins, *_ = args
        return signature(types.int64, joins, types.int64, types.int64, types.int64, joins.value)


@lower_builtin(records.subtract_and_combine, JoinsType, types.int64, types.int64, types.int64, types.Number)
def lower_subtract_and_combine(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    change = records.change_word if isinstance(sig.args[-1], types.Integer) else records.change_word_of_float
    before = builder.trunc(context.compile_internal(builder, change, sig, args), I32)
    n = builder.trunc(args[2], I32)
    is_last = builder.icmp_signed("==", before, n)
    with builder.if_then(is_last):
        acquire(context, builder)
    _note_missing(context, builder, sig.args[0], args[0], args[1], is_last)
    return builder.select(is_last, I64(1), builder.select(builder.icmp_signed("<", before, n), I64(-1), I64(0)))


def _note_missing(
    context: Any, builder: ir.IRBuilder, joins_type: Any, joins: ir.Value, i: ir.Value, is_last: Any = None
) -> None:
    """Note an arrival at a join, or without `is_last` that the join begins, in a launch that looks for races."""
    checked = joins_type.types[0].arrays["words"].checked
    if checked == RACES:
        pointer = _pointer_to(context, builder, joins_type, joins, "words", [i, I64(MISSING)])
        note_word(builder, checked, pointer, is_last)


@infer_global(records.add_to_word)
class AddToWord(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        return signature(types.int64, args[0], types.int64, types.int64)


@lower_builtin(records.add_to_word, JoinsType, types.int64, types.int64)
def lower_add_to_word(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    joins, i, change = args
    pointer = _pointer_to(context, builder, sig.args[0], joins, "words", [i, I64(MISSING)])
    pointer = builder.bitcast(pointer, I64.as_pointer())
    if on_cuda(context):
        return release_add(builder, builder.addrspacecast(pointer, I64.as_pointer(1)), change)
    builder.fence("release")
    return builder.atomic_rmw("add", pointer, change, "monotonic")


def _two_words(builder: ir.IRBuilder, code: str, constraints: str, pointer: ir.Value, *values: ir.Value) -> ir.Value:
    """Access two words beside each other in the memory of a GPU."""
    result = ir.LiteralStructType([I64, I64]) if not values else ir.VoidType()
    function = ir.FunctionType(result, [I64, *[I64] * len(values)])
    asm = ir.InlineAsm(function, code, f"{constraints},~{{memory}}", side_effect=True)
    address = builder.addrspacecast(pointer, I64.as_pointer(1))
    return builder.call(asm, [builder.ptrtoint(address, I64), *values])


def _store_words(context: Any, builder: ir.IRBuilder, joins_type: Any, joins: ir.Value, i: ir.Value, *words: Any) -> None:
    """Store the words of a record from number 4 - len(words) on, two at a time on a GPU."""
    first = 4 - len(words)
    pointer = _pointer_to(context, builder, joins_type, joins, "words", [i, I64(first)])
    pointer = builder.bitcast(pointer, I64.as_pointer())
    for k in range(0, len(words), 2):
        place, pair = builder.gep(pointer, [I64(k)]), words[k : k + 2]
        if on_cuda(context):
            _two_words(builder, "st.relaxed.gpu.global.v2.b64 [$0], {$1, $2};", "l,l,l", place, *pair)
        else:
            for step, word in enumerate(pair):
                builder.store_atomic(word, builder.gep(place, [I64(step)]), "monotonic", 8)


@infer_global(records.link_and_info)
class LinkAndInfo(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        return signature(types.UniTuple(types.int64, 2), args[0], types.int64)


@lower_builtin(records.link_and_info, JoinsType, types.int64)
def lower_link_and_info(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    joins, i = args
    pointer = _pointer_to(context, builder, sig.args[0], joins, "words", [i, I64(LINK)])
    pointer = builder.bitcast(pointer, I64.as_pointer())
    if on_cuda(context):
        found = _two_words(builder, "ld.relaxed.gpu.global.v2.b64 {$0, $1}, [$2];", "=l,=l,l", pointer)
        words = [builder.extract_value(found, k) for k in range(2)]
    else:
        words = [builder.load_atomic(builder.gep(pointer, [I64(k)]), "monotonic", 8) for k in range(2)]
    return context.make_tuple(builder, sig.return_type, words)


@infer_global(records.write_link_and_info)
class WriteLinkAndInfo(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        return signature(types.none, args[0], *[types.int64] * 3)


@lower_builtin(records.write_link_and_info, JoinsType, *[types.int64] * 3)
def lower_write_link_and_info(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    _store_words(context, builder, sig.args[0], *args)
    return context.get_dummy_value()


@infer_global(records.write_words)
class WriteWords(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        return signature(types.none, args[0], *[types.int64] * 5)


@lower_builtin(records.write_words, JoinsType, *[types.int64] * 5)
def lower_write_words(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    _note_missing(context, builder, sig.args[0], args[0], args[1])
    _store_words(context, builder, sig.args[0], *args)
    return context.get_dummy_value()


@infer_global(records.bits_of)
class BitsOf(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        joins, _ = args
        return signature(types.int64, joins, joins.value)


@lower_builtin(records.bits_of, JoinsType, types.Number)
def lower_bits_of(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    return builder.sext(builder.bitcast(args[1], I32), I64)


@infer_global(records.value_of)
class ValueOf(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        joins, _ = args
        return signature(joins.value, joins, types.int64)


@lower_builtin(records.value_of, JoinsType, types.int64)
def lower_value_of(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    return builder.bitcast(builder.trunc(args[1], I32), context.get_value_type(sig.return_type))


def _check_open(context: Any, builder: ir.IRBuilder, joins_type: Any, joins: ir.Value, handle: ir.Value) -> None:
    """With checks, fail where a handle is of no join that is open."""
    if in_checked_code():
        stale = context.compile_internal(
            builder, records.is_stale, signature(types.boolean, joins_type, types.int64), [joins, handle]
        )
        with builder.if_then(stale, likely=False):
            fail(builder, "join", "", handle)


@lower_builtin("atos.worker.open", WorkerType, JoinsType, types.int64, types.Any, types.Any, types.Any)
def lower_open(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    worker_type, joins_type, _, parent_type, combine_type, negate_type = sig.args
    worker, joins, count, parent, _, negate = args
    combine = _literal(combine_type)
    if combine == "default":
        combine = combine_of(joins_type.instance_class)
    if isinstance(parent_type, types.Omitted):
        parent = I64(0)
    else:
        _check_open(context, builder, joins_type, joins, parent)
    value_type = joins_type.value
    if in_checked_code():
        most = MOST_MISSING[value_type.bitwidth == 32]
        with builder.if_then(builder.icmp_signed("<", count, I64(1)), likely=False):
            fail(builder, "join", "a join waits for at least 1 arrival", count)
        with builder.if_then(builder.icmp_signed(">", count, I64(most)), likely=False):
            fail(builder, "join", f"a join with values of {value_type} waits for at most {most:,} arrivals", count)
    negates = cgutils.false_bit
    if not isinstance(negate_type, types.Omitted):
        negates = context.cast(builder, negate, negate_type, types.boolean)
    first = context.get_constant(value_type, identity(np.dtype(as_dtype(value_type)), combine))
    kinds = worker_type, joins_type, types.int64, types.int64, types.int64, types.boolean, value_type
    given = [worker, joins, count, parent, I64(CODES[combine]), negates, first]
    return context.compile_internal(builder, records.open_record, signature(types.int64, *kinds), given)


@lower_builtin("atos.worker.then", WorkerType, JoinsType, types.int64, types.Any, types.Any, types.Any)
def lower_then(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    (worker_type, joins_type, _, item_type, priority_type, task), (_, joins, handle, item, priority, _) = sig.args, args
    _check_open(context, builder, joins_type, joins, handle)
    if in_checked_code():
        of_parent = signature(types.boolean, joins_type, types.int64)
        parented = context.compile_internal(builder, records.has_parent, of_parent, [joins, handle])
        with builder.if_then(parented, likely=False):
            fail(builder, "join", "a join that ends by a push is opened without a parent, at which it would arrive", handle)
    bits = I64(0) if priority_type == types.none else builder.bitcast(priority, I64)
    of_push = signature(types.int64, joins_type, types.int64, types.int64)
    index = context.compile_internal(builder, records.push_at_end, of_push, [joins, handle, bits])
    items, kind = ItemLayout(worker_type.item, worker_type.with_kind), number_of_kind("worker.then", worker_type, task)
    place = _pointer_to(context, builder, joins_type, joins, "item", [index, I64(0)])
    store_item(context, builder, items, place, item_type, item, kind)
    return context.get_dummy_value()


def _pointer_to(
    context: Any, builder: ir.IRBuilder, joins_type: Any, joins: ir.Value, field: str, index: list[ir.Value]
) -> ir.Value:
    """Return a pointer to bytes of a record, from the place of an element in one of the fields of records."""
    pool_type: PoolType = joins_type.types[0]
    pool = cgutils.create_struct_proxy(pool_type)(context, builder, value=builder.extract_value(joins, 0))
    array, place = pool_type.arrays[field], types.UniTuple(types.int64, len(index))
    values = [getattr(pool, f"field_{field}"), context.make_tuple(builder, place, index)]
    pointer = element(context, builder, signature(array.value, array, place), values)
    if on_cuda(context):
        pointer = builder.addrspacecast(pointer, pointer.type.pointee.as_pointer())
    return builder.bitcast(pointer, POINTER)


@lower_builtin("atos.worker.arrive_at", WorkerType, JoinsType, types.int64, types.Any, types.Any)
def lower_arrive_at(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    (worker_type, joins_type, _, value_type, n_type), (worker, joins, handle, value, n) = sig.args, args
    _check_open(context, builder, joins_type, joins, handle)
    wanted = joins_type.value
    has_value = not isinstance(value_type, (types.NoneType, types.Omitted))
    if has_value and value_type != types.boolean:
        value = cast(context, builder, value, value_type, wanted)
    else:
        value = context.cast(builder, value, value_type, wanted) if has_value else context.get_constant(wanted, 0)
    n = I64(1) if isinstance(n_type, types.Omitted) else n
    combine = CODES[combine_of(joins_type.instance_class)]
    kinds = worker_type, joins_type, types.int64, wanted, types.boolean, types.int64, types.int64
    given = [worker, joins, handle, value, ir.Constant(ir.IntType(1), int(has_value)), n, I64(combine)]
    state = context.compile_internal(builder, records.arrive_at, signature(types.int64, *kinds), given)
    if in_checked_code():
        with builder.if_then(builder.icmp_signed("<", state, I64(0)), likely=False):
            fail(builder, "join", "", handle)
    with builder.if_then(builder.icmp_signed(">", state, I64(0)), likely=False):
        index = builder.sub(state, I64(1))
        item = _pointer_to(context, builder, joins_type, joins, "item", [index, I64(0)])
        bits = _pointer_to(context, builder, joins_type, joins, "words", [index, I64(LINK)])
        whole = ir.IntType(8 * ItemLayout(worker_type.item, worker_type.with_kind).stride).as_pointer()

        def store_in(slot: ir.Value) -> None:
            builder.store(builder.load(builder.bitcast(item, whole), align=4), builder.bitcast(slot, whole), align=4)

        priority = builder.load(builder.bitcast(bits, ir.DoubleType().as_pointer()))
        push(context, builder, worker_type, worker, store_in, priority)
    return context.get_dummy_value()


@lower_builtin("atos.worker.take", WorkerType, JoinsType, types.int64)
def lower_take(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    _check_open(context, builder, sig.args[1], args[1], args[2])
    if in_checked_code():
        of_handle = signature(types.boolean, *sig.args[1:])
        complete = context.compile_internal(builder, records.is_complete, of_handle, args[1:])
        with builder.if_then(builder.not_(complete), likely=False):
            fail(builder, "join", "worker.take is for joins whose item has been pushed by worker.then", args[2])
    return context.compile_internal(builder, records.take_value, sig, args)


@lower_builtin("atos.joins.expect", JoinsType, types.int64, types.int64)
def lower_expect(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    _check_open(context, builder, sig.args[0], *args[:2])
    return context.compile_internal(builder, records.expect, sig, args)


@lower_builtin("atos.joins.peek", JoinsType, types.int64)
def lower_peek(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    _check_open(context, builder, sig.args[0], *args)
    return context.compile_internal(builder, records.peek, sig, args)
