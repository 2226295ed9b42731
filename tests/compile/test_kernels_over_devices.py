"""Kernels of algorithms over several GPUs, linked for sm_90: registers, spills, and loads of mirrored arrays. No GPU needed."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_limits import check_registers, linked

import atos_py as atos
from atos_py.algorithms.bfs.growing_ranges import plan_growing_ranges
from atos_py.algorithms.pagerank import chebyshev_pull
from atos_py.algorithms.sssp.tasks import relax
from atos_py.arrays.array import asarray
from atos_py.arrays.private import PrivateArray
from atos_py.compile import linker as link
from atos_py.compile.arguments import describe
from atos_py.compile.kinds import Tasks
from atos_py.compile.spec import ProgramSpec
from atos_py.operators.device_ranges import plan_device_ranges
from atos_py.operators.long_rows import make_long_rows
from atos_py.several.bfs import direction_over_devices as levels
from atos_py.several.bfs import parents_over_devices as parents
from atos_py.several.bfs import pushed_levels_over_devices as pushed
from atos_py.several.pagerank import over_devices as pagerank

pytest.importorskip("cuda.core", reason="cuda-core is not installed")
pytest.importorskip("cuda.core", reason="cuda-core is not installed")
if not any(link.CORE_DIR.glob("core_*.fatbin")):
    pytest.skip("the core was built without GPU support", allow_module_level=True)

pytestmark = pytest.mark.part("programs")

PARTS = atos.generate.road(4, 1.0, device="cpu").partition(["cpu:0", "cpu:1"])
TAKEN = PrivateArray(1, np.int64, PARTS.ownership.others(1))
VERTEX = np.dtype("u4")


@pytest.mark.parametrize("worker", ["warp", "cta"])
def test_search_by_level(worker):
    tried, edges = (PrivateArray(k, each, PARTS.ownership.others(k)) for k, each in ((1, "u4"), (9, "i8")))
    search = levels.Search(
        atos.full(16, 0, dtype=np.uint32, partition=PARTS),
        tried,
        atos.MirroredArray((2, 1), np.uint32, PARTS.ownership.others(2)),
        atos.zeros(2, dtype=np.int64, device="cpu"),
        edges,
        edges.rows,
        plan_device_ranges(PARTS.ownership, worker, TAKEN),
        64,
        1 << 30,
        -1,
    )
    tasks = Tasks(levels.LEVEL_TASKS)
    args = describe(PARTS), describe(search)
    check_registers(ProgramSpec(tasks, None, args, VERTEX, worker, each_round=levels.open_level, peers=True), most=80)


def test_pushed_levels():
    tried, counts, reached, pieces = (
        PrivateArray(shape, dtype, PARTS.ownership.others(shape[0]))
        for shape, dtype in (((1,), "u4"), ((2,), "i8"), ((2, 1), "u4"), ((2, 4), "u4"))
    )
    depth, takers = atos.full(16, 0, dtype=np.uint32, partition=PARTS), plan_device_ranges(PARTS.ownership, "cta", TAKEN)
    bits = depth, tried, tried.rows, reached
    search = pushed.PushedSearch(*bits, pieces, counts, counts.rows, takers, plan_growing_ranges(1, 64), 9)
    args = describe(PARTS), describe(search)
    found = check_registers(ProgramSpec(pushed.push_level, None, args, VERTEX, each_round=pushed.end_round, peers=True))
    assert found.spill_bytes <= 64


def test_parents():
    depth, parent = (atos.full(16, 0, dtype=np.uint32, partition=PARTS) for _ in range(2))
    offer = atos.full(16, 0, dtype=np.uint64, partition=PARTS, combine="min")
    tree = parents.Tree(depth, offer, parent, plan_device_ranges(PARTS.ownership, "cta", TAKEN), 64)
    args = describe(PARTS), describe(tree)
    found = linked(ProgramSpec(parents.find_parents, None, args, VERTEX, each_round=parents.next_round, peers=True), 80)
    assert (found.stack_bytes, found.spill_bytes) == (0, 0)
    assert found.registers <= 80


@pytest.mark.parametrize("worker", ["warp", "cta"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_chebyshev_iteration(worker, dtype):
    sides = [atos.MirroredArray(16, dtype, PARTS.ownership) for _ in range(2)]
    state = atos.zeros(30, dtype=np.float64, device="cpu")
    totals, order, taken = (PrivateArray(k, each, PARTS.ownership.others(k)) for k, each in ((3, "f8"), (1, "i8"), (1, "u4")))
    teleport = asarray([0.5], device="cpu", readonly=True)
    none, sums = make_long_rows(np.zeros((0, 3), np.int64), 0, 1, atos.device("cpu")), atos.zeros(0, dtype="f8", device="cpu")
    run = chebyshev_pull.Iteration(*sides, teleport, totals, state, 0.15, 0.85, 1e-3, 0, order, taken, none, sums)
    counts = pagerank.Counts(totals.rows, taken.rows)
    args = tuple(map(describe, (order, 16, PARTS.indptr, PARTS.indices, 0.01, counts, run)))
    task, end = pagerank.chebyshev_over, pagerank.end_of_round
    found = linked(ProgramSpec(task, None, args, VERTEX, worker, each_round=end, peers=True), 96)
    assert (found.stack_bytes, found.spill_bytes) == (0, 0)
    assert found.registers <= 96


@pytest.mark.parametrize(("worker", "dtype"), [("cta", "u4"), ("cta", "f4"), ("warp", "i8")])  # each takes many seconds
def test_shortest_paths(worker, dtype):
    weighted = PARTS._replace(weights=atos.zeros(40, dtype=dtype, device="cpu"))
    item = np.dtype([("vertex", "u4"), ("distance", dtype)])
    distance = atos.full(16, 0, dtype=dtype, partition=PARTS, combine="min")
    args = tuple(map(describe, (weighted, distance, None, None)))
    found = linked(ProgramSpec(relax, None, args, item, worker, max_registers=96, buckets=True, peers=True))
    assert (found.stack_bytes, found.spill_bytes) == (0, 0)
    assert found.registers <= 96
