"""The atomic operations on array elements, of 8 to 64 bits.

GPUs have them on words of 32 and 64 bits. On a smaller element, `or`, `and` and `xor` are done on the word around it with bits
that leave its neighbors as they are, and everything else is a loop of compare-and-swaps of that word. So is what no processor
has, a product, on the element itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin

from ..atomics import (
    accumulate,
    atomic_add,
    atomic_and_,
    atomic_cas,
    atomic_exch,
    atomic_load,
    atomic_max,
    atomic_min,
    atomic_mul,
    atomic_or_,
    atomic_store,
    atomic_xor,
)
from .lower_arrays import as_stored, check_index, check_value, element, is_own, load, read_bits, store
from .lower_checks import cast
from .memory_order import ORDERS, acquire_after, check_order, order_of, pysig_of, release_before
from .race_hooks import watched
from .scoped_atomics import compare_and_swap, read_modify_write, reduce_by_add
from .types import I32, I64, TaskArray, bits_of, on_cuda, refuse

_LOWER = ("atomic_min", "worker.push_min")
_OVER_HOSTS = {"min": "worker.push_min", "sum": "accumulate"}  # words that travel to the host of an element
_INTEGERS, _FLOATS, _BOOL = "integers", "floats of 32 and 64 bits", "bool"


def _kind_of(dtype: types.Type) -> str:
    """Return which kind of element a type is, as messages name it; nothing if no atomic works on it."""
    if isinstance(dtype, types.Integer):
        return _INTEGERS
    return _BOOL if dtype == types.boolean else _FLOATS if dtype in (types.float32, types.float64) else ""


def check_writable(name: str, array: types.Type) -> None:
    """Refuse what the elements of are not other threads' too, or not to be written."""
    if not isinstance(array, TaskArray):
        refuse(f"{name} works on an element of an argument array or of scratch memory, not on {array}")
    if array.access == "local":
        refuse(f"{name} is used on a local_array, which is this thread's own; read and write its elements as they are")
    if array.combine and name != _OVER_HOSTS[array.combine]:
        refuse(
            f"{name} is used on an array over several hosts with combine={array.combine!r}, whose elements of other hosts are"
            f" not here: use {_OVER_HOSTS[array.combine]}, which is sent to them after the launch"
        )
    if array.bounded and name not in _LOWER:
        refuse(
            f'{name} is used on an array with combine="min", which tasks only lower: use worker.push_min or atomic_min, or make'
            " the array without combine="
        )
    if array.mirrored:
        refuse(
            f"{name} is used on a mirrored array, of which each device has a copy: store to elements as they are, each of which"
            " one task writes"
        )
    if array.access == "readonly":
        refuse(f"{name} is used on a read-only array; make it with readonly=False if tasks write to it")


def _is_narrow(array: TaskArray) -> bool:
    """Whether an int64 may hold more than the array's elements, which are integers."""
    return isinstance(array.dtype, types.Integer) and array.dtype.bitwidth < 64


