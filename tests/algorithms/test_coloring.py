"""Graph coloring: right on any graph, with any schedule and worker."""

from __future__ import annotations

import random
import threading
from types import SimpleNamespace
from typing import Any
from unittest import mock

import networkx as nx
import numpy as np
import pytest
from cpu_harness import Harness
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_limits import check_registers

import atos_py as atos
from atos_py.algorithms.coloring import ORDERS, ColoringResult, api, assign, check, color, tasks, verify_coloring
from atos_py.algorithms.coloring.ranges import MAX_DEGREE, assign_range, check_range
from atos_py.algorithms.coloring.tasks import LOST, TENTATIVE, UNCOLORED, ColoringParams
from atos_py.algorithms.launch_sequence import LaunchSequence
from atos_py.compile import linker as link
from atos_py.compile.arguments import describe
from atos_py.compile.kinds import Tasks
from atos_py.compile.spec import ProgramSpec
from atos_py.errors import BuildError, InvalidArgumentError, UnsupportedTypeError
from atos_py.operators.ranges import VERTICES_PER_MIXED_RANGE

WORKERS = ["thread", "warp", "cta"]
SCHEDULES = [{"persistent": persistent, "barrier": barrier} for persistent in (True, False) for barrier in (False, True)]
DEVICES = [
    pytest.param("cpu"),
    pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(len(atos.devices()) < 2, reason="there is no GPU")]),
]

IN_RANGES = (assign_range, check_range, assign, check)


def graph_of(graph: nx.Graph[Any], device: str = "cpu") -> atos.Graph:
    return atos.Graph.from_networkx(graph, device=device)


def checked(graph: atos.Graph, *args: Any, **options: Any) -> ColoringResult:
    """Color a graph, verify it in two ways, and return the result."""
    result = color(graph, *args, **options)
    verify_coloring(graph, result.colors)
    colors = result.colors.to_numpy()
    ends = graph.to_scipy().tocoo()
    assert (colors[ends.row] != colors[ends.col])[ends.row != ends.col].all()
    assert result.num_colors == (colors.max() + 1 if colors.size else 0)
    in_ranges = result.stats.task == Tasks(IN_RANGES).name
    assert result.stats.tasks_run >= graph.num_vertices / (VERTICES_PER_MIXED_RANGE if in_ranges else 1)
    return result


@st.composite
def graphs(draw: st.DrawFn) -> atos.Graph:
    """Any multigraph with loops, directed or not."""
    n = draw(st.integers(0, 14))
    vertex = st.integers(0, max(n - 1, 0))
    edges = draw(st.lists(st.tuples(vertex, vertex), max_size=60)) if n else []
    sources, targets = np.array(edges, np.int64).reshape(-1, 2).T
    symmetrize, deduplicate = draw(st.booleans()), draw(st.booleans())
    return atos.Graph.from_edges(sources, targets, None, n, symmetrize=symmetrize, deduplicate=deduplicate, device="cpu")


