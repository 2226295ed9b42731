"""Orders of vertices, and the largest component."""

from __future__ import annotations

import hashlib

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from small_graphs import CUPY, graphs, sources_of, triples

import atos_py as atos
from atos_py.graph.components import component_labels
from atos_py.graph.reorder import ORDERS, breadth_first, order_vertices, reverse_cuthill_mckee

sparse = pytest.importorskip("scipy.sparse")


def bandwidth(graph: atos.Graph) -> int:
    return int(np.abs(sources_of(graph) - graph.indices.to_numpy().astype(np.int64)).max(initial=0))


def components(graph: atos.Graph) -> list[list[int]]:
    """Return the weak components, by their smallest vertices."""
    undirected = nx.empty_graph(graph.num_vertices)
    undirected.add_edges_from(edge[:2] for edge in triples(graph))
    return sorted(map(sorted, nx.connected_components(undirected)))


def search(graph: atos.Graph, root: int, by_degree: bool) -> list[int]:
    """Return what a queue reaches, in order."""
    indptr, indices, degrees = graph.indptr[:], graph.indices[:].tolist(), graph.degrees().tolist()
    queue, seen = [root], {root}
    for v in queue:
        found = [u for u in dict.fromkeys(indices[indptr[v] : indptr[v + 1]]) if u not in seen]
        queue += sorted(found, key=lambda u: (degrees[u], u)) if by_degree else found
        seen |= set(found)
    return queue


@given(graphs())
@settings(deadline=None)
def test_the_same_graph_by_other_names(graph: atos.Graph) -> None:
    for order in ORDERS:
        reordered, vertices = graph.reorder(order)
        old = vertices.to_numpy().tolist()
        assert sorted(old) == list(range(graph.num_vertices))
        assert sorted((old[u], old[v], *weight) for u, v, *weight in triples(reordered)) == sorted(triples(graph))
        ends = [edge[:2] for edge in triples(reordered)]
        assert ends == sorted(ends)
    degrees = graph.reorder("degree")[0].degrees()
    assert (np.diff(degrees) <= 0).all()


@given(graphs())
@settings(deadline=None)
def test_searches_are_those_of_a_queue(graph: atos.Graph) -> None:
    symmetric = graph.to_symmetric()
    parts = components(graph)
    assert graph.reorder("bfs")[1][:].tolist() == [v for part in parts for v in search(symmetric, part[0], False)]
    order = graph.reorder("rcm")[1][:].tolist()[::-1]
    degrees = symmetric.degrees()
    for part in parts:
        own, order = order[: len(part)], order[len(part) :]
        assert own == search(symmetric, own[0], True)
        depth = nx.single_source_shortest_path_length(nx.from_scipy_sparse_array(symmetric.to_scipy()), own[0])
        lowest = min((degrees[v], v) for v in part)[1]
        last = max(nx.single_source_shortest_path_length(nx.from_scipy_sparse_array(symmetric.to_scipy()), lowest).values())
        assert max(depth.values()) >= last  # it begins at an end, as far as that is known


@given(graphs())
@settings(deadline=None)
def test_a_gpu_finds_the_same(graph: atos.Graph) -> None:
    """By what CuPy is asked for, done by NumPy."""
    symmetric = graph.to_symmetric()
    arrays = np.asarray(symmetric.indptr), np.asarray(symmetric.indices), np.asarray(component_labels(symmetric))
    for order, function in (("bfs", breadth_first), ("rcm", reverse_cuthill_mckee)):
        assert function(CUPY, *arrays)[0].tolist() == order_vertices(symmetric, order, 0)[:].tolist()


@pytest.mark.parametrize(
    "graph",
    [
        atos.generate.grid2d(40, 30, device="cpu"),
        atos.generate.grid3d(8, 9, 10, device="cpu"),
        atos.generate.road(60, device="cpu"),
        atos.generate.small_world(2000, 6, 0.01, device="cpu"),
        atos.generate.uniform(800, 1600, device="cpu"),
        atos.generate.rmat(9, 4, device="cpu"),
    ],
    ids=["grid2d", "grid3d", "road", "small_world", "uniform", "rmat"],
)
def test_bandwidth_is_about_that_of_scipy(graph: atos.Graph, device: atos.Device) -> None:
    mixed = graph.to(device).reorder("random", seed=3)[0]
    theirs = sparse.csgraph.reverse_cuthill_mckee(mixed.to_scipy(), symmetric_mode=True)
    ours = mixed.reorder("rcm")[0]
    assert ours.device == device
    assert bandwidth(ours) <= 1.05 * bandwidth(mixed.subgraph(theirs.astype(np.int64))[0])
    assert bandwidth(ours) < bandwidth(mixed)


def test_a_path_has_bandwidth_one() -> None:
    path = atos.generate.grid2d(1, 500, device="cpu").reorder("random")[0]
    assert bandwidth(path) > 100
    assert bandwidth(path.reorder("rcm")[0]) == 1


def test_random_for_ever_and_everywhere(device: atos.Device) -> None:
    graph = atos.generate.road(30, device=device)
    orders = [graph.reorder("random", seed=seed)[1].to_numpy() for seed in (0, 1)]
    found = [hashlib.sha256(order.tobytes()).hexdigest()[:16] for order in orders]
    assert found == ["21b8cd5958121106", "e4dcf440aaa6d3b8"]
    # About as many come before their place as behind it.
    assert (orders[0] < np.arange(900)).mean() == pytest.approx(0.5, abs=0.06)


class TestLargestComponent:
    @given(graphs())
    @settings(deadline=None)
    def test_of_all(self, graph: atos.Graph) -> None:
        parts = components(graph)
        component, vertices = graph.largest_component()
        expected = max(parts, key=len) if parts else []  # the first of several
        assert vertices.to_numpy().tolist() == expected
        assert triples(component) == triples(graph.subgraph(expected)[0])
        labels = component_labels(graph).to_numpy()
        assert labels.tolist() == [next(part[0] for part in parts if v in part) for v in range(graph.num_vertices)]

    def test_large(self, device: atos.Device) -> None:
        graph = atos.generate.rmat(11, 4, device=device).with_weights(None)
        component, vertices = graph.largest_component()
        assert component.device == vertices.device == device
        count, labels = sparse.csgraph.connected_components(graph.to_scipy())
        assert count > 100
        np.testing.assert_array_equal(vertices.to_numpy(), np.flatnonzero(labels == np.bincount(labels).argmax()))


@pytest.mark.parametrize("order", ["RCM", None, 3])
def test_refused(order: object) -> None:
    graph = atos.generate.road(3, device="cpu")
    with pytest.raises(atos.InvalidArgumentError, match="order must be one of bfs, rcm, degree, random"):
        graph.reorder(order)
    with pytest.raises(atos.InvalidArgumentError, match="seed must be from 0"):
        graph.reorder("random", seed=-1)
