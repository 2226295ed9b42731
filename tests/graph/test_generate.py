"""Random graphs."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atos_py.compile import host_kernels as parallel
from atos_py.errors import InvalidArgumentError
from atos_py.graph import generate
from atos_py.graph.csr import CSR, check_csr
from atos_py.graph.generate import grids, hashing
from atos_py.graph.generate.grids import road_csr
from atos_py.graph.generate.scale_free import rmat_csr

scipy_sparse = pytest.importorskip("scipy.sparse")


def rmat(scale: int, edge_factor: int = 16, seed: int = 0, a: float = 0.57, b: float = 0.19, c: float = 0.19) -> CSR:
    return rmat_csr(scale, edge_factor, seed, a=a, b=b, c=c)


def matrix_of(csr: CSR) -> object:
    n = csr.indptr.size - 1
    return scipy_sparse.csr_array((np.ones(csr.indices.size), csr.indices.astype(np.int64), csr.indptr), shape=(n, n))


def assert_simple_and_symmetric(csr: CSR) -> None:
    check_csr(*csr)
    matrix = matrix_of(csr)
    assert matrix.diagonal().sum() == 0  # type: ignore[attr-defined]
    assert (matrix != matrix.T).nnz == 0  # type: ignore[attr-defined]
    rows = np.repeat(np.arange(csr.indptr.size - 1), np.diff(csr.indptr)).astype(np.int64)
    keys = rows << 32 | csr.indices
    assert (np.diff(keys) > 0).all()  # ascending, so without duplicates


def equal(one: CSR, other: CSR) -> bool:
    return np.array_equal(one.indptr, other.indptr) and np.array_equal(one.indices, other.indices)


def digest(csr: CSR) -> str:
    return hashlib.sha256(csr.indptr.tobytes() + csr.indices.tobytes()).hexdigest()[:16]


@pytest.mark.parametrize(
    ("seed", "expected"),
    [
        (0, ("3ef027aa0a148799", "fd034b988161efd3")),
        (1, ("1ef9e16d744edc38", "5871b99b4b8a42dd")),
        (12345678901234567890, ("2c908779a8909b98", "1767da598e4b5591")),
    ],
)
def test_a_seed_gives_the_same_graphs_for_ever(seed: int, expected: tuple[str, str]) -> None:
    assert (digest(rmat(12, 16, seed)), digest(road_csr(200, 0.3, seed))) == expected


class TestRmat:
    @given(st.integers(0, 9), st.integers(0, 20), st.integers(0, 2**64 - 1))
    @settings(deadline=None)
    def test_simple_and_symmetric(self, scale: int, edge_factor: int, seed: int) -> None:
        csr = rmat(scale, edge_factor, seed)
        assert csr.indptr.size == 2**scale + 1
        assert csr.indices.size <= 2 * edge_factor << scale
        assert_simple_and_symmetric(csr)

    def test_seeds(self) -> None:
        assert equal(rmat(10), rmat(10))
        assert not equal(rmat(10), rmat(10, seed=1))

    @pytest.mark.parametrize("threads", [1, 2, 5])
    def test_threads_and_chunks_make_no_difference(self, monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
        expected = rmat(11)
        monkeypatch.setattr(parallel, "num_threads", lambda: threads)
        monkeypatch.setattr(hashing, "_CHUNK_EDGES", 777)
        assert equal(rmat(11), expected)

    def test_scale_free(self) -> None:
        csr = rmat(16)
        degrees = np.diff(csr.indptr)
        # What other generators give at this scale: 7/8 of the edges survive, a hub has a seventh of all vertices as neighbors.
        assert 1.75e6 < csr.indices.size < 1.9e6
        assert 8_000 < degrees.max() < 11_000
        assert 0.2 < (degrees == 0).mean() < 0.5
        # Unpermuted, the low half of the ids would hold most of the edges.
        assert 0.45 < degrees[: degrees.size // 2].sum() / degrees.sum() < 0.55

    def test_even_probabilities_give_even_degrees(self) -> None:
        degrees = np.diff(rmat(14, a=0.25, b=0.25, c=0.25).indptr)
        assert degrees.mean() == pytest.approx(32, rel=0.01)
        assert degrees.std() == pytest.approx(32**0.5, rel=0.05)

    def test_skew_of_quarters(self) -> None:
        # With probability 1 for one quarter, all edges join the same two vertices.
        for quarter in ((0, 1, 0), (0, 0, 1)):
            csr = rmat(6, 4, 0, *quarter)
            assert csr.indices.size == 2
        for quarter in ((1, 0, 0), (0, 0, 0)):
            assert rmat(6, 4, 0, *quarter).indices.size == 0

    @pytest.mark.parametrize("scale", range(7))
    def test_all_vertices_are_used(self, scale: int) -> None:
        csr = rmat(scale, 2000, a=0.25, b=0.25, c=0.25)
        assert csr.indices.size == 2**scale * (2**scale - 1)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"scale": 32}, r"scale must be from 0 to 31 \(got 32\)"),
            ({"scale": -1}, "scale"),
            ({"scale": 2, "edge_factor": -1}, "edge_factor"),
            ({"scale": 2, "seed": -1}, "seed"),
            ({"scale": 2, "a": 0.9}, "sum is at most 1"),
            ({"scale": 2, "b": -0.1}, "probabilities"),
            ({"scale": 2, "c": float("nan")}, "c must be a finite number"),
        ],
    )
    def test_refused(self, arguments: dict[str, object], message: str) -> None:
        with pytest.raises(InvalidArgumentError, match=message):
            generate.rmat(**arguments)  # type: ignore[arg-type]


class TestRoad:
    @given(st.integers(0, 12), st.floats(0, 1), st.integers(0, 2**64 - 1))
    @settings(deadline=None)
    def test_part_of_a_grid(self, side: int, keep: float, seed: int) -> None:
        csr = road_csr(side, keep, seed)
        assert csr.indptr.size == side * side + 1
        assert_simple_and_symmetric(csr)
        rows = np.repeat(np.arange(side * side), np.diff(csr.indptr))
        row_steps = rows // max(side, 1) - csr.indices // max(side, 1)
        column_steps = rows % max(side, 1) - csr.indices.astype(np.int64) % max(side, 1)
        assert (np.abs(row_steps.astype(np.int64)) + np.abs(column_steps) == 1).all()

    def test_whole_and_empty(self) -> None:
        assert road_csr(7, 1.0, 0).indices.size == 4 * 7 * 6
        assert road_csr(7, 0.0, 0).indices.size == 0
        assert road_csr(1, 1.0, 0).indices.size == 0

    def test_keeps_the_share_asked_for(self) -> None:
        csr = road_csr(700, 0.62, 3)
        assert csr.indices.size == pytest.approx(0.62 * 4 * 700 * 699, rel=0.005)
        # Both kinds of edges, to the side and down.
        rows = np.repeat(np.arange(490_000), np.diff(csr.indptr))
        assert (np.abs(rows - csr.indices.astype(np.int64)) == 1).mean() == pytest.approx(0.5, abs=0.01)

    @pytest.mark.parametrize("threads", [1, 2, 5])
    def test_threads_and_chunks_make_no_difference(self, monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
        expected = road_csr(50, 0.62, 0)
        monkeypatch.setattr(parallel, "num_threads", lambda: threads)
        monkeypatch.setattr(grids, "_CHUNK_VERTICES", 99)
        assert equal(road_csr(50, 0.62, 0), expected)
        assert not equal(road_csr(50, 0.62, 1), expected)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"side": 65536}, "side must be from 0 to 65535"),
            ({"side": -1}, "side"),
            ({"side": 2, "keep": 1.1}, r"keep must be a probability, 0 to 1 \(got 1.1\)"),
            ({"side": 2, "keep": float("nan")}, "keep"),
            ({"side": 2, "seed": 2**64}, "seed"),
        ],
    )
    def test_refused(self, arguments: dict[str, object], message: str) -> None:
        with pytest.raises(InvalidArgumentError, match=message):
            generate.road(**arguments)  # type: ignore[arg-type]
