"""Maximal independent sets: the greedy one of the order, whatever the schedule, the worker and the device."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_core_number import WORKERS, graphs

import atos_py as atos
from atos_py.errors import InvalidArgumentError, UnsupportedTypeError, VerificationError
from atos_py.support.splitmix64 import splitmix64

SCHEDULES = [{"persistent": persistent, "barrier": barrier} for persistent in (True, False) for barrier in (False, True)]


def greedy(graph: atos.Graph, seed: int, include: list[int]) -> list[int]:
    """Return the set by going through the vertices in order, one after the other."""
    graph = graph.to_symmetric()
    n, indptr, indices = graph.num_vertices, graph.indptr.to_numpy(), graph.indices.to_numpy()
    average = max(graph.num_edges // max(n, 1), 1)
    rank = 61 * average // (average + graph.degrees().astype(np.int64))
    rank[include] = 62
    with np.errstate(over="ignore"):
        keys = splitmix64(splitmix64(np.array([seed % 2**64], np.uint64)) + np.arange(n, dtype=np.uint64))
    found: set[int] = set()
    for v in np.lexsort((keys, -rank)).tolist():
        if not found & set(indices[indptr[v] : indptr[v + 1]].tolist()) - {v}:
            found.add(v)
    return sorted(found)


@given(
    graphs(), st.sampled_from(WORKERS), st.sampled_from(SCHEDULES), st.sampled_from([1, 3]), st.integers(-(2**63), 2**64 - 1)
)
@settings(deadline=None, max_examples=60)
def test_random_graphs(graph, worker, schedule, blocks, seed):
    result = atos.maximal_independent_set(graph, seed=seed, worker=worker, num_blocks=blocks, **schedule)
    assert result.members.dtype == np.bool_
    assert np.flatnonzero(result.members.to_numpy()).tolist() == greedy(graph, seed, [])
    atos.verify_maximal_independent_set(graph, result.members)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_same_set_everywhere(device, worker, schedule):
    """Rows of more than 64 edges are for all threads of a worker."""
    parts = nx.complete_graph(150), nx.star_graph(300), nx.gnm_random_graph(200, 9_000, 3), nx.complete_bipartite_graph(70, 90)
    hubs = nx.disjoint_union_all(parts)
    hubs.add_edges_from((v, v) for v in range(0, 700, 9))
    for graph in (atos.Graph.from_networkx(hubs, device=device), atos.generate.road(40, device=device)):
        result = atos.maximal_independent_set(graph, seed=5, worker=worker, **schedule)
        assert np.flatnonzero(result.members.to_numpy()).tolist() == greedy(graph.to("cpu"), 5, [])
        assert result.num_members == np.count_nonzero(result.members.to_numpy())


def test_large_sets(device):
    """Sets are at least as large as those of a greedy algorithm in a random order."""
    for graph in (atos.generate.rmat(11, 16, device=device), atos.generate.road(100, device=device)):
        result = atos.maximal_independent_set(graph)
        atos.verify_maximal_independent_set(graph, result.members)
        matrix = nx.from_scipy_sparse_array(graph.to_scipy())
        assert result.num_members >= len(nx.maximal_independent_set(matrix, seed=1))


def test_seeds_differ():
    graph = atos.generate.road(30, device="cpu")
    sets = {tuple(atos.maximal_independent_set(graph, seed=seed).members.to_numpy()) for seed in (0, 1, 2, -1)}
    assert len(sets) == 4


@given(graphs(), st.data())
@settings(deadline=None, max_examples=40)
def test_vertices_that_have_to_be_in_the_set(graph, data):
    n = graph.num_vertices
    include = data.draw(st.lists(st.integers(0, n - 1), max_size=4)) if n else []
    matrix = graph.to_scipy()
    clash = any(u != v and matrix[u, v] for u in include for v in include) if include else False
    if clash or any(u != v and matrix[v, u] for u in include for v in include):
        with pytest.raises(InvalidArgumentError, match=r"include names vertex \d+ and a neighbor of it"):
            atos.maximal_independent_set(graph, include=include)
    else:
        members = atos.maximal_independent_set(graph, include=include).members
        assert np.flatnonzero(members.to_numpy()).tolist() == greedy(graph, 0, include)
        atos.verify_maximal_independent_set(graph, members)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"include": [9]}, "include 9 is not a vertex"),
        ({"include": [0.5]}, "include must be one or more vertex ids"),
        ({"seed": 2**64}, "seed must be"),
        ({"worker": "block"}, "worker must be one of"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(InvalidArgumentError, match=message):
        atos.maximal_independent_set(atos.generate.road(3, device="cpu"), **options)


def test_verifier_names_the_first_fault():
    path: Any = atos.Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 3], symmetrize=True, device="cpu")
    for members, message in (
        ([True, True, False, True], "vertices 0 and 1 are neighbors, and both in the set"),
        ([True, False, False, False], "vertex 2 is not in the set, and no neighbor of it is"),
        ([False, True, False, False], "vertex 3 is not in the set"),
    ):
        with pytest.raises(VerificationError, match=message):
            atos.verify_maximal_independent_set(path, np.array(members))
    atos.verify_maximal_independent_set(path, [True, False, False, True])
    with pytest.raises(UnsupportedTypeError, match="members must be an array of bool, not int64"):
        atos.verify_maximal_independent_set(path, np.ones(4, np.int64))


@given(graphs(), st.data())
@settings(deadline=None, max_examples=80)
def test_verifier_accepts_maximal_independent_sets_only(graph, data):
    n = graph.num_vertices
    members = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)), bool)
    ends = graph.to_scipy().tocoo()
    joined = ends.row != ends.col
    touched = np.zeros(n, bool)
    touched[ends.col[joined & members[ends.row]]] = touched[ends.row[joined & members[ends.col]]] = True
    if not (members & touched).any() and (members | touched).all():
        atos.verify_maximal_independent_set(graph, members)
    else:
        with pytest.raises(VerificationError):
            atos.verify_maximal_independent_set(graph, members)
