"""Pools in tasks: `pool.take(n)`, `len(pool)`, and the arrays of its fields."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_getattr, infer_global, signature
from numba.extending import lower_builtin, lower_getattr_generic

from ...core.library import lib
from .lower_arrays import read_bits
from .lower_worker import method_template
from .types import I64, PoolType, on_cuda, refuse

_COUNTER, _REFUSED = 0, 1  # of the counters (arrays/pool.py)


def _take(pool: PoolType, n: types.Type | None = None) -> tuple[types.Type, ...]:
    if n is None:
        return (types.int64,)
    if not isinstance(n, types.Integer):
        refuse(f"pool.take takes a number of elements, an integer, not {n}")
    return types.int64, types.int64


_TEMPLATE = method_template("pool", "take", _take)


@infer_getattr
class PoolAttributes(AttributeTemplate):
    key = PoolType

    def generic_resolve(self, pool: PoolType, name: str) -> types.Type:
        if name == "take":
            return types.BoundFunction(_TEMPLATE, pool)
        if name not in pool.arrays:
            refuse(f"a pool has no {name!r} in a task; it offers take, len and the arrays {', '.join(pool.arrays)}")
        return pool.arrays[name]


@infer_global(len)
class PoolLength(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        return signature(types.int64, *args) if isinstance(args[0], PoolType) else None


def _word(context: Any, builder: ir.IRBuilder, pointer: ir.Value, number: int = 0) -> ir.Value:
    """Return a pointer to one of the words that a pointer leads to, in global memory."""
    if on_cuda(context):
        pointer = builder.addrspacecast(pointer, pointer.type.pointee.as_pointer(1))
    return builder.gep(builder.bitcast(pointer, I64.as_pointer(pointer.type.addrspace)), [ir.Constant(I64, number)])


@lower_getattr_generic(PoolType)
def lower_field(context: Any, builder: ir.IRBuilder, pool_type: PoolType, pool: ir.Value, name: str) -> ir.Value:
    return getattr(cgutils.create_struct_proxy(pool_type)(context, builder, value=pool), f"field_{name}")


@lower_builtin("atos.pool.take", PoolType)
def lower_take_one(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    return _lower_take(context, builder, sig.args[0], args[0], ir.Constant(I64, 1))


@lower_builtin("atos.pool.take", PoolType, types.int64)
def lower_take(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    return _lower_take(context, builder, sig.args[0], *args)


def _lower_take(context: Any, builder: ir.IRBuilder, pool_type: PoolType, value: ir.Value, n: ir.Value) -> ir.Value:
    """Add to the counter. Beyond the end it stays there, so that whatever is asked for later is refused as well."""
    pool = cgutils.create_struct_proxy(pool_type)(context, builder, value=value)
    first_array = next(iter(pool_type.arrays))
    array = cgutils.create_struct_proxy(pool_type.arrays[first_array])(context, builder, getattr(pool, f"field_{first_array}"))
    capacity = builder.extract_value(array.shape, 0)
    first = builder.atomic_rmw("add", _word(context, builder, pool.counters, _COUNTER), n, "monotonic")
    full = builder.icmp_signed(">", builder.add(first, n), capacity)
    with builder.if_then(full, likely=False):
        builder.atomic_rmw("min", _word(context, builder, pool.counters, _REFUSED), first, "monotonic")
        stop = ir.Constant(I64, lib.ATOS_STOP_CALLED)
        builder.atomic_rmw("or", _word(context, builder, pool.stop), stop, "monotonic")
    return builder.select(full, ir.Constant(I64, -1), first)


@lower_builtin(len, PoolType)
def lower_len(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    pool = cgutils.create_struct_proxy(sig.args[0])(context, builder, value=args[0])
    counter, refused = (
        read_bits(context, builder, "shared", _word(context, builder, pool.counters, word)) for word in (_COUNTER, _REFUSED)
    )
    return builder.select(builder.icmp_signed("<", counter, refused), counter, refused)
