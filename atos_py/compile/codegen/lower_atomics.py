"""The atomic operations on array elements: relaxed, of 32 or 64 bits."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin

from ..atomics import atomic_add, atomic_and_, atomic_cas, atomic_exch, atomic_max, atomic_min, atomic_or_
from .lower_arrays import as_stored, bits_of, check_index, check_value, element, load
from .lower_checks import cast
from .types import I64, TaskArray, on_cuda, refuse

_NARROW = (types.int32, types.uint32)
_DTYPES = (types.int32, types.uint32, types.int64, types.uint64, types.float32, types.float64)


def _atomic(function: Any, integers_only: bool = False, limit: str = "") -> Callable[[Any], None]:
    """Register the lowering of an atomic operation, and teach Numba its types: array, index and values in, the old element out.

    The lowering gets the pointer to the element, and the values cast to the element's type. With a `limit`, 'low' or 'high',
    integers of 32 bits come as int64, where more than it holds is its largest number. A value beyond the element's range can so
    be told from one within: beyond one end of it the operation changes nothing, and only beyond `limit` the value is one that
    should be stored and cannot be.
    """
    name = function.__name__
    num_values = len(inspect.signature(function).parameters) - 2

    @infer_global(function)
    class Atomic(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            if kws or len(args) != 2 + num_values:
                refuse(f"{name} takes (array, index, {'expected, desired' if num_values == 2 else 'value'}) by position")
            array, index, *values = args
            if not isinstance(array, TaskArray):
                refuse(f"{name} works on an element of an argument array or of scratch memory, not on {array}")
            if array.access == "readonly":
                refuse(f"{name} is used on a read-only array; make it with readonly=False if tasks write to it")
            if array.dtype not in _DTYPES or (integers_only and isinstance(array.dtype, types.Float)):
                kinds = "integers" if integers_only else "integers and floats"
                refuse(f"{name} works on {kinds} of 32 and 64 bits, not on {array.dtype}")
            check_index(array, index)
            for value in values:
                check_value(array, value)
            given = [_widened(value) if limit and array.dtype in _NARROW else as_stored(array, value) for value in values]
            return signature(array.value, array, index, *given)

    def register(lowering: Any) -> None:
        @lower_builtin(function, TaskArray, types.Any, *[types.Any] * num_values)
        def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
            array, pointer = sig.args[0], element(context, builder, sig, args)
            values = []
            for value, given in zip(args[2:], sig.args[2:], strict=True):
                if not limit or array.dtype not in _NARROW:
                    value = cast(context, builder, value, given, array.dtype)
                else:
                    if array.checked:
                        cast(context, builder, value, given, array.dtype, low=limit == "low", high=limit == "high")
                    if given == types.uint64:
                        value = builder.select(builder.icmp_signed("<", value, I64(0)), I64(2**63 - 1), value)
                values.append(value)
            old = lowering(context, builder, array, pointer, *values)
            return context.cast(builder, old, array.dtype, array.value)

    return register


def _widened(value: types.Type) -> types.Type:
    return types.uint64 if types.unliteral(value) == types.uint64 else types.int64


def _as_bits(builder: ir.IRBuilder, pointer: ir.Value) -> ir.Value:
    """Return the pointer as one to an integer of the element's width."""
    bits = bits_of(pointer.type.pointee)
    return builder.bitcast(pointer, bits.as_pointer(pointer.type.addrspace))


@_atomic(atomic_add)
def lower_add(context: Any, builder: ir.IRBuilder, array: TaskArray, pointer: ir.Value, value: ir.Value) -> ir.Value:
    if isinstance(array.dtype, types.Integer):
        return builder.atomic_rmw("add", pointer, value, "monotonic")
    if not on_cuda(context):
        return builder.atomic_rmw("fadd", pointer, value, "monotonic")
    # NVVM for older GPUs knows no atomicrmw on floats.
    width, register = (32, "f") if array.dtype == types.float32 else (64, "d")
    space = ".global" if pointer.type.addrspace == 1 else ""
    function = ir.FunctionType(value.type, [I64, value.type])
    code, constraints = f"atom{space}.add.f{width} $0, [$1], $2;", f"={register},l,{register},~{{memory}}"
    return builder.call(ir.InlineAsm(function, code, constraints, side_effect=True), [builder.ptrtoint(pointer, I64), value])


