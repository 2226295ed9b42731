"""PageRank: its error against networkx and against a float64 power iteration, its certificate, and what it refuses."""

from __future__ import annotations

import itertools
import math
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_limits import check_registers
from numpy.typing import NDArray

import atos_py as atos
from atos_py.algorithms.launch_sequence import LaunchSequence
from atos_py.algorithms.pagerank import PageRankResult, pagerank, verify_pagerank
from atos_py.algorithms.pagerank.api import teleport_distribution
from atos_py.algorithms.pagerank.chebyshev_pull import Iteration, chebyshev_round, end_round
from atos_py.algorithms.pagerank.residual_push import PushParams, ResidualPush, push_marked, set_ranks, sweep
from atos_py.compile.arguments import describe
from atos_py.compile.spec import ProgramSpec
from atos_py.errors import BuildError, InvalidArgumentError, LaunchConfigError, UnsupportedTypeError, VerificationError
from atos_py.graph import gather_ranges
from atos_py.operators import long_rows
from atos_py.operators.edge_map import THREAD_MAX_DEGREE

VARIANTS = [
    {"find": find, "worker": worker, "persistent": persistent, "barrier": barrier}
    for find, worker, persistent, barrier in itertools.product(
        ("sweep", "gather", "push"), ("thread", "warp", "cta"), (True, False), (True, False)
    )
]


def graph_of(edges: list[tuple[int, int]], n: int) -> atos.Graph:
    sources, targets = np.array(edges, np.int64).reshape(-1, 2).T
    return atos.Graph.from_edges(sources, targets, num_vertices=n, device="cpu")


def exact(graph: atos.Graph, damping: float = 0.85, jumps: Any = None) -> NDArray[np.float64]:
    """Ranks of a small graph by elimination, of others by power iteration, of so many steps that the error is at most 2e-14."""
    n, degrees = graph.num_vertices, graph.degrees()
    tails, heads = np.repeat(np.arange(n), degrees), np.asarray(graph.indices)
    v = np.full(n, 1 / n) if jumps is None else np.asarray(jumps, np.float64) / np.sum(jumps)
    if n <= 64:
        followed = np.zeros((n, n))
        np.add.at(followed, (heads, tails), 1 / degrees[tails])
        followed[:, degrees == 0] = v[:, None]
        matrix, jumped = np.eye(n) - damping * followed, (1 - damping) * v
        x = np.linalg.solve(matrix, jumped)
        return x + np.linalg.solve(matrix, jumped - matrix @ x)
    x = v
    for _ in range(math.ceil(math.log(1e-14) / math.log(damping)) if damping else 1):
        received = np.bincount(heads, (x / np.maximum(degrees, 1))[tails], n)
        x = damping * (received + x[degrees == 0].sum() * v) + (1 - damping) * v
    return x


def error(result: PageRankResult, truth: NDArray[np.float64]) -> float:
    return float(np.abs(result.rank.to_numpy().astype(np.float64) - truth).sum())


@st.composite
def graphs(draw: st.DrawFn) -> atos.Graph:
    """Any small directed graph, with loops, parallel edges and isolated vertices; or one with every edge in both directions."""
    n = draw(st.integers(1, 12))
    vertex = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(vertex, vertex), max_size=40))
    if draw(st.booleans()):
        edges += [(v, u) for u, v in edges]
    return graph_of(edges, n)


@given(graphs(), st.sampled_from(VARIANTS), st.sampled_from(["f4", "f8"]), st.sampled_from([0.0, 0.3, 0.85, 0.97]), st.data())
@settings(deadline=None, max_examples=300)
def test_error_is_at_most_the_tolerance(
    graph: atos.Graph, variant: dict[str, Any], dtype: str, damping: float, data: st.DataObject
) -> None:
    n = graph.num_vertices
    jumps = data.draw(st.none() | st.lists(st.integers(0, 5), min_size=n, max_size=n).filter(any))
    start = data.draw(st.none() | st.lists(st.integers(0, 5), min_size=n, max_size=n).filter(any))
    tolerance = data.draw(st.sampled_from([0.5, 1e-3, 2e-5]))
    result = pagerank(graph, damping, tolerance, dtype=dtype, personalization=jumps, start=start, **variant)
    assert result.rank.dtype == dtype
    assert error(result, exact(graph, damping, jumps)) <= result.error_bound <= tolerance
    assert verify_pagerank(graph, result, tolerance, damping=damping, personalization=jumps) <= tolerance


