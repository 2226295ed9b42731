"""Vertex, edge and fold maps: against NumPy, and the guarantees of folding by a log of calls."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import atos_py as atos
from atos_py import features
from atos_py.errors import InvalidArgumentError, TaskError


class Data(NamedTuple):
    x: Any
    sums: Any
    log: Any


def send(f, u, v, edge, data):
    atos.atomic_add(data.sums, (v, f), data.x[u, f])


def is_even(f, v, data):
    return (v + f) % 6 == 0


def uneven(device: atos.Device, n: int = 700) -> atos.Graph:
    """Return a graph with a hub, a few other edges and vertices without any."""
    rng = np.random.default_rng(n)
    sources = np.concatenate([rng.integers(0, n // 2, 3 * n), np.full(5000, 3)])
    return atos.Graph.from_edges(sources, rng.integers(0, n, sources.size), num_vertices=n, device=device)


def make(device: atos.Device, graph: atos.Graph, k: int) -> Data:
    x = np.random.default_rng(k).integers(1, 100, (graph.num_vertices, k))
    shape = graph.num_vertices, k
    return Data(atos.asarray(x, device=device), *(atos.zeros(shape, dtype=np.int64, device=device) for _ in range(2)))


def sources_of(graph: atos.Graph) -> np.ndarray:
    return np.repeat(np.arange(graph.num_vertices), np.asarray(graph.degrees()))


@pytest.mark.parametrize(("k", "feature_aware"), [(1, True), (3, True), (3, False), (100, True)])
def test_edges_of_active_vertices(device, k, feature_aware):
    graph = uneven(device)
    n, data = graph.num_vertices, make(device, graph, k)
    maps = features.Maps(graph, k, data, feature_aware=feature_aware)
    active = maps.vertex_map(is_even)
    expected = np.array([any((v + f) % 6 == 0 for f in range(k)) for v in range(n)])
    assert active.vertices().tolist() == np.flatnonzero(expected).tolist()
    assert active.count == expected.sum()
    assert active.num_edges == np.asarray(graph.degrees())[expected].sum()
    reached = maps.edge_map(send, active=active)
    u, v = sources_of(graph), graph.indices.to_numpy()
    sums = np.zeros((n, k), np.int64)
    np.add.at(sums, v[expected[u]], data.x.to_numpy()[u[expected[u]]])
    np.testing.assert_array_equal(data.sums.to_numpy(), sums)
    assert reached.vertices().tolist() == np.unique(v[expected[u]]).tolist()
    again = maps.edge_map(send, active=active)  # a set can be used again
    np.testing.assert_array_equal(data.sums.to_numpy(), 2 * sums)
    assert (again.count, again.num_edges) == (reached.count, reached.num_edges)


def test_all_and_none(device):
    graph = uneven(device)
    data = make(device, graph, 2)
    maps = features.Maps(graph, 2, data)
    assert not maps.edge_map(send, active=[])
    assert not data.sums.to_numpy().any()
    maps.edge_map(send)
    everything = data.sums.to_numpy()
    assert maps.edge_map(send, active=maps.all()).count == np.unique(graph.indices.to_numpy()).size
    np.testing.assert_array_equal(data.sums.to_numpy(), 2 * everything)


# Folding


def first_of_vertex(f, v, data):
    data.log[v, f] = 1
    return v % 2 == 0 and f == 1  # one feature is enough


def second_of_vertex(f, v, data):
    # Ordering: the first one has run for all features of this vertex.
    for other in range(data.log.shape[1]):
        if data.log[v, other] == 0:
            data.sums[v, f] = -1
    data.log[v, f] += 10
    return v % 3 == 0


def third_of_vertex(f, v, data):
    data.log[v, f] += 100


@pytest.mark.parametrize(("k", "feature_aware"), [(3, True), (3, False), (40, True)])
def test_order_progress_and_activation(device, k, feature_aware):
    graph = uneven(device)
    data = make(device, graph, k)
    maps = features.Maps(graph, k, data, feature_aware=feature_aware)
    active = maps.fold_map(first_of_vertex, second_of_vertex, third_of_vertex, active=np.arange(0, 700, 5))
    v = np.arange(700)
    expected = (v % 5 == 0) * (1 + (v % 2 == 0) * (10 + (v % 3 == 0) * 100))
    np.testing.assert_array_equal(data.log.to_numpy(), np.repeat(expected[:, None], k, axis=1))
    assert not (data.sums.to_numpy() < 0).any()
    assert active.vertices().tolist() == np.flatnonzero(expected == 111).tolist()  # the last one returns nothing, so true
    assert len(maps.runs) == 1


def odd_edge(f, u, v, edge, data):
    return edge % 2 == 1


def to_low(f, u, v, edge, data):
    atos.atomic_add(data.sums, (v, f), 1)
    return v < 100


def count_target(f, v, data):
    data.log[v, f] = data.sums[v, f]
    return f == 0


def test_kinds_follow_each_other(device):
    """Functions of one kind are one launch each, and what it activates is where the next one runs."""
    graph = uneven(device)
    data = make(device, graph, 4)
    maps = features.Maps(graph, 4, data)
    active = maps.fold_map(is_even, odd_edge, to_low, count_target)
    assert len(maps.runs) == 3
    u, v = sources_of(graph), graph.indices.to_numpy()
    runs = np.isin(u % 6, [0, 5, 4, 3]) & (np.arange(v.size) % 2 == 1)
    counts = np.bincount(v[runs], minlength=700)
    assert data.sums.to_numpy().tolist() == np.repeat(counts[:, None], 4, axis=1).tolist()
    low = (counts > 0) & (np.arange(700) < 100)
    assert active.vertices().tolist() == np.flatnonzero(low).tolist()
    assert data.log.to_numpy().tolist() == np.repeat((counts * low)[:, None], 4, axis=1).tolist()


# Functions of teams


def own_row(team):
    """Return scratch that all functions of a fold share, since they take it in one place."""
    return team.scratch(np.float32, 70)


def load(team, v, data):
    row = own_row(team)
    for f in team.split(data.x.shape[1]):
        row[f] = data.x[v, f]


def share(team, v, data):
    k = data.x.shape[1]
    row = own_row(team)
    atos.linalg.normalize(team, row, k)
    for f in team.split(k):
        data.x[v, f] = row[f]
    return team.rank == 0 and v % 2 == 0  # true on one thread of the team


@pytest.mark.parametrize(("k", "feature_aware"), [(1, True), (5, True), (5, False), (70, True)])
def test_teams_share_scratch(device, k, feature_aware):
    graph = uneven(device)
    x = np.random.default_rng(k).random((700, k)).astype(np.float32)
    data = make(device, graph, k)._replace(x=atos.asarray(x.copy(), device=device))
    maps = features.Maps(graph, k, data, feature_aware=feature_aware)
    active = maps.vertex_map(features.together(load), features.together(share))
    np.testing.assert_allclose(data.x.to_numpy(), x / x.sum(1, keepdims=True), rtol=1e-5)
    assert active.vertices().tolist() == list(range(0, 700, 2))


def largest_product(team, u, v, edge, data):
    products = team.scratch(np.float32, 6)
    for f in team.split(6):
        products[f] = data.x[u, f] * data.x[v, f]
    best = atos.linalg.max(team, products, 6)
    if team.rank == 0:
        data.sums[edge] = best
    return best > 0.5


def test_teams_of_edges(device):
    graph = uneven(device)
    x = np.random.default_rng(0).random((700, 6)).astype(np.float32)
    data = Data(atos.asarray(x, device=device), atos.zeros(graph.num_edges, device=device), 0)
    active = features.Maps(graph, 6, data).edge_map(features.together(largest_product))
    u, v = sources_of(graph), graph.indices.to_numpy()
    best = (x[u] * x[v]).max(1)
    np.testing.assert_array_equal(data.sums.to_numpy(), best)
    assert active.vertices().tolist() == np.unique(v[best > 0.5]).tolist()


def gathered(f, v, u, edge, data):
    return data.x[u, f]


def store(f, v, total, data):
    data.sums[v, f] = int(total)


def test_sums_of_edges(device):
    graph = uneven(device)
    data = make(device, graph, 7)
    features.Maps(graph, 7, data).sum_map(gathered, store, np.float64)
    u, v = sources_of(graph), graph.indices.to_numpy()
    expected = np.zeros((700, 7), np.int64)
    np.add.at(expected, u, data.x.to_numpy()[v])
    assert data.sums.to_numpy().tolist() == expected.tolist()


# What is refused, and what a map that fails leaves behind


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda maps: maps.vertex_map(), "a map takes one or more functions"),
        (lambda maps: maps.vertex_map(send), "vertex_map was given a function of an edge; fold_map takes both"),
        (lambda maps: maps.edge_map(is_even), "edge_map was given a function of a vertex"),
        (lambda maps: maps.edge_map(3), "a map takes functions of features, not 3"),
        (lambda maps: maps.edge_map(lambda f, v: 0), "has 2 parameters; a function of a vertex has three"),
        (lambda maps: maps.edge_map(send, active=[700]), "active must be vertices, from 0 to 699"),
        (lambda maps: maps.edge_map(send, active=[0.5]), "active must be vertices"),
        (lambda maps: features.Maps(maps.graph, 129, 0), r"k must be from 1 to 128 \(got 129\)"),
        (lambda maps: features.together(1), "together takes functions of features, not 1"),
        (lambda maps: maps.sum_map(None, send), "sum_map takes functions of features, not None"),
    ],
)
def test_what_is_refused(call, message):
    graph = uneven(atos.device("cpu"))
    with pytest.raises(InvalidArgumentError, match=message):
        call(features.Maps(graph, 2, make(graph.device, graph, 2)))


def out_of_range(f, u, v, edge, data):
    data.sums[v + 1000, f] = 1


def test_a_map_that_fails_leaves_nothing_behind(device):
    graph = uneven(device)
    data = make(device, graph, 2)
    maps = features.Maps(graph, 2, data, debug=True)
    with pytest.raises(TaskError):
        maps.edge_map(out_of_range)
    maps.edge_map(send, active=[3])
    assert data.sums.to_numpy().sum() == data.x.to_numpy()[3].sum() * graph.degrees()[3]


def ends_early(f, v, data):
    if v > 3:
        return
    data.sums[v, f] = 1


def may_return(f, v, data):
    if v > 3:
        return v > 5
    if v > 2:
        return None


@pytest.mark.parametrize(
    ("function", "active"),
    [(ends_early, range(8)), (lambda f, v, data: None, range(8)), (may_return, [6, 7]), (lambda f, v, data: v, range(1, 8))],
    ids=["returns nothing", "returns None", "returns a value on some ways", "returns a number"],
)
def test_what_counts_as_true(function, active, device):
    graph = atos.Graph.from_edges([0], [1], num_vertices=8, device=device)
    maps = features.Maps(graph, 2, make(device, graph, 2))
    assert maps.vertex_map(function).vertices().tolist() == list(active)
