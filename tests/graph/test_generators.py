"""Uniform graphs, grids, Kronecker graphs, rings with shortcuts, preferential attachment, two sides, and random weights."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_graphs import graphs, sources_of

import atos_py as atos
from atos_py.compile import host_kernels as parallel
from atos_py.errors import InvalidArgumentError
from atos_py.graph import generate
from atos_py.graph.csr import check_csr
from atos_py.graph.generate import grids, hashing
from atos_py.graph.generate.random_edges import pair_of

SMALL: dict[str, Callable[[int], atos.Graph]] = {
    "barabasi_albert": lambda seed: generate.barabasi_albert(300, 3, seed, device="cpu"),
    "bipartite": lambda seed: generate.bipartite(200, 150, 900, seed, device="cpu"),
    "kronecker": lambda seed: generate.kronecker([[5, 1, 0], [1, 4, 1], [0, 1, 3]], 5, 4, seed, device="cpu"),
    "small_world": lambda seed: generate.small_world(300, 6, 0.2, seed, device="cpu"),
    "uniform": lambda seed: generate.uniform(300, 900, seed, device="cpu"),
    "uniform, directed": lambda seed: generate.uniform(300, 900, seed, directed=True, device="cpu"),
}


def digest(graph: atos.Graph) -> str:
    return hashlib.sha256(graph.indptr.to_numpy().tobytes() + graph.indices.to_numpy().tobytes()).hexdigest()[:16]


def assert_simple(graph: atos.Graph, symmetric: bool = True) -> None:
    check_csr(graph.indptr.to_numpy(), graph.indices.to_numpy())
    keys = sources_of(graph).astype(np.int64) << 32 | graph.indices.to_numpy()
    assert (np.diff(keys) > 0).all()  # ascending, so without duplicates
    assert not (sources_of(graph) == graph.indices.to_numpy()).any()
    assert graph.is_symmetric() == (symmetric or not graph.num_edges)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("barabasi_albert", "0ee5cb71b925bc82"),
        ("bipartite", "02b1e0258bad6890"),
        ("kronecker", "0f81f0e7da13a983"),
        ("small_world", "2ba60eee1eed3abe"),
        ("uniform", "10b9ca613adc6ee8"),
        ("uniform, directed", "ed0b87d0cc2e191b"),
    ],
)
def test_a_seed_gives_the_same_graphs_for_ever(name: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = SMALL[name](7)
    assert_simple(graph, symmetric=name != "uniform, directed")
    assert digest(graph) == expected
    assert digest(SMALL[name](8)) != expected
    monkeypatch.setattr(parallel, "num_threads", lambda: 3)
    monkeypatch.setattr(hashing, "_CHUNK_EDGES", 77)
    assert digest(SMALL[name](7)) == expected


class TestUniform:
    @given(st.integers(0, 12), st.data())
    @settings(deadline=None)
    def test_exactly_so_many_edges(self, n: int, data: st.DataObject) -> None:
        directed = data.draw(st.booleans())
        pairs = n * max(n - 1, 0) // (1 if directed else 2)
        count = data.draw(st.integers(0, pairs))
        graph = generate.uniform(n, count, data.draw(st.integers(0, 2**64 - 1)), directed=directed, device="cpu")
        assert (graph.num_vertices, graph.num_edges) == (n, count if directed else 2 * count)
        assert_simple(graph, graph.is_symmetric())

    def test_each_set_of_edges_is_as_likely(self) -> None:
        found: dict[bytes, int] = {}
        for seed in range(1500):
            key = generate.uniform(4, 2, seed, device="cpu").to_scipy().toarray().tobytes()
            found[key] = found.get(key, 0) + 1
        assert len(found) == 15
        # Chi-squared with 14 degrees of freedom is above 40 with a probability of 3e-4, and the seeds are always these.
        assert sum((count - 100) ** 2 / 100 for count in found.values()) < 40

    def test_degrees_are_binomial(self) -> None:
        degrees = generate.uniform(10_000, 50_000, device="cpu").degrees()
        assert degrees.mean() == 10
        assert degrees.var() == pytest.approx(10, rel=0.06)

    @given(st.integers(0, (2**32 - 1) * (2**32 - 2) // 2 - 1))
    def test_numbers_of_pairs(self, number: int) -> None:
        for each in (number, max(number - 1, 0)):
            u, v = map(int, pair_of(np.uint64(each)))
            assert u < v < 2**32 - 1
            assert v * (v - 1) // 2 + u == each

    @pytest.mark.parametrize("v", [1, 2, 3, 2**16, 2**27, 94906266, 2**31, 2**32 - 2])
    def test_first_and_last_pairs(self, v: int) -> None:
        before = v * (v - 1) // 2
        assert [tuple(map(int, pair_of(np.uint64(before + u)))) for u in (0, v - 1)] == [(0, v), (v - 1, v)]


@given(st.integers(1, 2000), st.integers(0, 2**64 - 1))
@settings(deadline=None, max_examples=30)
def test_permutations_permute(count: int, seed: int) -> None:
    with np.errstate(over="ignore"):
        _, keys = hashing.permutation_keys(seed)
        bits = np.uint64((count - 1).bit_length())
        places = [int(hashing.permute(np.uint64(i), np.uint64(count), bits, keys)) for i in range(min(count, 200))]
    assert len(set(places)) == len(places)
    assert max(places) < count


class TestGrids:
    @given(st.tuples(*[st.integers(0, 5)] * 3), st.booleans())
    @settings(deadline=None)
    def test_as_networkx_has_them(self, shape: tuple[int, int, int], periodic: bool) -> None:
        for extents in (shape, shape[1:]):
            make: Any = generate.grid3d if len(extents) == 3 else generate.grid2d
            graph = make(*extents, periodic=periodic, device="cpu")
            assert_simple(graph)
            expected = nx.grid_graph(extents[::-1], periodic=periodic)
            expected.remove_edges_from(list(nx.selfloop_edges(expected)))
            number = {node: int(np.ravel_multi_index(node, extents)) for node in expected}
            assert graph.num_vertices == len(number)
            ends = {(number[u], number[v]) for u, v in expected.edges()}
            ends |= {(v, u) for u, v in ends}
            assert set(zip(sources_of(graph).tolist(), graph.indices.to_numpy().tolist(), strict=True)) == ends

    def test_threads_and_pieces_make_no_difference(self, monkeypatch: pytest.MonkeyPatch) -> None:
        expected = digest(generate.grid3d(7, 8, 9, periodic=True, device="cpu"))
        monkeypatch.setattr(parallel, "num_threads", lambda: 3)
        monkeypatch.setattr(grids, "_CHUNK_VERTICES", 20)
        assert digest(generate.grid3d(7, 8, 9, periodic=True, device="cpu")) == expected

    def test_a_road_without_holes_is_a_grid(self) -> None:
        assert digest(generate.road(9, 1.0, device="cpu")) == digest(generate.grid2d(9, 9, device="cpu"))


class TestKronecker:
    def test_of_two_by_two_is_rmat(self) -> None:
        for a, b, c in ((0.57, 0.19, 0.19), (0.25, 0.25, 0.25), (0.1, 0.2, 0.3)):
            matrix = np.array([[a, b], [c, 1 - a - b - c]])
            found = generate.kronecker(matrix, 9, 8, 3, device="cpu")
            assert digest(found) == digest(generate.rmat(9, 8, 3, a=a, b=b, c=c, device="cpu"))

    def test_a_matrix_without_links_gives_parts(self) -> None:
        """Vertices whose first digits differ are not joined."""
        graph = generate.kronecker([[2, 0, 0], [0, 1, 0], [0, 0, 1]], 5, 8, device="cpu")
        assert graph.num_edges == 0  # each edge keeps to the diagonal at every level
        graph = generate.kronecker([[0, 1, 0], [0, 0, 1], [1, 0, 0]], 4, 40, device="cpu")
        assert (graph.degrees() == 2).all()  # each vertex to the one whose digits are all one higher, and from one
        assert max(map(len, nx.connected_components(nx.from_scipy_sparse_array(graph.to_scipy())))) == 3

    def test_entries_are_proportions(self) -> None:
        graph = generate.kronecker(np.ones((5, 5)), 4, 20, device="cpu")
        degrees = graph.degrees()
        assert degrees.mean() == pytest.approx(40 * (1 - 20 / 625), rel=0.01)
        assert degrees.std() == pytest.approx(40**0.5, rel=0.1)


class TestSmallWorld:
    def test_without_shortcuts_it_is_a_ring(self) -> None:
        graph = generate.small_world(50, 6, 0.0, device="cpu")
        expected = nx.watts_strogatz_graph(50, 6, 0)
        assert {(u, v) for u, v in zip(sources_of(graph).tolist(), graph.indices[:].tolist(), strict=True) if u < v} == {
            (min(ends), max(ends)) for ends in expected.edges()
        }

    def test_few_edges_move(self) -> None:
        ring = generate.small_world(10_000, 4, 0.0, device="cpu").to_scipy()
        graph = generate.small_world(10_000, 4, 0.1, device="cpu").to_scipy()
        kept = ring.multiply(graph).nnz / ring.nnz
        assert kept == pytest.approx(0.9, abs=0.01)
        assert graph.nnz == pytest.approx(40_000, rel=0.001)

    def test_all_moved_are_uniform(self) -> None:
        graph = generate.small_world(3000, 10, 1.0, device="cpu")
        far = np.abs(sources_of(graph) - graph.indices.to_numpy().astype(np.int64))
        assert (np.minimum(far, 3000 - far) > 5).mean() > 0.99


class TestBarabasiAlbert:
    def test_degrees_follow_a_power_law(self) -> None:
        degrees = generate.barabasi_albert(20_000, 5, device="cpu").degrees()
        for least in (6, 10, 20, 50):  # P(degree >= k) = m (m + 1) / (k (k + 1))
            assert (degrees >= least).mean() == pytest.approx(30 / (least * (least + 1)), rel=0.12, abs=0.002)
        assert degrees.max() > 300
        assert degrees.sum() == pytest.approx(200_000, rel=0.01)

    def test_first_vertices(self) -> None:
        assert generate.barabasi_albert(1, 4, device="cpu").num_edges == 0
        assert generate.barabasi_albert(5, 0, device="cpu").num_edges == 0
        assert generate.barabasi_albert(2, 50, device="cpu").num_edges == 2


@given(st.integers(0, 9), st.integers(0, 9), st.data())
@settings(deadline=None)
def test_bipartite(left: int, right: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, left * right))
    graph = generate.bipartite(left, right, count, data.draw(st.integers(0, 2**64 - 1)), device="cpu")
    assert (graph.num_vertices, graph.num_edges) == (left + right, 2 * count)
    assert_simple(graph)
    assert ((sources_of(graph) < left) != (graph.indices.to_numpy() < left)).all()


class TestRandomWeights:
    @given(graphs(), st.integers(-5, 5), st.integers(0, 9), st.booleans())
    @settings(deadline=None)
    def test_the_same_both_ways(self, graph: atos.Graph, low: int, more: int, whole: bool) -> None:
        bounds = (low, low + more) if whole else (float(low), float(low + more))
        weights = generate.random_weights(graph, *bounds, seed=3).to_numpy()
        assert weights.dtype == (np.int32 if whole else np.float32)
        assert ((weights >= low) & (weights <= low + more)).all()
        seen: dict[tuple[int, int], float] = {}
        for u, v, weight in zip(sources_of(graph).tolist(), graph.indices.to_numpy().tolist(), weights.tolist(), strict=True):
            assert seen.setdefault((min(u, v), max(u, v)), weight) == weight

    def test_for_ever_and_everywhere(self, device: atos.Device) -> None:
        graph = generate.road(20, device=device)
        weights = generate.random_weights(graph, 1, 255)
        assert weights.device == device
        reals = generate.random_weights(graph, -1.0, 2.5, seed=9)
        found = [hashlib.sha256(each.to_numpy().tobytes()).hexdigest()[:16] for each in (weights, reals)]
        assert found == ["e99b2354c3d49b17", "b954d727e3b09cbe"]

    def test_even(self) -> None:
        graph = generate.uniform(1000, 30_000, device="cpu")
        once = sources_of(graph) < graph.indices.to_numpy()
        counts = np.bincount(generate.random_weights(graph, 1, 10)[:][once])[1:]
        assert ((counts - 3000) ** 2 / 3000).sum() < 28  # chi-squared with 9 degrees of freedom, 1e-3
        assert generate.random_weights(graph, 0.0, 1.0)[:][once].mean() == pytest.approx(0.5, abs=0.01)

    def test_large_bounds(self) -> None:
        graph = generate.road(20, device="cpu")
        weights = generate.random_weights(graph, 2**40, 2**40 + 2**32 - 1)
        assert weights.dtype == np.int64
        assert weights[:].min() >= 2**40
        assert np.ptp(weights[:]) > 2**31


class TestSampleEdges:
    @given(graphs(), st.floats(0, 1), st.integers(0, 9))
    @settings(deadline=None)
    def test_edges_of_the_graph(self, graph: atos.Graph, probability: float, seed: int) -> None:
        numbered = graph.with_weights(np.arange(graph.num_edges, dtype=np.int64))
        sample = generate.sample_edges(numbered, probability, seed)
        assert sample.num_vertices == graph.num_vertices
        edges = sample.weights.to_numpy()
        assert (np.diff(edges) > 0).all()  # in the same order, each once
        assert (sources_of(sample) == sources_of(graph)[edges]).all()
        assert (sample.indices.to_numpy() == graph.indices.to_numpy()[edges]).all()

    def test_for_ever_and_everywhere(self, device: atos.Device) -> None:
        sample = generate.sample_edges(generate.road(20, device=device), 0.5, seed=3)
        assert sample.device == device
        assert sample.weights is None
        assert digest(sample) == "4428c0a4cfd25101"

    def test_as_many_as_likely(self) -> None:
        graph = generate.uniform(1000, 30_000, device="cpu")
        assert generate.sample_edges(graph, 0.3).num_edges == pytest.approx(18_000, abs=4 * (60_000 * 0.21) ** 0.5)
        assert generate.sample_edges(graph, 0).num_edges == 0
        assert generate.sample_edges(graph, 1).num_edges == graph.num_edges
        assert not generate.sample_edges(graph, 0.5).is_symmetric()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: generate.uniform(4, 7), r"num_edges must be at most 6, the number of pairs of vertices \(got 7\)"),
        (lambda: generate.uniform(4, 13, directed=True), "at most 12"),
        (lambda: generate.uniform(-1, 0), "num_vertices must be from 0"),
        (lambda: generate.bipartite(3, 2, 7), "at most 6"),
        (lambda: generate.bipartite(2**31, 2**31, 1), "right must be from 0 to 2147483647"),
        (lambda: generate.grid2d(2**16, 2**16), r"at most 4294967295 vertices \(got 1 \* 65536 \* 65536 = 4294967296\)"),
        (lambda: generate.grid3d(2, -1, 2), "rows must be from 0"),
        (lambda: generate.small_world(10, 3, 0.5), r"neighbors must be even, half of them on each side \(got 3\)"),
        (lambda: generate.small_world(4, 4, 0.5), "neighbors must be from 0 to 3"),
        (lambda: generate.small_world(10, 2, 1.5), "rewire must be a probability"),
        (lambda: generate.kronecker([[1, 2, 3], [1, 2, 3]], 3), r"square matrix, from 2 x 2 on \(got shape \(2, 3\)\)"),
        (lambda: generate.kronecker([[1, -1], [0, 1]], 3), "not negative"),
        (lambda: generate.kronecker([[0, 0], [0, 0]], 3), "positive sum"),
        (lambda: generate.kronecker(np.ones((3, 3)), 21), "scale must be from 0 to 20"),
        (lambda: generate.sample_edges(generate.road(3), -0.1), r"probability must be from 0 to 1 \(got -0.1\)"),
        (lambda: generate.random_weights(generate.road(3), 5, 4), r"high must be at least low, .* \(got 5 and 4\)"),
        (lambda: generate.random_weights(generate.road(3), 0, 2**32), "less than 2.*32 above"),
        (lambda: generate.random_weights(generate.road(3), 0.0, float("nan")), "high must be a finite number"),
    ],
)
def test_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: generate.uniform(2**32 - 1, 2**45),
        lambda: generate.barabasi_albert(2**32 - 1, 2**20),
        lambda: generate.grid3d(1500, 1500, 1500),
        lambda: generate.kronecker([[1, 1], [1, 1]], 31, 2**20),
    ],
)
def test_more_than_any_memory(call: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("atos_py.support.validation.read_host_memory", lambda: 2**33)
    with pytest.raises(atos.DeviceMemoryError, match=r"more than the 8\.0 GiB that the host has"):
        call()
