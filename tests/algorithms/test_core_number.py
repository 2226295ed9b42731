"""Core numbers and k-cores: right on any graph, with any schedule and worker; verifiers that catch what is wrong."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import atos_py as atos
from atos_py.errors import InvalidArgumentError, LaunchConfigError, UnsupportedTypeError, VerificationError

WORKERS = [None, "thread", "warp", "cta"]


def expected_cores(graph: atos.Graph) -> list[int]:
    """Return core numbers by their definition, in the multigraph without loops; edges in and out count where one is alone."""
    sources = np.repeat(np.arange(graph.num_vertices), graph.degrees())
    targets = graph.indices.to_numpy().astype(np.int64)
    if not graph.is_symmetric():
        sources, targets = np.concatenate([sources, targets]), np.concatenate([targets, sources])
    core = np.zeros(graph.num_vertices, np.int64)
    inside = np.ones(graph.num_vertices, bool)
    k = 0
    while inside.any():
        k += 1
        while True:
            kept = inside[sources] & inside[targets] & (sources != targets)
            leave = inside & (np.bincount(sources[kept], minlength=graph.num_vertices) < k)
            if not leave.any():
                break
            core[leave], inside = k - 1, inside & ~leave
    return core.tolist()


@st.composite
def graphs(draw: st.DrawFn) -> atos.Graph:
    """Any multigraph with loops, directed or not."""
    n = draw(st.integers(0, 14))
    vertex = st.integers(0, max(n - 1, 0))
    edges = draw(st.lists(st.tuples(vertex, vertex), max_size=60)) if n else []
    sources, targets = np.array(edges, np.int64).reshape(-1, 2).T
    symmetrize, deduplicate = draw(st.booleans()), draw(st.booleans())
    return atos.Graph.from_edges(sources, targets, None, n, symmetrize=symmetrize, deduplicate=deduplicate, device="cpu")


@given(graphs(), st.sampled_from(WORKERS), st.booleans(), st.sampled_from([1, 3]), st.integers(0, 6))
@settings(deadline=None, max_examples=60)
def test_random_graphs(graph, worker, persistent, blocks, k):
    options: dict[str, Any] = {"worker": worker, "persistent": persistent, "num_blocks": blocks}
    result = atos.core_number(graph, **options)
    expected = expected_cores(graph)
    assert result.core.to_numpy().tolist() == expected
    assert result.core.dtype == np.uint32
    assert result.max_core == max(expected, default=0)
    atos.verify_core_number(graph, result.core)
    members = atos.k_core(graph, k, **options).members
    assert members.dtype == np.bool_
    assert members.to_numpy().tolist() == [core >= k for core in expected]
    atos.verify_k_core(graph, k, members)


@pytest.mark.parametrize("persistent", [True, False])
def test_as_networkx(device, worker, persistent):
    """Cores of many levels, some of them empty; paths and stars; a graph with edges in one direction."""
    ladder = nx.disjoint_union_all([nx.complete_graph(k) for k in (3, 9, 10, 40)] + [nx.path_graph(300), nx.star_graph(200)])
    for graph in (ladder, nx.gnm_random_graph(400, 6000, 1), nx.gnm_random_graph(300, 2000, 1, directed=True)):
        ours = atos.Graph.from_networkx(graph, device=device)
        result = atos.core_number(ours, worker=worker, persistent=persistent)
        assert result.core.to_numpy().tolist() == list(nx.core_number(graph).values())
        assert result.stats.rounds > 0
        inner = atos.k_core(ours, 9, worker=worker, persistent=persistent)
        assert np.flatnonzero(inner.members.to_numpy()).tolist() == list(nx.k_core(graph, 9))


def test_generated_graphs(device):
    for graph in (atos.generate.rmat(12, 16, device=device), atos.generate.road(120, device=device)):
        result = atos.core_number(graph)
        atos.verify_core_number(graph, result.core)
        for k in (0, 1, 2, result.max_core, result.max_core + 1, 2**40):
            found = atos.k_core(graph, k)
            atos.verify_k_core(graph, k, found.members)


def test_few_rounds_where_paths_are_long():
    """A thread goes on along a path: a round for each of its steps would be 2,500."""
    path = atos.Graph.from_edges(np.arange(5_000), np.arange(1, 5_001), symmetrize=True, device="cpu")
    assert atos.core_number(path).stats.rounds < 20


def test_parallel_edges_count_and_loops_do_not():
    graph = atos.Graph.from_edges([0, 0, 1, 1, 3], [1, 1, 1, 2, 3], symmetrize=True, device="cpu")
    assert atos.core_number(graph).core.to_numpy().tolist() == [2, 2, 1, 0]


def test_what_is_refused():
    graph = atos.generate.road(5, device="cpu")
    with pytest.raises(LaunchConfigError, match="core_number proceeds in rounds, which take barriers"):
        atos.core_number(graph, barrier=False)
    with pytest.raises(LaunchConfigError, match="core_number has a function between rounds of its own"):
        atos.core_number(graph, each_round=print)
    with pytest.raises(InvalidArgumentError, match="k must be"):
        atos.k_core(graph, -1)
    with pytest.raises(InvalidArgumentError, match="worker must be one of"):
        atos.core_number(graph, worker="block")


def test_verifiers_name_the_first_fault():
    graph = atos.Graph.from_edges([0, 1, 2, 2], [1, 2, 0, 3], symmetrize=True, device="cpu")
    atos.verify_core_number(graph, [2, 2, 2, 1])
    for core, message in (
        ([2, 2, 2, 2], r"core\[3\] is 2, but the core number of vertex 3 is 1"),
        ([2, 1, 2, 1], r"core\[1\] is 1, but the core number of vertex 1 is 2"),
        ([-2, 2, 2, 1], r"core\[0\] is -2, but"),
    ):
        with pytest.raises(VerificationError, match=message):
            atos.verify_core_number(graph, np.array(core))
    atos.verify_k_core(graph, 2, np.array([True, True, True, False]))
    with pytest.raises(VerificationError, match="vertex 3 is among the members of the 2-core, but its core number is 1"):
        atos.verify_k_core(graph, 2, np.ones(4, bool))
    with pytest.raises(VerificationError, match="vertex 1 is not among the members of the 1-core, but its core number is 2"):
        atos.verify_k_core(graph, 1, np.array([True, False, True, True]))
    with pytest.raises(UnsupportedTypeError, match="members must be an array of bool, not int64"):
        atos.verify_k_core(graph, 1, np.ones(4, np.int64))
    with pytest.raises(InvalidArgumentError, match=r"members must have one entry .*got shape \(3,\)"):
        atos.verify_k_core(graph, 1, np.ones(3, bool))


@given(graphs(), st.data())
@settings(deadline=None, max_examples=100)
def test_verifier_accepts_core_numbers_only(graph, data):
    n = graph.num_vertices
    core = np.array(expected_cores(graph), np.int64)
    atos.verify_core_number(graph, core)
    if n:
        core[data.draw(st.integers(0, n - 1))] += data.draw(st.sampled_from([-1, 1, 3]))
        with pytest.raises(VerificationError):
            atos.verify_core_number(graph, core)