def _atomic(
    function: Any, *kinds: str, limit: str = "", returns: bool = True, orders: tuple[str, ...] = ORDERS
) -> Callable[[Any], None]:
    """Register the lowering of an atomic operation, and teach Numba its types: array, index and values in, the old element out.

    Nothing comes out of one that `returns` nothing. It takes one of the memory `orders`.

    The lowering gets the pointer to the element, and the values cast to the element's type and as they are stored; of a bounded
    array, which has minimums alone, also where the bound of the element is. With a
    `limit`, 'low' or 'high', integers of up to 32 bits come as int64, where more than it holds is its largest number. A value
    beyond the element's range can so be told from one within: beyond one end of it the operation changes nothing, and only
    beyond `limit` the value is one that should be stored and cannot be.
    """
    name, pysig = function.__name__, pysig_of(function)
    *names, _ = pysig.parameters
    num_values = len(names) - 2

    @infer_global(function)
    class Atomic(AbstractTemplate):
        prefer_literal = True  # for the order

        def generic(self, args: Any, kws: Any) -> Any:
            if not kws.keys() <= {"memory_order"} or len(args) != 2 + num_values:
                refuse(f"{name} takes ({', '.join(names)}) by position, and memory_order= by name")
            array, index, *values = map(types.unliteral, args)
            check_operands(name, kinds, array, index, *values)
            given = [_passed(array, value, limit) for value in values]
            order = check_order(name, orders, kws.get("memory_order", types.Omitted("relaxed")))
            return signature(array.value if returns else types.none, array, index, *given, order).replace(pysig=pysig)

    def register(lowering: Any) -> None:
        @lower_builtin(function, TaskArray, types.Any, *[types.Any] * num_values, types.Any)
        def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
            array, pointer = sig.args[0], element(context, builder, sig, args)
            given = zip(args[2:-1], sig.args[2:-1], strict=True)
            values = [_given(context, builder, array, value, kind, limit) for value, kind in given]
            if array.bounded:
                values.append(_bound_of(context, builder, sig, args, pointer))
            with watched(context, builder, array, args[0], pointer, name, order_of(sig.args[-1])):
                release_before(context, builder, sig.args[-1])
                old = lowering(context, builder, array, pointer, *values)
                acquire_after(context, builder, sig.args[-1])
            if not returns:
                return context.get_dummy_value()
            model = context.data_model_manager[array.dtype]
            return context.cast(builder, model.from_data(builder, old), array.dtype, array.value)

    return register


def check_operands(name: str, kinds: tuple[str, ...], array: types.Type, index: types.Type, *values: types.Type) -> None:
    """Refuse an operation on an array that it does not work on, or with an index or values that it does not take."""
    check_writable(name, array)
    if _kind_of(array.dtype) not in kinds:
        refuse(f"{name} works on {' and '.join(kinds)}, not on {array.dtype}")
    check_index(array, index)
    for value in values:
        check_value(array, value)


def _passed(array: TaskArray, value: types.Type, limit: str) -> types.Type:
    """Return the type that a value is passed to the lowering in."""
    if limit and _is_narrow(array):
        return types.uint64 if types.unliteral(value) == types.uint64 else types.int64
    return as_stored(array, value)


def _given(context: Any, builder: ir.IRBuilder, array: TaskArray, value: ir.Value, given: types.Type, limit: str) -> ir.Value:
    """Return a value that was passed as `given`: as it is stored, or as int64 where there is a `limit`."""
    if not limit or not _is_narrow(array):
        return context.data_model_manager[array.dtype].as_data(builder, cast(context, builder, value, given, array.dtype))
    if array.checked:
        cast(context, builder, value, given, array.dtype, low=limit == "low", high=limit == "high")
    if given == types.uint64:
        value = builder.select(builder.icmp_signed("<", value, I64(0)), I64(2**63 - 1), value)
    return value


def _as_bits(builder: ir.IRBuilder, pointer: ir.Value) -> ir.Value:
    """Return the pointer as one to an integer of the element's width."""
    bits = bits_of(pointer.type.pointee)
    return builder.bitcast(pointer, bits.as_pointer(pointer.type.addrspace))


def _in_words(context: Any, pointer: ir.Value) -> bool:
    """Whether an element is smaller than what the device has atomics for, so that they are on the word around it."""
    return on_cuda(context) and bits_of(pointer.type.pointee).width < 32


