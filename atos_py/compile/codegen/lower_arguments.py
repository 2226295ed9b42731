"""Items, arguments and workload values in memory: `items[k]`, `unpack(packed)` and `pack(packed, values)`, for entry points."""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin

from ...core.library import lib
from .lower_arrays import bits_of
from .lower_checks import cast, length_of
from .types import I8, I64, POINTER, Items, Packed, PoolType, ReceiverType, TaskArray, in_task


def unpack(packed: Any) -> Any:
    """Inside an entry point: the tuple that `packed` points to."""
    raise NotImplementedError


def pack(packed: Any, values: Any) -> Any:
    """Inside an entry point: write the tuple `values` to where `packed` points."""
    raise NotImplementedError


def plan_of(result: Any) -> Any:
    """Inside an entry point: what `workload` returned, as a tuple of the length (int64) and the values."""
    raise NotImplementedError


@infer_global(unpack)
class Unpack(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        return signature(args[0].contents, *args)


@infer_global(pack)
class Pack(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        return signature(types.none, args[0], args[0].contents)


@infer_global(plan_of)
class PlanOf(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        values = tuple(args[0])[1:] if isinstance(args[0], types.BaseTuple) else ()
        return signature(types.BaseTuple.from_types((types.int64, *values)), *args)


@infer_global(operator.getitem)
class GetItem(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        return signature(args[0].value, args[0], types.int64) if isinstance(args[0], Items) else None


@lower_builtin(unpack, Packed)
def lower_unpack(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    packed, words = sig.args[0], builder.bitcast(args[0], I64.as_pointer())
    position = number = 0

    def next_word() -> ir.Value:
        nonlocal position
        word = builder.load(builder.gep(words, [ir.Constant(I64, position)], inbounds=True))
        if packed.constant:
            word.set_metadata("invariant.load", builder.module.add_metadata([]))
        position += 1
        return word

    def value(kind: types.Type) -> ir.Value:
        nonlocal number, position
        if isinstance(kind, types.BaseTuple):
            return context.make_tuple(builder, kind, [value(member) for member in kind])
        if isinstance(kind, TaskArray):
            array = cgutils.create_struct_proxy(kind)(context, builder)
            array.data = builder.inttoptr(next_word(), POINTER)
            array.shape = cgutils.pack_array(builder, [next_word() for _ in range(kind.ndim)], ty=I64)
            if kind.mirrored:
                array.first = builder.inttoptr(next_word(), POINTER)
                array.step, array.count = next_word(), next_word()
            if kind.knows_range:
                array.start, array.stop = next_word(), next_word()
            if kind.bounded:
                array.bounds = builder.inttoptr(next_word(), POINTER)
            if kind.checked:
                array.number = ir.Constant(I64, number)
            number += 1
            return array._getvalue()
        if isinstance(kind, PoolType):
            pool = cgutils.create_struct_proxy(kind)(context, builder)
            pool.counters, pool.stop = (builder.inttoptr(next_word(), POINTER) for _ in range(2))
            for name, array_type in kind.arrays.items():
                setattr(pool, f"field_{name}", value(array_type))
            return pool._getvalue()
        if isinstance(kind, ReceiverType):
            words_of_it = builder.gep(words, [ir.Constant(I64, position)], inbounds=True)
            position += lib.ATOS_RECEIVER_WORDS
            return builder.bitcast(words_of_it, POINTER)
        if kind == types.none:
            return context.get_dummy_value()
        stored = context.get_data_type(kind)
        word, bits = next_word(), bits_of(stored)
        word = builder.trunc(word, bits) if bits != I64 else word
        return context.data_model_manager[kind].from_data(builder, builder.bitcast(word, stored))

    return value(packed.contents)


@lower_builtin(pack, Packed, types.Any)
def lower_pack(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    words = builder.bitcast(args[0], I64.as_pointer())
    for position, kind in enumerate(sig.args[1]):
        value = context.data_model_manager[kind].as_data(builder, builder.extract_value(args[1], position))
        word = builder.bitcast(value, bits_of(value.type))
        word = builder.zext(word, I64) if word.type != I64 else word
        builder.store(word, builder.gep(words, [ir.Constant(I64, position)], inbounds=True))
    return context.get_dummy_value()


@lower_builtin(plan_of, types.Any)
def lower_plan_of(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    result_type, result = sig.args[0], args[0]
    parts, length_type = [result], result_type
    if isinstance(result_type, types.BaseTuple):
        parts, length_type = cgutils.unpack_tuple(builder, result, len(result_type)), result_type[0]
    length = length_of(context, builder, parts[0], length_type)
    return context.make_tuple(builder, sig.return_type, [length, *parts[1:]])


def _fields(items: Items) -> list[tuple[types.Type, int]]:
    """Return the type and the byte offset of each field of an item; an integer is its own only field."""
    if isinstance(items.item, types.BaseTuple):
        return list(zip(items.item, items.item.instance_class.offsets, strict=True))
    return [(items.item, 0)]


# An item is read and written as one integer, whatever its fields are: field by field, those of unaligned records would keep the
# item in memory on a GPU where it could live in registers.
def _whole(builder: ir.IRBuilder, items: Items, item: ir.Value) -> tuple[ir.Value, int]:
    """Return a pointer to an item as one integer, and how it is aligned."""
    return builder.bitcast(item, ir.IntType(8 * items.stride).as_pointer()), min(items.stride, 8)


@lower_builtin(operator.getitem, Items, types.Integer)
def lower_getitem(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    items = sig.args[0]
    pointer, align = _whole(builder, items, builder.gep(args[0], [builder.mul(args[1], ir.Constant(I64, items.stride))]))
    whole = builder.load(pointer, align=align)
    values = []
    for kind, offset in _fields(items):
        stored = context.get_data_type(kind)
        bits = builder.trunc(builder.lshr(whole, ir.Constant(whole.type, 8 * offset)), bits_of(stored))
        value = context.data_model_manager[kind].from_data(builder, builder.bitcast(bits, stored))
        values.append(context.cast(builder, value, kind, in_task(kind)))
    return context.make_tuple(builder, items.value, values) if isinstance(items.value, types.BaseTuple) else values[0]


def kind_of(builder: ir.IRBuilder, items: Items, item: ir.Value) -> ir.Value:
    """Return the kind of the item that `item` points to."""
    pointer, align = _whole(builder, items, item)
    whole = builder.load(pointer, align=align)
    return builder.trunc(builder.lshr(whole, ir.Constant(whole.type, 8 * (items.stride - 1))), I8)


def store_item(
    context: Any,
    builder: ir.IRBuilder,
    items: Items,
    item: ir.Value,
    value_type: types.Type,
    value: ir.Value,
    kind_of_item: int = 0,
) -> None:
    """Write an item where `item` points: an integer, or a tuple whose members are cast to the record's fields."""
    is_record = isinstance(value_type, types.BaseTuple)
    values = cgutils.unpack_tuple(builder, value, len(value_type)) if is_record else [value]
    value_types = value_type if is_record else [value_type]
    pointer, align = _whole(builder, items, item)
    whole = ir.Constant(pointer.type.pointee, kind_of_item << 8 * (items.stride - 1))
    for (kind, offset), member, member_type in zip(_fields(items), values, value_types, strict=True):
        stored = context.data_model_manager[kind].as_data(builder, cast(context, builder, member, member_type, kind))
        bits = builder.zext(builder.bitcast(stored, bits_of(stored.type)), whole.type)
        whole = builder.or_(whole, builder.shl(bits, ir.Constant(whole.type, 8 * offset)))
    builder.store(whole, pointer, align=align)
