"""Kernels of programs, linked without a GPU: those with rounds spill little, and those without are as by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fake_arrays import FakeArray
from kernel_limits import linked

import atos_py as atos
from atos_py.algorithms import bfs
from atos_py.algorithms.sssp.tasks import relax, relax_by_arrival
from atos_py.compile import linker as link
from atos_py.compile.arguments import describe
from atos_py.compile.kinds import Tasks
from atos_py.compile.spec import ProgramSpec
from atos_py.models.acc import dense, programs
from atos_py.models.acc.frontier import Frontier, end_frontier_round
from atos_py.models.acc.tasks import make_tasks
from atos_py.operators.filters import Filters
from atos_py.operators.gather_rounds import GatherRounds
from atos_py.operators.long_rows import make_long_rows

pytest.importorskip("cuda.core", reason="cuda-core is not installed")
pytest.importorskip("cuda.core", reason="cuda-core is not installed")
if not any(link.CORE_DIR.glob("core_*.fatbin")):
    pytest.skip("the core was built without GPU support", allow_module_level=True)

pytestmark = pytest.mark.part("programs")


def array(dtype: str, readonly: bool = False) -> Any:
    return FakeArray(np.zeros(2, dtype), readonly)


GRAPH = atos.Graph._make([array("i4", True), array("u4", True), None])
WEIGHTED = GRAPH._replace(weights=array("u4", True))
WORDS, BITS = array("i8"), array("u4")


def cubin(task: Any, args: tuple[Any, ...], dtype: Any = "u4", most: int = 64, **options: Any) -> link.LinkedKernel:
    spec = ProgramSpec(task, None, tuple(map(describe, args)), np.dtype(dtype), **options)
    found, spills = linked(spec, most), spec.limits()[1]
    assert found.spill_bytes <= spills
    assert found.stack_bytes <= spills
    assert found.registers <= most
    return found


@pytest.mark.parametrize(
    ("program", "graph", "dtype", "kernel", "most"),
    [
        (programs.BFS, GRAPH, "u4", 7, 48),
        (programs.SSSP, WEIGHTED, "f4", 6, 64),
    ],
    ids=["bfs", "sssp"],
)
def test_kernels_with_rounds(program, graph, dtype, kernel, most):
    (tasks, stubs, _), metadata = make_tasks(program, np.dtype(dtype)), array(dtype)
    run = Frontier(graph, graph, metadata, None, WORDS, Filters(1, WORDS, BITS, WORDS), following=BITS)
    members = [tasks[k] if kernel >> k & 1 else stub for k, stub in enumerate(stubs)]
    cubin(Tasks(tuple(members)), (run,), most=most, each_round=end_frontier_round)


def test_unrolled_kernels():
    (tasks, stubs, _), distance = make_tasks(programs.SSSP, np.dtype("f4"), levels=3, stores=True), array("f4")
    run = Frontier(WEIGHTED, None, distance, distance, WORDS, Filters(1, WORDS, BITS, WORDS), claimed=array("i4"))
    cubin(Tasks((*tasks[:2], stubs[2])), (run,), most=80, each_round=end_frontier_round)
    cubin(Tasks((*stubs[:2], tasks[2])), (run,), most=80, each_round=end_frontier_round)


def test_online_filter_alone():
    metadata = array("u4")
    tasks, _, _ = make_tasks(programs.BFS, np.dtype("u4"))
    cubin(tasks[0], (Frontier(GRAPH, None, metadata, None, WORDS, Filters(1, WORDS)),), each_round=end_frontier_round)


def test_without_rounds_as_by_hand():
    """Of the same search, but by a minimum."""
    tasks, depth = make_tasks(programs.COMPONENTS, np.dtype("u4"))[0], array("u4")
    made, by_hand = cubin(tasks[0], (Frontier(GRAPH, None, depth, None),)), cubin(bfs.visit, (GRAPH, depth))
    assert made.registers <= by_hand.registers
    assert len(made.code) <= 1.02 * len(by_hand.code)


@pytest.mark.parametrize("is_ordered", [False, True])
def test_shortest_paths_as_by_hand(is_ordered):
    item, distance = np.dtype([("vertex", "u4"), ("value", "f4")]), array("f4")
    tasks, _, _ = make_tasks(programs.SSSP, distance.dtype, is_ordered=is_ordered, with_values=True)
    made = cubin(tasks[0], (Frontier(WEIGHTED, None, distance, None),), item, buckets=is_ordered)
    names = np.dtype([("vertex", "u4"), ("distance", "f4")])
    task = relax if is_ordered else relax_by_arrival
    by_hand = cubin(task, (WEIGHTED, distance, None, None), names, buckets=is_ordered)
    assert made.registers <= by_hand.registers
    assert len(made.code) <= 1.05 * len(by_hand.code)


def test_sums():
    values, counts = array("f4"), array("f8")
    none = make_long_rows(np.zeros((0, 3), np.int64), 0, 1, atos.device("cpu"))
    run = GatherRounds(*GRAPH[:2], values, values, BITS, BITS, WORDS, none, counts, counts, WORDS, 16, 1, 0)
    task, end_round = dense.make_dense_task(programs.PAGERANK, np.dtype("f4"), 0.0)
    cubin(task, (run, None, array("i4", True), 0.85, 0.1, 1e-5), each_round=end_round)
