"""Remainders of floats on GPUs: NVVM has x - trunc(x / y) * y, which is wrong where the quotient is large or y is infinite."""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils

__all__ = ["take_exact_remainders"]

_EXACT = {"float": "__nv_fmodf", "double": "__nv_fmod"}  # of libdevice


def take_exact_remainders(module: ir.Module) -> None:
    """Replace each `frem` of a module by a call of the function of C."""
    for function in list(module.functions):
        for block in function.blocks:
            for instruction in [each for each in block.instructions if each.opname == "frem"]:
                kind = instruction.type
                exact = cgutils.get_or_insert_function(module, ir.FunctionType(kind, [kind, kind]), _EXACT[str(kind)])
                block.replace(instruction, ir.CallInstr(block, exact, instruction.operands))
