"""Kernels linked for GPUs with one limit of registers, and checks of what they take."""

from __future__ import annotations

from dataclasses import replace

from atos_py.compile.linker import LinkedKernel, cubin
from atos_py.compile.spec import ProgramSpec

MOST_SPILLED = 400  # bytes stored and loaded by a thread, in kernels that are faster so


def linked(spec: ProgramSpec, most: int = 64, cc: tuple[int, int] = (9, 0)) -> LinkedKernel:
    """Link a program: with `most` registers where its launch would try several limits in turn, each by a link of seconds."""
    return cubin(replace(spec, max_registers=most) if len(spec.limits()[0]) > 1 else spec, cc)


def check_registers(spec: ProgramSpec, most: int = 64) -> LinkedKernel:
    """Link a program, and check that its kernel has no stack; or, with the one limit that makes it faster, a small one."""
    limits, kernel = spec.limits()[0], linked(spec, most)
    if len(limits) > 1:
        assert (kernel.stack_bytes, kernel.spill_bytes) == (0, 0), spec.task
        assert kernel.registers <= most, spec.task
    else:
        assert kernel.registers <= (limits[0] or most), spec.task
        assert kernel.spill_bytes <= MOST_SPILLED, spec.task
    return kernel
