"""Breadth-first search as a ready-made algorithm: depths, parents and reach, from one source or several."""

from __future__ import annotations

import itertools
from typing import Any
from unittest import mock

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_limits import linked
from scipy.sparse import csgraph

import atos_py as atos
from atos_py.algorithms.bfs import UNREACHED, assign_parents, tasks, verify_bfs
from atos_py.algorithms.bfs import api as driver
from atos_py.algorithms.bfs.direction import MAX_PUSHED_LEVELS, Search, expand, list_level, open_level, pull
from atos_py.algorithms.bfs.tasks import visit_within
from atos_py.compile.arguments import describe
from atos_py.compile.kinds import Tasks
from atos_py.compile.spec import ProgramSpec
from atos_py.errors import BuildError, InvalidArgumentError, LaunchConfigError
from atos_py.operators.range_takers import plan_takers
from atos_py.operators.ranges import VERTICES_PER_MIXED_RANGE
from atos_py.operators.row_pull import SEARCHED_ALONE

SCHEDULES = [{"persistent": persistent, "barrier": barrier} for persistent in (True, False) for barrier in (False, True)]


def checked(graph: atos.Graph, source: Any, **options: Any) -> atos.BFSResult:
    """Search with parents, verify the result, compare it with SciPy's, and return it."""
    result = atos.bfs(graph, source, parents=True, **options)
    verify_bfs(graph, source, result.depth, result.parent)
    depth, parent = result.depth.to_numpy(), np.asarray(result.parent)
    sources = np.unique(source)
    theirs = csgraph.dijkstra(graph.to_scipy().astype(np.int8), unweighted=True, indices=sources, min_only=True)
    assert np.array_equal(np.where(np.isinf(theirs), UNREACHED, theirs), depth)
    assert np.array_equal(result.reached(), np.isfinite(theirs))
    assert result.num_reached == np.count_nonzero(np.isfinite(theirs))
    assert result.num_levels == len(np.unique(theirs[np.isfinite(theirs)]))
    # Of the parents that could be, the smallest id.
    tails, heads = np.repeat(np.arange(graph.num_vertices), graph.degrees()), graph.indices.to_numpy()
    tree = (depth[tails] != UNREACHED) & (depth[tails].astype(np.int64) + 1 == depth[heads])
    smallest = np.full(graph.num_vertices, UNREACHED)
    np.minimum.at(smallest, heads[tree], tails[tree].astype(np.uint32))
    smallest[sources] = sources
    assert np.array_equal(parent, smallest)
    return result


@st.composite
def searches(draw: st.DrawFn) -> tuple[atos.Graph, Any]:
    """Any multigraph with loops and isolated vertices, directed or not; one source or several, repeated or not."""
    n = draw(st.integers(1, 14))
    vertex = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(vertex, vertex), max_size=40))
    tails, heads = np.array(edges, np.int64).reshape(-1, 2).T
    graph = atos.Graph.from_edges(tails, heads, num_vertices=n, symmetrize=draw(st.booleans()), device="cpu")
    return graph, draw(st.one_of(vertex, st.lists(vertex, min_size=1, max_size=6)))


@given(searches(), st.sampled_from(["thread", "warp", "cta"]), st.sampled_from(SCHEDULES), st.sampled_from([1, 3]))
@settings(deadline=None, max_examples=200)
def test_random_graphs(search: tuple[atos.Graph, Any], worker: str, schedule: dict[str, bool], blocks: int) -> None:
    graph, source = search
    result = checked(graph, source, worker=worker, num_blocks=blocks, **schedule)
    theirs = nx.from_scipy_sparse_array(graph.to_scipy(), create_using=nx.MultiDiGraph)
    nodes = set(np.atleast_1d(source).tolist())
    lengths = nx.multi_source_dijkstra_path_length(theirs, nodes, weight=None)
    assert {v: int(d) for v, d in enumerate(result.depth.to_numpy()) if d != UNREACHED} == lengths


