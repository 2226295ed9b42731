"""Derived graphs, made on the device: reverse edges, other weights, subgraphs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_graphs import CUPY, graphs, sources_of, triples

import atos_py as atos
from atos_py.graph import derived
from atos_py.graph.subgraph import induce


class TestReverseEdges:
    @given(graphs(symmetric=True), st.randoms(use_true_random=False))
    @settings(deadline=None)
    def test_each_is_where_it_says(self, graph: atos.Graph, random: object) -> None:
        graph = graph.simplify(symmetrize=True, deduplicate=True)
        ends = np.array([sources_of(graph), graph.indices.to_numpy()])
        shuffled = list(range(graph.num_edges))
        random.shuffle(shuffled)  # type: ignore[attr-defined]
        for order in (range(graph.num_edges), shuffled):
            mixed = atos.Graph.from_edges(*ends[:, list(order)], num_vertices=graph.num_vertices, device="cpu")
            reverse = mixed.reverse_edges().to_numpy()
            np.testing.assert_array_equal(sources_of(mixed)[reverse], mixed.indices.to_numpy())
            np.testing.assert_array_equal(mixed.indices.to_numpy()[reverse], sources_of(mixed))

    @given(graphs())
    @settings(deadline=None)
    def test_there_are_none_unless_each_edge_has_one(self, graph: atos.Graph) -> None:
        ends = [edge[:2] for edge in triples(graph)]
        if len(set(ends)) == len(ends) and all((v, u) in ends for u, v in ends):
            assert graph.reverse_edges().dtype == np.int32
            return
        with pytest.raises(atos.InvalidArgumentError, match=r"has no reverse|parallel edges from"):
            graph.reverse_edges()

    def test_kept_and_large(self, device: atos.Device, monkeypatch: pytest.MonkeyPatch) -> None:
        graph = atos.generate.rmat(10, 8, device=device)
        reverse = graph.reverse_edges()
        assert reverse.device == device
        np.testing.assert_array_equal(graph.indices.to_numpy()[reverse.to_numpy()], sources_of(graph))
        monkeypatch.setattr(derived, "reverse_edges", None)
        assert graph.reverse_edges() is reverse

    def test_refused(self) -> None:
        with pytest.raises(atos.InvalidArgumentError, match=r"an edge has no reverse, .* graph\.to_symmetric\(\)"):
            atos.Graph.from_edges([0, 1], [1, 2], device="cpu").reverse_edges()
        with pytest.raises(atos.InvalidArgumentError, match=r"parallel edges from vertex 1 to 2: take .*deduplicate=True"):
            atos.Graph.from_edges([0, 1, 1, 1, 2, 2], [1, 0, 2, 2, 1, 1], device="cpu").reverse_edges()


class TestWithWeights:
    @pytest.mark.parametrize("dtype", ["?", "i1", "i4", "u8", "f4", "f8"])
    def test_taken_as_from_csr(self, device: atos.Device, dtype: str) -> None:
        graph = atos.Graph.from_edges([0, 1, 1], [1, 0, 2], device=device)
        given = np.array([1, 0, 1], dtype)
        for weights in (given, given.tolist(), atos.asarray(given, device=device)):
            heavy = graph.with_weights(weights)
            expected = atos.Graph.from_csr(graph.indptr, graph.indices, weights, device=device)
            assert heavy.weights.dtype == expected.weights.dtype
            assert (heavy.device, heavy.weights.readonly) == (device, True)
            assert triples(heavy) == triples(expected)
            assert heavy[:2] == graph[:2]
            assert heavy.with_weights(None) == graph

    @pytest.mark.parametrize(
        ("weights", "message"),
        [
            ([1, 2], r"each of the 3 edges \(got shape \(2,\)\)"),
            ([0, np.nan, 1], r"weights\[1\] is NaN"),
            (["a"] * 3, "not <U1"),
        ],
    )
    def test_refused(self, device: atos.Device, weights: list[object], message: str) -> None:
        graph = atos.Graph.from_edges([0, 1, 1], [1, 0, 2], device=device)
        with pytest.raises(atos.AtosError, match=message):
            graph.with_weights(weights)
        if isinstance(weights[0], int):
            with pytest.raises(atos.InvalidArgumentError, match=message):
                graph.with_weights(atos.asarray(weights, device=device))


class TestSubgraph:
    @given(graphs(), st.data())
    @settings(deadline=None)
    def test_same_as_by_names(self, graph: atos.Graph, data: st.DataObject) -> None:
        chosen = data.draw(st.lists(st.integers(0, max(graph.num_vertices - 1, 0)), unique=True, max_size=graph.num_vertices))
        part, vertices = graph.subgraph(chosen)
        assert vertices.to_numpy().tolist() == chosen
        named = [(chosen[u], chosen[v], *weight) for u, v, *weight in triples(part)]
        expected = [edge for edge in triples(graph) if edge[0] in chosen and edge[1] in chosen]
        assert named == sorted(expected, key=lambda edge: chosen.index(edge[0]))
        mask = np.isin(np.arange(graph.num_vertices), chosen)
        by_mask, vertices = graph.subgraph(mask)
        assert vertices.to_numpy().tolist() == sorted(chosen)
        assert triples(by_mask) == triples(graph.subgraph(sorted(chosen))[0])
        # A GPU makes the same: by what CuPy is asked for, done by NumPy.
        given = [np.asarray(each) for each in (*graph[:2], np.array(chosen, np.uint32), *graph[2:]) if each is not None]
        for one, other in zip(induce(CUPY, *given), part, strict=False):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other.to_numpy())

    def test_large_graphs(self, device: atos.Device) -> None:
        graph = atos.generate.rmat(11, 8, device=device)
        graph = graph.with_weights(np.arange(graph.num_edges))
        chosen = np.random.default_rng(0).permutation(graph.num_vertices)[:700]
        part, vertices = graph.subgraph(atos.asarray(chosen, device=device))
        assert part.device == vertices.device == device
        assert (part.to_scipy() != graph.to_scipy()[chosen][:, chosen]).nnz == 0

    @pytest.mark.parametrize(
        ("vertices", "message"),
        [
            ([0, 3], r"vertices\[1\] is 3, but the graph has vertices 0 to 2"),
            ([-1], r"vertices\[0\] is -1"),
            ([1, 0, 1], "vertex 1 is there twice"),
            ([True, False], r"one bool for each of 3 vertices \(got 2\)"),
            ([0.5], r"must be integers, or a bool for each vertex \(got float64\)"),
            ([[0]], r"one-dimensional \(got shape \(1, 1\)\)"),
            (0, "one-dimensional"),
        ],
    )
    def test_refused(self, device: atos.Device, vertices: object, message: str) -> None:
        graph = atos.Graph.from_edges([0, 1, 1], [1, 0, 2], device=device)
        with pytest.raises(atos.AtosError, match=message):
            graph.subgraph(vertices)


@pytest.mark.parametrize(
    ("n", "ends", "weighted"), [(0, [], False), (3, [], True), (2, [(1, 1)], True), (2, [(1, 0), (1, 0)], True)]
)
def test_graphs_of_little(device: atos.Device, n: int, ends: list[tuple[int, int]], weighted: bool) -> None:
    """All that is derived, where there is next to nothing to derive it from."""
    tails, heads = np.array(ends, np.int64).reshape(-1, 2).T
    graph = atos.Graph.from_edges(tails, heads, np.arange(len(ends)) + 1.5 if weighted else None, n, device=device)
    turned, edges = graph.transpose(return_edges=True)
    assert sorted((v, u, *weight) for u, v, *weight in triples(turned)) == sorted(triples(graph))
    assert edges.to_numpy().tolist() == list(range(len(ends)))
    assert graph.to_symmetric().is_symmetric()
    simple = graph.simplify(symmetrize=True, deduplicate=True, remove_loops=True)
    assert simple.num_edges == (2 if len(ends) > 1 else 0)
    assert sources_of(simple)[simple.reverse_edges().to_numpy()].tolist() == simple.indices.to_numpy().tolist()
    for order in ("bfs", "rcm", "degree", "random"):
        assert graph.reorder(order)[0].num_edges == len(ends)
    assert graph.largest_component()[0].num_vertices == min(n, max(len(ends), 1))
    assert graph.subgraph([])[0].num_vertices == 0
    assert graph.subgraph(np.zeros(n, bool))[0].num_edges == 0
    assert atos.generate.random_weights(graph, 1, 9).size == len(ends)