@given(
    graphs(), st.sampled_from(ORDERS), st.sampled_from([None, *WORKERS]), st.sampled_from(SCHEDULES),
    st.sampled_from([1, 2, 5]), st.sampled_from([None, 1, 3]), st.sampled_from([None, 0, 50]), st.sampled_from([8, 16, 512]),
)  # fmt: skip
@settings(deadline=None, max_examples=300)
def test_random_graphs(graph, order, worker, schedule, blocks, window, patience, scratch):
    options = {"num_blocks": blocks, "window": window, "patience": patience, "shared_memory": scratch, **schedule}
    result = checked(graph, order, worker=worker, **options)
    undirected = nx.Graph([(u, v) for u, v in nx.from_scipy_sparse_array(graph.to_scipy()).edges() if u != v])
    most = max((degree for _, degree in undirected.degree()), default=0)
    assert result.num_colors <= most + 1
    if (
        worker is not None and blocks == 1 and window is None and order == "natural"
    ):  # one worker never meets a clash: greedy in the order of ids
        greedy = nx.greedy_color(undirected, strategy=lambda g, _: sorted(g))
        assert dict(enumerate(result.colors.to_numpy().tolist())) == {v: greedy.get(v, 0) for v in range(graph.num_vertices)}
        isolated = graph.num_vertices - sum(1 for v in undirected if undirected.degree(v))
        passes = (bool(patience) or schedule["barrier"]) * (graph.num_vertices > 0)
        looped = result.stats.tasks_run - passes - 2 * graph.num_vertices + isolated  # loops alone are checked too
        assert 0 <= looped <= isolated


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("worker", [None, *WORKERS])
@pytest.mark.parametrize("order", ORDERS)
def test_schedules_and_workers(device, order, worker, schedule):
    for graph in (atos.generate.rmat(11, 16, device=device), atos.generate.road(70, device=device)):
        checked(graph, order, worker=worker, **schedule)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("graph", "most"),
    [
        (nx.empty_graph(0), 0),
        (nx.empty_graph(1), 1),
        (nx.empty_graph(100), 1),
        (nx.star_graph(5000), 2),
        (nx.complete_graph(150), 150),
        (nx.complete_bipartite_graph(40, 60), 2),
        (nx.path_graph(3000), 3),
        (nx.cycle_graph(1001), 3),
        (nx.Graph([(0, 0), (0, 1), (1, 1)]), 2),
        (nx.MultiGraph([(0, 1), (0, 1), (1, 2)]), 2),
        (nx.disjoint_union(nx.complete_graph(5), nx.empty_graph(5)), 5),
    ],
    ids=str,
)
@pytest.mark.parametrize("worker", WORKERS)
def test_known_graphs(device, graph, most, worker):
    for order in ORDERS:
        checked(graph_of(graph, device), order, worker=worker)
        # `most` is what one worker needs; of several, chance has a say, and only the bound of `checked` is certain.
        if device == "cpu":
            assert checked(graph_of(graph, device), order, worker=worker, num_blocks=1).num_colors <= most


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("worker", WORKERS)
@pytest.mark.parametrize("scratch", [8, 16, 64])
def test_more_colors_than_the_scratch_memory_holds(device, worker, scratch):
    assert checked(graph_of(nx.complete_graph(200), device), worker=worker, shared_memory=scratch).num_colors == 200


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_many_clashes_end(order, schedule):
    # 16 threads on a dense graph, all of its vertices under way from the start.
    graph = graph_of(nx.gnp_random_graph(300, 0.5, seed=1))
    for patience in (0, 100):
        result = checked(graph, order, num_blocks=16, fetch_size=1, window=300, patience=patience, **schedule)
        assert result.num_colors <= 80


