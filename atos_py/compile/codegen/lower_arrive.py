"""Arrivals at counters of dependencies: `worker.arrive`, of which the last one may push the item that has waited."""

from __future__ import annotations

import inspect
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import signature
from numba.extending import lower_builtin

from .core_calls import call_core
from .lower_arrays import check_index, element
from .lower_atomics import check_writable
from .lower_checks import cast, fail, note_arrival
from .lower_push import lower_push, push_item, type_how
from .race_events import ACCUMULATES
from .race_hooks import note_access, note_word
from .types import I8, I32, I64, POINTER, TaskArray, WorkerType, on_cuda, refuse

__all__ = ["subtract", "type_arrive"]

_WORD = "worker.arrive"
_NAMES = ("n", "push", "priority", "task")
_PYSIG = inspect.signature(lambda counters, index, n=1, push=None, priority=None, task=None: None)


def type_arrive(worker: WorkerType, args: Any, kws: Any) -> Any:
    """Return the signature of an arrival; `n` may be given by position, and what is pushed is given by name."""
    if not 2 <= len(args) <= 3 or not kws.keys() <= set(_NAMES[len(args) - 2 :]):
        refuse(f"{_WORD} takes (counters, index, n=1) by position, and push=, priority= and task= by name")
    counters, index = args[:2]
    check_writable(_WORD, counters)
    if counters.access == "scratch" or counters.dtype not in (types.int32, types.int64):
        refuse(f"{_WORD} counts in an argument array of int32 or int64, not in {counters}")
    check_index(counters, index)
    note_arrival(counters.numbers)
    n = args[2] if len(args) == 3 else kws.get("n", types.Omitted(1))
    if not isinstance(n, (types.Integer, types.Omitted)):
        refuse(f"{_WORD} takes an integer as n, not {n}")
    item = kws.get("push", types.none)
    if isinstance(item, (types.NoneType, types.Omitted)):
        item = types.none
        if kws.keys() & {"priority", "task"}:
            refuse(f"{_WORD} takes priority= and task= with push=, which they belong to")
    elif worker.over_hosts:
        refuse(f"{_WORD} pushes nothing over several hosts, where a vertex may be another host's")
    else:
        _, item = push_item(worker, item)
    how = type_how(_WORD, worker, kws.get("priority", types.none), kws.get("task", types.none))
    passed = n if isinstance(n, types.Omitted) else types.unliteral(n)
    return signature(types.boolean, counters, types.unliteral(index), passed, item, *how, recvr=worker).replace(pysig=_PYSIG)


@lower_builtin("atos.worker.arrive", WorkerType, TaskArray, types.Any, types.Any, types.Any, types.Any, types.Any)
def lower_arrive(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    (worker_type, array, index, n_type, item_type, *how), (worker, counters, _, n, item, *given) = sig.args, args
    pointer = element(context, builder, signature(types.boolean, array, index), args[1:3])
    counter = context.get_data_type(array.dtype)
    n = ir.Constant(counter, 1) if isinstance(n_type, types.Omitted) else cast(context, builder, n, n_type, array.dtype)
    note_access(context, builder, array, counters, pointer, ACCUMULATES, _WORD)
    is_last, is_below = subtract(context, builder, pointer, n)
    note_word(builder, array.checked, pointer, is_last)
    if array.checked:
        number = cgutils.create_struct_proxy(array)(context, builder, value=counters).number
        with builder.if_then(is_below, likely=False):
            first = args[2]
            if isinstance(index, types.BaseTuple):
                first, index = builder.extract_value(first, 0), index[0]
            fail(builder, "arrival", "", context.cast(builder, first, index, types.int64), builder.sext(n, I64), number)
    if item_type != types.none:
        with builder.if_then(is_last):
            push = signature(types.none, worker_type, item_type, *how)
            lower_push(context, builder, push, [worker, item, *given])
    return is_last


def subtract(context: Any, builder: ir.IRBuilder, pointer: ir.Value, n: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Arrive at a counter; return whether that made it zero, and whether it is below zero now."""
    if on_cuda(context):
        address = builder.addrspacecast(builder.bitcast(pointer, I8.as_pointer(1)), POINTER)
        state = call_core(builder, I32, f"atos_arrive_{n.type.width // 8}", [address, n])
        return builder.icmp_signed("==", state, ir.Constant(I32, 1)), builder.icmp_signed("<", state, ir.Constant(I32, 0))
    builder.fence("release")
    before = builder.atomic_rmw("sub", pointer, n, "monotonic")
    is_last = builder.icmp_signed("==", before, n)
    with builder.if_then(is_last):
        builder.fence("acquire")
    return is_last, builder.icmp_signed("<", before, n)
