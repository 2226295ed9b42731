"""The same answer from any schedule: random graphs, programs, directions, filters, thresholds and kernels.

ATOS_TEST_CASES says how many cases; docs/simd-x.md tells of 10,000.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from cases import CASES, IS_FULL
from hypothesis import given, settings
from hypothesis import strategies as st

import atos_py as atos
from atos_py.models.acc import programs

FEW_BINS = 4  # so that they overflow on small graphs, and what the online filter has pushed by then is dropped

OPTIONS = {
    "direction": st.sampled_from(["push", "pull", "auto"]),
    "filter": st.sampled_from(["online", "ballot", "jit"]),
    "threshold": st.sampled_from([0, 1, 3, 64, 10**9]),
    "num_blocks": st.integers(1, 4),
    "fetch_size": st.sampled_from([1, 7, 128]),
    "persistent": st.booleans(),
}
LIST_OPTIONS = {"unique": st.booleans(), "unroll": st.sampled_from([1, 3] if not IS_FULL else [1, 2, 3, 6])}


@pytest.fixture(autouse=True, scope="module")
def _few_bins() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("atos_py.models.acc.program.BINS", FEW_BINS)
        yield


@st.composite
def graphs(draw: Any) -> tuple[int, np.ndarray]:
    n = draw(st.integers(1, 400))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return n, rng.integers([0, 0, 1], [n, n, 10], (draw(st.integers(0, 4 * n)), 3))


def check_bfs(graph: atos.Graph, source: int, options: dict[str, Any]) -> atos.LaunchStats:
    depth, stats = programs.bfs(graph, source, **options)
    atos.verify_bfs(graph, source, depth)
    assert sum(stats.frontiers) == np.count_nonzero(depth.to_numpy() != atos.UNREACHED)
    return stats


def check_sssp(graph: atos.Graph, source: int, options: dict[str, Any]) -> atos.LaunchStats:
    distance, stats = programs.sssp(graph, source, **options)
    atos.verify_sssp(graph, source, distance)
    return stats


def check_components(graph: atos.Graph, source: int, options: dict[str, Any]) -> atos.LaunchStats:
    label, stats = programs.connected_components(graph, **options)
    atos.verify_connected_components(graph, label)
    return stats


def check_k_core(graph: atos.Graph, source: int, options: dict[str, Any]) -> atos.LaunchStats:
    undirected = graph.with_weights(None).simplify(symmetrize=True, deduplicate=True, remove_loops=True)
    k = 1 + source % 4
    members, stats = programs.k_core(undirected, k, **options)
    atos.verify_k_core(undirected, k, members)
    if options.get("unroll", 1) > 1:
        assert sum(stats.frontiers) <= np.count_nonzero(~members)  # others were followed by the thread that took them out
        return stats
    if not options.get("barrier", True):
        assert stats.tasks_run == np.count_nonzero(~members)
        return stats
    assert sum(stats.frontiers) == np.count_nonzero(~members)  # each vertex leaves exactly once
    if set(stats.filters) == {"online"} and set(stats.directions) == {"push"} and "(scan)" not in stats.tasks_run_by:
        assert stats.tasks_run == np.count_nonzero(~members)
    return stats


CHECKS = [check_bfs, check_sssp, check_k_core, *([check_components] if IS_FULL else [])]


POLICIES = ["topology", ("hybrid", 0.0), ("hybrid", 0.05), ("hybrid", 0.6), ("hybrid", 1.5)]


@given(graphs(), st.sampled_from(POLICIES), st.integers(0, 59), st.fixed_dictionaries(OPTIONS), st.booleans())
@settings(max_examples=max(CASES // 4, 20), deadline=None)
def test_any_policy_gives_the_same_answer(device, made, policy, source, options, finds_components):
    n, edges = made
    u, v, weights = edges.T
    graph = atos.Graph.from_edges(u, v, weights.astype(np.float32), num_vertices=n, device=device)
    del options["direction"]
    check = check_components if finds_components and IS_FULL else check_sssp
    stats = check(graph, source % n, {**options, "policy": policy})
    share = 0.0 if policy == "topology" else policy[1]
    for count, direction, filtered in list(zip(stats.frontiers, stats.directions, stats.filters, strict=True))[1:]:
        assert (direction, filtered == "none") == (("pull", True) if count > int(share * n) else ("push", False))


@given(
    graphs(),
    st.sampled_from([check_sssp, *([check_k_core, check_components] if IS_FULL else [])]),
    st.sampled_from(["data", *POLICIES[1:]]),
    st.integers(0, 59),
    st.fixed_dictionaries({**OPTIONS, **LIST_OPTIONS}),
    st.booleans(),
)
@settings(max_examples=max(CASES // 10, 20), deadline=None)
def test_claims_and_unrolling_give_the_same_answer(device, made, check, policy, source, options, is_relaxed):
    n, edges = made
    u, v, weights = edges.T
    graph = atos.Graph.from_edges(u, v, weights.astype(np.float32), num_vertices=n, device=device)
    if is_relaxed:
        options = {**options, "barrier": False, "unique": False, "filter": "online", "direction": "push"}
        if check is check_sssp and policy != "data":  # half of the cases go by distance
            options = {**options, "delta": 3.0}
    elif policy != "data" and check is not check_k_core:
        options = {**options, "policy": policy, "direction": None}
    elif options["direction"] == "pull":
        options = {**options, "direction": "auto"}
    stats = check(graph, source % n, options)
    if options["unique"] or options["filter"] == "ballot":
        assert max(stats.frontiers) <= n


@given(
    graphs(),
    st.integers(0, 59),
    st.fixed_dictionaries({name: OPTIONS[name] for name in ("num_blocks", "fetch_size", "persistent")}),
    LIST_OPTIONS["unroll"],
    st.booleans(),
)
@settings(max_examples=max(CASES // 10, 20), deadline=None)
def test_monotone_stores_give_the_same_answer(device, made, source, options, levels, finds_components):
    n, edges = made
    u, v, weights = edges.T
    graph = atos.Graph.from_edges(u, v, weights.astype(np.float32), num_vertices=n, device=device)
    check = check_components if finds_components and IS_FULL else check_sssp
    stats = check(graph, source % n, {**options, "policy": "topology", "monotone_stores": True, "unroll": levels})
    assert set(stats.directions) == {"push"}
    assert set(stats.filters) == {"none"}


def test_threads_store_into_the_same_vertices(device):
    """All into a few, so that stores undo each other; some have as many edges as a whole worker relaxes."""
    rng = np.random.default_rng(7)
    sources, targets = np.arange(20000) % 5000, 5000 + rng.integers(0, 5, 20000)
    sources[:5000], targets[:5000] = 5000 + np.arange(5000) % 5, rng.integers(0, 5000, 5000)
    graph = atos.Graph.from_edges(sources, targets, rng.integers(1, 9, 20000).astype(np.float32), device=device)
    for levels in (1, 3):
        for _ in range(5):
            distance, stats = programs.sssp(graph, 5000, policy="topology", monotone_stores=True, unroll=levels)
            atos.verify_sssp(graph, 5000, distance)
            assert max(stats.frontiers) <= graph.num_vertices


def test_topology_driven_rounds_have_all_vertices(device):
    """A path against the order of its vertices takes a round for each of them; what is active is counted, but not listed."""
    path = atos.Graph.from_edges([3, 2, 1], [2, 1, 0], weights=[1, 1, 1], device=device)
    distance, stats = programs.sssp(path, 3, policy="topology", num_blocks=1)
    assert distance[:].tolist() == [3, 2, 1, 0]
    assert set(stats.filters) == {"none"}
    assert set(stats.directions) == {"pull"}
    assert sum(stats.frontiers) == 4
    assert {name for name, count in stats.tasks_run_by.items() if count} == {"(pull)"}


def test_duplicates_are_removed(device):
    """Of a star whose leaves point to the root: each leaf lowers it, and pushes it, unless it is claimed in this round."""
    leaves = np.arange(99)
    ends, weights = np.append(np.full(99, 99), 100), np.append(99 - leaves, 1)
    graph = atos.Graph.from_edges(np.append(leaves, 99), ends, weights, device=device)
    for filtered in ("online", "jit", "ballot"):
        lists = []
        for unique in (False, True):
            distance = atos.asarray(np.append(np.zeros(99), [np.inf, np.inf]), device=device)
            stats = programs.SSSP.run(graph, distance, start=leaves, filter=filtered, unique=unique, num_blocks=1)
            assert distance[:].tolist() == [0.0] * 99 + [1.0, 2.0]
            lists.append(stats.frontiers)
        assert lists[1] == (99, 1, 1)
        assert lists[0] == lists[1] or (filtered != "ballot" and lists[0][1] > 1)


@pytest.mark.parametrize("levels", [1, 2, 3, 6])
def test_rounds_are_unrolled(device, levels):
    """Along a path each round gets so many edges further, whatever lists what it ends at."""
    path = atos.Graph.from_edges(np.arange(12), np.arange(1, 13), weights=np.ones(12), device=device)
    for options in ({"filter": "online"}, {"filter": "ballot"}, {"filter": "jit"}, {"unique": True}, {"barrier": False}):
        distance, stats = programs.sssp(path, 0, unroll=levels, **options)
        assert distance[:].tolist() == list(range(13))
        assert stats.tasks_run_by["relax"] == 12 // levels + 1
        if options.get("barrier", True):
            assert stats.frontiers == (1,) * (12 // levels + 1)


def test_vertices_with_many_edges_are_not_followed(device):
    """But pushed: the middle of a star, from which the leaves are reached in a round of their own."""
    leaves = np.arange(2, 102)
    star = atos.Graph.from_edges(np.append(0, np.full(100, 1)), np.append(1, leaves), weights=np.ones(101), device=device)
    stats = programs.sssp(star, 0, unroll=4)[1]
    assert stats.frontiers == (1, 1)


@pytest.mark.parametrize("check", CHECKS)
@given(graphs(), st.integers(0, 59), st.fixed_dictionaries(OPTIONS), st.sampled_from(["direction", "none", "all"]))
@settings(max_examples=-(-CASES // len(CHECKS)), deadline=None)
def test_any_schedule_gives_the_same_answer(device, check, made, source, options, fuse):
    n, edges = made
    u, v, weights = edges.T
    graph = atos.Graph.from_edges(u, v, weights.astype(np.float32), num_vertices=n, device=device)
    if check is check_bfs or IS_FULL:
        options = {**options, "fuse": fuse}
    stats = check(graph, source % n, options)
    assert len(stats.filters) == len(stats.directions) == len(stats.frontiers)
    if options["direction"] != "auto":
        assert set(stats.directions) <= {options["direction"]}
        if options.get("fuse") != "none" and options["persistent"]:
            assert stats.launches == 1
    if options["direction"] == "push" and options["filter"] != "jit":
        assert set(stats.filters[1:]) <= {options["filter"]}
