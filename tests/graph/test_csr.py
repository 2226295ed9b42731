"""Checking and building CSRs on the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import atos_py.graph.csr as module
from atos_py.compile import host_kernels as parallel
from atos_py.errors import InvalidArgumentError, UnsupportedTypeError
from atos_py.graph.csr import CSR, build_csr, check_csr, chunk_edges, csr_to_chunks, indptr_dtype


def triples(csr: CSR) -> list[tuple[Any, ...]]:
    """List the edges of a CSR in order, as (source, target) or (source, target, weight)."""
    sources = np.repeat(np.arange(csr.indptr.size - 1), np.diff(csr.indptr)).tolist()
    columns = [sources, csr.indices.tolist()] + ([] if csr.weights is None else [csr.weights.tolist()])
    return list(zip(*columns, strict=True))


def assert_same(one: CSR, other: CSR) -> None:
    for a, b in zip(one, other, strict=True):
        if a is None or b is None:
            assert a is b
        else:
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


@st.composite
def edge_lists(draw: st.DrawFn) -> tuple[int, list[tuple[int, int, int]]]:
    num_vertices = draw(st.integers(1, 40))
    vertex = st.integers(0, num_vertices - 1)
    return num_vertices, draw(st.lists(st.tuples(vertex, vertex, st.integers(-5, 5)), max_size=80))


def arrays(edges: list[tuple[int, int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    sources, targets, weights = np.array(edges, np.int64).reshape(-1, 3).T
    return sources, targets, weights


class TestBuild:
    @given(edge_lists(), st.booleans(), st.booleans(), st.booleans(), st.booleans(), st.booleans())
    @settings(deadline=None)
    def test_against_plain_python(
        self,
        graph: tuple[int, list[tuple[int, int, int]]],
        weighted: bool,
        symmetrize: bool,
        deduplicate: bool,
        remove_loops: bool,
        sort: bool,
    ) -> None:
        num_vertices, edges = graph
        expected = [edge for edge in edges if not (remove_loops and edge[0] == edge[1])]
        if symmetrize:
            expected = [pair for u, v, w in expected for pair in ([(u, v, w)] if u == v else [(u, v, w), (v, u, w)])]
        if deduplicate:
            lightest: dict[tuple[int, int], int] = {}
            for u, v, w in expected:
                lightest[u, v] = min(w, lightest.get((u, v), w))
            expected = sorted((u, v, w) for (u, v), w in lightest.items())
        expected.sort(key=lambda edge: edge[:2] if sort or deduplicate else edge[:1])

        sources, targets, weights = arrays(edges)
        given = chunk_edges(sources, targets, weights if weighted else None, num_vertices)
        csr = build_csr(
            given.chunks,
            num_vertices,
            symmetrize=symmetrize,
            deduplicate=deduplicate,
            remove_loops=remove_loops,
            sort=sort,
        )
        assert triples(csr) == (expected if weighted else [edge[:2] for edge in expected])
        assert given.chunks == []

    @pytest.mark.parametrize("threads", [1, 2, 7])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_many_chunks_and_buckets(self, monkeypatch: pytest.MonkeyPatch, threads: int, weighted: bool) -> None:
        monkeypatch.setattr(parallel, "num_threads", lambda: threads)
        monkeypatch.setattr(module, "_CHUNK_EDGES", 1000)
        random = np.random.default_rng(1)
        n = 300_000
        sources, targets = random.integers(0, n, 50_000) // 7, random.integers(0, n, 50_000)
        weights = np.arange(50_000) if weighted else None
        csr = build_csr(chunk_edges(sources, targets, weights, n).chunks, n)
        order = np.argsort(sources, kind="stable")
        np.testing.assert_array_equal(csr.indices, targets[order])
        np.testing.assert_array_equal(np.diff(csr.indptr), np.bincount(sources, minlength=n))
        if csr.weights is not None:
            np.testing.assert_array_equal(csr.weights, order)

        simple = build_csr(chunk_edges(sources, targets, None, n).chunks, n, symmetrize=True, deduplicate=True)
        matrix = scipy.sparse.coo_array((np.ones(50_000), (sources, targets)), shape=(n, n)).tocsr()
        both = (matrix + matrix.T).tocsr()
        both.sort_indices()
        np.testing.assert_array_equal(simple.indptr, both.indptr)
        np.testing.assert_array_equal(simple.indices, both.indices)

    @pytest.mark.parametrize("dtype", ["i4", "i8", "u4", "u8", "f4", "f8"])
    def test_weights_keep_their_dtype_and_order(self, dtype: str) -> None:
        weights = np.array([3, 1, 2, 1], dtype)
        csr = build_csr(chunk_edges([0, 0, 0, 0], [1, 1, 0, 2], weights).chunks, 3, deduplicate=True)
        assert csr.weights is not None
        assert csr.weights.dtype == dtype
        assert triples(csr) == [(0, 0, 2), (0, 1, 1), (0, 2, 1)]

    def test_rows_of_a_hub(self) -> None:
        n = 100_000
        csr = build_csr(chunk_edges(np.zeros(n, int), np.arange(n)[::-1]).chunks, n, symmetrize=True, sort=True)
        assert csr.indptr[1] == n
        np.testing.assert_array_equal(csr.indices[:n], np.arange(n))

    def test_no_edges_no_vertices(self) -> None:
        for n in (0, 1, 17):
            csr = build_csr([], n, deduplicate=True)
            assert csr.indptr.tolist() == [0] * (n + 1)
            assert csr.indices.size == 0

    @given(edge_lists())
    @settings(deadline=None)
    def test_edges_of_is_the_inverse(self, graph: tuple[int, list[tuple[int, int, int]]]) -> None:
        num_vertices, edges = graph
        csr = build_csr(chunk_edges(*arrays(edges), num_vertices).chunks, num_vertices)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "_CHUNK_EDGES", 5)
            chunks = list(csr_to_chunks(csr))
        assert sum(chunk.sources.size for chunk in chunks) == len(edges)
        assert_same(build_csr(chunks, num_vertices), csr)

    def test_no_edges_still_have_weights(self) -> None:
        for n in (0, 3):
            csr = build_csr(chunk_edges([], [], np.empty(0, np.float32), n).chunks, n)
            assert csr.weights is not None
            assert csr.weights.dtype == np.float32
            assert_same(build_csr(list(csr_to_chunks(csr)), n), csr)

    def test_offsets_widen_only_when_they_must(self) -> None:
        assert indptr_dtype(2**31 - 1) == np.int32
        assert indptr_dtype(2**31) == np.int64


class TestCheck:
    @pytest.mark.parametrize(
        ("indptr", "indices", "weights", "message"),
        [
            ([], [], None, "at least one"),
            ([1, 2], [0, 0], None, r"indptr\[0\] must be 0 \(got 1\)"),
            ([0, 1], [0, 0], None, r"indptr\[1\], the last, must be the number of edges, 2 \(got 1\)"),
            ([0, 2, 1, 3], [0, 1, 2], None, r"indptr\[1\] is 2 and indptr\[2\] is 1"),
            ([0, 1], [1], None, r"indices\[0\] is 1, but vertex ids must lie in 0\.\.0"),
            ([0, 2], [0, -3], None, r"indices\[1\] is -3"),
            ([0, 1], [0], [1, 2], r"one entry for each of the 1 edges \(got shape \(2,\)\)"),
            ([0, 2], [0, 0], [1.0, np.nan], r"weights\[1\] is NaN"),
            ([[0, 1]], [0], None, "one-dimensional"),
        ],
    )
    def test_refused_values(self, indptr: Any, indices: Any, weights: Any, message: str) -> None:
        with pytest.raises(InvalidArgumentError, match=message):
            check_csr(indptr, indices, weights)

    def test_refused_types(self) -> None:
        with pytest.raises(UnsupportedTypeError, match="indices must be integers, not float64"):
            check_csr([0, 1], [0.0])
        with pytest.raises(UnsupportedTypeError, match="not complex128"):
            check_csr([0, 1], [0], [1j])
        with pytest.raises(UnsupportedTypeError, match="not object"):
            check_csr([0, 1], [0], [None])

    def test_unsigned_offsets_that_fall(self) -> None:
        with pytest.raises(InvalidArgumentError, match="must not decrease"):
            check_csr(np.array([0, 2, 1, 3], np.uint64), [0, 1, 2])

    def test_edges(self) -> None:
        with pytest.raises(InvalidArgumentError, match="same length"):
            chunk_edges([0], [0, 1])
        with pytest.raises(InvalidArgumentError, match=r"targets\[1\] is 5, but vertex ids must lie in 0\.\.2"):
            chunk_edges([0, 1], [0, 5], num_vertices=3)
        with pytest.raises(InvalidArgumentError, match=r"sources\[0\] is -1"):
            chunk_edges([-1], [0])
        with pytest.raises(InvalidArgumentError, match=r"sources\[0\] is 4294967295"):
            chunk_edges([2**32 - 1], [0])
        with pytest.raises(InvalidArgumentError, match="num_vertices must be from 0 to 4294967295"):
            chunk_edges([0], [0], num_vertices=2**32)
        with pytest.raises(UnsupportedTypeError, match="sources must be integers, not bool"):
            chunk_edges([True], [0])

    def test_accepts_any_integers_and_layout(self) -> None:
        indptr = np.array([0, 9, 1, 9, 2, 9], ">i8")[::2]
        csr = check_csr(indptr, np.array([1, 9, 0], np.uint8)[::2], np.array([1, 9, 2], ">f2")[::2])
        assert_same(csr, CSR(np.array([0, 1, 2], "i4"), np.array([1, 0], "u4"), np.array([1, 2], "f4")))
        assert csr.indptr.flags.c_contiguous

    def test_does_not_copy_what_fits(self) -> None:
        parts = np.array([0, 1], np.int32), np.array([0], np.uint32), np.array([2.5])
        csr = check_csr(*parts)
        assert csr.weights is not None
        assert csr.indptr is parts[0]
        assert csr.indices is parts[1]
        assert csr.weights is parts[2]