@given(searches(), st.sampled_from(["thread", "warp", "cta"]), st.sampled_from(SCHEDULES), st.sampled_from([1, 3]))
@settings(deadline=None, max_examples=100)
def test_random_graphs_in_both_directions(
    search: tuple[atos.Graph, Any], worker: str, schedule: dict[str, bool], blocks: int
) -> None:
    graph, source = search
    if graph.is_symmetric():
        checked(graph, source, direction="auto", worker=worker, num_blocks=blocks, **schedule)
    else:
        with pytest.raises(InvalidArgumentError, match=r"some edge has none: pass graph\.to_symmetric\(\)"):
            atos.bfs(graph, source, direction="auto")


KNOWN = {
    "one vertex": (nx.empty_graph(1), 0, 1),
    "one loop": (nx.Graph([(0, 0)]), 0, 1),
    "isolated": (nx.empty_graph(1000), [999, 3], 2),
    "star from the hub": (nx.star_graph(6000), 0, 6001),
    "star from a leaf": (nx.star_graph(6000), 5, 6001),
    "path": (nx.path_graph(2000), [0, 1999, 0, 700], 2000),
    "everywhere": (nx.cycle_graph(700), np.arange(700), 700),
    "disconnected": (nx.disjoint_union(nx.complete_graph(40), nx.path_graph(9)), 45, 9),
    "parallel edges": (nx.MultiDiGraph([(0, 1), (0, 1), (1, 2), (1, 1)]), 1, 2),
    "directed": (nx.DiGraph([(v, v + 1) for v in range(600)]), 300, 301),
}


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
@pytest.mark.parametrize("name", KNOWN)
def test_known_graphs(device: atos.Device, name: str, schedule: dict[str, bool]) -> None:
    theirs, source, reached = KNOWN[name]
    graph = atos.Graph.from_networkx(theirs, device=device)
    assert checked(graph, source, **schedule).num_reached == reached
    if not theirs.is_directed():
        assert checked(graph, source, direction="auto", **schedule).num_reached == reached


def test_many_ranges_and_hubs(device: atos.Device, worker: str) -> None:
    graph = atos.generate.rmat(12, 16, device=device)
    assert graph.num_vertices > 4 * VERTICES_PER_MIXED_RANGE
    for source in (int(np.argmax(graph.degrees())), np.arange(0, 4096, 37)):
        checked(graph, source, worker=worker)
        assert checked(graph, source, direction="auto", worker=worker).stats.tasks_run < graph.num_vertices


def takers_of(stats: atos.LaunchStats, n: int, device: atos.Device, worker: str) -> int:
    """Return the items that take ranges between two rounds: as many as workers, if that suits the size of the graph."""
    planned = plan_takers(n, device, worker).takers
    return min(planned, stats.num_workers) if 8 * stats.num_workers > planned else planned


def test_the_rest_of_a_long_graph_is_searched_from_the_queue(device: atos.Device, worker: str) -> None:
    """After some levels whose frontiers never had many edges; or once they have no longer: a tail on a dense graph."""
    n = 3 * VERTICES_PER_MIXED_RANGE
    path = atos.Graph.from_networkx(nx.path_graph(n), device=device)
    checked(path, 0, direction="auto", worker=worker)
    stats = atos.bfs(path, 0, direction="auto", worker=worker).stats
    # The source; for each level what takes the ranges, and its vertex; the last levels have their vertex alone.
    assert stats.tasks_run == 1 + MAX_PUSHED_LEVELS * takers_of(stats, n, device, worker) + n - 1
    assert stats.rounds == 1 + MAX_PUSHED_LEVELS * 2 + n - 1 - MAX_PUSHED_LEVELS
    lollipop = atos.Graph.from_networkx(nx.lollipop_graph(60, 4 * VERTICES_PER_MIXED_RANGE), device=device)
    checked(lollipop, 3, direction="auto", worker=worker)
    stats = atos.bfs(lollipop, 3, direction="auto", worker=worker).stats
    assert stats.tasks_run_by["pull"] <= 2 * takers_of(stats, lollipop.num_vertices, device, worker)
    assert stats.tasks_run < 5 * VERTICES_PER_MIXED_RANGE


