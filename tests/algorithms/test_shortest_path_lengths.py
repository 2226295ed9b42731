"""Distances from many sources in one launch, against networkx, and their verifier."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import atos_py as atos
from atos_py.algorithms.shortest_path_lengths import relax_in_row
from atos_py.algorithms.sssp.distances import distance_dtype, unreached_of
from atos_py.compile import linker as link
from atos_py.compile.arguments import describe
from atos_py.compile.spec import ProgramSpec
from atos_py.errors import BuildError, InvalidArgumentError, UnsupportedTypeError, VerificationError

SCHEDULES = [{"persistent": persistent, "barrier": barrier} for persistent in (True, False) for barrier in (False, True)]


@st.composite
def searches(draw: st.DrawFn) -> tuple[atos.Graph, list[int], nx.MultiDiGraph, bool]:
    """Any multigraph with loops and isolated vertices, weights of 0 and equal ones, and sources in any order."""
    n = draw(st.integers(1, 8))
    vertex = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(vertex, vertex, st.sampled_from([0, 1, 2, 7])), max_size=30))
    tails, heads, weights = ([edge[k] for edge in edges] for k in range(3))
    graph = atos.Graph.from_edges(*np.array([tails, heads], int), np.array(weights, "u4"), n, device="cpu")
    theirs = nx.MultiDiGraph()
    theirs.add_nodes_from(range(n))
    theirs.add_weighted_edges_from(edges)
    return graph, draw(st.lists(vertex, min_size=1, max_size=5)), theirs, draw(st.booleans())


@given(
    searches(),
    st.sampled_from([None, -1, 1, 2.5]),
    st.sampled_from(["thread", "warp", "cta"]),
    st.sampled_from(SCHEDULES),
)
@settings(deadline=None, max_examples=80)
def test_random_graphs(search: Any, cutoff: float | None, worker: str, schedule: dict[str, bool]) -> None:
    graph, sources, theirs, weighted = search
    result = atos.shortest_path_lengths(graph, sources, weighted=weighted, cutoff=cutoff, worker=worker, **schedule)
    kind = distance_dtype(graph if weighted else graph._replace(weights=None))
    expected = np.full((len(sources), graph.num_vertices), unreached_of(kind))
    for row, source in enumerate(sources):
        weight = "weight" if weighted else None
        lengths = nx.single_source_dijkstra_path_length(theirs, source, cutoff, weight=weight)
        expected[row, list(lengths)] = list(lengths.values())
    np.testing.assert_array_equal(np.asarray(result.distance), expected, strict=True)
    atos.verify_shortest_path_lengths(graph, sources, result.distance, weighted=weighted, cutoff=cutoff)


def test_a_road_network(device: atos.Device, worker: str) -> None:
    road = atos.generate.road(40, 0.9, device="cpu")
    lengths = (1 + road.indices.to_numpy() % 9).astype(np.float32)
    graph = atos.Graph.from_csr(road.indptr.to_numpy(), road.indices.to_numpy(), lengths, device=device)
    sources = [820, 0, 1599, 820, 7]
    for weighted in (False, True):
        result = atos.shortest_path_lengths(graph, sources, weighted=weighted, worker=worker)
        rows = np.asarray(result.distance)
        for row, source in zip(rows, sources, strict=True):
            one = atos.sssp(graph if weighted else graph._replace(weights=None), source)
            np.testing.assert_array_equal(row, np.asarray(one.distance), strict=True)
        atos.verify_shortest_path_lengths(graph, sources, rows, weighted=weighted)
        rows[3, 40] += 1
        with pytest.raises(VerificationError, match="row 3: "):
            atos.verify_shortest_path_lengths(graph, sources, rows, weighted=weighted)


def test_refused_arguments() -> None:
    graph = atos.Graph.from_edges([0, 1], [1, 2], device="cpu")
    for sources, message in (
        (3, "source 3 is not a vertex"),
        ([], "one or more vertex ids"),
        ([[0, 1]], "one vertex or a list"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            atos.shortest_path_lengths(graph, sources)
    with pytest.raises(InvalidArgumentError, match="the graph has no weights to add up"):
        atos.shortest_path_lengths(graph, 0, weighted=True)
    with pytest.raises(UnsupportedTypeError, match="weighted must be True or False"):
        atos.shortest_path_lengths(graph, 0, weighted=1)
    with pytest.raises(UnsupportedTypeError, match="shortest_path_lengths has no option 'target'"):
        atos.shortest_path_lengths(graph, 0, target=1)
    with pytest.raises(InvalidArgumentError, match=r"a row for each source, of shape \(2, 3\)"):
        atos.verify_shortest_path_lengths(graph, [0, 1], np.zeros(3, np.uint32))
    assert atos.shortest_path_lengths(graph, 1).distance.shape == (1, 3)


@pytest.mark.part("programs")
def test_kernels_spill_nothing() -> None:
    pytest.importorskip("cuda.core", reason="cuda-core is not installed")
    graph, distance = atos.generate.road(2, device="cpu"), atos.zeros((1, 4), dtype=np.uint32, device="cpu")
    graph = graph.with_weights(np.ones(graph.num_edges, np.uint32))
    step = np.dtype([("row", "u4"), ("vertex", "u4"), ("distance", "u4")])
    try:
        kinds = tuple(map(describe, (graph, distance, 3)))
        kernel = link.cubin(ProgramSpec(relax_in_row, None, kinds, step, buckets=True), (9, 0))
    except BuildError as error:
        pytest.skip(str(error))
    assert (kernel.stack_bytes, kernel.spill_bytes) == (0, 0)
    assert kernel.registers <= 80