@given(graphs(), st.data())
@settings(deadline=None, max_examples=100)
def test_same_as_networkx(graph: atos.Graph, data: st.DataObject) -> None:
    n = graph.num_vertices
    jumps = data.draw(st.none() | st.lists(st.integers(0, 5), min_size=n, max_size=n).filter(any))
    theirs = nx.MultiDiGraph()
    theirs.add_nodes_from(range(n))
    theirs.add_edges_from(
        zip(np.repeat(np.arange(n), graph.degrees()).tolist(), graph.indices.to_numpy().tolist(), strict=True)
    )
    personalization = None if jumps is None else dict(enumerate(jumps))
    expected = nx.pagerank(theirs, 0.85, personalization, max_iter=1000, tol=1e-12)
    result = pagerank(graph, tolerance=1e-9, dtype=np.float64, personalization=jumps)
    assert np.abs(result.rank.to_numpy() - [expected[v] for v in range(n)]).sum() <= 2e-9


def test_undirected_networkx_graph() -> None:
    theirs = nx.karate_club_graph()
    theirs.add_edge(3, 3)
    theirs.add_node("alone")
    ours = atos.Graph.from_networkx(theirs, weight=None, device="cpu")
    expected = nx.pagerank(theirs, weight=None, tol=1e-12, max_iter=1000)
    result = pagerank(ours, tolerance=1e-9, dtype=np.float64)
    assert error(result, np.array(list(expected.values()))) <= 1e-9


def star(n: int, inwards: bool) -> atos.Graph:
    return graph_of([(v, 0) if inwards else (0, v) for v in range(1, n)], n)


SPECIAL = {
    "one vertex": graph_of([], 1),
    "one loop": graph_of([(0, 0)], 1),
    "all dangling": graph_of([], 1000),
    "star inwards": star(300, True),
    "star outwards": star(300, False),
    "ring": graph_of([(v, (v + 1) % 257) for v in range(257)], 257),
    "path": graph_of([(v, v + 1) for v in range(999)], 1000),
    "pairs": graph_of([(v, v ^ 1) for v in range(600)], 600),
    "loops": graph_of([(v, v) for v in range(300)] + [(v, v + 1) for v in range(200)], 300),
    "rmat": atos.generate.rmat(10, 16, device="cpu"),
    "road": atos.generate.road(60, device="cpu"),
}


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("find", [None, "sweep", "gather", "push"])
@pytest.mark.parametrize("name", SPECIAL)
def test_special_graphs(name: str, find: str | None, dtype: str) -> None:
    graph = SPECIAL[name]
    for tolerance in (1e-2, 1e-4, 1e-6):
        result = pagerank(graph, tolerance=tolerance, find=find, dtype=dtype)
        assert error(result, exact(graph)) <= result.error_bound <= tolerance
        verify_pagerank(graph, result, tolerance)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: "-".join(map(str, v.values())))
