"""Linked kernels of maps and programs of features: no stack, no spills. No GPU needed."""

from __future__ import annotations

from collections import namedtuple

import numpy as np
import pytest
from fake_arrays import FakeArray
from kernel_limits import linked

import atos_py as atos
from atos_py.compile import linker as link
from atos_py.compile.arguments import describe
from atos_py.compile.spec import ProgramSpec
from atos_py.models.learning.als.normal_equations import shape_of
from atos_py.models.learning.als.tasks import Side, solve_task
from atos_py.models.learning.belief_propagation.tasks import Problem, sweep_task
from atos_py.models.learning.feature_gather import feature_gather
from atos_py.models.learning.features.change_driven import State, _along_edges, _with_update, measure, settle, store
from atos_py.models.learning.features.maps import _edge_task, _vertex_task
from atos_py.models.learning.label_spreading import Spreading, add_seed, coefficient
from atos_py.models.learning.spmm import _store, _store4, _weighted_neighbor, _weighted_neighbor4

pytest.importorskip("cuda.core", reason="cuda-core is not installed")
pytest.importorskip("cuda.core", reason="cuda-core is not installed")
if not any(link.CORE_DIR.glob("core_*.fatbin")):
    pytest.skip("the core was built without GPU support", allow_module_level=True)

pytestmark = pytest.mark.part("programs")

Data = namedtuple("Data", "x sums")


def array(dtype: str, ndim: int = 1, readonly: bool = False) -> FakeArray:
    return FakeArray(np.zeros((2,) * ndim, dtype), readonly)


INDPTR, INDICES = array("i4", readonly=True), array("u4", readonly=True)
MATRIX, OUT = array("f4", 2, readonly=True), array("f4", 2)
BITS, COUNTS = array("u4"), array("i8", 2)


def send(f, u, v, edge, data):
    atos.atomic_add(data.sums, (v, f), data.x[u, f])


GATHER = INDPTR, INDICES, array("f4", readonly=True), MATRIX, OUT, 0
SIDE = Side(
    *(INDPTR, INDICES, array("f4", readonly=True), MATRIX, OUT, array("f4", readonly=True), array("i8")),
    *(np.float32(0.1), np.float32(40)),
)
PROBLEM = Problem(
    *(INDPTR, INDICES, array("i4", readonly=True), array("f8", 2, readonly=True), array("f4", 3, readonly=True)),
    *(array("f4", 3), 0, array("f4"), 0.5, 2, 0.1, array("i4"), array("i8"), 10),
)
STATE = State(
    *(OUT, OUT, array("f8", 2), array("u4"), array("f8", 2), 2, 0.1, 1.0, 0),
    Spreading(None, array("f8", 2), array("f4", readonly=True), MATRIX, 0.5),
)
GATHERED, _SENT = _along_edges(coefficient)
FUNCTIONS = {1: (_weighted_neighbor, _store), 4: (_weighted_neighbor4, _store4)}
SPMM = {
    f"spmm, {k} features, {width} at once, {rows} rows": (
        feature_gather(*FUNCTIONS[width], k, np.float32, "cuda", width=width, rows=rows),
        GATHER,
        64,
    )
    for k, width, rows in (
        *((5, 1, "mixed"), (4, 4, "mixed"), (16, 4, "mixed"), (64, 4, "mixed"), (128, 4, "mixed")),
        *((4, 4, "dense"), (16, 4, "short"), (64, 4, "short")),
    )
}
KERNELS = {
    **SPMM,
    "edge map": (_edge_task(((send, False),), 4, True)[0], (INDPTR, INDICES, BITS, BITS, COUNTS, Data(MATRIX, OUT)), 64),
    "als, 128": (solve_task(128, "cuda", True), (SIDE,), 65_536 // shape_of(128).num_threads // 2),
    "sums of a fixed point": (
        feature_gather(GATHERED, store, 8, np.float64, "cuda"),
        (INDPTR, INDICES, STATE._replace(x=MATRIX)),
        64,
    ),
    **{
        f"update to {finish.__name__}": (
            _vertex_task(((_with_update(finish, add_seed, 8), False),), 8, True)[0],
            (INDPTR, BITS, BITS, COUNTS, STATE),
            64,
        )
        for finish in (settle, measure)
    },
    "beliefs": (sweep_task(8, np.float32, False), (PROBLEM,), 96),
    "beliefs in logarithms": (
        sweep_task(8, np.float32, True),
        (PROBLEM._replace(pairwise=array("f8", 3, readonly=True)),),
        128,
    ),
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_spill_nothing(name):
    """Nor do they take more registers than let two blocks of their size be on a multiprocessor."""
    task, args, most_registers = KERNELS[name]
    found = linked(ProgramSpec(task, None, tuple(map(describe, args)), np.dtype("u4")), most_registers)
    assert (found.spill_bytes, found.stack_bytes) == (0, 0)
    assert found.registers <= most_registers
