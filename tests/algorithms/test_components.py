"""Components of graphs: right on any graph, with any schedule and worker, and proved so."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from fake_arrays import FakeArray
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_limits import check_registers
from scipy.sparse import csgraph

import atos_py as atos
from atos_py.algorithms import strongly_connected_components
from atos_py.algorithms.strongly_connected_components import Keys, separate, set_mode
from atos_py.compile.arguments import describe
from atos_py.compile.spec import ProgramSpec
from atos_py.errors import BuildError, InvalidArgumentError, LaunchConfigError, VerificationError
from atos_py.operators.connect import choose_largest, connect
from atos_py.operators.edge_map import THREAD_MAX_DEGREE

WORKERS = ["thread", "warp", "cta"]
OPTIONS = [{"worker": worker, "persistent": persistent} for worker in WORKERS for persistent in (True, False)]


FUNCTIONS = {
    "weak": (atos.connected_components, atos.verify_connected_components),
    "strong": (atos.strongly_connected_components, atos.verify_strongly_connected_components),
}


def checked(graph: atos.Graph, kind: str, **options: Any) -> atos.ComponentsResult:
    """Find the components, verify them, compare them with SciPy's, and return them."""
    find, verify = FUNCTIONS[kind]
    result = find(graph, **options)
    verify(graph, result.label, result.num_components)
    count, theirs = csgraph.connected_components(graph.to_scipy(), directed=True, connection=kind)
    smallest = np.full(count, graph.num_vertices)
    np.minimum.at(smallest, theirs, np.arange(graph.num_vertices))
    assert result.label.to_numpy().tolist() == smallest[theirs].tolist()
    assert result.num_components == count
    return result


@st.composite
def graphs(draw: st.DrawFn) -> atos.Graph:
    """Any multigraph with loops and isolated vertices, directed or not; of one vertex or more, since SciPy has no others."""
    n = draw(st.integers(1, 24))
    vertex = st.integers(0, n - 1)
    tails, heads = np.array(draw(st.lists(st.tuples(vertex, vertex), max_size=40)), np.int64).reshape(-1, 2).T
    return atos.Graph.from_edges(tails, heads, num_vertices=n, symmetrize=draw(st.booleans()), device="cpu")


