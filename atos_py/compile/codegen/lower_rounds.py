"""Lowering of what a worker knows of rounds: their number and mode, and what is for the function between rounds alone.

A task that asks for them says so in the metadata of its module. A launch without barriers, which has no rounds, is refused
then, and only for such a task does a kernel keep them, in registers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import lower_builtin, lower_getattr

from .core_calls import call_core, cpu_field
from .types import I32, I64, WorkerType, on_cuda

# Metadata of modules that ask for the round, and for what waits for the next. It is kept by linking, and costs nothing.
_ROUNDS, _PENDING = "atos.rounds", "atos.pending"


def asks_for_round(modules: Iterable[str]) -> bool:
    """Whether the code of modules, as LLVM's text, uses the number or the mode of the round."""
    return _has_metadata(modules, _ROUNDS)


def asks_for_pending(modules: Iterable[str]) -> bool:
    """Whether the function between rounds uses the number of items that wait for the next one."""
    return _has_metadata(modules, _PENDING)


def _has_metadata(modules: Iterable[str], name: str) -> bool:
    return any(re.search(rf"^!{re.escape(name)} = ", module, re.MULTILINE) for module in modules)


def _lower_number(name: str, metadata: str) -> None:
    @lower_getattr(WorkerType, name)
    def lower(context: Any, builder: ir.IRBuilder, worker_type: WorkerType, worker: ir.Value) -> ir.Value:
        builder.module.add_named_metadata(metadata, [ir.Constant(I32, 1)])
        if on_cuda(context):
            return call_core(builder, I64, f"atos_{name}", [worker])
        return builder.load(cpu_field(builder, worker, name))


for _name, _metadata in {"round": _ROUNDS, "mode": _ROUNDS, "pending": _PENDING}.items():
    _lower_number(_name, _metadata)


@lower_builtin("atos.worker.set_mode", WorkerType, types.Integer)
def lower_set_mode(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    worker, mode = args
    if on_cuda(context):
        call_core(builder, ir.VoidType(), "atos_set_mode", [worker, mode])
    else:
        builder.store(mode, cpu_field(builder, worker, "next_mode"))
    return context.get_dummy_value()
