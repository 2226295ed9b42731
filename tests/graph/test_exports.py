"""Graphs as graphs of networkx, tables of pandas, and sources of edges."""

from __future__ import annotations

import sys

import networkx as nx
import numpy as np
import pytest

import atos_py as atos
from atos_py.errors import MissingPackageError

SOURCES, TARGETS, WEIGHTS = [0, 3, 3, 1, 3], [1, 0, 3, 2, 0], [5, 1, 2, 3, 4]


@pytest.mark.parametrize("dtype", [None, np.int32, np.float64])
def test_edges_come_back(device, dtype):
    if device.kind == "cuda":
        pytest.importorskip("cupy")
    weights = None if dtype is None else np.array(WEIGHTS, dtype)
    graph = atos.Graph.from_edges(SOURCES, TARGETS, weights, num_vertices=6, device=device)
    expected = sorted(zip(SOURCES, TARGETS, [None] * 5 if weights is None else WEIGHTS, strict=True), key=str)
    assert graph.sources.dtype == np.uint32
    assert graph.sources.readonly
    assert graph.sources is graph.sources
    assert graph.sources.tolist() == sorted(SOURCES)
    every = graph.to_networkx(create_using=nx.MultiDiGraph)
    assert list(every) == list(range(6))
    assert sorted(every.edges(data="weight"), key=str) == expected
    table = graph.to_pandas_edgelist()
    assert list(table) == ["source", "target"] + ["weight"] * (dtype is not None)
    rows = table.itertuples(index=False)
    assert sorted(((*map(int, row[:2]), row[2] if dtype else None) for row in rows), key=str) == sorted(expected, key=str)


def test_parallel_edges_are_one_unless_asked_for():
    graph = atos.Graph.from_edges(SOURCES, TARGETS, WEIGHTS, num_vertices=6, device="cpu")
    simple = graph.to_networkx()
    assert type(simple) is nx.DiGraph
    assert simple.number_of_edges() == 4
    assert graph.to_networkx(create_using=nx.Graph).number_of_edges() == 4
    back = atos.Graph.from_networkx(graph.to_networkx(create_using=nx.MultiDiGraph), device="cpu")
    assert back.to_scipy().toarray().tolist() == graph.to_scipy().toarray().tolist()


def test_graphs_without_edges():
    graph = atos.Graph.from_edges([], [], num_vertices=3, device="cpu")
    assert graph.sources.tolist() == []
    assert graph.to_networkx().number_of_nodes() == 3
    assert len(graph.to_pandas_edgelist()) == 0


@pytest.mark.parametrize("package", ["networkx", "pandas"])
def test_what_is_missing_is_named(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    graph = atos.Graph.from_edges([0], [1], device="cpu")
    with pytest.raises(MissingPackageError, match=f"python -m pip install {package}"):
        graph.to_networkx() if package == "networkx" else graph.to_pandas_edgelist()
