"""The graph: constructors, properties, conversions."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from atos_py.arrays.array import Array
from atos_py.core.devices import Device, device, devices
from atos_py.errors import InvalidArgumentError, UnsupportedTypeError
from atos_py.graph import generate
from atos_py.graph.graph import Graph

FORMATS = ["bsr", "coo", "csc", "csr", "dia", "dok", "lil"]


def triples(graph: Graph) -> list[tuple[Any, ...]]:
    """List the edges in order, as (source, target) or (source, target, weight)."""
    sources = np.repeat(np.arange(graph.num_vertices), graph.degrees()).tolist()
    columns = [sources, graph.indices.to_numpy().tolist()]
    if graph.weights is not None:
        columns.append(graph.weights.to_numpy().tolist())
    return list(zip(*columns, strict=True))


@pytest.fixture
def small() -> Graph:
    return Graph.from_edges([2, 0, 0, 1], [2, 2, 1, 0], [5, 6, 7, 8], num_vertices=4, device="cpu")


class TestBasics:
    def test_what_it_is_made_of(self, small: Graph) -> None:
        indptr, indices, weights = small
        assert all(isinstance(part, Array) and part.readonly for part in small)
        assert indptr.to_numpy().tolist() == [0, 2, 3, 4, 4]
        assert indices.to_numpy().tolist() == [2, 1, 0, 2]
        assert weights is not None
        assert weights.to_numpy().tolist() == [6, 7, 8, 5]
        assert (indptr.dtype, indices.dtype, weights.dtype) == (np.int32, np.uint32, np.int64)

    def test_properties(self, small: Graph) -> None:
        assert small.num_vertices == 4
        assert small.num_edges == 4
        assert small.device == device("cpu")
        assert small.degrees().tolist() == [2, 1, 1, 0]
        assert small.max_degree == 2

    def test_empty(self) -> None:
        graph = Graph.from_edges([], [], device="cpu")
        assert (graph.num_vertices, graph.num_edges, graph.max_degree) == (0, 0, 0)
        assert graph.degrees().tolist() == []

    def test_repr(self, small: Graph) -> None:
        assert repr(small) == "Graph(4 vertices, 4 directed edges, int64 weights, on cpu)"
        assert repr(Graph.from_csr(np.zeros(1_000_001, int), [], device="cpu")) == (
            "Graph(1,000,000 vertices, 0 directed edges, no weights, on cpu)"
        )

    def test_best_device_unless_told(self) -> None:
        assert Graph.from_edges([0], [1]).device == device(None)

    def test_to(self, small: Graph) -> None:
        assert small.to("cpu") is small
        for target in devices():
            moved = small.to(target)
            assert moved.device == target
            assert all(part.readonly for part in moved if part is not None)
            assert triples(moved.to("cpu")) == triples(small)

    def test_from_csr_checks(self) -> None:
        graph = Graph.from_csr([0, 1, 2], np.array([1, 9, 0])[::2], [0.5, 1.5], device="cpu")
        assert triples(graph) == [(0, 1, 0.5), (1, 0, 1.5)]
        with pytest.raises(InvalidArgumentError, match="must not decrease"):
            Graph.from_csr([0, 2, 1, 2], [0, 0])

    def test_from_own_arrays(self, small: Graph) -> None:
        assert triples(Graph.from_csr(*small, device="cpu")) == triples(small)


class TestSimplify:
    EDGES = ((0, 1, 5), (1, 0, 3), (1, 0, 2), (2, 2, 9), (0, 3, 1), (0, 2, 1))

    @pytest.mark.parametrize("symmetrize", [False, True])
    @pytest.mark.parametrize("deduplicate", [False, True])
    @pytest.mark.parametrize("remove_loops", [False, True])
    @pytest.mark.parametrize("sort", [False, True])
    def test_same_as_on_the_way_in(self, symmetrize: bool, deduplicate: bool, remove_loops: bool, sort: bool) -> None:
        sources, targets, weights = np.array(self.EDGES).T
        options = {"symmetrize": symmetrize, "deduplicate": deduplicate, "remove_loops": remove_loops, "sort": sort}
        direct = Graph.from_edges(sources, targets, weights, device="cpu", **options)
        later = Graph.from_edges(sources, targets, weights, device="cpu").simplify(**options)
        assert sorted(triples(direct)) == sorted(triples(later))
        if sort or deduplicate:
            assert [edge[:2] for edge in triples(direct)] == sorted(edge[:2] for edge in triples(direct))

    def test_what_comes_out(self) -> None:
        sources, targets, weights = np.array(self.EDGES).T
        graph = Graph.from_edges(sources, targets, weights, device="cpu")
        assert triples(graph) == [(0, 1, 5), (0, 3, 1), (0, 2, 1), (1, 0, 3), (1, 0, 2), (2, 2, 9)]
        simple = graph.simplify(symmetrize=True, deduplicate=True, remove_loops=True)
        assert triples(simple) == [(0, 1, 2), (0, 2, 1), (0, 3, 1), (1, 0, 2), (2, 0, 1), (3, 0, 1)]
        assert triples(graph.simplify()) == triples(graph)


class TestScipy:
    @pytest.mark.parametrize("kind", FORMATS)
    @pytest.mark.parametrize("dtype", [bool, np.int8, np.int64, np.float32, np.float64])
    def test_every_format(self, kind: str, dtype: type) -> None:
        dense = np.triu(np.random.default_rng(0).integers(0, 3, (24, 24))).astype(dtype)
        graph = Graph.from_scipy(scipy.sparse.coo_array(dense).asformat(kind), device="cpu")
        assert (graph.weights is None) == (dtype is bool)
        back = graph.to_scipy()
        assert back.dtype == (np.int32 if dtype is np.int8 else dtype)
        np.testing.assert_array_equal(back.toarray(), dense)

    def test_old_matrices_too(self) -> None:
        graph = Graph.from_scipy(scipy.sparse.csr_matrix(np.eye(3)), device="cpu")
        assert triples(graph) == [(i, i, 1.0) for i in range(3)]

    def test_kept_as_it_comes(self) -> None:
        wide = (np.array([4.0, 0, 2]), np.array([2, 0, 2]), np.array([0, 3, 3, 3]))
        matrix = scipy.sparse.csr_array(wide, shape=(3, 3))
        matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
        assert triples(Graph.from_scipy(matrix, device="cpu")) == [(0, 2, 4), (0, 0, 0), (0, 2, 2)]
        parallel = scipy.sparse.coo_array(([1, 2], ([0, 0], [1, 1])), shape=(2, 2))
        assert triples(Graph.from_scipy(parallel, device="cpu")) == [(0, 1, 1), (0, 1, 2)]

    def test_weights(self) -> None:
        matrix = scipy.sparse.csr_array(np.diag([1, 2]))
        assert Graph.from_scipy(matrix, weights=False, device="cpu").weights is None
        converted = Graph.from_scipy(matrix, weights=np.float32, device="cpu").weights
        assert converted is not None
        assert converted.dtype == np.float32
        with pytest.raises(InvalidArgumentError, match="not whole numbers"):
            Graph.from_scipy(matrix / 3, weights=np.int32)

    def test_refused(self) -> None:
        with pytest.raises(InvalidArgumentError, match=r"square, but this one has shape \(2, 3\)"):
            Graph.from_scipy(scipy.sparse.csr_array((2, 3)))
        with pytest.raises(UnsupportedTypeError, match="complex128"):
            Graph.from_scipy(scipy.sparse.csr_array(np.eye(2) * 1j))
        with pytest.raises(InvalidArgumentError, match=r"weights\[0\] is NaN"):
            Graph.from_scipy(scipy.sparse.csr_array(np.array([[np.nan]])))


class TestNetworkx:
    @given(
        st.sampled_from([nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]),
        st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(1, 9)), max_size=30),
    )
    @settings(deadline=None)
    def test_same_adjacency(self, kind: type, edges: list[tuple[int, int, int]]) -> None:
        theirs = kind()
        theirs.add_nodes_from(f"node {i}" for i in range(9, -1, -1))
        theirs.add_weighted_edges_from((f"node {u}", f"node {v}", w) for u, v, w in edges)
        graph = Graph.from_networkx(theirs, device="cpu")
        expected = nx.to_numpy_array(theirs)
        if kind is nx.MultiGraph:  # where NumPy's conversion counts what is on the diagonal once as well
            assert graph.num_edges == sum(1 if u == v else 2 for u, v, _ in edges)
        if edges:
            np.testing.assert_array_equal(graph.to_scipy().toarray(), expected)
        else:
            assert graph.num_vertices == 10
            assert graph.weights is None

    def test_direction(self) -> None:
        assert triples(Graph.from_networkx(nx.path_graph(3), device="cpu")) == [(0, 1), (1, 0), (1, 2), (2, 1)]
        assert triples(Graph.from_networkx(nx.path_graph(3, nx.DiGraph), device="cpu")) == [(0, 1), (1, 2)]

    def test_weights(self) -> None:
        theirs = nx.DiGraph([("a", "b", {"weight": 2.5}), ("b", "a", {"cost": 3})])
        assert triples(Graph.from_networkx(theirs, device="cpu")) == [(0, 1, 2.5), (1, 0, 1.0)]
        assert triples(Graph.from_networkx(theirs, weight="cost", device="cpu")) == [(0, 1, 1), (1, 0, 3)]
        assert Graph.from_networkx(theirs, weight=None, device="cpu").weights is None
        assert Graph.from_networkx(theirs, weight="no such", device="cpu").weights is None
        theirs["a"]["b"]["weight"] = "heavy"
        with pytest.raises(UnsupportedTypeError, match="edge attribute 'weight' must be a number"):
            Graph.from_networkx(theirs)

    def test_no_nodes(self) -> None:
        assert Graph.from_networkx(nx.Graph(), device="cpu").num_vertices == 0


class TestFiles:
    @pytest.mark.parametrize("compress", [False, True])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_save_and_load(self, tmp_path: Path, small: Graph, compress: bool, weighted: bool) -> None:
        graph = small if weighted else small._replace(weights=None)
        graph.save(tmp_path / "graph.npz", compress=compress)
        loaded = Graph.load(tmp_path / "graph.npz", device="cpu")
        assert triples(loaded) == triples(graph)
        assert [part is not None and part.dtype for part in loaded] == [part is not None and part.dtype for part in graph]

    def test_load_options(self, tmp_path: Path) -> None:
        path = tmp_path / "graph.txt.gz"
        path.write_bytes(gzip.compress(b"0 1 3\n1 1 4\n0 1 2\n"))
        assert triples(Graph.load(str(path), device="cpu")) == [(0, 1, 3), (0, 1, 2), (1, 1, 4)]
        simple = Graph.load(path, device="cpu", weights=np.float32, symmetrize=True, deduplicate=True, remove_loops=True)
        assert triples(simple) == [(0, 1, 2.0), (1, 0, 2.0)]
        assert triples(Graph.load(path, device="cpu", weights=False, sort=True)) == [(0, 1), (0, 1), (1, 1)]

    def test_new_york(self, data_dir: Path) -> None:
        path = data_dir / "USA-road-d.NY.gr.gz"
        if not path.exists():
            pytest.skip("no data here")
        graph = Graph.load(path, device="cpu")
        assert repr(graph) == "Graph(264,346 vertices, 730,100 directed edges, int32 weights, on cpu)"
        assert graph.max_degree == 8
        matrix = graph.to_scipy()
        assert (matrix != matrix.T).nnz == 0


class TestGenerate:
    def test_rmat(self) -> None:
        graph = generate.rmat(8, 4, 1, device="cpu")
        assert graph.num_vertices == 256
        assert graph.weights is None
        assert (graph.to_scipy() != graph.to_scipy().T).nnz == 0

    def test_road(self) -> None:
        graph = generate.road(20, 1.0, device="cpu")
        assert triples(graph) == triples(Graph.from_networkx(nx.grid_2d_graph(20, 20), device="cpu").simplify(sort=True))


def test_offsets_and_ids_of_scipy_are_not_copied():
    matrix = scipy.sparse.csr_array((np.ones(3), np.array([1, 0, 2], np.int32), np.array([0, 2, 2, 3], np.int32)))
    graph = Graph.from_csr(matrix.indptr, matrix.indices, device="cpu")
    assert np.shares_memory(np.asarray(graph.indices), matrix.indices)
    assert np.shares_memory(np.asarray(graph.indptr), matrix.indptr)


def test_the_largest_degree(device: Device) -> None:
    """Found where the graph is, also of a row that ends the graph."""
    graph = generate.rmat(13, 16, device=device)
    assert graph.max_degree == graph.max_degree == graph.degrees().max()
    assert Graph.from_edges([0, 5000, 5000], [1, 1, 2], num_vertices=5001, device=device).max_degree == 2