@_atomic(atomic_exch)
def lower_exch(context: Any, builder: ir.IRBuilder, array: TaskArray, pointer: ir.Value, value: ir.Value) -> ir.Value:
    pointer = _as_bits(builder, pointer)
    old = builder.atomic_rmw("xchg", pointer, builder.bitcast(value, pointer.type.pointee), "monotonic")
    return builder.bitcast(old, value.type)


@_atomic(atomic_or_, integers_only=True)
def lower_or(context: Any, builder: ir.IRBuilder, array: TaskArray, pointer: ir.Value, value: ir.Value) -> ir.Value:
    return builder.atomic_rmw("or", pointer, value, "monotonic")


@_atomic(atomic_and_, integers_only=True)
def lower_and(context: Any, builder: ir.IRBuilder, array: TaskArray, pointer: ir.Value, value: ir.Value) -> ir.Value:
    return builder.atomic_rmw("and", pointer, value, "monotonic")


@_atomic(atomic_cas)
def lower_cas(
    context: Any, builder: ir.IRBuilder, array: TaskArray, pointer: ir.Value, expected: ir.Value, desired: ir.Value
) -> ir.Value:
    pointer = _as_bits(builder, pointer)
    bits = [builder.bitcast(value, pointer.type.pointee) for value in (expected, desired)]
    result = builder.cmpxchg(pointer, *bits, "monotonic", "monotonic")
    return builder.bitcast(builder.extract_value(result, 0), expected.type)


@_atomic(atomic_min, limit="low")
def lower_min(context: Any, builder: ir.IRBuilder, array: TaskArray, pointer: ir.Value, value: ir.Value) -> ir.Value:
    return _extreme(context, builder, array, pointer, value, "<", "min")


@_atomic(atomic_max, limit="high")
def lower_max(context: Any, builder: ir.IRBuilder, array: TaskArray, pointer: ir.Value, value: ir.Value) -> ir.Value:
    return _extreme(context, builder, array, pointer, value, ">", "max")


def _extreme(
    context: Any, builder: ir.IRBuilder, array: TaskArray, pointer: ir.Value, value: ir.Value, better: str, operation: str
) -> ir.Value:
    """Read the element, and only where `value better element` holds do the atomic operation."""
    dtype = array.dtype
    read = load(context, builder, array, pointer)
    start = builder.block
    if isinstance(dtype, types.Float):
        improves = builder.fcmp_ordered(better, value, read)
    elif dtype.bitwidth == 32:
        improves = builder.icmp_signed(better, value, context.cast(builder, read, dtype, types.int64))
    else:
        improves = (builder.icmp_signed if dtype.signed else builder.icmp_unsigned)(better, value, read)
    with builder.if_then(improves):
        if isinstance(dtype, types.Float):
            changed = _float_extreme(builder, pointer, value, operation)
        else:
            value = builder.trunc(value, read.type) if dtype.bitwidth == 32 else value
            changed = builder.atomic_rmw(operation if dtype.signed else f"u{operation}", pointer, value, "monotonic")
        end = builder.block
    old = builder.phi(read.type)
    old.add_incoming(read, start)
    old.add_incoming(changed, end)
    return old


def _float_extreme(builder: ir.IRBuilder, pointer: ir.Value, value: ir.Value, operation: str) -> ir.Value:
    """Do a float's minimum or maximum on its bits.

    Positive floats are ordered as their bits are, and lie above all others as signed integers; negative floats are ordered
    the other way round, and lie above all others as unsigned integers.
    """
    pointer = _as_bits(builder, pointer)
    bits = builder.bitcast(value, pointer.type.pointee)
    opposite = "umax" if operation == "min" else "umin"
    with builder.if_else(builder.icmp_signed(">=", bits, ir.Constant(bits.type, 0))) as (positive, negative):
        with positive:
            from_positive, positive_block = builder.atomic_rmw(operation, pointer, bits, "monotonic"), builder.block
        with negative:
            from_negative, negative_block = builder.atomic_rmw(opposite, pointer, bits, "monotonic"), builder.block
    old = builder.phi(bits.type)
    old.add_incoming(from_positive, positive_block)
    old.add_incoming(from_negative, negative_block)
    return builder.bitcast(old, value.type)
