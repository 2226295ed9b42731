"""Kernels of tasks with joins, linked for sm_90: registers and spills. No GPU needed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_limits import linked
from shared_tasks import CALL, fibonacci

import atos_py as atos
from atos_py.compile import linker as link
from atos_py.compile.spec import ProgramSpec
from atos_py.runtime.launch_arguments import Arguments

pytest.importorskip("cuda.core", reason="cuda-core is not installed")
pytest.importorskip("cuda.core", reason="cuda-core is not installed")
if not any(link.CORE_DIR.glob("core_*.fatbin")):
    pytest.skip("the core was built without GPU support", allow_module_level=True)

pytestmark = pytest.mark.part("kernels")


@atos.task(opens=2)
def all_words(worker, v, joins, seen):
    if worker.rank == 0:
        if v < 0:
            seen[0] = worker.take(joins, -v)
        elif v == 0:
            j = worker.open(joins, 1, combine="max", negate=True)
            joins.expect(j, 1)
            k = worker.open(joins, 2, combine=None)
            worker.then(joins, k, -k)
            worker.push(j)
            worker.push(k)
        else:
            seen[1] = joins.peek(v)
            worker.arrive_at(joins, v, 1.5, n=1)


def arguments(dtype: Any, *others: Any) -> tuple[Any, ...]:
    """Return the kinds of joins and of other arguments."""
    device = atos.device("cpu")
    return Arguments([atos.Joins(1, dtype, device=device), *others], device).kinds


@pytest.mark.parametrize("dtype", [np.int64, np.float32])
def test_all_words_link(dtype):
    kinds = arguments(dtype, atos.zeros(2, dtype=dtype, device="cpu"))
    found = linked(ProgramSpec(all_words, None, kinds, np.dtype(np.int64), "warp"))
    assert found.spill_bytes == 0


def test_a_fork_spills_nothing():
    found = linked(ProgramSpec(fibonacci, None, arguments(np.int64), CALL, "thread"), 48)
    assert (found.spill_bytes, found.stack_bytes) == (0, 0)
    assert found.registers <= 48
