"""Betweenness centrality, against networkx and by an identity, and its verifier."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import atos_py as atos
from atos_py.algorithms.betweenness import accumulate
from atos_py.algorithms.betweenness.path_counts import PathCounts
from atos_py.compile import linker as link
from atos_py.compile.arguments import describe
from atos_py.compile.spec import ProgramSpec
from atos_py.errors import BuildError, InvalidArgumentError, UnsupportedTypeError, VerificationError
from atos_py.graph.csr import CSR
from atos_py.operators.edge_map import THREAD_MAX_DEGREE

SCHEDULES = [{"persistent": persistent, "barrier": barrier} for persistent in (True, False) for barrier in (False, True)]


@st.composite
def graphs(draw: st.DrawFn) -> nx.Graph:
    """Any graph with loops and isolated vertices, directed or not."""
    theirs = draw(st.sampled_from([nx.Graph, nx.DiGraph]))()
    theirs.add_nodes_from(range(n := draw(st.integers(1, 10))))
    vertex = st.integers(0, n - 1)
    theirs.add_edges_from(draw(st.lists(st.tuples(vertex, vertex), max_size=30)))
    return theirs


@given(graphs(), st.booleans(), st.sampled_from(["thread", "warp", "cta"]), st.sampled_from(SCHEDULES))
@settings(deadline=None, max_examples=100)
def test_random_graphs(theirs: nx.Graph, normalized: bool, worker: str, schedule: dict[str, bool]) -> None:
    graph = atos.Graph.from_networkx(theirs, device="cpu")
    result = atos.betweenness(graph, normalized=normalized, worker=worker, **schedule)
    expected = np.array(list(nx.betweenness_centrality(theirs, normalized=normalized).values()))
    if theirs.is_directed() and graph.is_symmetric() and not normalized:
        expected /= 2  # it is taken as undirected
    np.testing.assert_allclose(np.asarray(result.centrality), expected, rtol=1e-12, atol=1e-14)
    atos.verify_betweenness(graph, result.centrality, normalized=normalized)


@given(graphs(), st.booleans(), st.data())
@settings(deadline=None, max_examples=50)
def test_some_sources(theirs: nx.Graph, normalized: bool, data: st.DataObject) -> None:
    """Scaled as in networkx, of which each version since 3.5 has these factors."""
    graph, n = atos.Graph.from_networkx(theirs, device="cpu"), len(theirs)
    sources = data.draw(st.lists(st.integers(0, n - 1), min_size=1, unique=True))
    found = np.asarray(atos.betweenness(graph, sources, normalized=normalized).centrality)
    atos.verify_betweenness(graph, found, sources, normalized=normalized)
    sums = np.zeros(n)
    for source in sources:
        lengths = nx.single_source_shortest_path_length(theirs, source)
        for target in set(lengths) - {source}:
            paths = list(nx.all_shortest_paths(theirs, source, target))
            for path in paths:
                sums[path[1:-1]] += 1 / len(paths)
    k, pairs = len(sources), n - 2 if normalized else (2 if graph.is_symmetric() else 1) / max(n - 1, 1)
    for v in range(n):
        of = k - (v in sources)
        expected = 0 if n < 3 else sums[v] / (of * pairs) if of else np.nan
        assert found[v] == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("spec", ["rmat", "road", "star", "directed"])
def test_larger_graphs(device: atos.Device, worker: str, spec: str) -> None:
    """With hubs, that all threads of a worker take, and many levels. The sums are what distances say."""
    hub = np.arange(1, 3000)
    graph = {
        "rmat": lambda: atos.generate.rmat(9, 16, device=device),
        "road": lambda: atos.generate.road(24, 0.8, device=device),
        "star": lambda: atos.Graph.from_edges(np.zeros(2999, int), hub, symmetrize=True, device=device),
        "directed": lambda: atos.Graph.from_edges([*hub - 1, *hub], [*hub, *(0 * hub)], device=device),
    }[spec]()
    sources = np.arange(0, graph.num_vertices, 7)[:50]
    result = atos.betweenness(graph, sources, normalized=False, worker=worker)
    atos.verify_betweenness(graph, result.centrality, sources, normalized=False)
    # A shortest path of d edges has d - 1 vertices between its ends.
    depth = np.asarray(atos.shortest_path_lengths(graph, sources).distance).astype(np.int64)
    between = np.maximum(depth[depth != atos.UNREACHED] - 1, 0).sum()
    share, own = np.asarray(result.centrality), np.isin(np.arange(graph.num_vertices), sources)
    pairs = (2 if graph.is_symmetric() else 1) / (graph.num_vertices - 1)
    total = pairs * (len(sources) * share[~own].sum() + (len(sources) - 1) * share[own].sum())
    assert total == pytest.approx(between)


@pytest.mark.parametrize("degree", [0, 3])
def test_vertices_that_all_threads_take(degree: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As hubs on a GPU: all vertices, or some of a level."""
    monkeypatch.setitem(THREAD_MAX_DEGREE, "cpu", degree)
    graph = atos.generate.rmat(8, 8, device="cpu")
    atos.verify_betweenness(graph, atos.betweenness(graph).centrality)


