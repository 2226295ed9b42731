"""Minimum spanning forests: that of the order of edges on any graph, with any weights, schedule and worker, and proved so."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from fake_arrays import FakeArray
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_limits import check_registers

import atos_py as atos
from atos_py.algorithms.minimum_spanning_forest.tasks import Trees, collect_floats, grow
from atos_py.compile.arguments import describe
from atos_py.compile.spec import ProgramSpec
from atos_py.errors import BuildError, InvalidArgumentError, LaunchConfigError, UnsupportedTypeError, VerificationError
from atos_py.operators.edge_map import THREAD_MAX_DEGREE

OPTIONS = [{"worker": worker, "persistent": persistent} for worker in ("thread", "warp", "cta") for persistent in (True, False)]


def edges_of(graph: atos.Graph) -> list[tuple[Any, int, int, int]]:
    """Return weight, smaller end, larger end and number of every edge."""
    tails, heads = np.repeat(np.arange(graph.num_vertices), graph.degrees()), graph.indices.to_numpy().astype(np.int64)
    weights = np.ones(graph.num_edges, np.int32) if graph.weights is None else graph.weights.to_numpy()
    low, high = np.minimum(tails, heads).tolist(), np.maximum(tails, heads).tolist()
    return list(zip(weights.tolist(), low, high, range(graph.num_edges), strict=True))


def expected(graph: atos.Graph) -> list[tuple[Any, int, int]]:
    """Return the forest by Kruskal's algorithm, in the order of edges."""
    trees = nx.utils.UnionFind()
    found = []
    for weight, u, v, _ in sorted(edges_of(graph)):
        if trees[u] != trees[v]:
            trees.union(u, v)
            found.append((weight, u, v))
    return found


def checked(graph: atos.Graph, **options: Any) -> atos.SpanningForestResult:
    """Find the forest, verify it, compare it with Kruskal's, and return it."""
    result = atos.minimum_spanning_forest(graph, **options)
    atos.verify_minimum_spanning_forest(graph, result.edges, result.edge_ids, result.weight)
    by_number = edges_of(graph)
    chosen = [by_number[k] for k in result.edge_ids.to_numpy()]
    theirs = expected(graph)
    assert sorted(edge[:3] for edge in chosen) == theirs
    assert np.sort(result.edges.to_numpy(), axis=1).tolist() == [list(edge[1:3]) for edge in chosen]
    assert result.num_edges == len(theirs)
    total = sum(weight for weight, *_ in theirs)
    assert type(result.weight) is type(total) or not theirs
    assert result.weight == pytest.approx(total, rel=1e-12) if isinstance(total, float) else result.weight == total
    return result


WEIGHTS = {
    None: [0],
    "i8": [-(2**63), -1, 0, 1, 2**63 - 1],
    "u8": [0, 1, 2**63, 2**64 - 1],
    "f8": [-1.5, -0.0, 0.0, 1e-300, np.inf],
}


@st.composite
def graphs(draw: st.DrawFn) -> atos.Graph:
    """Any undirected multigraph with loops and isolated vertices, and few different weights of a type, or none."""
    n = draw(st.integers(0, 20))
    kind = draw(st.sampled_from(list(WEIGHTS)))
    vertex = st.integers(0, max(n - 1, 0))
    edges = draw(st.lists(st.tuples(vertex, vertex, st.sampled_from(WEIGHTS[kind])), max_size=60)) if n else []
    tails, heads = np.array([edge[:2] for edge in edges], np.int64).reshape(-1, 2).T
    weights = None if kind is None else np.array([edge[2] for edge in edges], kind)
    return atos.Graph.from_edges(tails, heads, weights, num_vertices=n, symmetrize=True, device="cpu")


