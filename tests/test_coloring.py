"""Graph colouring: right on any graph, with any schedule and worker, and what the verifier refuses."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import atos_py as atos
from atos_py import link
from atos_py.algorithms import coloring
from atos_py.algorithms.coloring import LOST, ORDERS, TENTATIVE, Order, assign_or_check, color, verify
from atos_py.arguments import describe
from atos_py.errors import InvalidArgumentError, QueueFullError, UnsupportedTypeError, VerificationError

WORKERS = ["thread", "warp", "cta"]
SCHEDULES = [{"persistent": persistent, "barrier": barrier} for persistent in (True, False) for barrier in (False, True)]
DEVICES = [
    pytest.param("cpu"),
    pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(len(atos.devices()) < 2, reason="there is no GPU")]),
]


def graph_of(graph: nx.Graph[Any], device: str = "cpu") -> atos.Graph:
    return atos.Graph.from_networkx(graph, device=device)


def checked(graph: atos.Graph, *args: Any, **options: Any) -> coloring.ColoringResult:
    """Colour a graph, verify it in two ways, and return the result."""
    result = color(graph, *args, **options)
    verify(graph, result.colors)
    colors = result.colors.to_numpy()
    ends = graph.to_scipy().tocoo()
    assert (colors[ends.row] != colors[ends.col])[ends.row != ends.col].all()
    assert result.num_colors == colors.max(initial=-1) + 1
    assert result.stats.tasks_run >= graph.num_vertices
    return result


@st.composite
def graphs(draw: st.DrawFn) -> atos.Graph:
    """Any multigraph with loops, directed or not."""
    n = draw(st.integers(0, 14))
    vertex = st.integers(0, max(n - 1, 0))
    edges = draw(st.lists(st.tuples(vertex, vertex), max_size=60)) if n else []
    sources, targets = np.array(edges, np.int64).reshape(-1, 2).T
    symmetrize, deduplicate = draw(st.booleans()), draw(st.booleans())
    return atos.Graph.from_edges(sources, targets, None, n, symmetrize=symmetrize, deduplicate=deduplicate, device="cpu")


@given(
    graphs(), st.sampled_from(ORDERS), st.sampled_from([None, *WORKERS]), st.sampled_from(SCHEDULES),
    st.sampled_from([1, 2, 5]), st.sampled_from([None, 1, 3]), st.sampled_from([None, 0, 50]), st.sampled_from([8, 16, 512]),
)  # fmt: skip
@settings(deadline=None, max_examples=300)
def test_random_graphs(graph, order, worker, schedule, blocks, window, patience, scratch):
    options = {"num_blocks": blocks, "window": window, "patience": patience, "shared_memory": scratch, **schedule}
    result = checked(graph, order, worker=worker, **options)
    undirected = nx.Graph([(u, v) for u, v in nx.from_scipy_sparse_array(graph.to_scipy()).edges() if u != v])
    most = max((degree for _, degree in undirected.degree()), default=0)
    assert result.num_colors <= most + 1
    if blocks == 1 and window is None and order == "natural":  # one worker never meets a clash: greedy in the order of ids
        greedy = nx.greedy_color(undirected, strategy=lambda g, _: sorted(g))
        assert dict(enumerate(result.colors.to_numpy().tolist())) == {v: greedy.get(v, 0) for v in range(graph.num_vertices)}
        isolated = graph.num_vertices - sum(1 for v in undirected if undirected.degree(v))
        looped = result.stats.tasks_run - 2 * graph.num_vertices + isolated  # a vertex with loops alone is checked all the same
        assert 0 <= looped <= isolated


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("worker", [None, *WORKERS])
@pytest.mark.parametrize("order", ORDERS)
def test_schedules_and_workers(device, order, worker, schedule):
    for graph in (atos.generate.rmat(11, 16, device=device), atos.generate.road(70, device=device)):
        checked(graph, order, worker=worker, **schedule)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("graph", "most"),
    [
        (nx.empty_graph(0), 0),
        (nx.empty_graph(1), 1),
        (nx.empty_graph(100), 1),
        (nx.star_graph(5000), 2),
        (nx.complete_graph(150), 150),
        (nx.complete_bipartite_graph(40, 60), 2),
        (nx.path_graph(3000), 3),
        (nx.cycle_graph(1001), 3),
        (nx.Graph([(0, 0), (0, 1), (1, 1)]), 2),
        (nx.MultiGraph([(0, 1), (0, 1), (1, 2)]), 2),
        (nx.disjoint_union(nx.complete_graph(5), nx.empty_graph(5)), 5),
    ],
    ids=str,
)
@pytest.mark.parametrize("worker", WORKERS)
def test_known_graphs(device, graph, most, worker):
    for order in ORDERS:
        assert checked(graph_of(graph, device), order, worker=worker).num_colors <= most


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("worker", WORKERS)
@pytest.mark.parametrize("scratch", [8, 16, 64])
def test_more_colors_than_the_scratch_memory_holds(device, worker, scratch):
    assert checked(graph_of(nx.complete_graph(200), device), worker=worker, shared_memory=scratch).num_colors == 200


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_many_clashes_end(order, schedule):
    # 16 threads on a dense graph, all of its vertices under way from the start.
    graph = graph_of(nx.gnp_random_graph(300, 0.5, seed=1))
    for patience in (0, 100):
        result = checked(graph, order, num_blocks=16, fetch_size=1, window=300, patience=patience, **schedule)
        assert result.num_colors <= 80


# Two vertices with one colour: which of them the check of v = 1 makes give it up. 0 has the larger degree.
@pytest.mark.parametrize(
    ("v", "entries", "expected", "pushed"),
    [
        (1, [TENTATIVE, TENTATIVE, 7], [TENTATIVE, TENTATIVE | 1, 7], [3]),
        (0, [TENTATIVE, TENTATIVE, 7], [0, TENTATIVE | LOST, 7], []),
        (0, [TENTATIVE, 0, 7], [TENTATIVE | 1, 0, 7], [1]),
        (1, [TENTATIVE | LOST, TENTATIVE, 7], [TENTATIVE | LOST, 0, 7], []),
        (1, [5, TENTATIVE | LOST, 7], [5, TENTATIVE, 7], [3]),
    ],
)
@pytest.mark.parametrize("worker", WORKERS)
def test_who_gives_way(v, entries, expected, pushed, worker):
    """A check in a discrete launch whose queue has room for what it pushes is stopped after one round by the window's end."""
    graph = atos.Graph.from_edges([0, 0], [1, 2], symmetrize=True, device="cpu")
    colors = atos.asarray(np.array(entries, np.uint32), device="cpu", copy=True)
    seen: list[tuple[list[int], list[int]]] = []
    harness = pytest.importorskip("test_codegen_cpu").Harness(np.uint32)
    kinds = tuple(describe(a) for a in (graph, colors, Order(None, 3, 3, 0)))
    assert kinds and seen == []
    harness.run(link.native(assign_or_check, None, kinds, np.dtype(np.uint32)), [2 * v + 1], graph, colors, Order(None, 3, 3, 0))
    assert (colors.to_numpy().tolist(), harness.pushed) == (expected, pushed)