def test_a_sample_is_the_same_for_a_seed() -> None:
    graph = atos.generate.rmat(7, 8, device="cpu")
    first, again, other = (np.asarray(atos.betweenness(graph, 10, seed=seed).centrality) for seed in (3, 3, 4))
    signed, unsigned = (atos.betweenness(graph, 10, seed=seed).centrality for seed in (-1, 2**64 - 1))
    assert np.allclose(signed, unsigned, rtol=1e-12, atol=0)
    np.testing.assert_allclose(first, again, rtol=1e-12)
    assert not np.allclose(first, other)
    atos.verify_betweenness(graph, first, 10, seed=3)
    everything = np.asarray(atos.betweenness(graph).centrality)
    np.testing.assert_allclose(np.asarray(atos.betweenness(graph, 10**6).centrality), everything, rtol=1e-12)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_too_few_vertices_for_any_to_be_between(n: int) -> None:
    graph = atos.Graph.from_edges([0] * (n > 1), [1] * (n > 1), num_vertices=n, device="cpu")
    result = atos.betweenness(graph)
    assert np.asarray(result.centrality).tolist() == [0] * n
    atos.verify_betweenness(graph, result.centrality)


def test_each_of_parallel_edges_makes_a_path() -> None:
    """Three paths from 0 to 3, of which two lead through 1."""
    graph = atos.Graph.from_edges([0, 0, 0, 1, 2], [1, 1, 2, 3, 3], device="cpu")
    result = atos.betweenness(graph, normalized=False)
    np.testing.assert_allclose(np.asarray(result.centrality), [0, 2 / 3, 1 / 3, 0])
    atos.verify_betweenness(graph, result.centrality, normalized=False)


def test_wrong_centralities() -> None:
    graph = atos.generate.rmat(6, 4, device="cpu")
    right = np.asarray(atos.betweenness(graph).centrality)
    atos.verify_betweenness(graph, right)
    v = int(right.argmax())
    for value in (0, right[v] * (1 + 1e-6), np.nan, np.inf):
        wrong = right.copy()
        wrong[v] = value
        with pytest.raises(VerificationError, match=f"the centrality of vertex {v} is .*, but a serial computation gives"):
            atos.verify_betweenness(graph, wrong)
    with pytest.raises(VerificationError):
        atos.verify_betweenness(graph, right, normalized=False)
    with pytest.raises(VerificationError):
        atos.verify_betweenness(graph, right, 5)
    with pytest.raises(UnsupportedTypeError, match="must be an array of floats"):
        atos.verify_betweenness(graph, right.astype(int))
    with pytest.raises(InvalidArgumentError, match="one entry for each of 64 vertices"):
        atos.verify_betweenness(graph, right[1:])
    with pytest.raises(UnsupportedTypeError, match=r"graph must be an atos\.Graph"):
        atos.verify_betweenness(CSR(graph.indptr.to_numpy(), graph.indices.to_numpy(), None), right)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"sources": 0}, InvalidArgumentError, "sources must be from 1"),
        ({"sources": [4]}, InvalidArgumentError, "source 4 is not a vertex"),
        ({"sources": 1.5}, UnsupportedTypeError, "sources must be an integer"),
        ({"normalized": 1}, UnsupportedTypeError, "normalized must be True or False"),
        ({"worker": "grid"}, InvalidArgumentError, "worker must be one of"),
        ({"num_blocks": 0}, InvalidArgumentError, "num_blocks must be from 1"),
        ({"weight": 3}, UnsupportedTypeError, "betweenness has no option 'weight'"),
    ],
)
def test_refused_arguments(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        atos.betweenness(atos.Graph.from_edges([0, 1], [1, 2], device="cpu"), **options)


def test_more_paths_than_float64_counts(device: atos.Device) -> None:
    """Each of 1,100 diamonds in a row doubles the paths; beside them lies a vertex that they do not concern."""
    top = 3 * np.arange(1100)
    u, v = np.concatenate([top, top, top + 1, top + 2, [0]]), np.concatenate([top + 1, top + 2, top + 3, top + 3, [3301]])
    graph = atos.Graph.from_edges(u, v, num_vertices=3302, device=device)
    found = atos.betweenness(graph, [0, 3301]).centrality.to_numpy()
    assert np.isnan(found[1:3301]).all()
    assert found[0] == found[3301] == 0
    atos.verify_betweenness(graph, found, [0, 3301])
    few = atos.betweenness(graph, [3000, 3301]).centrality.to_numpy()
    assert not np.isnan(few).any()
    atos.verify_betweenness(graph, few, [3000, 3301])


@pytest.mark.part("programs")
def test_kernels_spill_nothing() -> None:
    pytest.importorskip("cuda.core", reason="cuda-core is not installed")
    graph, numbers = atos.generate.road(2, device="cpu"), atos.zeros(1, dtype=np.float64, device="cpu")
    ids, floats = (atos.zeros((1, 4), dtype=dtype, device="cpu") for dtype in (np.uint32, np.float64))
    arguments = (graph.indptr, graph.indices, 16, PathCounts(ids, floats, ids, ids), floats, numbers)
    try:
        kernel = link.cubin(
            ProgramSpec(accumulate, None, tuple(map(describe, arguments)), np.dtype("u4"), max_registers=64), (9, 0)
        )
    except BuildError as error:
        pytest.skip(str(error))
    assert (kernel.stack_bytes, kernel.spill_bytes) == (0, 0)
    assert kernel.registers <= 64