@given(graphs(), st.sampled_from(OPTIONS), st.sampled_from([1, 3]), st.booleans(), st.sampled_from([1, 1 << 62]))
@settings(deadline=None, max_examples=100)
def test_random_graphs(graph: atos.Graph, options: dict[str, Any], blocks: int, spare: bool, thread_max_degree: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("atos_py.operators.connect._MIN_DEGREE", 0 if spare else 1 << 40)
        patch.setitem(THREAD_MAX_DEGREE, "cpu", thread_max_degree)
        checked(graph, "weak", num_blocks=blocks, **options)


@given(
    graphs(), st.sampled_from(OPTIONS), st.sampled_from([1, 3]), st.sampled_from([0, 1 << 40]), st.sampled_from([1, 1 << 62])
)
@settings(deadline=None, max_examples=150)
def test_random_graphs_strongly(
    graph: atos.Graph, options: dict[str, Any], blocks: int, dense: int, thread_max_degree: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strongly_connected_components, "_DENSE", dense)
        patch.setitem(THREAD_MAX_DEGREE, "cpu", thread_max_degree)
        checked(graph, "strong", num_blocks=blocks, **options)


KNOWN = {
    "one vertex": nx.empty_graph(1),
    "isolated": nx.empty_graph(5000),
    "loops": nx.Graph([(v, v) for v in range(9)]),
    "star": nx.star_graph(9000),
    "path": nx.path_graph(9000),
    "path backwards": nx.DiGraph([(v + 1, v) for v in range(9000)]),
    "long cycle": nx.DiGraph([(v, (v + 1) % 9000) for v in range(9000)]),
    "cycles in a row": nx.DiGraph([(v, v + 1) for v in range(5000)] + [(v + 2, v) for v in range(0, 4990, 3)]),
    "no cycle": nx.gn_graph(5000, seed=1),
    "two of a size": nx.disjoint_union(nx.complete_graph(40), nx.complete_graph(40)),
    "parallel edges": nx.MultiDiGraph([(0, 1), (0, 1), (3, 2), (2, 2)]),
    "hub that is not in the largest": nx.disjoint_union(nx.star_graph(300), nx.cycle_graph(4000)),
}


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("kind", FUNCTIONS)
def test_known_graphs(device: atos.Device, kind: str, options: dict[str, Any]) -> None:
    for graph in KNOWN.values():
        checked(atos.Graph.from_networkx(graph, device=device), kind, **options)


@pytest.mark.parametrize("symmetric", [True, False])
def test_many_ranges(device: atos.Device, worker: str, symmetric: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(THREAD_MAX_DEGREE, "cpu", 1)  # so that there are rows for threads, groups and workers
    graph = atos.generate.rmat(14, 4, device=device)
    if not symmetric:
        tails, heads = np.repeat(np.arange(graph.num_vertices), graph.degrees()), graph.indices.to_numpy()
        kept = (tails + heads) % 2 == (tails < heads)
        graph = atos.Graph.from_edges(tails[kept], heads[kept], num_vertices=graph.num_vertices, device=device)
    result = checked(graph, "weak", worker=worker)
    assert graph.is_symmetric() == symmetric
    assert result.stats.rounds == (4 if symmetric else 3)
    strong = checked(graph, "strong", worker=worker)
    assert (strong.stats.task == result.stats.task) == symmetric  # both find the same then


def test_many_edges_strongly(device: atos.Device, worker: str) -> None:
    tails, heads = np.random.default_rng(3).zipf(1.4, size=(2, 60_000)) % 5000
    graph = atos.Graph.from_edges(tails, heads, num_vertices=5000, device=device)
    result = checked(graph, "strong", worker=worker)
    assert 3 < result.num_components < 4500


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_no_vertices(device: atos.Device, kind: str) -> None:
    graph = atos.Graph.from_edges([], [], device=device)
    find, verify = FUNCTIONS[kind]
    result = find(graph)
    verify(graph, result.label, result.num_components)
    assert (result.label.shape, result.num_components) == ((0,), 0)


def test_wrong_labels_are_noticed() -> None:
    graph = atos.Graph.from_edges([1, 2, 4], [2, 3, 5], num_vertices=7, device="cpu")
    right = np.array([0, 1, 1, 1, 4, 4, 6])
    atos.verify_connected_components(graph, right, 4)
    for v, label, message in (
        (3, 2, r"edge 2 -> 3 \(number 1\) joins label 1 and label 2"),
        (6, 0, r"label\[6\] is 0, but the smallest vertex of its component is 6"),
        (0, -1, r"label\[0\] is -1"),
        ([4, 5], 1, r"label\[4\] is 1, but the smallest vertex of its component is 4"),  # two as one
        ([4, 5], 5, r"label\[4\] is 5, but"),  # not the smallest
    ):
        wrong = right.copy()
        wrong[v] = label
        with pytest.raises(VerificationError, match=message):
            atos.verify_connected_components(graph, wrong)
    with pytest.raises(VerificationError, match="num_components is 3, but there are 4"):
        atos.verify_connected_components(graph, right, 3)
    with pytest.raises(InvalidArgumentError, match="one entry for each of 7 vertices"):
        atos.verify_connected_components(graph, right[1:])


def test_wrong_strong_labels_are_noticed() -> None:
    graph = atos.Graph.from_edges([0, 1, 2, 3, 4], [1, 2, 1, 4, 3], num_vertices=5, device="cpu")
    right = [0, 1, 1, 3, 3]
    verify = atos.verify_strongly_connected_components
    verify(graph, right, 3)
    for wrong, message in (
        ([0, 0, 0, 3, 3], r"label\[1\] is 0, but the smallest vertex of its strongly connected component is 1"),
        ([0, 2, 2, 3, 3], r"label\[1\] is 2"),
        ([0, 1, 2, 3, 3], r"label\[2\] is 2"),
        ([0, 1, 1, 1, 1], r"label\[3\] is 1"),
        ([-1, 1, 1, 3, 3], r"label\[0\] is -1"),
    ):
        with pytest.raises(VerificationError, match=message):
            verify(graph, wrong)
    with pytest.raises(VerificationError, match="num_components is 4, but there are 3"):
        verify(graph, right, 4)


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_refusals(kind: str) -> None:
    graph = atos.Graph.from_edges([0, 1], [1, 0], device="cpu")
    find, _ = FUNCTIONS[kind]
    with pytest.raises(LaunchConfigError, match=r"proceeds in rounds, which take barriers \(got barrier=False\)"):
        find(graph, barrier=False)
    with pytest.raises(LaunchConfigError, match="has a function between rounds of its own"):
        find(graph, each_round=lambda *args: None)
    with pytest.raises(InvalidArgumentError, match="worker must be one of"):
        find(graph, worker="grid")
    assert find(graph, barrier=True).num_components == 1


@pytest.mark.parametrize("kind", FUNCTIONS)
@pytest.mark.parametrize("n", [0, 1])
def test_no_edges_with_checks_of_indices(kind: str, n: int) -> None:
    graph = atos.Graph.from_edges([], [], num_vertices=n, device="cpu")
    assert FUNCTIONS[kind][0](graph, debug=True).num_components == n


@pytest.mark.part("programs")
@pytest.mark.parametrize("worker", ["thread", "cta"])
def test_kernels_keep_to_registers(worker: str) -> None:
    pytest.importorskip("cuda.core", reason="cuda-core is not installed")
    graph = atos.generate.road(2, device="cpu")
    uint32, int64 = FakeArray(np.zeros(2, np.uint32)), FakeArray(np.zeros(2, np.int64))
    known, uint64 = FakeArray(np.zeros((2, 2), np.uint32)), FakeArray(np.zeros(2, np.uint64))
    keys = Keys(known, uint64, uint32, uint32, uint64, int64, int64)
    for task, each_round, args in (
        (connect, choose_largest, (1024, 16, 2, graph, uint32, int64)),
        (separate, set_mode, (4096, 1024, 16, 1, graph, keys)),
    ):
        kinds = tuple(map(describe, args))
        try:
            check_registers(ProgramSpec(task, None, kinds, np.dtype(np.int64), worker, each_round=each_round))
        except BuildError as error:
            pytest.skip(str(error))