def test_which_direction_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = atos.generate.rmat(10, 16, device="cpu")
    assert atos.bfs(graph, 0).stats.task == "visit"  # small
    monkeypatch.setitem(driver._LARGE, "cpu", graph.num_edges)
    assert atos.bfs(graph, 0).stats.task == "direction_optimizing"
    checked(graph, 0)
    for option in ({"direction": "push", "worker": "cta"}, {"worker": "cta"}, {"persistent": True}, {"barrier": False}):
        assert atos.bfs(graph, 0, **option).stats.task == "visit"
    directed = atos.Graph.from_edges(np.zeros(graph.num_edges, int), graph.indices.to_numpy(), device="cpu")
    for searched, options in ((directed, {}), (graph, {"direction": "push"})):
        assert atos.bfs(searched, 0, **options).stats.task == "try_first"
    monkeypatch.setitem(driver._LARGE, "cpu", 0)
    assert atos.bfs(atos.generate.road(20, device="cpu"), 0).stats.task == "visit"  # 4 edges to a vertex


@pytest.mark.parametrize("name", KNOWN)
def test_groups_that_follow_paths(device: atos.Device, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU where few edges leave a vertex, unless a schedule is asked for."""
    monkeypatch.setattr(driver, "pays_to_follow", lambda graph: True)
    theirs, source, reached = KNOWN[name]
    graph = atos.Graph.from_networkx(theirs, device=device)
    result = checked(graph, source)
    assert (result.num_reached, result.stats.task) == (reached, "visit_along")
    assert checked(graph, source, persistent=True).stats.task == "visit"
    assert checked(graph, source, direction="push").stats.task == "visit"


def test_paths_are_followed_on_meshes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not where they are short: in grids of three dimensions, and where few vertices have most edges."""
    one_way, back = np.zeros(100, int), np.arange(1, 101)
    meshes = atos.generate.road(20, device="cpu"), atos.generate.grid2d(9, 9, device="cpu")
    others = atos.generate.grid3d(9, 9, 9, device="cpu"), atos.Graph.from_edges(one_way, back, symmetrize=True, device="cpu")
    for graph in meshes + others:
        assert not tasks.pays_to_follow(graph)  # on the CPU
    monkeypatch.setitem(tasks.FOLLOWED_DEGREE, "cpu", tasks.FOLLOWED_DEGREE["cuda"])
    assert [tasks.pays_to_follow(graph) for graph in meshes + others] == [True, True, False, False]
    assert not tasks.pays_to_follow(atos.Graph.from_edges([], [], num_vertices=0, device="cpu"))


@given(searches(), st.sampled_from([1, 3]))
@settings(deadline=None, max_examples=80)
def test_random_graphs_by_groups_that_follow_paths(search: tuple[atos.Graph, Any], blocks: int) -> None:
    with mock.patch.object(driver, "pays_to_follow", return_value=True):
        checked(*search, num_blocks=blocks)


def test_a_vertex_with_many_neighbors_that_are_not_reached(device: atos.Device, worker: str) -> None:
    """One thread does not look at all of them, and the last one is the only one that is reached: all threads look for it."""
    prefix = SEARCHED_ALONE["cuda"]
    hub, leaves = 0, np.arange(1, 2 * prefix)
    source, near = 2 * prefix, 2 * prefix + np.arange(1, 80)
    edges = [(hub, v) for v in (*leaves, near[-1])] + [(source, v) for v in near] + list(itertools.combinations(near, 2))
    tails, heads = np.array(edges).T
    graph = atos.Graph.from_edges(tails, heads, symmetrize=True, device=device)
    assert graph.num_vertices < VERTICES_PER_MIXED_RANGE
    assert checked(graph, source, direction="auto", worker=worker).depth.to_numpy()[hub] == 2
    # The source; and what takes the ranges three times, of which the last finds nothing.
    stats = atos.bfs(graph, source, direction="auto", worker=worker).stats
    assert stats.tasks_run == 1 + 3 * takers_of(stats, graph.num_vertices, device, worker)


def test_parents_do_not_depend_on_the_schedule(device: atos.Device) -> None:
    graph = atos.generate.road(80, device=device)
    first, *others = (np.asarray(checked(graph, 40 * 80 + 40, **schedule).parent) for schedule in SCHEDULES)
    assert all(np.array_equal(first, other) for other in others)


@given(searches(), st.sampled_from([-1, 0, 1, 1.5, 2, 2**40, float("inf")]), st.data())
@settings(deadline=None, max_examples=60)
def test_cutoffs_and_targets(search: tuple[atos.Graph, Any], cutoff: float, data: st.DataObject) -> None:
    graph, source = search
    depth = atos.bfs(graph, source).depth.to_numpy()
    near = np.where(depth.astype(float) <= max(cutoff, 0), depth, UNREACHED)
    target = data.draw(st.integers(0, graph.num_vertices - 1))
    for direction in ("push", "auto") if graph.is_symmetric() else ("push",):
        found = atos.bfs(graph, source, cutoff=cutoff, direction=direction, parents=True)
        assert np.array_equal(found.depth.to_numpy(), near)
        verify_bfs(graph, source, found.depth, found.parent, cutoff=cutoff)
        for limit, expected in ((None, depth), (cutoff, near)):
            found = atos.bfs(graph, source, target=target, cutoff=limit, direction=direction, parents=True)
            assert found.depth[target] == expected[target]
            verify_bfs(graph, source, found.depth, found.parent, target=target, cutoff=limit)


@pytest.mark.parametrize("direction", ["push", "auto"])
def test_a_search_with_a_target_or_a_cutoff_ends_early(device: atos.Device, worker: str, direction: str) -> None:
    graph = atos.generate.road(100, 1.0, device=device)
    whole = atos.bfs(graph, 0, direction=direction, worker=worker)
    for options in ({"target": 303}, {"cutoff": 6}):
        found = atos.bfs(graph, 0, direction=direction, worker=worker, **options)
        assert found.depth[303] == 6
        assert found.stats.tasks_run < whole.stats.tasks_run / 2
        atos.verify_bfs(graph, 0, found.depth, **options)


def test_a_cutoff_beyond_the_levels_that_are_searched_one_by_one(device: atos.Device) -> None:
    path = atos.Graph.from_networkx(nx.path_graph(3 * MAX_PUSHED_LEVELS), device=device)
    found = atos.bfs(path, 0, direction="auto", cutoff=2 * MAX_PUSHED_LEVELS)
    assert found.num_levels == 2 * MAX_PUSHED_LEVELS + 1
    verify_bfs(path, 0, found.depth, cutoff=2 * MAX_PUSHED_LEVELS)


@pytest.mark.parametrize("known", [4, 5])
def test_a_target_that_was_met_too_deep_is_met_again(device: atos.Device, worker: str, known: int) -> None:
    """As if a longer path had been faster: what may still shorten it goes on."""
    path = atos.Graph.from_networkx(nx.path_graph(4), device=device)
    depth = atos.asarray(np.array([0, UNREACHED, UNREACHED, known], np.uint32), device=device, copy=True)
    queue = atos.Queue(10, device=device)
    queue.push(0)
    getattr(queue, f"launch_{worker}")(visit_within, path, depth, 3, int(UNREACHED))
    assert depth.to_numpy().tolist() == [0, 1, 2, 3]


def test_parents_come_only_on_request() -> None:
    graph = atos.generate.road(20, device="cpu")
    without, with_parents = atos.bfs(graph, 0), atos.bfs(graph, 0, parents=True)
    assert without.parent is None
    assert without.stats.rounds == 1
    assert with_parents.stats.rounds == 3  # the search; ranges; vertices
    assert with_parents.stats.task == "visit"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (5, r"source 5 is not a vertex: there are 5, numbered from 0"),
        (-1, "source -1 is not a vertex"),
        ([0, 2**40], "source 1099511627776 is not a vertex"),
        ([], r"sources must be one or more vertex ids \(got \[\]\)"),
        (1.0, "sources must be one or more vertex ids"),
        (True, "sources must be one or more vertex ids"),
        (None, "sources must be one or more vertex ids"),
    ],
)
def test_refused_sources(source: Any, message: str) -> None:
    graph = atos.Graph.from_edges([0, 1], [1, 4], device="cpu")
    with pytest.raises(InvalidArgumentError, match=message):
        atos.bfs(graph, source)


