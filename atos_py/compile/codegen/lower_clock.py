"""`worker.clock` in tasks: the clock that all multiprocessors of a GPU share, or the monotonic clock of the host."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import lower_builtin

from .types import I32, I64, WorkerType, on_cuda

_MONOTONIC = 1  # CLOCK_MONOTONIC of Linux, which `time.monotonic_ns` reads as well
_TIMESPEC = ir.LiteralStructType([I64, I64])  # seconds and nanoseconds


def clock(worker: WorkerType) -> tuple[types.Type, ...]:
    """Return the type of the result of `clock`."""
    return (types.int64,)


@lower_builtin("atos.worker.clock", WorkerType)
def lower_clock(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    if on_cuda(context):  # with a side effect, so that each call reads the clock, where it stands
        asm = ir.InlineAsm(ir.FunctionType(I64, []), "mov.u64 $0, %globaltimer;", "=l,~{memory}", side_effect=True)
        return builder.call(asm, [])
    now = cgutils.alloca_once(builder, _TIMESPEC)
    kind = ir.FunctionType(I32, [I32, _TIMESPEC.as_pointer()])
    read = cgutils.get_or_insert_function(builder.module, kind, "clock_gettime")
    builder.call(read, [ir.Constant(I32, _MONOTONIC), now])
    seconds, nanoseconds = (builder.load(cgutils.gep_inbounds(builder, now, 0, field)) for field in range(2))
    return builder.add(builder.mul(seconds, ir.Constant(I64, 10**9)), nanoseconds)