@given(graphs(), st.sampled_from(["warp", "cta"]), st.booleans(), st.sampled_from([1, 3]), st.sampled_from([1, 1 << 62]))
@settings(deadline=None, max_examples=120)
def test_random_graphs(graph: atos.Graph, worker: str, persistent: bool, blocks: int, thread_max_degree: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(THREAD_MAX_DEGREE, "cpu", thread_max_degree)
        checked(graph, worker=worker, persistent=persistent, num_blocks=blocks)


def with_weights(graph: nx.Graph[Any], device: atos.Device | str, weights: Any = lambda low, high: (low * 7 + high * 13) % 50):
    """Return a graph with integer weights made of its edges' ends."""
    n = graph.number_of_nodes()
    tails, heads = np.array(graph.edges(), np.int64).reshape(-1, 2).T
    values = weights(np.minimum(tails, heads), np.maximum(tails, heads))
    return atos.Graph.from_edges(tails, heads, values, num_vertices=n, symmetrize=True, device=device)


KNOWN: dict[str, Any] = {
    "star": nx.star_graph(6000),
    "grid": nx.convert_node_labels_to_integers(nx.grid_2d_graph(70, 80)),
    "complete": nx.complete_graph(60),
    "two": nx.disjoint_union(nx.star_graph(50), nx.cycle_graph(400)),
    "isolated": nx.empty_graph(4100),
}


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_known_graphs(device: atos.Device, options: dict[str, Any]) -> None:
    for graph in KNOWN.values():
        checked(with_weights(graph, device), **options)
    path = nx.path_graph(9000)
    checked(with_weights(path, device, lambda low, high: low), **options)  # one chain of hooks in the first step
    checked(with_weights(path, device, lambda low, high: 0 * low), **options)
    checked(with_weights(path, device, lambda low, high: -high), **options)


@pytest.mark.parametrize("kind", ["i4", "u4", "f4"])
def test_weights_of_32_bits(device: atos.Device, kind: str) -> None:
    checked(with_weights(KNOWN["grid"], device, lambda low, high: ((low * 7 + high * 13) % 9).astype(kind)))


def test_many_ranges_with_equal_weights(device: atos.Device, worker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(THREAD_MAX_DEGREE, "cpu", 1)  # so that there are rows for threads, groups and workers
    checked(atos.generate.rmat(13, 4, device=device), worker=worker)


def test_results_are_the_same_each_time(device: atos.Device) -> None:
    graph = with_weights(KNOWN["grid"], device)
    first, second = (atos.minimum_spanning_forest(graph, worker=worker).edge_ids.to_numpy() for worker in ("cta", "warp"))
    np.testing.assert_array_equal(first, second)


def test_what_is_not_undirected_is_refused() -> None:
    directed = atos.Graph.from_edges([0, 1], [1, 2], device="cpu")
    with pytest.raises(InvalidArgumentError, match=r"some edge has no reverse; pass graph\.to_symmetric\(\)"):
        atos.minimum_spanning_forest(directed)
    uneven = atos.Graph.from_edges([0, 1], [1, 0], weights=[5, 2], device="cpu")
    with pytest.raises(
        InvalidArgumentError, match=r"weighs another than its reverse; pass graph\.simplify\(symmetrize=True, dedup"
    ):
        atos.minimum_spanning_forest(uneven)
    assert atos.minimum_spanning_forest(uneven.simplify(symmetrize=True, deduplicate=True)).weight == 2
    swapped = atos.Graph.from_edges([0, 1, 1, 2], [1, 0, 2, 1], weights=[5, 2, 2, 5], device="cpu")
    with pytest.raises(InvalidArgumentError, match="weighs another"):  # the weights as such are symmetric
        atos.minimum_spanning_forest(swapped)
    signs = atos.Graph.from_edges([0, 1], [1, 0], weights=[0.0, -0.0], device="cpu")
    assert atos.minimum_spanning_forest(signs).weight == 0
    with pytest.raises(LaunchConfigError, match="minimum_spanning_forest proceeds in rounds"):
        atos.minimum_spanning_forest(signs, barrier=False)
    with pytest.raises(InvalidArgumentError, match="worker must be one of"):
        atos.minimum_spanning_forest(signs, worker="grid")


def test_wrong_forests_are_noticed() -> None:
    #   0 -1- 1 -2- 2, 0 -3- 2, 3 -4- 4; edges by number: 0-1 0-2 1-0 1-2 2-0 2-1 3-4 4-3
    graph = atos.Graph.from_edges([0, 1, 0, 3], [1, 2, 2, 4], [1, 2, 3, 4], symmetrize=True, sort=True, device="cpu")
    verify = atos.verify_minimum_spanning_forest
    verify(graph, [[0, 1], [1, 2], [4, 3]], [0, 3, 7], 7)
    for ends, ids, message in (
        ([[0, 1], [1, 2]], [0, 3], r"edge 3 -> 4 \(number 6\) joins two trees"),
        ([[0, 1], [0, 2], [3, 4]], [0, 1, 6], r"edge 1 -> 2 \(number 3\) weighs 2, and .* place of edge 0 -> 2 of weight 3"),
        ([[0, 1], [1, 2], [0, 2], [3, 4]], [0, 3, 1, 6], r"edge 0 -> 2 \(number 1\) closes a cycle"),
        ([[0, 1], [1, 0], [3, 4]], [0, 2, 6], r"edge 1 -> 0 \(number 2\) closes a cycle"),
        ([[0, 1], [1, 2], [3, 4]], [0, 3, 7], "edge number 7 leads from 4 to 3, not from 3 to 4"),
        ([[0, 1]], [8], "edge number 8 is none of 8"),
        ([[0, 1]], [-1], "edge number -1 is none of 8"),
    ):
        with pytest.raises(VerificationError, match=message):
            verify(graph, ends, ids)
    with pytest.raises(VerificationError, match="weight is 8, but the edges weigh 7"):
        verify(graph, [[0, 1], [1, 2], [3, 4]], [0, 3, 6], 8)
    with pytest.raises(InvalidArgumentError, match=r"got shapes \(2,\) and \(1,\)"):
        verify(graph, [0, 1], [0])
    with pytest.raises(UnsupportedTypeError, match="edge_ids must be an array of integers, not float64"):
        verify(graph, [[0, 1]], [0.0])


@pytest.mark.part("programs")
@pytest.mark.parametrize("worker", ["thread", "cta"])
@pytest.mark.parametrize("kind", ["i8", "f4"])
def test_kernels_keep_to_registers(worker: str, kind: str) -> None:
    pytest.importorskip("cuda.core", reason="cuda-core is not installed")

    def array(dtype: str, ndim: int = 1, readonly: bool = False) -> FakeArray:
        return FakeArray(np.zeros((2,) * ndim, dtype), readonly)

    graph = atos.Graph.from_edges([0, 1], [1, 0], weights=np.ones(2, kind), device="cpu")
    of_vertices = array("u4"), array("u4"), array("i4")
    of_trees = array(kind), array("u8"), array("i4"), array("u4"), array("i4")
    trees = Trees(*of_vertices, *of_trees, array("u4"), array("i8"), np.dtype(kind).type(9))
    launches = {grow: (1024, 16, graph, trees)}
    if kind == "f4":
        launches[collect_floats] = 1024, 2, array("i8"), array("f8", 2), graph, trees, array("u4", 2), array("i4")
    for task, args in launches.items():
        try:
            check_registers(ProgramSpec(task, None, tuple(map(describe, args)), np.dtype(np.int64), worker))
        except BuildError as error:
            pytest.skip(str(error))
