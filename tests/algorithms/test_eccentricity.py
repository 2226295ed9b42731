"""Eccentricities and diameters, against networkx, and their verifiers."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import atos_py as atos
from atos_py.algorithms.eccentricity import bounds
from atos_py.errors import InvalidArgumentError, VerificationError


def networkx_graph(graph: atos.Graph) -> nx.DiGraph:
    indptr, indices = graph.indptr.to_numpy(), graph.indices.to_numpy()
    theirs = nx.DiGraph()
    theirs.add_nodes_from(range(graph.num_vertices))
    theirs.add_edges_from(zip(np.repeat(np.arange(indptr.size - 1), np.diff(indptr)), indices, strict=True))
    return theirs


def check(graph: atos.Graph) -> tuple[int, int]:
    """Compare with a search from each vertex by networkx; return how many searches there were."""
    theirs = networkx_graph(graph)
    expected = [max(nx.single_source_shortest_path_length(theirs, v).values()) for v in theirs]
    far, widest = atos.eccentricity(graph), atos.diameter(graph)
    assert far.eccentricity.to_numpy().tolist() == expected
    assert (far.diameter, far.radius) == (max(expected), min(expected))
    assert widest.diameter == max(expected) == expected[widest.vertex]
    assert far.center().tolist() == [v for v, found in enumerate(expected) if found == min(expected)]
    assert far.periphery().tolist() == [v for v, found in enumerate(expected) if found == max(expected)]
    if nx.is_strongly_connected(theirs):
        assert expected == list(nx.eccentricity(theirs).values())
    atos.verify_eccentricity(graph, far.eccentricity)
    atos.verify_diameter(graph, widest.diameter, widest.vertex)
    return far.searches, widest.searches


@st.composite
def sparse_graphs(draw: st.DrawFn) -> atos.Graph:
    """Graphs of several parts, also of more than 64 vertices, with loops, parallel edges, trees and long paths."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.sampled_from([1, 2, 7, 66, 150, 260]))
    ends = random.integers(0, n, (2, int(n * draw(st.sampled_from([0, 0.4, 1, 2, 6])))))
    if draw(st.booleans()):  # neighbors by number, so that paths are long
        ends[1] = np.minimum(ends[0] + random.integers(0, 3, ends.shape[1]), n - 1)
    if draw(st.booleans()):  # all vertices reach each other
        ends = np.hstack([ends, [np.arange(n), np.roll(np.arange(n), 1)]])
    return atos.Graph.from_edges(*ends, num_vertices=n, symmetrize=draw(st.integers(0, 3)) > 0, device="cpu")


@given(sparse_graphs())
@settings(deadline=None, max_examples=60)
def test_random_graphs(graph: atos.Graph) -> None:
    check(graph)


@pytest.mark.parametrize("hubs", [0, 1, 32, 64])
def test_hubs_in_every_step(hubs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds from hubs count where few vertices are settled; here they always do, on graphs of one part and of several."""
    monkeypatch.setattr(bounds, "HUBS", hubs)
    monkeypatch.setattr(bounds, "SLOW", 0)
    monkeypatch.setattr(bounds, "FRINGE_SEARCHES", 0)
    noted, note = [], bounds.Bounds.note_bound
    monkeypatch.setattr(bounds.Bounds, "note_bound", lambda self, *args: noted.append(note(self, *args)))
    random = np.random.default_rng(3)
    for n, m in ((700, 720), (500, 900)):
        check(atos.Graph.from_edges(*random.integers(0, n, (2, m)), num_vertices=n, symmetrize=True, device="cpu"))
        ends = np.hstack([random.integers(0, n, (2, m)), [np.arange(n), np.roll(np.arange(n), 1)]])
        check(atos.Graph.from_edges(*ends, num_vertices=n, device="cpu"))  # directed, and all reach each other
    assert len(noted) >= 4


@pytest.mark.parametrize("fringe_searches", [0, 1, 16])
def test_large_fringes(fringe_searches: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A star of paths, whose fringe takes several searches, or is larger than a step completes."""
    monkeypatch.setattr(bounds, "FRINGE_SEARCHES", fringe_searches)
    star = nx.star_graph(150)
    for leaf in range(1, 151):
        star.add_edge(leaf, 150 + leaf)
    check(atos.Graph.from_networkx(star, device="cpu"))


def test_few_searches() -> None:
    assert max(check(atos.generate.grid2d(20, 20, device="cpu"))) <= 10
    assert max(check(atos.generate.rmat(9, 16, device="cpu"))) <= 10
    isolated = atos.Graph.from_edges([0, 1], [1, 2], num_vertices=200, symmetrize=True, device="cpu")
    assert check(isolated) == (1, 1)


def test_no_vertices() -> None:
    none = atos.Graph.from_edges([], [], num_vertices=0, device="cpu")
    assert atos.eccentricity(none).eccentricity.shape == (0,)
    assert (atos.eccentricity(none).diameter, atos.eccentricity(none).radius) == (0, 0)
    found = atos.diameter(none)
    assert (found.diameter, found.vertex) == (0, -1)
    atos.verify_diameter(none, 0, -1)
    with pytest.raises(InvalidArgumentError, match="vertex 0 is not a vertex"):
        atos.verify_diameter(none, 0, 0)


@pytest.mark.parametrize("make", [lambda: atos.generate.road(14, 0.7, device="cpu"), lambda: directed(), lambda: ring(100)])
def test_wrong_results(make: Any) -> None:
    graph = make()
    right, widest = atos.eccentricity(graph).eccentricity.to_numpy().astype(int), atos.diameter(graph)
    for v in np.random.default_rng(1).integers(0, right.size, 12).tolist():
        for by in (-1, 1):
            wrong = right.copy()
            wrong[v] += by
            with pytest.raises(VerificationError, match="the eccentricity of vertex"):
                atos.verify_eccentricity(graph, wrong)
    for by in (-1, 1):
        with pytest.raises(VerificationError, match=f"the eccentricity of vertex {widest.vertex} is"):
            atos.verify_diameter(graph, widest.diameter + by, widest.vertex)
    lower = np.flatnonzero(right < right.max())
    if lower.size:
        with pytest.raises(VerificationError, match=f"the diameter is {right[lower[0]]}, but vertex"):
            atos.verify_diameter(graph, int(right[lower[0]]), int(lower[0]))


def directed() -> atos.Graph:
    ends = np.random.default_rng(2).integers(0, 80, (2, 300))
    return atos.Graph.from_edges(*ends, num_vertices=80, device="cpu")


def ring(n: int) -> atos.Graph:
    return atos.Graph.from_edges(np.arange(n), np.roll(np.arange(n), 1), symmetrize=True, device="cpu")


def test_every_device_and_worker(device: atos.Device, worker: str) -> None:
    for graph in (atos.generate.rmat(9, 16, device=device), atos.generate.road(20, 0.7, device=device)):
        far = atos.eccentricity(graph, worker=worker)
        atos.verify_eccentricity(graph, far.eccentricity)
        assert atos.diameter(graph, worker=worker).diameter == far.diameter
