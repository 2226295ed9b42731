"""Check of the registers that a linked kernel takes, and of its stack."""

from __future__ import annotations

import numpy as np

from atos_py.compile.kinds import Launchable
from atos_py.compile.linker import LinkedKernel
from atos_py.compile.spec import ProgramSpec

MOST_SPILLED = 400  # bytes stored and loaded by a thread, in kernels that are faster so


def check_registers(kernel: LinkedKernel, task: Launchable, worker: str, most: int = 64) -> None:
    """Check that a kernel has no stack, unless it is one that is faster with fewer registers and a small one."""
    limits = ProgramSpec(task, None, (), np.dtype("u4"), worker).limits()[0]
    if len(limits) > 1:
        assert (kernel.stack_bytes, kernel.spill_bytes) == (0, 0), task
        assert kernel.registers <= most, task
    else:
        assert kernel.registers <= (limits[0] or most), task
        assert kernel.spill_bytes <= MOST_SPILLED, task
