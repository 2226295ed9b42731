"""The certificate for breadth-first depths and parents: it accepts what is right, and nothing else."""

from __future__ import annotations

import sys

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import atos_py as atos
from atos_py.algorithms.bfs import verify_bfs
from atos_py.errors import AtosError, InvalidArgumentError, UnsupportedTypeError, VerificationError
from atos_py.graph.csr import CSR, build_csr, chunk_edges
from atos_py.graph.generate.scale_free import rmat_csr

DTYPES = ["i4", "u4", "i8", "u8"]


def csr_of(edges: list[tuple[int, int]], num_vertices: int) -> CSR:
    sources, targets = np.array(edges, np.int64).reshape(-1, 2).T
    return build_csr(chunk_edges(sources, targets, None, num_vertices).chunks, num_vertices)


def distances(csr: CSR, sources: list[int], dtype: str) -> NDArray[np.integer]:
    """Distances by networkx."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(csr.indptr.size - 1))
    tails = np.repeat(np.arange(csr.indptr.size - 1), np.diff(csr.indptr))
    graph.add_edges_from(zip(tails.tolist(), csr.indices.tolist(), strict=True))
    depth = np.full(csr.indptr.size - 1, np.iinfo(dtype).max, dtype)
    for vertex, distance in nx.multi_source_dijkstra_path_length(graph, set(sources), weight=None).items():
        depth[vertex] = distance
    return depth


@st.composite
def searches(draw: st.DrawFn) -> tuple[CSR, list[int]]:
    n = draw(st.integers(1, 12))
    vertex = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(vertex, vertex), max_size=30))
    return csr_of(edges, n), draw(st.lists(vertex, min_size=1, max_size=3))


@given(searches(), st.sampled_from(DTYPES), st.data())
@settings(deadline=None, max_examples=300)
def test_accepts_exactly_the_distances(search: tuple[CSR, list[int]], dtype: str, data: st.DataObject) -> None:
    csr, sources = search
    depth = distances(csr, sources, dtype)
    verify_bfs(csr, sources, depth)
    # Any other values, in any number of places, are refused.
    wrong = depth.copy()
    limits = np.iinfo(dtype)
    value = st.one_of(st.integers(0, 13), st.sampled_from([limits.min, limits.max - 1, limits.max]))
    for place in data.draw(st.lists(st.integers(0, depth.size - 1), min_size=1, max_size=depth.size)):
        wrong[place] = data.draw(value)
    if (wrong != depth).any():
        with pytest.raises(VerificationError):
            verify_bfs(csr, sources, wrong)


#: 0 -> 1 -> 2 -> 3 with a shortcut 0 -> 2, and 4 -> 3, which nothing leads to.
DIAMOND = csr_of([(0, 1), (1, 2), (2, 3), (0, 2), (4, 3)], 5)
NONE = 2**32 - 1


@pytest.mark.parametrize(
    ("depth", "message"),
    [
        ([1, 1, 1, 2, NONE], r"depth\[0\] is 1, but vertex 0 is a source, so it must be 0"),
        ([NONE] * 5, r"depth\[0\] is unreached, but vertex 0 is a source"),
        ([0, 1, 2, 3, NONE], r"edge 0 -> 2 \(number 1\): depth\[0\] is 0, so depth\[2\] must be at most 1, but it is 2"),
        ([0, 1, 1, NONE, NONE], r"edge 2 -> 3 .*: depth\[2\] is 1, so depth\[3\] must be at most 2, but it is unreached"),
        ([0, 1, 1, 1, NONE], r"depth\[3\] is 1, but no edge leads to it from a vertex of depth 0"),
        ([0, 1, 1, 2, 3], r"depth\[4\] is 3, but no edge leads to it from a vertex of depth 2"),
        ([0, 0, 1, 2, NONE], r"depth\[1\] is 0, but only a source may have depth 0"),
        ([0, 1, 1, 2, 0], r"edge 4 -> 3 \(number 4\): depth\[4\] is 0, so depth\[3\] must be at most 1, but it is 2"),
        ([0, 1, 1, 2, NONE - 1], r"edge 4 -> 3|depth\[4\] is 4294967294, but no edge"),
    ],
)
def test_each_kind_of_fault_is_named(depth: list[int], message: str) -> None:
    # The edges of a row keep their order, so edge number 1 is 0 -> 2.
    with pytest.raises(VerificationError, match=message) as caught:
        verify_bfs(DIAMOND, 0, np.array(depth, np.uint32))
    assert isinstance(caught.value, AssertionError)
    assert isinstance(caught.value, AtosError)


def test_results_of_a_cutoff_and_a_target() -> None:
    near = np.array([0, 1, 1, NONE, NONE], np.uint32)
    verify_bfs(DIAMOND, 0, near, cutoff=1.5)
    with pytest.raises(VerificationError, match="edge 2 -> 3"):
        verify_bfs(DIAMOND, 0, near, cutoff=2)
    with pytest.raises(VerificationError, match=r"depth\[1\] is 1, beyond the cutoff of 0"):
        verify_bfs(DIAMOND, 0, near, cutoff=0)
    loose = np.array([0, 1, 1, 7, 9], np.uint32)  # nothing that is not less deep than the target is looked at
    verify_bfs(DIAMOND, 0, loose, target=2)
    with pytest.raises(VerificationError, match="edge 2 -> 3"):
        verify_bfs(DIAMOND, 0, loose, target=3)
    with pytest.raises(VerificationError, match=r"depth\[4\] is 9, but no edge leads to it"):
        verify_bfs(DIAMOND, 0, np.array([0, 1, 1, 2, 9], np.uint32), target=4)


def test_a_negative_depth() -> None:
    with pytest.raises(VerificationError, match=r"depth\[4\] is -1, but a depth cannot be negative"):
        verify_bfs(csr_of([(0, 1)], 5), 0, np.array([0, 1, *[2**31 - 1] * 2, -1], np.int32))


def test_a_ring_cannot_vouch_for_itself() -> None:
    ring = csr_of([(1, 2), (2, 1)], 3)
    with pytest.raises(VerificationError):
        verify_bfs(ring, 0, np.array([0, 1, 2], np.uint32))


def test_pieces_report_the_first_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[verify_bfs.__module__], "_CHUNK_EDGES", 500)
    monkeypatch.setattr(sys.modules[verify_bfs.__module__], "_CHUNK_VERTICES", 100)
    csr = rmat_csr(10, 8, 0, a=0.57, b=0.19, c=0.19)
    source = int(np.argmax(np.diff(csr.indptr)))
    depth = distances(csr, [source], "u4")
    verify_bfs(csr, source, depth)
    alone = np.flatnonzero(depth == NONE)
    deep = np.flatnonzero(depth == 2)
    for places, message in ((alone, f"depth\\[{alone[0]}\\] is 7"), (deep, "edge")):
        wrong = depth.copy()
        wrong[places] = 7
        with pytest.raises(VerificationError, match=message):
            verify_bfs(csr, source, wrong)


@given(searches(), st.sampled_from(DTYPES), st.data())
@settings(deadline=None, max_examples=300)
def test_accepts_exactly_the_trees_of_shortest_paths(search: tuple[CSR, list[int]], dtype: str, data: st.DataObject) -> None:
    csr, sources = search
    depth = distances(csr, sources, "u4")
    n, nobody = depth.size, np.iinfo(dtype).max
    tails = np.repeat(np.arange(n), np.diff(csr.indptr))
    parent = np.full(n, nobody, dtype)
    choices: list[list[int]] = []
    for v in range(n):
        before = tails[(csr.indices == v) & (depth[tails] != NONE) & (depth[tails].astype(int) + 1 == int(depth[v]))]
        choices.append([v] if v in sources else [nobody] if depth[v] == NONE else sorted(set(before.tolist())))
        parent[v] = data.draw(st.sampled_from(choices[v]))
    verify_bfs(csr, sources, depth, parent)
    wrong = parent.copy()
    value = st.one_of(st.integers(0, n), st.sampled_from([np.iinfo(dtype).min, nobody]))
    for place in data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=n)):
        wrong[place] = data.draw(value)
    if any(int(p) not in allowed for p, allowed in zip(wrong, choices, strict=True)):
        with pytest.raises(VerificationError):
            verify_bfs(csr, sources, depth, wrong)
    else:
        verify_bfs(csr, sources, depth, wrong)


@pytest.mark.parametrize(
    ("parent", "message"),
    [
        ([1, 0, 0, 2, NONE], "the parent of vertex 0 is 1, but it is a source, which is its own"),
        ([0, 0, 1, 2, NONE], r"the parent of vertex 2 is 1, but depth\[2\] is 1, and depth\[1\] is 1"),
        ([0, 0, 0, 1, NONE], "the parent of vertex 3 is 1, but no edge leads from there to it"),
        ([0, 0, 0, NONE, NONE], "the parent of vertex 3 is unreached, but no edge leads from there to it"),
        ([0, 0, 0, 4, NONE], r"the parent of vertex 3 is 4, but depth\[3\] is 2, and depth\[4\] is unreached"),
        ([0, 0, 0, 9, NONE], "the parent of vertex 3 is 9, but no edge leads from there to it"),
        ([0, 0, 0, 2, 4], "the parent of vertex 4 is 4, but it is not reached, so it has none"),
    ],
)
def test_each_kind_of_wrong_parent_is_named(parent: list[int], message: str) -> None:
    depth = np.array([0, 1, 1, 2, NONE], np.uint32)
    verify_bfs(DIAMOND, 0, depth, np.array([0, 0, 0, 2, NONE], np.uint32))
    with pytest.raises(VerificationError, match=message):
        verify_bfs(DIAMOND, 0, depth, np.array(parent, np.uint32))


def test_refused_arguments() -> None:
    depth = np.zeros(5, np.uint32)
    with pytest.raises(UnsupportedTypeError, match="float64"):
        verify_bfs(DIAMOND, 0, np.zeros(5))
    with pytest.raises(InvalidArgumentError, match=r"each of 5 vertices \(got shape \(4,\)\)"):
        verify_bfs(DIAMOND, 0, depth[:4])
    with pytest.raises(UnsupportedTypeError, match="parent must be an array of integers, not float64"):
        verify_bfs(DIAMOND, 0, depth, np.zeros(5))
    with pytest.raises(InvalidArgumentError, match=r"parent must have one entry for each of 5 vertices"):
        verify_bfs(DIAMOND, 0, depth, depth[:4])
    for source in (5, -1, [0, 9]):
        with pytest.raises(InvalidArgumentError, match="is not a vertex"):
            verify_bfs(DIAMOND, source, depth)
    for source in ([], 0.0):
        with pytest.raises(InvalidArgumentError, match="one or more vertex ids"):
            verify_bfs(DIAMOND, source, depth)


@pytest.mark.parametrize("order", ["<", ">"])
def test_results_of_either_byte_order(order):
    graph = atos.generate.road(20, device="cpu")
    depth = np.asarray(atos.bfs(graph, 0).depth).astype(f"{order}u4")
    atos.verify_bfs(graph, 0, depth)
    colors = np.asarray(atos.color(graph).colors).astype(f"{order}i4")
    atos.verify_coloring(graph, colors)
    colors[:] = 0
    with pytest.raises(atos.VerificationError):
        atos.verify_coloring(graph, colors)


@pytest.mark.parametrize("dtype", ["u1", "i1"])
def test_unreached_is_no_depth_that_an_edge_could_lead_to(dtype: str) -> None:
    """Where the depths end just before the value that says unreached, or would reach it."""
    unreached = int(np.iinfo(dtype).max)
    for n in (unreached, unreached + 1, unreached + 40):
        path = csr_of([(v, v + 1) for v in range(n - 1)], n)
        depth = np.minimum(np.arange(n), unreached).astype(dtype)
        if n == unreached:
            verify_bfs(path, 0, depth)
        else:
            with pytest.raises(VerificationError, match=f"edge {unreached - 1} -> {unreached}"):
                verify_bfs(path, 0, depth)
