"""Label propagation: the same communities everywhere, which fulfill the condition that ends it."""

from __future__ import annotations

from collections import Counter

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_core_number import WORKERS, graphs

import atos_py as atos
from atos_py.algorithms.label_propagation import api as module
from atos_py.errors import InvalidArgumentError, LaunchConfigError, VerificationError


def is_stable(graph: atos.Graph, label: list[int]) -> bool:
    """Whether each label is most frequent among the neighbors, as often as they are there."""
    graph = graph.to_symmetric()
    indptr, indices = graph.indptr.to_numpy(), graph.indices.to_numpy()
    for v in range(graph.num_vertices):
        counts = Counter(label[u] for u in indices[indptr[v] : indptr[v + 1]].tolist() if u != v)
        if counts and counts[label[v]] < max(counts.values()):
            return False
    return True


@given(graphs(), st.sampled_from(WORKERS), st.booleans(), st.sampled_from([1, 3]), st.integers(-(2**63), 2**64 - 1))
@settings(deadline=None, max_examples=60)
def test_random_graphs(graph, worker, persistent, blocks, seed):
    result = atos.label_propagation(graph, seed=seed, worker=worker, persistent=persistent, num_blocks=blocks)
    label = result.label.to_numpy().tolist()
    assert result.converged
    assert result.label.dtype == np.uint32
    assert is_stable(graph, label)
    assert all(label[v] == min(u for u in range(len(label)) if label[u] == label[v]) for v in range(len(label)))
    assert result.num_communities == len(set(label))
    atos.verify_label_propagation(graph, result.label)


def many_sizes() -> nx.Graph:
    """Return vertices of few and many edges, loops, and labels that a small table takes in parts."""
    parts = nx.complete_graph(40), nx.star_graph(300), nx.gnm_random_graph(200, 3_000, 3), nx.barbell_graph(20, 4)
    graph = nx.disjoint_union_all(parts)
    graph.add_edges_from((v, v) for v in range(0, 500, 9))
    graph.add_edges_from((v, v + 40) for v in range(0, 400, 7))
    return graph


@pytest.mark.parametrize("persistent", [True, False])
def test_the_same_labels_everywhere(device, worker, persistent):
    hubs = atos.Graph.from_networkx(many_sizes(), device=device)
    for graph in (hubs, atos.generate.road(40, device=device)):
        result = atos.label_propagation(graph, seed=5, worker=worker, persistent=persistent)
        atos.verify_label_propagation(graph, result.label)
        expected = atos.label_propagation(graph.to("cpu"), seed=5, num_blocks=1)
        assert result.label.to_numpy().tolist() == expected.label.to_numpy().tolist()
        assert result.steps == expected.steps


def test_threads_and_tables_find_the_same(device, monkeypatch):
    """The way in which the most frequent label is found makes no difference, and a small table takes the labels in parts."""
    graph = atos.Graph.from_networkx(many_sizes(), device=device)
    expected = atos.label_propagation(graph).label.to_numpy().tolist()
    for most, memory in ((0, 32768), (0, 512), (1000, 512)):
        monkeypatch.setattr(module, "_THREAD_MAX_DEGREE", most)
        assert atos.label_propagation(graph, shared_memory=memory).label.to_numpy().tolist() == expected


def test_communities_that_are_there():
    """Cliques in a ring, each pair joined by one edge, as in networkx's examples."""
    ring = nx.ring_of_cliques(8, 12)
    result = atos.label_propagation(atos.Graph.from_networkx(ring, device="cpu"))
    assert result.num_communities == 8
    assert result.label.to_numpy().tolist() == np.repeat(np.arange(8) * 12, 12).tolist()


def test_a_limit_of_steps():
    graph = atos.generate.rmat(8, 8, device="cpu")
    free = atos.label_propagation(graph)
    assert free.converged
    assert 1 < free.steps < 100
    early = atos.label_propagation(graph, max_steps=1)
    assert (early.converged, early.steps) == (False, 1)
    with pytest.raises(VerificationError, match="another label is more frequent"):
        atos.verify_label_propagation(graph, early.label)
    none = atos.label_propagation(graph, max_steps=0)
    assert none.label.to_numpy().tolist() == list(range(graph.num_vertices))
    exact = atos.label_propagation(graph, max_steps=free.steps)
    assert exact.converged


def test_neighbors_that_would_change_to_and_fro():
    """Both sides of a bipartite graph want the other one's labels, which a step of all at once would exchange for ever."""
    for graph in (nx.complete_bipartite_graph(30, 30), nx.path_graph(2), nx.hypercube_graph(5)):
        found = atos.label_propagation(atos.Graph.from_networkx(graph, device="cpu"))
        assert found.converged
        atos.verify_label_propagation(atos.Graph.from_networkx(graph, device="cpu"), found.label)


def test_what_is_refused():
    graph = atos.generate.road(4, device="cpu")
    with pytest.raises(LaunchConfigError, match="label_propagation proceeds in rounds"):
        atos.label_propagation(graph, barrier=False)
    for options in ({"max_steps": -1}, {"seed": 2**64}, {"shared_memory": 500}, {"worker": "block"}):
        with pytest.raises(InvalidArgumentError, match="must be"):
            atos.label_propagation(graph, **options)


def test_verifier_names_the_first_fault():
    graph = atos.Graph.from_edges([0, 1, 2, 3, 4], [1, 2, 0, 4, 5], symmetrize=True, device="cpu")
    atos.verify_label_propagation(graph, [0, 0, 0, 3, 3, 3])
    for label, message in (
        ([0, 0, 0, 3, 3, 5], r"label\[5\] is 5, but another label is more frequent"),
        ([1, 1, 1, 3, 3, 3], r"label\[0\] is 1, which is not the smallest vertex"),
        ([0, 0, 0, 3, 3, 6], r"label\[5\] is 6, which is not the smallest"),
        ([0, 0, 0, 3, 3, -1], r"label\[5\] is -1, which is not the smallest"),
        ([0, 0, 0, 2, 2, 2], r"label\[3\] is 2, which is not the smallest"),
    ):
        with pytest.raises(VerificationError, match=message):
            atos.verify_label_propagation(graph, np.array(label))


@given(graphs(), st.data())
@settings(deadline=None, max_examples=80)
def test_verifier_accepts_what_is_stable_only(graph, data):
    n = graph.num_vertices
    found = data.draw(st.lists(st.integers(0, max(n - 1, 0)), min_size=n, max_size=n))
    label = [min(u for u in range(n) if found[u] == found[v]) for v in range(n)]
    if is_stable(graph, label):
        atos.verify_label_propagation(graph, np.array(label, np.int64))
    else:
        with pytest.raises(VerificationError):
            atos.verify_label_propagation(graph, np.array(label, np.int64))
