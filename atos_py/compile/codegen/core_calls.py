"""Calls of the core's functions on CUDA, and the fields of a CPU worker, for the lowering of what a worker offers."""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils

from ...core.library import ffi
from .types import I32, POINTER

# The struct atos_cpu_worker of csrc/include/atos.h: the type of each field by its name, in their order.
_FIELDS = {
    name: ir.IntType(8 * ffi.sizeof(field.type)) if field.type.kind == "primitive" else POINTER
    for name, field in ffi.typeof("atos_cpu_worker").fields
}
_CPU_WORKER = ir.LiteralStructType(list(_FIELDS.values()))


def call_core(builder: ir.IRBuilder, result: ir.Type, name: str, args: list[ir.Value]) -> ir.Value:
    """Call a function of the CUDA core. Convergent, since threads may meet in it."""
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, [arg.type for arg in args]), name)
    function.attributes.add("convergent")
    return builder.call(function, args)


def call_cpu_field(builder: ir.IRBuilder, worker: ir.Value, name: str, args: list[ir.Value] | None = None) -> None:
    """Call a function that a CPU worker has a pointer to, with the worker and `args`."""
    given = [worker, *(args or [])]
    function = ir.FunctionType(ir.VoidType(), [arg.type for arg in given]).as_pointer()
    builder.call(builder.bitcast(builder.load(cpu_field(builder, worker, name)), function), given)


def cpu_field(builder: ir.IRBuilder, worker: ir.Value, name: str) -> ir.Value:
    """Return a pointer to a field of a CPU worker."""
    index = list(_FIELDS).index(name)
    worker = builder.bitcast(worker, _CPU_WORKER.as_pointer())
    return builder.gep(worker, [ir.Constant(I32, 0), ir.Constant(I32, index)], inbounds=True)