@pytest.mark.parametrize("low_degree", [0, 3, 1 << 62])
def test_every_schedule(variant: dict[str, Any], low_degree: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(THREAD_MAX_DEGREE, "cpu", low_degree)
    for name in ("rmat", "road"):
        result = pagerank(SPECIAL[name], tolerance=1e-5, fetch_size=16, num_blocks=3, **variant)
        verify_pagerank(SPECIAL[name], result, 1e-5)
        if variant["find"] == "push" or (variant["find"] == "sweep" and low_degree == 0):
            assert result.stats.tasks_pushed > SPECIAL[name].num_vertices / 2


@pytest.mark.gpu
@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: "-".join(map(str, v.values())))
def test_every_schedule_on_the_gpu(variant: dict[str, Any]) -> None:
    for graph in (atos.generate.rmat(14, 16, device="cuda"), atos.generate.road(300, device="cuda")):
        for dtype in ("f4", "f8"):
            verify_pagerank(graph, pagerank(graph, tolerance=1e-5, dtype=dtype, **variant), 1e-5)


@pytest.mark.parametrize("schedule", list(itertools.product((True, False), repeat=2)), ids=str)
def test_a_launch_ends_with_no_residual_above_the_limit(device: atos.Device, worker: str, schedule: tuple[bool, bool]) -> None:
    options = dict(zip(("persistent", "barrier"), schedule, strict=True))
    for name in ("rmat", "road", "loops"):
        graph = SPECIAL[name].to(device)
        n = graph.num_vertices
        launches = LaunchSequence("pagerank", atos.Queue(4 * n, device=device), options, worker)
        teleport = atos.asarray(teleport_distribution("personalization", None, n), device=device)
        pushing = ResidualPush(graph, launches, 0.85, teleport, "push")
        rank = pushing.zeros(np.float64)
        launches.over_vertices(set_ranks, n, graph.indptr, teleport, 1.0, 0.0, False, rank)
        residual = pushing.residuals(rank, np.float64)
        for limit in (1e-4 / n, 1e-7 / n):
            assert np.abs(residual.to_numpy()).max() > limit
            pushing.push_residuals("push", rank, residual, limit=limit)
            assert np.abs(residual.to_numpy()).max() <= limit
            assert pushing.marks is not None
            assert not pushing.marks.to_numpy().any()
            assert len(launches.queue) == 0


@pytest.mark.part("programs")
@pytest.mark.parametrize(("number", "worker"), [(np.float32, "warp"), (np.float32, "cta"), (np.float64, "cta")])
@pytest.mark.parametrize("task", [sweep, push_marked, chebyshev_round], ids=lambda task: task.name)
def test_kernels_spill_nothing(task: atos.Task, number: Any, worker: str) -> None:
    pytest.importorskip("cuda.core", reason="cuda-core is not installed")
    values, sums, marks = (atos.zeros(1, dtype=dtype, device="cpu") for dtype in (number, np.float64, np.int32))
    rows = SPECIAL["ring"].indptr, SPECIAL["ring"].indices
    params = PushParams(*[number(0)] * 3, False)
    device = atos.device("cpu")
    none = long_rows.make_long_rows(np.zeros((0, 3), np.int64), 0, 1, device)
    run = Iteration(values, values, sums, sums, sums, *[0.0] * 3, 0, marks, marks, none, sums)
    arguments = {
        sweep: (*rows, 16, *rows, values, values, None, params),
        push_marked: (*rows, *rows, values, values, marks, params),
        chebyshev_round: (marks, 1, *rows, run),
    }
    try:
        between = end_round if task is chebyshev_round else None
        kinds = tuple(map(describe, arguments[task]))
        check_registers(ProgramSpec(task, None, kinds, np.dtype(np.uint32), worker, each_round=between))
    except BuildError as error:
        pytest.skip(str(error))


def test_gathering_takes_fewer_rounds_and_is_the_default_of_low_degrees() -> None:
    graph = atos.generate.road(200, device="cpu")
    swept, gathered = (pagerank(graph, tolerance=1e-6, dtype="f8", find=find) for find in ("sweep", "gather"))
    assert gathered.stats.rounds < 0.75 * swept.stats.rounds
    assert pagerank(graph, tolerance=1e-6, dtype="f8").stats.rounds == gathered.stats.rounds


