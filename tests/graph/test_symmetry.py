"""Whether a graph is undirected: every edge has its reverse, as often as it is there."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import atos_py as atos
from atos_py.graph import symmetry


@given(st.integers(1, 8), st.data())
@settings(deadline=None, max_examples=200)
def test_same_as_comparing_with_the_transpose(n: int, data: st.DataObject) -> None:
    vertex = st.integers(0, n - 1)
    edges = data.draw(st.lists(st.tuples(vertex, vertex), max_size=12))
    if data.draw(st.booleans()):
        edges += [(v, u) for u, v in edges]
    tails, heads = np.array(edges, np.int64).reshape(-1, 2).T
    graph = atos.Graph.from_edges(tails, heads, num_vertices=n, device="cpu")
    count = np.zeros((n, n), int)
    np.add.at(count, (tails, heads), 1)
    assert graph.is_symmetric() == (count == count.T).all()
    undirected = graph.to_symmetric()
    if graph.is_symmetric():
        assert undirected is graph
    else:
        assert (undirected.to_scipy().toarray() == ((count + count.T) > 0)).all()


def test_large_graphs(device: atos.Device) -> None:
    for graph in (atos.generate.rmat(12, 8, device=device), atos.generate.road(200, device=device)):
        assert graph.is_symmetric()
        matrix = graph.to_scipy()
        matrix.data[:] = 1
        matrix.indices[7] = (matrix.indices[7] + 1) % graph.num_vertices
        assert not atos.Graph.from_scipy(matrix, device=device).is_symmetric()
        assert (graph.to_scipy() != matrix).nnz == 2  # the graph is as it was


def test_remembered_for_the_same_arrays_only(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = atos.Graph.from_edges([0, 1], [1, 0], num_vertices=2, device="cpu")
    assert graph.is_symmetric()
    other = atos.asarray(np.array([0, 2, 2], np.int32), device="cpu", readonly=True)
    assert not atos.Graph(other, graph.indices, None).is_symmetric()  # 0 -> 1 and 0 -> 0
    assert graph.is_symmetric()
    monkeypatch.setattr(symmetry, "run_gather", None)
    assert graph._replace(weights=atos.zeros(2, device="cpu")).is_symmetric()
    before = len(symmetry._known)
    del graph
    gc.collect()
    assert len(symmetry._known) == before - 1