@pytest.mark.parametrize(
    "call", [lambda g, f: atos.bfs(g, 0, direction="auto", each_round=f), lambda g, f: atos.pagerank(g, each_round=f)]
)
def test_a_function_between_rounds_is_refused_where_there_is_one(call: Any) -> None:
    graph = atos.generate.road(5, 1.0, device="cpu")
    with pytest.raises(LaunchConfigError, match=r"has a function between rounds of its own \(got each_round\); leave it out"):
        call(graph, lambda worker, *args: None)


@pytest.mark.parametrize("persistent", [True, False])
def test_rounds_go_on_in_a_queue_that_has_to_grow(device: atos.Device, worker: str, persistent: bool) -> None:
    for graph in (atos.generate.rmat(11, 16, device=device), atos.generate.road(60, device=device)):
        checked(graph, 5, direction="auto", worker=worker, capacity=2, persistent=persistent)
        atos.verify_pagerank(graph, atos.pagerank(graph, find="gather", worker=worker, capacity=2, persistent=persistent))


def test_other_refusals() -> None:
    graph = atos.Graph.from_edges([0, 1], [1, 4], device="cpu")
    with pytest.raises(InvalidArgumentError, match="source 0 is not a vertex: there are 0"):
        atos.bfs(atos.Graph.from_edges([], [], device="cpu"), 0)
    with pytest.raises(InvalidArgumentError, match=r"worker must be one of thread, warp, cta \(got 'grid'\)"):
        atos.bfs(graph, 0, worker="grid")
    with pytest.raises(InvalidArgumentError, match=r"direction must be one of push, auto \(got 'pull'\)"):
        atos.bfs(graph, 0, direction="pull")
    with pytest.raises(InvalidArgumentError, match="capacity"):
        atos.bfs(graph, 0, capacity=0)
    with pytest.raises(InvalidArgumentError, match="target 5 is not a vertex: there are 5, numbered from 0"):
        atos.bfs(graph, 0, target=5)
    with pytest.raises(InvalidArgumentError, match="cutoff must be a distance, and is NaN"):
        atos.bfs(graph, 0, cutoff=float("nan"))
    assert atos.bfs(atos.Graph.from_networkx(nx.star_graph(50), device="cpu"), 0, capacity=4, num_blocks=1).stats.grown > 0


