"""Items, arguments and workload values in memory, as entry points and pushes read and write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.np.numpy_support import as_dtype

from ...core.library import lib
from ..task import Task
from .lower_checks import cast, length_of
from .types import I8, I64, POINTER, ItemLayout, PoolType, ReceiverType, TaskArray, bits_of, in_task


def unpack(
    context: Any, builder: ir.IRBuilder, kinds: Sequence[types.Type], packed: ir.Value, constant: bool
) -> list[ir.Value]:
    """Return the values of these types in the 64-bit words that `packed` points to; `constant`: for the whole launch."""
    words = builder.bitcast(packed, I64.as_pointer())
    position = number = 0

    def next_word() -> ir.Value:
        nonlocal position
        word = builder.load(builder.gep(words, [ir.Constant(I64, position)], inbounds=True))
        if constant:
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

    return list(map(value, kinds))


def pack(
    context: Any, builder: ir.IRBuilder, kinds: Sequence[types.Type], packed: ir.Value, values: Sequence[ir.Value]
) -> None:
    """Write scalars of these types to the 64-bit words that `packed` points to."""
    words = builder.bitcast(packed, I64.as_pointer())
    for position, (kind, value) in enumerate(zip(kinds, values, strict=True)):
        stored = context.data_model_manager[kind].as_data(builder, value)
        word = builder.bitcast(stored, bits_of(stored.type))
        word = builder.zext(word, I64) if word.type != I64 else word
        builder.store(word, builder.gep(words, [ir.Constant(I64, position)], inbounds=True))


def plan_of(context: Any, builder: ir.IRBuilder, task: Task, kind: types.Type, result: ir.Value) -> list[ir.Value]:
    """Return the length, as int64, and the values that the workload of a task returned as one value of type `kind`."""
    parts, length_type = [result], kind
    if isinstance(kind, types.BaseTuple):
        parts, length_type = cgutils.unpack_tuple(builder, result, len(kind)), kind[0]
    return [length_of(context, builder, parts[0], length_type, task.workload), *parts[1:]]


def _fields(items: ItemLayout) -> list[tuple[types.Type, int]]:
    """Return the type and the byte offset of each field of an item; an integer is its own only field."""
    if isinstance(items.item, types.BaseTuple):
        return list(zip(items.item, items.item.instance_class.offsets, strict=True))
    return [(items.item, 0)]


def _numbers(kind: types.Type, offset: int) -> list[tuple[types.Type, int]]:
    """Return the type and the byte offset of each number of a field: one, or those of a vector."""
    if isinstance(kind, types.UniTuple):
        size = as_dtype(kind.dtype).itemsize
        return [(kind.dtype, offset + k * size) for k in range(kind.count)]
    return [(kind, offset)]


# An item is read and written as one integer, whatever its fields are: field by field, those of unaligned records would keep the
# item in memory on a GPU where it could live in registers.
def _whole(builder: ir.IRBuilder, items: ItemLayout, item: ir.Value) -> tuple[ir.Value, int]:
    """Return a pointer to an item as one integer, and how it is aligned."""
    return builder.bitcast(item, ir.IntType(8 * items.stride).as_pointer()), min(items.stride, 8)


def load_item(context: Any, builder: ir.IRBuilder, items: ItemLayout, batch: ir.Value, place: ir.Value) -> ir.Value:
    """Return one of the items that `batch` points to."""
    pointer, align = _whole(builder, items, builder.gep(batch, [builder.mul(place, ir.Constant(I64, items.stride))]))
    whole = builder.load(pointer, align=align)

    def load_number(kind: types.Type, offset: int) -> ir.Value:
        stored = context.get_data_type(kind)
        bits = builder.trunc(builder.lshr(whole, ir.Constant(whole.type, 8 * offset)), bits_of(stored))
        value = context.data_model_manager[kind].from_data(builder, builder.bitcast(bits, stored))
        return context.cast(builder, value, kind, in_task(kind))

    values = []
    for kind, offset in _fields(items):
        numbers = [load_number(number, place) for number, place in _numbers(kind, offset)]
        is_vector = isinstance(kind, types.UniTuple)
        values.append(context.make_tuple(builder, in_task(kind), numbers) if is_vector else numbers[0])
    return context.make_tuple(builder, items.value, values) if isinstance(items.value, types.BaseTuple) else values[0]


def kind_of(builder: ir.IRBuilder, items: ItemLayout, item: ir.Value) -> ir.Value:
    """Return the kind of the item that `item` points to."""
    pointer, align = _whole(builder, items, item)
    whole = builder.load(pointer, align=align)
    return builder.trunc(builder.lshr(whole, ir.Constant(whole.type, 8 * (items.stride - 1))), I8)


def store_item(
    context: Any,
    builder: ir.IRBuilder,
    items: ItemLayout,
    item: ir.Value,
    value_type: types.Type,
    value: ir.Value,
    kind_of_item: int = 0,
) -> None:
    """Write an item where `item` points: an integer, or a tuple whose members, numbers or tuples, are cast to the fields."""
    is_record = isinstance(value_type, types.BaseTuple)
    values = cgutils.unpack_tuple(builder, value, len(value_type)) if is_record else [value]
    value_types = value_type if is_record else [value_type]
    pointer, align = _whole(builder, items, item)
    whole = ir.Constant(pointer.type.pointee, kind_of_item << 8 * (items.stride - 1))
    for (field, start), member, member_type in zip(_fields(items), values, value_types, strict=True):
        is_vector = isinstance(field, types.UniTuple)
        numbers = cgutils.unpack_tuple(builder, member, field.count) if is_vector else [member]
        number_types = member_type if is_vector else [member_type]
        for (kind, offset), number, number_type in zip(_numbers(field, start), numbers, number_types, strict=True):
            stored = context.data_model_manager[kind].as_data(builder, cast(context, builder, number, number_type, kind))
            bits = builder.zext(builder.bitcast(stored, bits_of(stored.type)), whole.type)
            whole = builder.or_(whole, builder.shl(bits, ir.Constant(whole.type, 8 * offset)))
    builder.store(whole, pointer, align=align)
