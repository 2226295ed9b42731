"""Kernels of the examples that are whole programs, linked for sm_90: no stack, no spills. No GPU needed."""

from __future__ import annotations

from collections import namedtuple

import numpy as np
import pytest
from fake_arrays import array
from kernel_limits import linked
from repository import load_example

from atos_py.compile import linker as link
from atos_py.compile.arguments import PoolArgument, QueueKind, describe
from atos_py.compile.kinds import Tasks
from atos_py.compile.spec import ProgramSpec

pytest.importorskip("cuda.core", reason="cuda-core is not installed")
pytest.importorskip("cuda.core", reason="cuda-core is not installed")
if not any(link.CORE_DIR.glob("core_*.fatbin")):
    pytest.skip("the core was built without GPU support", allow_module_level=True)

pytestmark = pytest.mark.part("programs")


barnes_hut, survey_propagation = load_example("barnes_hut"), load_example("survey_propagation")
mesh_refinement, uts, cholesky = load_example("mesh_refinement"), load_example("uts"), load_example("cholesky")
triangular_solve = load_example("triangular_solve")
HALF, ROWS = array("f4"), array("f4", 2)
BODIES = array("i8", 1, True), array("f4", 2, True)
TREE = barnes_hut.Tree(*BODIES, ROWS, array("f4"), array("i4", 2), array("i4"))
FROZEN = barnes_hut.Tree(*BODIES, array("f4", 2, True), array("f4", 1, True), array("i4", 2, True), array("i4", 1, True))
KEYS = array("i8")
FIXED, NUMBERS, FLOATS = array("i4", readonly=True), array("i4"), array("f4")
FORMULA = survey_propagation.Formula(FIXED, FIXED, FIXED)
STATE = survey_propagation.State(FLOATS, FLOATS, FLOATS, FLOATS, KEYS, NUMBERS, NUMBERS, NUMBERS)
SEARCH = QueueKind(np.dtype("u4"))
POINTS = PoolArgument(KEYS, {"x": NUMBERS, "y": NUMBERS})
ROWS_OF_3 = array("i4", 2)
PARTS = {"corner": ROWS_OF_3, "twin": ROWS_OF_3, "inner": KEYS, "claim": KEYS, "tried": NUMBERS}
MESH = mesh_refinement.Mesh(POINTS, PoolArgument(KEYS, PARTS), KEYS, KEYS)
Columns = namedtuple("Columns", "indptr indices")  # of a graph
KERNELS = {
    "number": (barnes_hut.number, (ROWS, HALF, KEYS), "cta"),
    "arrange": (barnes_hut.arrange, (KEYS, KEYS, ROWS, ROWS, KEYS, ROWS, ROWS), "cta"),
    "split and gather": (Tasks((barnes_hut.split, barnes_hut.gather)), (TREE, HALF), "warp"),
    "attract": (barnes_hut.attract, (FROZEN, ROWS, ROWS, ROWS, ROWS, HALF), "warp"),
    "sweep": (survey_propagation.sweep, (9, FORMULA, STATE), "cta"),
    "judge": (survey_propagation.judge, (9, FORMULA, STATE), "cta"),
    "choose and assign": (Tasks((survey_propagation.choose, survey_propagation.assign)), (KEYS, FORMULA, STATE), "cta"),
    "count": (survey_propagation.count, (9, FORMULA, NUMBERS, KEYS, SEARCH), "cta"),
    "flip": (survey_propagation.flip, (FORMULA, NUMBERS, NUMBERS, KEYS, KEYS, 9, 0.5), "thread"),
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_spill_little(name):
    task, args, worker = KERNELS[name]
    kinds = tuple(arg if isinstance(arg, QueueKind) else describe(arg) for arg in args)
    each_round = survey_propagation.settle if name == "sweep" else None
    spec = ProgramSpec(task, None, kinds, np.dtype("u4"), worker, each_round=each_round)
    found = linked(spec)
    assert max(found.spill_bytes, found.stack_bytes) <= spec.limits()[1]
    assert 16 <= found.registers <= 64


def test_mesh_refinement_has_its_lists_in_local_memory_and_nothing_else():
    """The cavity, the way into each of its triangles, and what is around it; so with each kind of workers."""
    kinds, tasks = (
        tuple(map(describe, (MESH, 0, 1))),
        Tasks((mesh_refinement.begin, mesh_refinement.plan, mesh_refinement.refine)),
    )
    for worker in ("thread", "warp", "cta"):
        found = linked(ProgramSpec(tasks, None, kinds, mesh_refinement.ITEM, worker), 255)
        assert found.spill_bytes == 0
        assert 3 * 4 * mesh_refinement.MOST <= found.stack_bytes <= 3 * 4 * mesh_refinement.MOST + 16
        assert found.registers <= 96


@pytest.mark.parametrize("worker", ["thread", "warp", "cta"])
def test_hashes_lie_in_registers(worker):
    """The 16 words of a block, too, since all loops over them are unrolled; also where the newest items come first."""
    kinds = describe(uts.TREES["T1"]), describe(array("i8"))
    for newest in (False, True):
        found = linked(ProgramSpec(uts.visit, None, kinds, uts.NODE, worker, newest=newest))
        assert (found.spill_bytes, found.stack_bytes) == (0, 0)


def test_a_factorization_spills_nothing():
    tasks = Tasks((cholesky.potrf, cholesky.trsm, cholesky.syrk, cholesky.gemm))
    kinds = describe(3), describe(array("f8", 2)), describe(array("i4"))
    found = linked(ProgramSpec(tasks, None, kinds, cholesky.STEP), 128)
    assert (found.spill_bytes, found.stack_bytes) == (0, 0)


@pytest.mark.parametrize("task", [triangular_solve.solve_one, triangular_solve.solve_several], ids=["one", "several"])
def test_a_triangular_solve_spills_nothing(task):
    columns = Columns(array("i4", readonly=True), array("i4", readonly=True))
    known, numbers = array("f8", readonly=True), array("f8", 2)
    kinds = tuple(map(describe, (columns, known, known, numbers, array("i4"), array("f8", 2, True), numbers)))
    found = linked(ProgramSpec(task, None, kinds, np.dtype("u4")))
    assert (found.spill_bytes, found.stack_bytes) == (0, 0)
    assert 16 <= found.registers <= 64