def hubs_and_roads(device: str) -> atos.Graph:
    """Blocks of few neighbors each, some vertices with more than a block's tasks take, loops and vertices without edges."""
    road = atos.generate.road(60, device="cpu").to_scipy().tocoo()
    rng = np.random.default_rng(1)
    hubs = np.repeat(rng.integers(3600, size=30), 100)
    sources = np.concatenate([road.row, hubs, np.arange(40), np.arange(700)])
    targets = np.concatenate([road.col, rng.integers(3600, size=3000), np.arange(40), np.arange(1, 701)])
    return atos.Graph.from_edges(sources, targets, num_vertices=4000, symmetrize=True, device=device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_ranges(device, order, schedule):
    graph = hubs_and_roads(device)
    assert (graph.degrees() > MAX_DEGREE).sum() > 20
    for num_blocks in (1, 16):
        result = checked(graph, order, num_blocks=num_blocks, **schedule)
        assert result.stats.task == Tasks(IN_RANGES).name
        sorting = set() if order == "natural" else {"set_key", "set_vertex"}
        assert set(result.stats.tasks_run_by) == {task.name for task in IN_RANGES} | sorting
        assert result.num_colors <= 12
    assert checked(graph_of(nx.complete_graph(6), device), order, **schedule).num_colors == 6


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("options", [{}, {"patience": 5}, {"window": 7}, {"barrier": True}], ids=str)
def test_hubs_come_first(device, order, options, monkeypatch):
    """They have a launch of their own, and keep their colors in the next."""
    graph = atos.generate.rmat(9, 16, device=device)
    kind = graph.device.kind
    monkeypatch.setitem(api._HUB_DEGREE, kind, 40)
    launched = []
    launch = LaunchSequence.launch

    def noted(launches: LaunchSequence, items: Any, task: atos.Task, *args: Any, worker: str = "cta", **more: Any) -> None:
        launch(launches, items, task, *args, worker=worker, **more)
        if task == (assign, check):
            done = np.asarray(args[1])
            launched.append((worker, args[2].end, int((done <= tasks.COLOR).sum())))

    monkeypatch.setattr(LaunchSequence, "launch", noted)
    checked(graph, order, **options)
    hubs = int((graph.degrees() >= 40).sum())
    assert 10 < hubs < 400
    assert launched == [("cta", hubs, hubs), ("warp", 512, 512)]


def test_neighbors_of_one_color_in_ranges():
    """All of a cycle has one color, and is to be checked: by two threads in turns of one item each."""
    n = 3 * VERTICES_PER_MIXED_RANGE
    graph = graph_of(nx.cycle_graph(n))
    colors = atos.full(n, TENTATIVE, dtype=np.uint32, device="cpu")
    queue = atos.Queue(100, device="cpu")
    queue.push(n + np.arange(3), task=check_range)
    queue.launch_cta(
        IN_RANGES,
        graph,
        colors,
        ColoringParams(None, n, n, 0),
        num_blocks=2,
        fetch_size=1,
        shared_memory=1024,
    )
    verify_coloring(graph, colors)
    assert colors.to_numpy().max() <= 2


# Two vertices with one color: who gives it up when v's check finds that. Vertex 0 has the larger degree.
@pytest.mark.parametrize(
    ("v", "entries", "expected", "pushed"),
    [
        (1, [TENTATIVE, TENTATIVE, 7], [TENTATIVE, TENTATIVE | 1, 7], [1]),
        (0, [TENTATIVE, TENTATIVE, 7], [0, TENTATIVE | LOST, 7], []),
        (0, [TENTATIVE, 0, 7], [TENTATIVE | 1, 0, 7], [0]),
        (1, [TENTATIVE | LOST, TENTATIVE, 7], [TENTATIVE | LOST, 0, 7], []),
        (1, [5, TENTATIVE | LOST, 7], [5, TENTATIVE, 7], [1]),
    ],
)
def test_who_gives_way(v, entries, expected, pushed):
    graph = atos.Graph.from_edges([0, 0], [1, 2], symmetrize=True, device="cpu")
    colors = atos.asarray(np.array(entries, np.uint32), device="cpu", copy=True)
    order = ColoringParams(None, 3, 3, 0)
    harness = Harness(np.uint32, with_kind=True)
    kinds = tuple(map(describe, (graph, colors, order)))
    code = link.native(ProgramSpec(Tasks((assign, check)), None, kinds, np.dtype(np.uint32)))
    harness.run(code, [v], graph, colors, order, kind=1)
    assert (colors.to_numpy().tolist(), harness.pushed) == (expected, pushed)
    assert harness.pushed_kinds == [1] * len(pushed)
    assert harness.ran_by[:2].tolist() == [0, 1]


class Interleaving:
    """Runs the task as plain Python in several threads, which change places at random at every access to the colors."""

    def __init__(self, graph: nx.Graph[Any], workers: int, window: int, patience: int, choose: random.Random) -> None:
        self.choose = choose
        self.main = threading.Semaphore(0)
        self.gates = [threading.Semaphore(0) for _ in range(workers)]
        self.self = threading.local()
        n = len(graph)
        csr = graph_of(graph)
        self.graph = SimpleNamespace(indptr=csr.indptr.to_numpy().tolist(), indices=csr.indices.to_numpy().tolist())
        self.colors = [UNCOLORED + v for v in range(n)]
        self.order = ColoringParams(None, n, window, patience)
        self.waiting = [(assign, v) for v in range(min(window, n))]
        self.live = set(range(workers))
        self.busy = 0
        self.tasks = 0

    # The array of colors, as the task sees it.
    def step(self) -> None:
        self.main.release()
        self.gates[self.self.number].acquire()

    def __getitem__(self, v: int) -> int:
        self.step()
        return self.colors[v]

    def __setitem__(self, v: int, entry: int) -> None:
        self.step()
        self.colors[v] = entry

    # The worker, as the task sees it.
    rank, size, sync, split = 0, 1, (lambda self: None), (lambda self, work: range(work))
    any, min, push = (lambda self, x: x), (lambda self, x: x), (lambda self, item, task: self.waiting.append((task, item)))

    def scratch(self, dtype: Any) -> Any:
        return np.zeros(8, np.int64)

    def add(self, words: Any, index: int, value: int) -> int:
        words[index] += value
        return words[index] - value

    def exchange(self, array: Any, index: int, value: int) -> int:
        self.step()
        old, self.colors[index] = self.colors[index], value
        return old

    def exchange_if(self, array: Any, index: int, expected: int, desired: int) -> int:
        old = self[index]
        if old == expected:
            self.colors[index] = desired
        return old

    def work(self, number: int) -> None:
        self.self.number = number
        self.gates[number].acquire()
        while self.busy or self.waiting:
            if self.waiting:
                task, item = self.waiting.pop(self.choose.randrange(len(self.waiting)))
                self.busy += 1
                self.tasks += 1
                task.body(self, item, self.graph, self, self.order)
                self.busy -= 1
            self.step()
        self.live.remove(number)
        self.main.release()

    def run(self) -> list[int]:
        threads = [threading.Thread(target=self.work, args=(k,), daemon=True) for k in range(len(self.gates))]
        for thread in threads:
            thread.start()
        number = -1
        while self.live:
            # In bursts, so that one can be left far behind by the others.
            if number not in self.live or self.choose.random() < 0.2:
                number = self.choose.choice(sorted(self.live))
            self.gates[number].release()
            self.main.acquire()
        return self.colors


@given(
    st.integers(2, 6), st.floats(0.3, 1), st.integers(2, 4), st.sampled_from([1, 3, 6]), st.sampled_from([0, 2]),
    st.integers(0, 2**32),
)  # fmt: skip
@settings(deadline=None, max_examples=500)
def test_any_interleaving(n, density, workers, window, patience, seed):
    choose = random.Random(seed)
    graph = nx.gnp_random_graph(n, density, seed=seed)
    run = Interleaving(graph, workers, window, patience, choose)
    with mock.patch.multiple(tasks, atomic_cas=run.exchange_if, atomic_exch=run.exchange, atomic_add=run.add):
        colors = run.run()
    assert all(colors[u] != colors[v] for u, v in graph.edges())
    assert all(colors[v] <= graph.degree(v) for v in graph)
    assert run.tasks <= 60


@pytest.mark.parametrize("order", ORDERS)
def test_no_more_colors_than_networkx_needs(order):
    strategy = {"natural": lambda g, _: sorted(g), "random": "random_sequential", "degree": "largest_first"}[order]
    for graph, slack in ((atos.generate.rmat(12, 16), 1.3), (atos.generate.road(150), 1.7)):
        undirected = nx.from_scipy_sparse_array(graph.to_scipy())
        known = 1 + max(nx.greedy_color(undirected, strategy).values())
        assert checked(graph.to("cpu"), order).num_colors <= slack * known


def test_largest_degree_first_takes_fewer_colors():
    """One worker, since several that run out of step visit vertices in another order than the one asked for."""
    graph = atos.generate.rmat(14, 16, device="cpu")
    assert checked(graph, "degree", num_blocks=1).num_colors <= 0.9 * checked(graph, "natural", num_blocks=1).num_colors


def test_the_same_result_from_one_worker():
    graph = atos.generate.rmat(10, 8, device="cpu")
    for order in ORDERS:
        first, second = (checked(graph, order, num_blocks=1).colors.to_numpy() for _ in range(2))
        np.testing.assert_array_equal(first, second)


def test_edges_of_one_direction_count():
    one_way = atos.Graph.from_edges(np.arange(99), np.arange(1, 100), device="cpu")
    assert checked(one_way, num_blocks=1).num_colors == 2
    assert not one_way.is_symmetric()
    assert one_way.simplify(symmetrize=True).is_symmetric()


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_any_row_offsets_and_wide_items(dtype, monkeypatch):
    graph = atos.generate.rmat(9, 8, device="cpu")
    wide = atos.Graph(atos.asarray(np.asarray(graph.indptr, dtype), device="cpu", readonly=True), graph.indices, None)
    for order in ORDERS:
        np.testing.assert_array_equal(
            checked(wide, order, num_blocks=1).colors.to_numpy(), checked(graph, order, num_blocks=1).colors.to_numpy()
        )
    kinds = tuple(map(describe, (wide, atos.zeros(512, dtype=np.uint32, device="cpu"), ColoringParams(None, 512, 512, 0))))
    code = link.native(ProgramSpec(Tasks((assign, check)), None, kinds, np.dtype(np.int64)))
    colors = atos.full(512, UNCOLORED, dtype=np.uint32, device="cpu")
    harness = Harness(np.int64, capacity=512, scratch_bytes=512, with_kind=True)
    harness.run(code, range(512), wide, colors, ColoringParams(None, 512, 512, 0))
    connected = graph.degrees() > 0
    assert harness.pushed == np.flatnonzero(connected).tolist()
    assert set(harness.pushed_kinds) == {1}
    verify_coloring(graph, np.asarray(colors) & tasks.COLOR)


def test_hash_is_one_to_one():
    vertices = np.arange(1 << 20, dtype=np.uint64) * 4093
    values = tasks.hash32(vertices)
    np.testing.assert_array_equal(tasks.unhash32(values), vertices)
    assert len(np.unique(values)) == len(values)
    assert values.max() < 1 << 32


@pytest.mark.part("programs")
@pytest.mark.parametrize("worker", WORKERS)
@pytest.mark.parametrize(("dtype", "given_order"), [(np.uint32, False), (np.uint32, True), (np.int64, False)])
@pytest.mark.parametrize("launched", [Tasks((assign, check)), Tasks(IN_RANGES)], ids=["vertices", "ranges"])
def test_kernels_keep_to_registers(launched, worker, dtype, given_order):
    pytest.importorskip("cuda.core", reason="cuda-core is not installed")
    graph = atos.generate.road(4, device="cpu")
    vertices = atos.asarray(np.arange(16, dtype=np.uint32), device="cpu", readonly=True) if given_order else None
    kinds = tuple(map(describe, (graph, atos.zeros(16, dtype=np.uint32, device="cpu"), ColoringParams(vertices, 16, 16, 0))))
    try:
        check_registers(ProgramSpec(launched, None, kinds, np.dtype(dtype), worker))
    except BuildError as error:
        pytest.skip(str(error))


PATH = atos.Graph.from_edges([0, 1, 1, 3], [1, 2, 1, 3], num_vertices=4, symmetrize=True, device="cpu")


def test_refused_arguments():
    with pytest.raises(InvalidArgumentError, match=r"order must be one of natural, random, degree \(got 'smallest'\)"):
        color(PATH, "smallest")
    with pytest.raises(InvalidArgumentError, match=r"worker must be one of thread, warp, cta \(got 'block'\)"):
        color(PATH, worker="block")
    with pytest.raises(InvalidArgumentError, match=r"window must be from 1 to \d+ \(got 0\)"):
        color(PATH, window=0)
    with pytest.raises(InvalidArgumentError, match=r"patience must be from 0 to \d+ \(got -1\)"):
        color(PATH, patience=-1)
    with pytest.raises(InvalidArgumentError, match=r"shared_memory must be from 8 to \d+ \(got 4\)"):
        color(PATH, shared_memory=4)
    with pytest.raises(UnsupportedTypeError, match="colors must be an array of integers, not float64"):
        verify_coloring(PATH, np.zeros(4))
    with pytest.raises(InvalidArgumentError, match=r"one entry for each of 4 vertices \(got shape \(3,\)\)"):
        verify_coloring(PATH, np.zeros(3, int))
