"""The transpose of a graph, and what is kept of it."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_graphs import graphs, sources_of

import atos_py as atos
from atos_py.graph import derived
from atos_py.graph.kept import _kept
from atos_py.graph.transpose import transpose_on_gpu


def check(graph: atos.Graph, turned: atos.Graph, edges: np.ndarray) -> None:
    """The transpose has the edges of the graph, turned round, each once, and sorted."""
    assert sorted(edges.tolist()) == list(range(graph.num_edges))
    np.testing.assert_array_equal(sources_of(turned), graph.indices.to_numpy()[edges])
    np.testing.assert_array_equal(turned.indices.to_numpy(), sources_of(graph)[edges])
    if graph.weights is not None:
        assert turned.weights is not None
        np.testing.assert_array_equal(turned.weights.to_numpy(), graph.weights.to_numpy()[edges])


@given(graphs(), st.booleans())
@settings(deadline=None)
def test_every_edge_is_turned_round_once(graph: atos.Graph, edges_first: bool) -> None:
    if not edges_first:
        graph.transpose()
    turned, edges = graph.transpose(return_edges=True)
    check(graph, turned, edges.to_numpy())
    order = np.lexsort([np.arange(graph.num_edges), sources_of(graph), graph.indices.to_numpy()])
    np.testing.assert_array_equal(edges.to_numpy(), order)  # so neighbors ascend, and parallel edges keep their order
    assert turned.transpose() == graph  # the very arrays
    assert graph.transpose() == turned
    again, edges = turned.transpose(return_edges=True)
    assert again == graph
    check(turned, graph, edges.to_numpy())


@given(graphs())
@settings(deadline=None)
def test_a_gpu_makes_the_same(graph: atos.Graph) -> None:
    """By its tasks, and by what CuPy is asked for, done by NumPy."""
    turned, edges = graph.transpose(return_edges=True)
    made = *transpose_on_gpu(graph, with_edges=True), *transpose_on_gpu(graph, with_edges=False)
    for found, expected in zip(made, (*turned[:2], edges, *turned), strict=True):
        assert (found is None) == (expected is None)
        if found is not None:
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found.to_numpy(), expected.to_numpy())


def test_large_graphs(device: atos.Device) -> None:
    graph = atos.generate.rmat(11, 8, device=device)
    weights = np.random.default_rng(0).integers(0, 99, graph.num_edges).astype(np.int32)
    graph = graph._replace(weights=atos.asarray(weights, device=device, readonly=True))
    turned, edges = graph.transpose(return_edges=True)
    assert turned.device == device
    check(graph, turned, edges.to_numpy())
    assert (turned.to_scipy() != graph.to_scipy().T).nnz == 0


def test_kept_for_the_same_arrays_only(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = atos.Graph.from_edges([0, 0, 2], [1, 2, 1], [5, 6, 7], device="cpu")
    turned, _ = graph.transpose(return_edges=True)
    heavy = graph._replace(weights=atos.asarray(np.array([8, 9, 10]), device="cpu", readonly=True))
    assert heavy.transpose().weights[:].tolist() == [8, 10, 9]
    assert graph._replace(weights=None).transpose().weights is None
    monkeypatch.setattr(derived, "transpose_rows", None)
    assert graph.transpose() == turned
    assert graph.transpose(return_edges=True)[1][:].tolist() == [0, 2, 1]


def test_nothing_is_kept_longer_than_the_graph() -> None:
    gc.collect()
    before = len(_kept)
    graph = atos.Graph.from_edges([0, 0, 2], [1, 2, 1], [5, 6, 7], device="cpu")
    turned = graph.transpose()
    assert graph.transpose() == turned
    assert len(_kept) == before + 2
    gc.disable()
    try:
        del graph  # without a circle that only the collector would find
        assert len(_kept) == before + 1
    finally:
        gc.enable()
    assert turned.transpose().indices[:].tolist() == [1, 2, 1]
    del turned
    assert len(_kept) == before


def test_junk_is_refused() -> None:
    with pytest.raises(atos.UnsupportedTypeError, match="return_edges must be True or False"):
        atos.generate.road(2, device="cpu").transpose(return_edges="yes")  # type: ignore[call-overload]
