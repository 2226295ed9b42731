"""Programs of `acc`: the seven that come with it are proved by certificates, and others by what they should find."""

from __future__ import annotations

import ast
import inspect
import io
import tokenize
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import atos_py as atos
from atos_py import acc
from atos_py.errors import LaunchTimeoutError, VerificationError
from atos_py.graph.kept import kept
from atos_py.models.acc import programs
from atos_py.models.acc.stats import as_program_stats
from atos_py.operators import long_rows


@pytest.fixture(scope="module")
def social(device):
    return atos.generate.rmat(9, device=device)


@pytest.fixture(scope="module")
def directed(device):
    """A graph some of whose edges have no reverse, with weights."""
    rng = np.random.default_rng(1)
    sources, targets = rng.integers(0, 400, (2, 1200))
    return atos.Graph.from_edges(sources, targets, rng.integers(1, 9, 1200).astype(np.float32), num_vertices=400, device=device)


def verify_reachable(graph: atos.Graph, sources: Any, sets: Any) -> None:
    """Prove sets of sources: they are passed on along every edge, and each member has a path, by verified depths."""
    found, indptr, indices = np.asarray(sets), graph.indptr.to_numpy(), graph.indices.to_numpy()
    start = np.repeat(found, np.diff(indptr))
    if (start & ~found[indices]).any():
        raise VerificationError("a source is lost along an edge")
    for k, source in enumerate(sorted(sources)):
        depth = atos.bfs(graph, source).depth
        atos.verify_bfs(graph, source, depth)
        if not np.array_equal(found >> k & 1 == 1, np.asarray(depth) != atos.UNREACHED):
            raise VerificationError(f"source {source} does not reach what it should")


@pytest.mark.parametrize("direction", ["push", "pull", "auto"])
def test_searches(social, directed, direction):
    source = int(social.degrees().argmax())
    depth, stats = programs.bfs(social, source, direction=direction)
    atos.verify_bfs(social, source, depth)
    reached = np.asarray(depth) != atos.UNREACHED
    assert sum(stats.frontiers) == np.count_nonzero(reached)
    assert len(stats.frontiers) == np.asarray(depth)[reached].max() + 1  # one entry a level
    assert direction == "auto" or set(stats.directions) == {direction}
    distance, _ = programs.sssp(directed, 3, direction=direction)
    atos.verify_sssp(directed, 3, distance)
    one_way = directed.with_weights(None)
    depth, _ = programs.bfs(one_way, [3, 5], direction=direction)
    atos.verify_bfs(one_way, [3, 5], depth)
    if direction == "auto":
        sets, _ = programs.reachable(one_way, [3, 5, 70], direction=direction)
        verify_reachable(one_way, [3, 5, 70], sets)


def test_the_default_filter(device):
    """It lists online where no vertex is listed twice in a round, even if a bin would be full, unless there is a threshold."""
    leaves = 1024 * np.arange(1, 101)
    star = atos.Graph.from_edges(np.zeros(100, int), leaves, weights=np.ones(100), symmetrize=True, device=device)
    for search, usual in ((programs.bfs, "online"), (programs.sssp, "ballot")):
        for options, found in (({}, usual), ({"threshold": 64}, "ballot"), ({"threshold": 100}, "online")):
            stats = search(star, 0, **options)[1]
            assert (stats.filters[1], stats.frontiers[1]) == (found, 100), options
    assert set(programs.k_core(star.with_weights(None), 2)[1].filters) == {"online"}


@pytest.mark.parametrize("fuse", ["none", "direction", "all"])
@pytest.mark.parametrize("persistent", [True, False])
def test_rounds_are_told_of_in_any_number_of_launches(device, fuse, persistent):
    path = atos.Graph.from_edges(np.arange(9), np.arange(1, 10), device=device)
    for options in ({"filter": "online"}, {"filter": "jit"}, {"filter": "ballot"}, {"direction": "pull"}):
        depth, stats = programs.bfs(path, 0, fuse=fuse, persistent=persistent, **options)
        assert (stats.frontiers, depth[:].tolist(), stats.stopped) == ((1,) * 10, list(range(10)), False)
        depth, stats = programs.bfs(path, 0, fuse=fuse, persistent=persistent, rounds=3, **options)
        assert (stats.frontiers, np.count_nonzero(depth[:] < 10), stats.stopped) == ((1,) * 3, 4, True)