def test_gathering_over_a_graph_that_mixes_fast_takes_fewer_rounds() -> None:
    graph = atos.generate.rmat(14, 16, device="cpu")
    rounds = pagerank(graph, tolerance=5e-4).stats.rounds
    assert rounds < 5 + 9  # where damping bounds the eigenvalues, gathering alone takes 12


def test_gathering_promises_what_the_verifier_finds_or_little_more(device: atos.Device) -> None:
    for graph in (atos.generate.rmat(12, 16, device=device), atos.generate.road(100, device=device)):
        result = pagerank(graph, tolerance=1e-5, dtype="f8")
        found = verify_pagerank(graph, result, 1e-5)
        assert 0.999 * found < result.error_bound < 1.5 * found


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_gathering_by_all_threads_of_a_worker(
    device: atos.Device, worker: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Vertices with many edges, among them hubs, whose ranges come first."""
    monkeypatch.setitem(gather_ranges._LOW_AVERAGE_DEGREE, device.kind, 0)
    monkeypatch.setitem(THREAD_MAX_DEGREE, device.kind, 4)
    monkeypatch.setitem(gather_ranges._RANGE_SIZES, False, (24, 24, 1))
    with_hubs = atos.generate.rmat(15, 16, device=device)
    assert with_hubs.max_degree > long_rows.HUB_DEGREE
    for graph in (with_hubs, atos.generate.road(60, device=device)):
        result = pagerank(graph, tolerance=1e-5, dtype=dtype, find="gather", worker=worker)
        verify_pagerank(graph, result, 1e-5)
        assert result.stats.tasks_run > graph.num_vertices / 24


@given(st.integers(0, 2**32 - 1), st.integers(2, 300))
@settings(deadline=None, max_examples=30)
def test_directed_graphs_are_swept_in_the_end(seed: int, n: int) -> None:
    """Whether gathering comes to wrong ranks or to none."""
    tails, heads = np.random.default_rng(seed).integers(n, size=(2, 3 * n))
    graph = graph_of(list(zip(tails.tolist(), heads.tolist(), strict=True)), n)
    result = pagerank(graph, tolerance=1e-4, find="gather")
    assert error(result, exact(graph)) <= result.error_bound <= 1e-4


@pytest.mark.parametrize("damping", [1.0, 2.0, -0.5])
def test_a_damping_that_proves_nothing_is_refused(damping: float) -> None:
    graph = star(10, True)
    with pytest.raises(atos.InvalidArgumentError, match="damping must be at least 0 and less than 1"):
        verify_pagerank(graph, np.full(10, 0.1), damping=damping)


def test_long_rows_in_pieces(device: atos.Device, worker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also rows as long as their pieces, or one edge longer, and several of them."""
    monkeypatch.setattr(long_rows, "HUB_DEGREE", 64)
    monkeypatch.setattr(long_rows, "_SHARES", 1 << 20)
    degrees = np.array([63, 64, 65, 128, 129, 1000])
    heads = np.concatenate([len(degrees) + np.arange(each) for each in degrees])
    stars = atos.Graph.from_edges(np.repeat(np.arange(len(degrees)), degrees), heads, device="cpu").to_symmetric()
    for graph in (stars, atos.generate.rmat(10, 16, device="cpu")):
        offsets = graph.indptr[:].astype(np.int64)
        hubs = np.flatnonzero(np.diff(offsets) > 64)
        rows = np.stack([hubs, offsets[hubs], offsets[hubs + 1]], axis=1)
        plan = long_rows.make_long_rows(rows, graph.num_edges, 7, graph.device)
        lengths = np.minimum(plan.begins[:] + 64, plan.ends[:][plan.rows[:]]) - plan.begins[:]
        assert np.bincount(plan.rows[:], lengths).tolist() == plan.degrees[:].tolist()
        assert plan.vertices.size == np.count_nonzero(graph.degrees() > 64) > 3
        for dtype in ("f4", "f8"):
            result = pagerank(graph.to(device), tolerance=1e-5, dtype=dtype, find="gather", worker=worker)
            verify_pagerank(graph, result, 1e-5)


@pytest.mark.parametrize("hub", [90, 110, 5_000])
def test_few_edges_on_average_and_a_hub(hub: int, device: atos.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads gather for a vertex each only if none of them has too much to do."""
    monkeypatch.setitem(gather_ranges._LOW_AVERAGE_DEGREE, device.kind, 8)
    monkeypatch.setitem(gather_ranges._LOW_DEGREE_THREAD_MAX, device.kind, 100)
    monkeypatch.setitem(THREAD_MAX_DEGREE, device.kind, 4)
    graph = star(hub + 1, False).to_symmetric()
    assert gather_ranges.is_low_degree(graph.to(device)) == (hub <= 100)
    verify_pagerank(graph, pagerank(graph.to(device), tolerance=1e-5), 1e-5)


def test_a_scale_free_graph_with_few_edges_on_average_is_not_low_degree(device: atos.Device, monkeypatch: Any) -> None:
    for limits in (gather_ranges._LOW_AVERAGE_DEGREE, gather_ranges._LOW_DEGREE_THREAD_MAX):
        monkeypatch.setitem(limits, device.kind, limits["cuda"])
    graphs = atos.generate.rmat(16, 3, device=device), atos.generate.road(100, device=device)
    assert [gather_ranges.is_low_degree(graph) for graph in graphs] == [False, True]


def test_the_configuration_is_that_of_the_search() -> None:
    stats = pagerank(star(100, True), fetch_size=7).stats
    assert (stats.task, stats.worker, stats.fetch_size) == ("pagerank", "cta", 7)


def test_no_vertices() -> None:
    result = pagerank(graph_of([], 0))
    assert (result.rank.size, result.error_bound < 1e-4) == (0, True)
    assert verify_pagerank(graph_of([], 0), result) == 0


@pytest.mark.timeout(60)
@pytest.mark.parametrize("damping", [0.5, 0.85])
@pytest.mark.parametrize("find", [None, "sweep", "push"])
def test_many_vertices_without_edges(find: str | None, damping: float) -> None:
    """What all of them may keep together is no more than what the error may be, or this would never end."""
    graph = atos.Graph.from_edges([0, 1], [1, 0], num_vertices=40, device="cpu")
    wanted = np.arange(40.0)
    result = pagerank(graph, damping, 1e-9, find=find, dtype=np.float64, personalization=wanted)
    assert verify_pagerank(graph, result, 1e-9, damping=damping, personalization=wanted) <= 1e-9


def test_float32_sums_of_many_equal_numbers() -> None:
    # Added up in float32 one by one, a million equal shares come out wrong by per cents.
    graph = star(1_000_001, True)
    result = pagerank(graph, tolerance=1e-5)
    verify_pagerank(graph, result, 1e-5)
    assert error(result, exact(graph)) <= 1e-5


def test_a_good_start_saves_work() -> None:
    graph = atos.generate.road(200, device="cpu")
    first = pagerank(graph, tolerance=1e-5)
    again = pagerank(graph, tolerance=1e-5, start=first.rank)
    assert again.stats.rounds < first.stats.rounds / 2
    verify_pagerank(graph, again, 1e-5)
    scaled = pagerank(graph, tolerance=1e-5, start=1000 * first.rank.to_numpy())
    assert scaled.stats.rounds < first.stats.rounds / 2
    for scale, dtype in ((1e-300, "f4"), (1e300, "f4"), (1e-320, "f8"), (1e308, "f8")):
        far = pagerank(graph, tolerance=1e-5, start=scale * np.ones(graph.num_vertices), dtype=dtype)
        verify_pagerank(graph, far, 1e-5)


def test_damping_near_one() -> None:
    """Gathering goes on where the error falls slowly."""
    for graph in (atos.generate.road(40, device="cpu"), atos.generate.rmat(10, device="cpu")):
        for dtype, tolerance, most in (("f4", 1e-3, 600), ("f8", 1e-6, 2400)):
            result = pagerank(graph, 0.999, tolerance, dtype=dtype)
            verify_pagerank(graph, result, tolerance, damping=0.999)
            assert error(result, exact(graph, 0.999)) <= tolerance
            assert result.stats.rounds < most  # pushing, from where gathering first stops to halve the error: 3,687 and 8,819


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"damping": 1.0}, "damping must be at least 0 and less than 1"),
        ({"damping": -0.1}, "damping must be"),
        ({"damping": float("nan")}, "damping must be"),
        ({"tolerance": 0}, r"tolerance must be more than 7\.4e-07, the rounding of float32 \(got 0.0\)"),
        ({"tolerance": -1}, "tolerance must be"),
        ({"tolerance": float("nan")}, "tolerance must be"),
        ({"tolerance": 1e-14, "dtype": "f8"}, r"tolerance must be more than 1\.4e-12"),
        ({"worker": "grid"}, "worker must be one of thread, warp, cta"),
        ({"find": "guess"}, r"find must be one of sweep, gather, push \(got 'guess'\)"),
        ({"personalization": [1, 2]}, r"personalization must have one number for each of 3 vertices \(got shape \(2,\)"),
        ({"personalization": [1, -1, 1]}, "personalization must hold finite numbers, not negative, with a positive sum"),
        ({"personalization": [0, 0, 0]}, "with a positive sum"),
        ({"personalization": [1, np.nan, 0]}, "finite"),
        ({"start": [1, 2]}, r"start must have one number for each of 3 vertices \(got shape \(2,\)\)"),
        ({"start": [0, 0, 0]}, r"start must hold finite numbers with a positive sum \(their sum became 0.0\)"),
        ({"start": [np.nan, 1, 1]}, "start must hold finite numbers"),
        ({"start": [np.inf, 1, 1]}, "start must hold finite numbers"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_refused_arguments(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        pagerank(graph_of([(0, 1), (1, 2)], 3), **given)


def test_other_refusals() -> None:
    graph = SPECIAL["rmat"]
    with pytest.raises(UnsupportedTypeError, match="ranks are float32 or float64"):
        pagerank(graph, dtype=np.int32)
    if not any(device.kind == "cuda" for device in atos.devices()):
        return
    with pytest.raises(LaunchConfigError):
        pagerank(graph, device="cuda")
    with pytest.raises(InvalidArgumentError, match="start is on cuda"):
        pagerank(graph, start=atos.full(graph.num_vertices, 1.0, device="cuda"))


def test_certificate_refuses_what_is_wrong() -> None:
    graph = SPECIAL["rmat"]
    truth = exact(graph)
    assert verify_pagerank(graph, truth, 1e-11) < 1e-11
    wrong = truth.copy()
    wrong[5] += 1e-4
    wrong[6:8] -= 0.5e-4
    with pytest.raises(VerificationError, match="the error may be"):
        verify_pagerank(graph, wrong, 2e-4)
    with pytest.raises(VerificationError, match="sum to"):
        verify_pagerank(graph, truth * 1.01, 1e-4)
    with pytest.raises(VerificationError):
        verify_pagerank(graph, truth, 1e-4, damping=0.8)
    with pytest.raises(VerificationError):
        verify_pagerank(graph, np.full(1024, np.nan), 1e-4)
    with pytest.raises(InvalidArgumentError, match="one rank for each of 1024 vertices"):
        verify_pagerank(graph, truth[1:])


@given(graphs(), st.data())
@settings(deadline=None, max_examples=100)
def test_certificate_is_a_bound(graph: atos.Graph, data: st.DataObject) -> None:
    n = graph.num_vertices
    ranks = np.array(data.draw(st.lists(st.integers(0, 9), min_size=n, max_size=n).filter(any)), np.float64)
    ranks /= ranks.sum()
    assert verify_pagerank(graph, ranks, 100) >= np.abs(ranks - exact(graph)).sum() - 1e-12