def _word_around(builder: ir.IRBuilder, pointer: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Return a pointer to the 32 bits around a smaller element, how far up it lies in them, and a mask of its bits."""
    address = builder.ptrtoint(pointer, I64)
    word = builder.inttoptr(builder.and_(address, ir.Constant(I64, -4)), I32.as_pointer(pointer.type.addrspace))
    offset = builder.shl(builder.trunc(builder.and_(address, ir.Constant(I64, 3)), I32), ir.Constant(I32, 3))
    mask = builder.shl(ir.Constant(I32, (1 << bits_of(pointer.type.pointee).width) - 1), offset)
    return word, offset, mask


def _update(
    context: Any, builder: ir.IRBuilder, array: TaskArray, pointer: ir.Value, change: Callable[[ir.Value], ir.Value]
) -> ir.Value:
    """Replace the bits of an element by what `change` makes of them, by compare-and-swap; return the element before.

    The loop ends, since a swap fails only where another one, of this element or of a neighbor in its word, did not.
    """
    stored, bits = pointer.type.pointee, bits_of(pointer.type.pointee)
    in_words = _in_words(context, pointer)
    if in_words:
        pointer, offset, mask = _word_around(builder, pointer)
    else:
        pointer = _as_bits(builder, pointer)
    read, start = read_bits(context, builder, array.access, pointer), builder.block
    loop, done = builder.append_basic_block("swap"), builder.append_basic_block("swapped")
    builder.branch(loop)
    builder.position_at_end(loop)
    seen = builder.phi(pointer.type.pointee)
    seen.add_incoming(read, start)
    old = builder.trunc(builder.lshr(seen, offset), bits) if in_words else seen
    wanted = change(old)
    if in_words:
        wanted = builder.or_(builder.and_(seen, builder.not_(mask)), builder.shl(builder.zext(wanted, I32), offset))
    found, swapped = compare_and_swap(builder, array.access, pointer, seen, wanted)
    seen.add_incoming(found, builder.block)
    builder.cbranch(swapped(), done, loop)
    builder.position_at_end(done)
    return builder.bitcast(old, stored)


def _add(context: Any, builder: ir.IRBuilder, array: TaskArray, pointer: ir.Value, value: ir.Value) -> ir.Value:
    if _in_words(context, pointer):
        return _update(context, builder, array, pointer, lambda old: builder.add(old, value))
    if isinstance(array.dtype, types.Integer):
        return read_modify_write(builder, array.access, "add", pointer, value)
    return add_float(context, builder, array.access, pointer, value)


_atomic(atomic_add, _INTEGERS, _FLOATS)(_add)


@_atomic(atomic_load, _INTEGERS, _FLOATS, _BOOL, orders=("relaxed", "acquire"))
def lower_atomic_load(context: Any, builder: ir.IRBuilder, array: TaskArray, pointer: ir.Value) -> ir.Value:
    return read_bits(context, builder, array.access, pointer)


@_atomic(atomic_store, _INTEGERS, _FLOATS, _BOOL, returns=False, orders=("relaxed", "release"))
def lower_atomic_store(context: Any, builder: ir.IRBuilder, array: TaskArray, pointer: ir.Value, value: ir.Value) -> None:
    store(context, builder, array, pointer, context.data_model_manager[array.dtype].from_data(builder, value))


@_atomic(accumulate, _INTEGERS, _FLOATS, returns=False, orders=("relaxed", "release"))
def lower_accumulate(context: Any, builder: ir.IRBuilder, array: TaskArray, pointer: ir.Value, value: ir.Value) -> None:
    if _in_words(context, pointer) or pointer.type.addrspace != 1:
        _add(context, builder, array, pointer, value)
    else:
        reduce_by_add(builder, array.access, "u" if isinstance(array.dtype, types.Integer) else "f", pointer, value)


def add_float(context: Any, builder: ir.IRBuilder, access: str, pointer: ir.Value, value: ir.Value) -> ir.Value:
    """Add to a float, and return it as it was."""
    if not on_cuda(context):
        return builder.atomic_rmw("fadd", pointer, value, "monotonic")
    # NVVM for older GPUs knows no atomicrmw on floats.
    width, register = (32, "f") if value.type == ir.FloatType() else (64, "d")
    space = ".global" if pointer.type.addrspace == 1 else ""
    function = ir.FunctionType(value.type, [I64, value.type])
    scope = ".relaxed.sys" if access == "system" else ""
    code, constraints = f"atom{scope}{space}.add.f{width} $0, [$1], $2;", f"={register},l,{register},~{{memory}}"
    return builder.call(ir.InlineAsm(function, code, constraints, side_effect=True), [builder.ptrtoint(pointer, I64), value])


@_atomic(atomic_mul, _INTEGERS, _FLOATS)
def lower_mul(context: Any, builder: ir.IRBuilder, array: TaskArray, pointer: ir.Value, value: ir.Value) -> ir.Value:
    def product(old: ir.Value) -> ir.Value:
        if isinstance(array.dtype, types.Integer):
            return builder.mul(old, value)
        return builder.bitcast(builder.fmul(builder.bitcast(old, value.type), value), old.type)

    return _update(context, builder, array, pointer, product)


@_atomic(atomic_exch, _INTEGERS, _FLOATS, _BOOL)
def lower_exch(context: Any, builder: ir.IRBuilder, array: TaskArray, pointer: ir.Value, value: ir.Value) -> ir.Value:
    if _in_words(context, pointer):
        return _update(context, builder, array, pointer, lambda old: value)
    pointer = _as_bits(builder, pointer)
    old = read_modify_write(builder, array.access, "xchg", pointer, builder.bitcast(value, pointer.type.pointee))
    return builder.bitcast(old, value.type)


def _lower_bitwise(function: Any, operation: str) -> None:
    @_atomic(function, _INTEGERS, _BOOL)
    def lower(context: Any, builder: ir.IRBuilder, array: TaskArray, pointer: ir.Value, value: ir.Value) -> ir.Value:
        if not _in_words(context, pointer):
            return read_modify_write(builder, array.access, operation, pointer, value)
        word, offset, mask = _word_around(builder, pointer)
        wide = builder.shl(builder.zext(value, I32), offset)
        if operation == "and":
            wide = builder.or_(wide, builder.not_(mask))  # the neighbors keep all of their bits
        old = read_modify_write(builder, array.access, operation, word, wide)
        return builder.trunc(builder.lshr(old, offset), value.type)


for _function, _operation in ((atomic_or_, "or"), (atomic_and_, "and"), (atomic_xor, "xor")):
    _lower_bitwise(_function, _operation)


@_atomic(atomic_cas, _INTEGERS, _FLOATS, _BOOL)
def lower_cas(
    context: Any, builder: ir.IRBuilder, array: TaskArray, pointer: ir.Value, expected: ir.Value, desired: ir.Value
) -> ir.Value:
    if _in_words(context, pointer):

        def swap(old: ir.Value) -> ir.Value:
            return builder.select(builder.icmp_unsigned("==", old, expected), desired, old)

        return _update(context, builder, array, pointer, swap)
    pointer = _as_bits(builder, pointer)
    bits = [builder.bitcast(value, pointer.type.pointee) for value in (expected, desired)]
    old, _ = compare_and_swap(builder, array.access, pointer, *bits)
    return builder.bitcast(old, expected.type)


@_atomic(atomic_min, _INTEGERS, _FLOATS, limit="low")
def lower_min(
    context: Any, builder: ir.IRBuilder, array: TaskArray, pointer: ir.Value, value: ir.Value, bound: Bound | None = None
) -> ir.Value:
    return _extreme(context, builder, array, pointer, value, "<", "min", bound)[0]


@_atomic(atomic_max, _INTEGERS, _FLOATS, limit="high")
def lower_max(context: Any, builder: ir.IRBuilder, array: TaskArray, pointer: ir.Value, value: ir.Value) -> ir.Value:
    return _extreme(context, builder, array, pointer, value, ">", "max")[0]


class Bound(NamedTuple):
    """Bound of an element that another device may own."""

    pointer: ir.Value
    is_own: ir.Value  # whether the element is the device's, so that no bound is needed


def _bound_of(context: Any, builder: ir.IRBuilder, sig: Any, args: Any, pointer: ir.Value) -> Bound:
    """Return the bound of the element that `pointer` points to, which the first two arguments, array and index, select."""
    (kind, index_type), array = sig.args[:2], cgutils.create_struct_proxy(sig.args[0])(context, builder, value=args[0])
    index = args[1]
    if isinstance(index_type, types.BaseTuple):
        index, index_type = builder.extract_value(index, 0), index_type[0]
    own = is_own(context, builder, kind, args[0], context.cast(builder, index, index_type, types.int64))
    offset = builder.sub(builder.ptrtoint(pointer, I64), builder.ptrtoint(array.data, I64))
    place = builder.inttoptr(builder.add(builder.ptrtoint(array.bounds, I64), offset), pointer.type)
    return Bound(place, own)


def _extreme(
    context: Any,
    builder: ir.IRBuilder,
    array: TaskArray,
    pointer: ir.Value,
    value: ir.Value,
    better: str,
    operation: str,
    bound: Bound | None = None,
) -> tuple[ir.Value, ir.Value]:
    """Read the element, or its bound, and only where `value better element` holds do the atomic operation.

    A bound is what the element was when this device changed it last, so that the operation could have returned it too. The next
    one is the lesser of the value and of what the operation returned.

    Return the element before, and whether the operation changed it.
    """
    dtype = array.dtype
    read = load(context, builder, array, builder.select(bound.is_own, pointer, bound.pointer) if bound else pointer)
    start = builder.block

    def compare(new: ir.Value, old: ir.Value) -> ir.Value:
        if isinstance(dtype, types.Float):
            return builder.fcmp_ordered(better, new, old)
        return (builder.icmp_signed if dtype.signed else builder.icmp_unsigned)(better, new, old)

    if _is_narrow(array):
        improves = builder.icmp_signed(better, value, context.cast(builder, read, dtype, types.int64))
    else:
        improves = compare(value, read)
    with builder.if_then(improves):
        if _is_narrow(array):
            value = builder.trunc(value, read.type)
        if isinstance(dtype, types.Float):
            changed = _float_extreme(builder, array.access, pointer, value, operation)
        elif _in_words(context, pointer):
            changed = _update(context, builder, array, pointer, lambda old: builder.select(compare(value, old), value, old))
        else:
            signed = operation if dtype.signed else f"u{operation}"
            changed = read_modify_write(builder, array.access, signed, pointer, value)
        took_effect = compare(value, changed)
        if bound:
            with builder.if_then(builder.not_(bound.is_own)):
                store(context, builder, array, bound.pointer, builder.select(took_effect, value, changed))
        end = builder.block
    old, has_changed = builder.phi(read.type), builder.phi(took_effect.type)
    for phi, otherwise, then in ((old, read, changed), (has_changed, ir.Constant(took_effect.type, 0), took_effect)):
        phi.add_incoming(otherwise, start)
        phi.add_incoming(then, end)
    return old, has_changed


def type_lowered(name: str, array: types.Type, index: types.Type, value: types.Type) -> types.Type:
    """Return the type that a value is passed in to a method `name` that lowers an element to it."""
    check_operands(name, (_INTEGERS, _FLOATS), array, index, value)
    return _passed(array, value, "low")


def lower_element(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    """Lower an element as `atomic_min` does, from an array, an index and a value; return whether that lowered it."""
    (array, _, given), pointer = sig.args, element(context, builder, sig, args)
    value = _given(context, builder, array, args[2], given, "low")
    bound = _bound_of(context, builder, sig, args, pointer) if array.bounded else None
    with watched(context, builder, array, args[0], pointer, "worker.push_min"):
        return _extreme(context, builder, array, pointer, value, "<", "min", bound)[1]


def _float_extreme(builder: ir.IRBuilder, access: str, pointer: ir.Value, value: ir.Value, operation: str) -> ir.Value:
    """Do a float's minimum or maximum on its bits.

    Positive floats are ordered as their bits are, and lie above all others as signed integers; negative floats are ordered
    the other way round, and lie above all others as unsigned integers.
    """
    pointer = _as_bits(builder, pointer)
    bits = builder.bitcast(value, pointer.type.pointee)
    opposite = "umax" if operation == "min" else "umin"
    with builder.if_else(builder.icmp_signed(">=", bits, ir.Constant(bits.type, 0))) as (positive, negative):
        with positive:
            from_positive, positive_block = read_modify_write(builder, access, operation, pointer, bits), builder.block
        with negative:
            from_negative, negative_block = read_modify_write(builder, access, opposite, pointer, bits), builder.block
    old = builder.phi(bits.type)
    old.add_incoming(from_positive, positive_block)
    old.add_incoming(from_negative, negative_block)
    return builder.bitcast(old, value.type)