def test_the_direction_follows_the_edges_of_the_frontier(social):
    """The first vertex pushes; its neighbors have most of the edges; the last level has few again."""
    _, stats = programs.bfs(social, int(social.degrees().argmax()), direction="auto")
    assert stats.directions[:2] == ("push", "pull")
    assert stats.directions[-1] == "push"
    assert stats.filters[1:3] == ("online", "ballot")  # those that pull find what is next as a scan would


def test_votes_pull_earlier(social):
    """They stop at the first edge, so that a frontier pays off whose edges are few of all, but many of those that are left."""
    source = int(social.degrees().argmax())
    depth, stats = programs.bfs(social, source, direction="auto")
    levels, degrees, left = depth.to_numpy(), social.degrees(), social.num_edges
    edges = [int(degrees[levels == level].sum()) for level in range(len(stats.frontiers))]
    expected = []
    for count in edges:
        left -= count if expected else 0  # nobody counts those of the source
        expected.append("pull" if expected and (15 * count > left or count > 0.3 * social.num_edges) else "push")
    assert stats.directions == tuple(expected)
    assert any(direction == "pull" and count < 0.3 * social.num_edges for direction, count in zip(expected, edges, strict=True))


@pytest.mark.parametrize(
    "options", [{}, {"barrier": False}, {"delta": 3.0}, {"delta": "auto"}, {"delta": 2.0, "barrier": True}], ids=str
)
def test_shortest_paths_in_any_order(directed, options):
    distance, stats = programs.sssp(directed, 3, **options)
    atos.verify_sssp(directed, 3, distance)
    assert bool(stats.frontiers) == (not options)  # there are rounds to tell of


def test_buckets_spare_tasks(device):
    graph = atos.generate.road(60, 0.9, device=device)
    graph = graph.with_weights(1 + np.random.default_rng(0).integers(0, 99, graph.num_edges).astype(np.float32))
    tasks = [programs.sssp(graph, 0, num_blocks=1, **options)[1].tasks_run for options in ({"barrier": False}, {"delta": 20.0})]
    assert tasks[1] < tasks[0]


def test_k_core(social):
    degrees = social.degrees()
    for k in (0, 1, 5, 12, 1000):
        for options in ({}, {"barrier": False}, {"direction": "auto"}, {"direction": "pull"}):
            members, stats = programs.k_core(social, k, **options)
            atos.verify_k_core(social, k, members)
            removed = np.count_nonzero(~members)
            if stats.frontiers:
                assert sum(stats.frontiers) == removed
            if options.get("direction") is None:  # exactly once, by the online filter or without any
                assert stats.tasks_run == removed
    assert (degrees == social.degrees()).all()


@pytest.mark.parametrize("options", [{}, {"barrier": False}, {"direction": "pull"}], ids=str)
def test_components(directed, options):
    label, _ = programs.connected_components(directed, **options)
    atos.verify_connected_components(directed, label)


def test_pagerank(social, directed):
    for graph in (social, directed.with_weights(None)):
        rank, stats = programs.pagerank(graph, tolerance=1e-4)
        atos.verify_pagerank(graph, rank, 2e-4)
        assert stats.launches == 1
        assert set(stats.directions) == {"pull"}
        assert not stats.stopped
        fewer = programs.pagerank(graph, rounds=3)[1]
        assert fewer.stopped
        assert len(fewer.frontiers) == fewer.rounds == 3


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint64])
def test_weighted_sums_are_products_with_the_matrix(device, dtype):
    rng = np.random.default_rng(2)
    edges = rng.integers(0, 90, (2, 400))
    weights = rng.integers(1, 4, 400).astype(dtype)
    graph = atos.Graph.from_edges(*edges, weights, num_vertices=90, device=device)
    matrix, values = np.zeros((90, 90), dtype), rng.integers(0, 9, 90).astype(dtype)
    np.add.at(matrix, (edges[0], edges[1]), weights)
    expected = values
    for rounds in (1, 2, 3):
        expected = matrix.T @ expected
        found, _ = programs.weighted_sums(graph, values, rounds=rounds)
        np.testing.assert_allclose(found.to_numpy(), expected, rtol=1e-6)
        if np.dtype(dtype).kind != "f":
            assert (found.to_numpy() == expected).all()


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
@pytest.mark.parametrize("fuse", ["direction", "none"])
def test_sums_of_long_rows(device, dtype, fuse, monkeypatch):
    """Rows of vertices with many in-edges are gathered in pieces, for each round anew."""
    monkeypatch.setattr(long_rows, "HUB_DEGREE", 16)
    monkeypatch.setattr(long_rows, "_SHARES", 1 << 20)
    degrees = np.array([15, 16, 17, 32, 33, 500])
    heads, tails = np.repeat(np.arange(len(degrees)), degrees), np.concatenate([np.arange(each) for each in degrees])
    graph = atos.Graph.from_edges(tails, heads, np.full(degrees.sum(), 2, dtype), device=device)
    matrix = np.zeros((500, 500), dtype)
    np.add.at(matrix, (tails, heads), dtype(2))
    values = expected = np.random.default_rng(3).integers(0, 3, 500).astype(dtype)
    for rounds in (1, 2, 3):
        expected = matrix.T @ expected
        found, _ = programs.weighted_sums(graph, values, rounds=rounds, fuse=fuse)
        np.testing.assert_allclose(found.to_numpy(), expected, rtol=1e-6)
    assert kept(graph.transpose())["gather ranges"][1].vertices.size == 4