def test_as_many_blocks_as_the_search_may_have(device: atos.Device, worker: str) -> None:
    graph = atos.generate.road(60, device=device)
    resident = atos.bfs(graph, 0, worker=worker).stats.num_blocks
    checked(graph, 0, worker=worker, num_blocks=resident)


@pytest.mark.part("programs")
@pytest.mark.parametrize("worker", ["thread", "warp", "cta"])
def test_kernels_spill_next_to_nothing(worker: str) -> None:
    pytest.importorskip("cuda.core", reason="cuda-core is not installed")
    graph, depth = atos.generate.road(2, device="cpu"), atos.zeros(1, dtype=np.uint32, device="cpu")
    search = Search(depth, atos.zeros(1, dtype=np.int64, device="cpu"), graph.indptr, 64, 5, -1, 2)
    for task, item_dtype, between, arguments in (
        (assign_parents, np.dtype(np.uint32), None, (depth, depth)),
        (Tasks((expand, pull, list_level)), np.dtype(np.uint32), open_level, (search,)),
    ):
        kinds = tuple(map(describe, (graph.indptr, graph.indices, *arguments)))
        try:
            kernel = linked(ProgramSpec(task, None, kinds, item_dtype, worker, each_round=between), 48)
        except BuildError as error:
            pytest.skip(str(error))
        assert max(kernel.stack_bytes, kernel.spill_bytes) <= (16 if worker == "cta" and between else 0)
        assert kernel.registers <= 48, task


def test_the_old_name_of_a_direction_warns():
    graph = atos.generate.road(4, 1.0, device="cpu")
    for where in (graph, graph.partition(["cpu", "cpu:1"])):
        with pytest.warns(DeprecationWarning, match='^write direction="auto" in place of direction="switch"; this') as seen:
            found = atos.bfs(where, 0, direction="switch")
        assert [each.filename for each in seen] == [__file__]
        assert found.depth.to_numpy().tolist() == atos.bfs(graph, 0).depth.to_numpy().tolist()
