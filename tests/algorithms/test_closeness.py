"""Closeness and harmonic centrality, against networkx, and their verifier."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import atos_py as atos
from atos_py.algorithms import bit_search
from atos_py.errors import InvalidArgumentError, UnsupportedTypeError, VerificationError


@st.composite
def any_graphs(draw: st.DrawFn) -> tuple[atos.Graph, nx.DiGraph]:
    """Any graph with loops, parallel edges and isolated vertices, directed or not, and networkx's without parallel edges."""
    n = draw(st.integers(1, 9))
    vertex = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(vertex, vertex), max_size=30))
    if draw(st.booleans()):
        edges += [(v, u) for u, v in edges if u != v]
    graph = atos.Graph.from_edges(*np.array([*zip(*edges, strict=True)] or [[], []], int), num_vertices=n, device="cpu")
    theirs = nx.DiGraph()
    theirs.add_nodes_from(range(n))
    theirs.add_edges_from(edges)
    return graph, theirs


@given(any_graphs(), st.booleans(), st.booleans())
@settings(deadline=None, max_examples=80)
def test_random_graphs(pair: Any, harmonic: bool, wf_improved: bool) -> None:
    graph, theirs = pair
    result = atos.closeness(graph, harmonic=harmonic, wf_improved=wf_improved)
    expected = nx.harmonic_centrality(theirs) if harmonic else nx.closeness_centrality(theirs, wf_improved=wf_improved)
    np.testing.assert_allclose(result.centrality.to_numpy(), [expected[v] for v in range(len(theirs))], rtol=1e-12)
    atos.verify_closeness(graph, result.centrality, harmonic=harmonic, wf_improved=wf_improved)
    assert result.searches == 1


@pytest.mark.parametrize("words", [1, 4])
def test_several_searches(words: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(bit_search._MOST_LOG_WORDS, "cpu", words.bit_length() - 1)
    ends = np.random.default_rng(1).integers(0, 300, (2, 1200))
    theirs = nx.DiGraph()
    theirs.add_nodes_from(range(300))
    theirs.add_edges_from(ends.T.tolist())
    graph = atos.Graph.from_edges(*ends, num_vertices=300, deduplicate=True, device="cpu")
    result = atos.closeness(graph)
    expected = nx.closeness_centrality(theirs)
    np.testing.assert_allclose(result.centrality.to_numpy(), [expected[v] for v in range(300)], rtol=1e-12)
    assert result.searches == (5 if words == 1 else 2)
    outwards = atos.closeness(graph.transpose()).centrality
    expected = nx.closeness_centrality(theirs.reverse())
    np.testing.assert_allclose(outwards.to_numpy(), [expected[v] for v in range(300)], rtol=1e-12)


def test_some_sources() -> None:
    graph = atos.generate.rmat(7, 8, device="cpu")
    theirs = nx.Graph()
    theirs.add_nodes_from(range(128))
    theirs.add_edges_from(zip(np.repeat(np.arange(128), graph.degrees()), graph.indices.to_numpy(), strict=True))
    sources = [5, 0, 77, 5]
    found = atos.closeness(graph, sources, harmonic=True)
    expected = nx.harmonic_centrality(theirs, sources=sources)
    np.testing.assert_allclose(found.centrality.to_numpy(), [expected[v] for v in range(128)], rtol=1e-12)
    for chosen, seed in ((sources, 0), (20, 3), (1000, 0)):
        for wf_improved in (False, True):
            found = atos.closeness(graph, chosen, wf_improved=wf_improved, seed=seed)
            atos.verify_closeness(graph, found.centrality, chosen, wf_improved=wf_improved, seed=seed)
    exact = atos.closeness(graph, 1000).centrality
    np.testing.assert_array_equal(exact.to_numpy(), atos.closeness(graph).centrality.to_numpy())
    mean = np.asarray(atos.shortest_path_lengths(graph, [0]).distance)[0].astype(float)
    alone = atos.closeness(graph, [0], wf_improved=False).centrality.to_numpy()
    reached = (mean > 0) & (mean < 2**32 - 1)
    np.testing.assert_allclose(alone[reached], 1 / mean[reached])


def test_no_vertices_and_none_that_reach_others() -> None:
    none = atos.Graph.from_edges([], [], num_vertices=0, device="cpu")
    assert atos.closeness(none).centrality.shape == (0,)
    loop = atos.Graph.from_edges([0], [0], num_vertices=2, device="cpu")
    for harmonic in (False, True):
        assert atos.closeness(loop, harmonic=harmonic).centrality.to_numpy().tolist() == [0, 0]


def test_wrong_results_and_arguments() -> None:
    graph = atos.generate.road(6, 0.8, device="cpu")
    right = atos.closeness(graph).centrality.to_numpy()
    for v, by in ((0, 1e-6), (35, -1e-6), (7, np.nan)):
        wrong = right.copy()
        wrong[v] += by
        with pytest.raises(VerificationError, match=f"the centrality of vertex {v} is"):
            atos.verify_closeness(graph, wrong)
    with pytest.raises(VerificationError):
        atos.verify_closeness(graph, right, harmonic=True)
    with pytest.raises(InvalidArgumentError, match="source 36 is not a vertex"):
        atos.closeness(graph, [36])
    with pytest.raises(UnsupportedTypeError, match="harmonic must be True or False"):
        atos.closeness(graph, harmonic=1)


def test_every_device_and_worker(device: atos.Device, worker: str) -> None:
    graph = atos.generate.rmat(9, 8, device=device)
    for harmonic in (False, True):
        result = atos.closeness(graph, 100, harmonic=harmonic, worker=worker)
        atos.verify_closeness(graph, result.centrality, 100, harmonic=harmonic)
