"""Triangles and clustering coefficients: those of networkx on any graph, with any schedule, worker and size of a table."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_core_number import WORKERS, graphs

import atos_py as atos
from atos_py.algorithms.count_triangles import api as module
from atos_py.errors import InvalidArgumentError, UnsupportedTypeError, VerificationError

SCHEDULES = [{"persistent": persistent, "barrier": barrier} for persistent in (True, False) for barrier in (False, True)]


def simple(graph: atos.Graph) -> nx.Graph[Any]:
    """Return the undirected simple graph."""
    sources = np.repeat(np.arange(graph.num_vertices), graph.degrees()).tolist()
    made: nx.Graph[Any] = nx.empty_graph(graph.num_vertices)
    made.add_edges_from((u, v) for u, v in zip(sources, graph.indices.to_numpy().tolist(), strict=True) if u != v)
    return made


def check(graph: atos.Graph, result: atos.TriangleResult) -> None:
    expected = simple(graph)
    triangles = list(nx.triangles(expected).values())
    assert result.triangles.to_numpy().tolist() == triangles
    assert result.total == sum(triangles) // 3
    assert result.clustering.to_numpy().tolist() == list(nx.clustering(expected).values())
    atos.verify_triangles(graph, result.triangles, result.total, result.clustering)


@given(graphs(), st.sampled_from(WORKERS), st.sampled_from(SCHEDULES), st.sampled_from([1, 3]), st.sampled_from([64, 1024]))
@settings(deadline=None, max_examples=60)
def test_random_graphs(graph, worker, schedule, blocks, scratch):
    """Nearly all rows are short here; in the next test they are not."""
    check(graph, atos.count_triangles(graph, worker=worker, num_blocks=blocks, shared_memory=scratch, **schedule))


@pytest.mark.parametrize("scratch", [64, 100, 4096])  # which hold 4 vertices, 6, and all
@pytest.mark.parametrize("shortest", [0, 4, 30])
def test_tables_and_pairs(device, worker, scratch, shortest, monkeypatch):
    """Rows that are longer than a table is, rows of equal length, and hubs; by tables, by pairs and by both."""
    monkeypatch.setattr(module, "_PAIRS_MAX_LENGTH", shortest)
    parts = nx.complete_graph(20), nx.star_graph(70), nx.gnm_random_graph(60, 900, 3), nx.wheel_graph(50)
    graph = atos.Graph.from_networkx(nx.disjoint_union_all(parts), device=device)
    block = {"num_threads": 32} if device.kind == "cuda" and worker == "thread" else {}  # each thread has a table
    check(graph, atos.count_triangles(graph, worker=worker, shared_memory=scratch, **block))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_generated_graphs(device, worker, schedule):
    for graph in (atos.generate.rmat(9, 16, device=device), atos.generate.road(30, device=device)):
        result = atos.count_triangles(graph, worker=worker, **schedule)
        atos.verify_triangles(graph, result.triangles, result.total, result.clustering)
        assert result.triangles.dtype == np.int64
        assert result.clustering.dtype == np.float64


def test_rows_of_many_edges_keep_their_order(device):
    """The threads of a worker divide a long row together; on the CPU there is one of them."""
    edges = nx.barbell_graph(150, 3)
    edges.add_edges_from((0, k) for k in range(400, 900))
    graph = atos.Graph.from_networkx(edges, device=device).simplify(sort=True)
    check(graph, atos.count_triangles(graph))


@pytest.mark.parametrize("shortest", [0, 4])
def test_sorted_rows_with_parallel_edges_and_loops(device, shortest, monkeypatch):
    """These are not sorted anew, so the first launch leaves them out."""
    monkeypatch.setattr(module, "_PAIRS_MAX_LENGTH", shortest)
    edges = np.array([*nx.complete_graph(6).edges, *nx.wheel_graph(9).edges, *((v, v) for v in range(9))]).T
    graph = atos.Graph.from_edges(*np.tile(edges, 3), symmetrize=True, sort=True, device=device)
    check(graph, atos.count_triangles(graph))


def test_oriented_rows_are_kept_with_the_graph():
    graph = atos.generate.rmat(7, 8, device="cpu")
    first = atos.count_triangles(graph)
    again = atos.count_triangles(graph)
    assert again.total == first.total
    assert again.stats.tasks_run < first.stats.tasks_run  # there is nothing to orient
    indices = weakref.ref(graph.indices)
    del graph
    gc.collect()
    assert indices() is None


@pytest.mark.parametrize("memory", [63, 0, "much"])
def test_scratch_that_is_too_small_is_refused(memory):
    with pytest.raises((InvalidArgumentError, UnsupportedTypeError), match="shared_memory must be"):
        atos.count_triangles(atos.generate.road(3, device="cpu"), shared_memory=memory)


def test_verifier_names_the_first_fault():
    graph = atos.Graph.from_edges([0, 1, 2, 2], [1, 2, 0, 3], symmetrize=True, device="cpu")
    atos.verify_triangles(graph, [1, 1, 1, 0], 1, [1.0, 1.0, 1 / 3, 0.0])
    for arguments, message in (
        (([1, 0, 1, 0],), r"triangles\[1\] is 0, but vertex 1 is in 1 triangles"),
        (([1, 1, 1, -1],), r"triangles\[3\] is -1, but"),
        (([1, 1, 1, 0], 2), "total is 2, but there are 1 triangles"),
        (([1, 1, 1, 0], 1, [1.0, 1.0, 0.5, 0.0]), r"clustering\[2\] is 0.5, but 1 of the pairs of 3 neighbors are joined"),
        (([1, 1, 1, 0], 1, [1.0, np.nan, 1 / 3, 0.0]), r"clustering\[1\] is nan"),
    ):
        with pytest.raises(VerificationError, match=message):
            atos.verify_triangles(graph, *arguments)
    with pytest.raises(UnsupportedTypeError, match="clustering must be an array of floats"):
        atos.verify_triangles(graph, [1, 1, 1, 0], 1, [1, 1, 0, 0])


@given(graphs(), st.data())
@settings(deadline=None, max_examples=60)
def test_verifier_accepts_the_right_numbers_only(graph, data):
    triangles = np.array(list(nx.triangles(simple(graph)).values()), np.int64)
    atos.verify_triangles(graph, triangles)
    if triangles.size:
        triangles[data.draw(st.integers(0, triangles.size - 1))] += data.draw(st.sampled_from([-1, 1]))
        with pytest.raises(VerificationError):
            atos.verify_triangles(graph, triangles)
