"""Memory orders of atomic operations: each operation is relaxed, with a fence before it to release, and after it to acquire.

PTX calls the two a release and an acquire pattern. NVVM has no atomic operations with an order of their own on all GPUs.
"""

from __future__ import annotations

import inspect
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin

from ..atomics import fence
from .core_calls import call_core
from .race_hooks import note_fence
from .types import on_cuda, refuse

__all__ = ["ORDERS", "acquire", "acquire_after", "check_order", "order_of", "pysig_of", "release_before"]

ORDERS = ("relaxed", "acquire", "release", "acq_rel")


def pysig_of(function: Any) -> inspect.Signature:
    """Return the signature of a function as Numba takes it, which knows no parameters by position or by name alone."""
    parameters = inspect.signature(function).parameters.values()
    return inspect.Signature([each.replace(kind=each.POSITIONAL_OR_KEYWORD) for each in parameters])


def check_order(name: str, orders: tuple[str, ...], given: types.Type) -> types.Type:
    """Return the type of the argument `memory_order` of a call, with its value; refuse an order that is none of `orders`."""
    value = order_of(given)
    if value not in orders:
        shown = repr(value) if isinstance(value, str) else f"a {given}"
        refuse(
            f"{name} takes memory_order={' or '.join(map(repr, orders))}, which is known when the task is compiled, not {shown}"
        )
    return given


def order_of(given: types.Type) -> Any:
    """Return the memory order that an argument of a call is."""
    if isinstance(given, types.Omitted):
        return given.value
    return given.literal_value if isinstance(given, types.StringLiteral) else None


def release_before(context: Any, builder: ir.IRBuilder, order: types.Type) -> None:
    """Order what this thread has written and seen before an operation that is lowered next, if its order releases."""
    if order_of(order) in ("release", "acq_rel"):
        _fence(context, builder, "release")


def acquire_after(context: Any, builder: ir.IRBuilder, order: types.Type) -> None:
    """Order what this thread reads later after an operation that has been lowered, if its order acquires."""
    if order_of(order) in ("acquire", "acq_rel"):
        _fence(context, builder, "acquire")


def acquire(context: Any, builder: ir.IRBuilder) -> None:
    """Order what this thread reads later after an operation that has been lowered."""
    _fence(context, builder, "acquire")


def _fence(context: Any, builder: ir.IRBuilder, order: str) -> None:
    if on_cuda(context):
        call_core(builder, ir.VoidType(), "atos_fence", [])  # of the scope of the launch, which the linker knows
    else:
        builder.fence(order)


@infer_global(fence)
class Fence(AbstractTemplate):
    prefer_literal = True

    def generic(self, args: Any, kws: Any) -> Any:
        if args or not kws.keys() <= {"memory_order"}:
            refuse("fence takes memory_order= by name, and nothing else")
        order = kws.get("memory_order", types.Omitted("acq_rel"))
        return signature(types.none, check_order("fence", ORDERS[1:], order)).replace(pysig=pysig_of(fence))


@lower_builtin(fence, types.Any)
def lower_fence(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    _fence(context, builder, order_of(sig.args[0]))
    note_fence(builder, order_of(sig.args[0]))
    return context.get_dummy_value()