def plus(a, b):
    return a + b


def test_a_combine_of_ones_own_counts_each_update_once(social):
    """The k-core once more, by additions that are compare-and-swaps."""
    k = 6
    program = acc.Program(
        lambda m_v, weight, m_u, k: -1,
        acc.Combine(plus, neutral=0),
        active=lambda before, after, k: before >= k > after,
    )
    degrees = social.degrees()
    for options in ({}, {"filter": "ballot"}, {"direction": "pull"}, {"barrier": False}):
        degree = atos.asarray(degrees.astype(np.int32), device=social.device, copy=True)
        program.run(social, degree, k, start=np.flatnonzero(degrees < k), **options)
        members = degree.to_numpy() >= k
        atos.verify_k_core(social, k, members)
        indptr, indices = social.indptr.to_numpy(), social.indices.to_numpy()
        lost = np.add.reduceat(np.append(~members[indices], False), indptr[:-1]) * (degrees > 0)
        assert (degree.to_numpy() == degrees - lost).all()  # without wants=, every update counts


def test_widest_paths(directed):
    widest = acc.Program(lambda m_v, weight, m_u: min(m_v, weight), acc.MAX)
    width = np.zeros(400)
    width[3] = np.inf
    for options in ({"direction": "auto"}, {"barrier": False}, {"delta": 1.0}):
        found = atos.asarray(width, device=directed.device, copy=True)
        widest.run(directed, found, start=3, **options)
        source = np.repeat(np.arange(400), directed.degrees())
        through = np.minimum(found.to_numpy()[source], directed.weights.to_numpy())
        best = width.copy()
        np.maximum.at(best, directed.indices.to_numpy(), through)
        assert (best == found.to_numpy()).all()
        for w in np.unique(directed.weights.to_numpy()):  # wide enough: reached along such edges alone
            kept = directed.weights.to_numpy() >= w
            part = atos.Graph.from_edges(
                source[kept], directed.indices.to_numpy()[kept], num_vertices=400, device=directed.device
            )
            assert ((found.to_numpy() >= w) == atos.bfs(part, 3).reached()).all()


@pytest.mark.parametrize("dtype", [np.uint8, np.uint64, np.float64])
def test_types_of_metadata(device, dtype):
    graph = atos.generate.road(12, 0.9, device=device)
    unset = np.inf if np.dtype(dtype).kind == "f" else np.iinfo(dtype).max
    depth = atos.full(144, unset, dtype=dtype, device=device)
    depth[0] = 0
    acc.programs.BFS.run(graph, depth, start=0, direction="auto", filter="ballot")
    found = depth.to_numpy()
    atos.verify_bfs(graph, 0, np.where(found == unset, atos.UNREACHED, found.astype(np.uint32, copy=False)).astype(np.uint32))


def test_metadata_of_numpy_is_changed_in_place():
    graph, depth = atos.generate.road(5, 1.0, device="cpu"), np.full(25, 2**32 - 1, np.uint32)
    depth[7] = 0
    programs.BFS.run(graph, depth, start=7)
    atos.verify_bfs(graph, 7, depth)
    graph, distance = graph.with_weights(np.ones(graph.num_edges, np.float32)), np.full(25, np.inf, np.float32)
    distance[7] = 0
    programs.SSSP.run(graph, distance, start=7, delta=2)
    atos.verify_sssp(graph, 7, distance)


def scan(m_v, weight, m_u):
    return m_v + 1


def test_a_function_may_have_the_name_of_a_task(device):
    graph, program = atos.generate.road(5, 1.0, device=device), acc.Program(scan, acc.VOTE)
    depth = atos.full(25, atos.UNREACHED, dtype=np.uint32, device=device)
    depth[0] = 0
    assert set(program.run(graph, depth, start=0).tasks_run_by) == {"scan"}
    atos.verify_bfs(graph, 0, depth)


def test_nothing_to_do(device):
    graph = atos.Graph.from_edges([], [], num_vertices=3, device=device)
    depth = atos.full(3, 7, dtype=np.uint32, device=device)
    for direction in ("push", "pull", "auto"):
        stats = programs.BFS.run(graph, depth, start=[], direction=direction)
        assert (stats.frontiers, depth.to_numpy().tolist()) == ((0,), [7, 7, 7])
    assert programs.weighted_sums(graph, np.ones(3))[0].to_numpy().tolist() == [0, 0, 0]
    empty = atos.Graph.from_edges([], [], num_vertices=0, device=device)
    assert programs.connected_components(empty)[0].size == 0
    assert programs.pagerank(empty)[0].size == 0


def test_rounds_are_limited(device):
    graph = atos.generate.road(20, 1.0, device=device)
    for direction in ("push", "pull"):
        depth, stats = programs.bfs(graph, 0, direction=direction, rounds=5)
        assert stats.stopped
        assert len(stats.frontiers) == 5
        found = depth.to_numpy()
        atos.verify_bfs(graph, 0, depth, cutoff=5)
        assert found[found != atos.UNREACHED].max() == 5
    assert not programs.bfs(graph, 0, rounds=1000)[1].stopped


def test_time_is_limited(device):
    """Of a program without an end, by the clock of all of its launches."""
    graph = atos.generate.road(30, 1.0, device=device)
    values = np.zeros(graph.num_vertices)
    for options in ({}, {"fuse": "none"}):
        programs.weighted_sums(graph, values, rounds=2, **options)  # compiled
        with pytest.raises(LaunchTimeoutError):
            programs.weighted_sums(graph, values, rounds=2**31, timeout=0.1, **options)


def test_programs_are_short():
    """Each takes at most 15 lines of code, with the functions that it is made of."""
    tree = ast.parse(inspect.getsource(programs))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            code = node.body[1:] if isinstance(node.body[0], ast.Expr) else node.body
            assert sum(part.end_lineno - part.lineno + 1 for part in code) + 1 <= 15, node.name


def test_the_log_of_rounds_is_in_the_statistics(social):
    """Which are those of a launch otherwise; several are added up as those of launches are."""
    _, stats = programs.bfs(social, 0)
    assert isinstance(stats, atos.LaunchStats)
    assert len(stats.filters) == len(stats.directions) == len(stats.frontiers) == stats.rounds > 1
    assert stats.to_dict()["frontiers"] == stats.frontiers
    assert isinstance(acc.ProgramStats.total([stats, stats]), acc.ProgramStats)
    plain = atos.bfs(social, 0).stats
    assert not hasattr(plain, "frontiers")
    again = as_program_stats(plain, stopped=True)
    assert (again.frontiers, again.tasks_run, again.stopped) == ((), plain.tasks_run, True)
    assert as_program_stats(stats) == stats
    assert programs.sssp(social, 0, barrier=False)[1].frontiers == ()


def count_code(path: Path) -> int:
    """Count the lines of a module that have code, not only comments or docstrings."""
    text = path.read_text()
    empty = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    found = [part for part in tokenize.generate_tokens(io.StringIO(text).readline) if part.type not in empty]
    lines = {line for part in found for line in range(part.start[0], part.end[0] + 1)}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            lines -= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return len(lines)


def test_the_layer_is_thin():
    """At most 400 lines of code say how a program runs on a frontier; ready programs each have a limit of their own."""
    names = ("__init__", "combine", "dense", "program", "runs", "tasks")
    assert 200 < sum(count_code(Path(programs.__file__).with_name(f"{name}.py")) for name in names) <= 400
