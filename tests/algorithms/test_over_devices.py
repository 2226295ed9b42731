"""Algorithms over the parts of a graph on several devices: proved right, in the ids of the graph, with any partition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import atos_py as atos
from atos_py.algorithms.bfs.tasks import FOLLOWED_DEGREE
from atos_py.errors import InvalidArgumentError, LaunchConfigError, UnsupportedTypeError
from atos_py.graph.partition import order_by_degree, suit_devices

GPUS = [str(device) for device in atos.devices() if device.kind == "cuda"]
on_gpu = [pytest.mark.gpu, pytest.mark.skipif(not GPUS, reason="needs a GPU")]
each_kind = pytest.mark.parametrize("kind", ["cpu", pytest.param("cuda", marks=on_gpu)])


def devices_of_kind(kind: str) -> list[str]:
    return ["cpu:0", "cpu:1", "cpu:2"] if kind == "cpu" else (GPUS[:2] if len(GPUS) > 1 else GPUS * 2)


@st.composite
def partitioned(draw: Any) -> tuple[atos.Graph, atos.Partition]:
    n = draw(st.integers(1, 120))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    ends = rng.integers(0, n, (2, draw(st.integers(0, 4 * n))))
    weights = draw(st.sampled_from([None, rng.integers(0, 9, ends.shape[1]), rng.random(ends.shape[1], np.float32)]))
    graph = atos.Graph.from_edges(*ends, weights, n, symmetrize=draw(st.booleans()), device="cpu")
    devices = [f"cpu:{k}" for k in range(draw(st.integers(1, 4)))]
    return graph, graph.partition(devices, draw(st.sampled_from(["keep", "random", "degree"])))


@given(partitioned(), st.sampled_from([None, "warp"]), st.booleans())
@settings(deadline=None, max_examples=60)
def test_random_graphs(made, worker, barrier):
    graph, parts = made
    n = graph.num_vertices
    sources = [0, n // 2]
    found = atos.bfs(parts, sources, worker=worker, barrier=barrier, parents=True)
    atos.verify_bfs(graph, sources, found.depth.to_numpy(), found.parent.to_numpy())
    assert np.array_equal(found.parent.to_numpy(), atos.bfs(graph, sources, parents=True).parent.to_numpy())
    assert found.num_levels == atos.bfs(graph, sources).num_levels
    if graph.is_symmetric():
        by_level = atos.bfs(parts, sources, direction="auto", worker=worker, parents=True)
        assert np.array_equal(by_level.depth.to_numpy(), found.depth.to_numpy())
        assert np.array_equal(by_level.parent.to_numpy(), found.parent.to_numpy())
    else:
        with pytest.raises(InvalidArgumentError, match="to_symmetric"):
            atos.bfs(parts, sources, direction="auto")
    paths = atos.sssp(parts, sources, worker=worker, barrier=barrier)
    atos.verify_sssp(graph, sources, paths.distance.to_numpy())
    assert paths.distance.dtype == atos.sssp(graph, sources).distance.dtype
    joined = atos.connected_components(parts, worker=worker)
    atos.verify_connected_components(graph, joined.label.to_numpy(), joined.num_components)
    for each in (found, paths, joined):
        assert len(each.stats.devices) == len(parts.devices)
        assert sum(device.tasks_run for device in each.stats.devices) == each.stats.tasks_run


@given(partitioned(), st.sampled_from([0.0, 0.5, 0.85]), st.sampled_from([1e-2, 1e-4]), st.sampled_from(["f4", "f8"]))
@settings(deadline=None, max_examples=25)
def test_random_ranks(made, damping, tolerance, dtype):
    graph, parts = made
    if not graph.is_symmetric() and len(parts.devices) > 1:
        with pytest.raises(InvalidArgumentError, match="to_symmetric"):
            atos.pagerank(parts)
        return
    found = atos.pagerank(parts, damping, tolerance, dtype=dtype)
    assert found.rank.dtype == dtype
    assert found.error_bound <= tolerance
    atos.verify_pagerank(graph.with_weights(None), found.rank.to_numpy(), tolerance, damping=damping)


def test_ranks_of_a_graph_and_of_parts_that_share_its_arrays():
    """Each has ranges of its own, which are kept by its devices."""
    graph = atos.generate.rmat(9, 8, device="cpu")
    for where in (graph, *[graph.partition([f"cpu:{k}" for k in range(count)]) for count in (1, 3, 2)], graph):
        atos.verify_pagerank(graph, atos.pagerank(where).rank.to_numpy(), 1e-4)


@pytest.mark.parametrize("worker", ["thread", "warp", "cta"])
@pytest.mark.parametrize("order", ["keep", "random"])
@each_kind
def test_levels_that_push_pull_and_push_again(worker, order, kind):
    """A scale-free graph with long paths at its end: each kind of round comes, and ranges lie across the borders of devices."""
    core = atos.generate.rmat(13, 16, 3, device="cpu")
    n = core.num_vertices
    ends, targets = np.repeat(np.arange(n), np.diff(core.indptr[:])), core.indices[:]
    path = np.arange(n, n + 3001)
    graph = atos.Graph.from_edges(
        [*ends, int(core.degrees().argmax()), *path[:-1]], [*targets, n, *path[1:]], symmetrize=True, device="cpu"
    )
    source = int(core.degrees().argmin())
    while core.degrees()[source] == 0:
        source += 1
    devices = devices_of_kind(kind)
    parts = graph.partition(devices, order)
    found = atos.bfs(parts, source, direction="auto", worker=worker)
    atos.verify_bfs(graph, source, found.depth.to_numpy())
    tree = atos.bfs(parts, source, direction="auto", worker=worker, parents=True)
    atos.verify_bfs(graph, source, tree.depth.to_numpy(), tree.parent.to_numpy())
    pushed = atos.bfs(parts, source, direction="push")
    assert found.stats.tasks_run < pushed.stats.tasks_run  # most vertices were found without a task
    assert found.stats.rounds > found.num_levels  # levels that pull take two rounds
    atos.verify_pagerank(graph, atos.pagerank(parts).rank.to_numpy(), 1e-4)


def test_searches_with_an_end():
    graph = atos.generate.road(40, 0.8, device="cpu")
    graph = graph.with_weights(atos.generate.random_weights(graph, 1, 20))
    parts = graph.partition(["cpu:0", "cpu:1"], "random")
    source, target = 820, 25
    exact, length = atos.bfs(graph, source).depth, atos.sssp(graph, source).distance
    found = atos.bfs(parts, source, target=target)
    assert found.depth[target] == exact[target]
    atos.verify_bfs(graph, source, atos.bfs(parts, source, cutoff=7).depth.to_numpy(), cutoff=7)
    for direction in ("push", "auto"):
        assert atos.bfs(parts, source, target=target, direction=direction).depth[target] == exact[target]
        near = atos.bfs(parts, source, cutoff=7, direction=direction).depth.to_numpy()
        atos.verify_bfs(graph, source, near, cutoff=7)
        assert atos.bfs(parts, source, cutoff=0, direction=direction).num_reached == 1
        near = atos.bfs(parts, source, cutoff=7, direction=direction, parents=True)
        atos.verify_bfs(graph, source, near.depth.to_numpy(), near.parent.to_numpy(), cutoff=7)
        ended, here = atos.bfs(parts, source, target=target, direction=direction, parents=True), target
        for depth in range(int(exact[target]), 0, -1):
            assert exact[here] == depth
            here = int(ended.parent[here])
        assert here == source
    paths = atos.sssp(parts, source, target=target)
    assert paths.distance[target] == length[target]
    atos.verify_sssp(graph, source, paths.distance.to_numpy(), target=target)
    near = atos.sssp(parts, source, cutoff=30)
    atos.verify_sssp(graph, source, near.distance.to_numpy(), cutoff=30)


@given(partitioned(), st.sampled_from(["auto", 0.25, 1, 3.5, 1e9]), st.booleans())
@settings(deadline=None, max_examples=60)
def test_paths_in_the_order_of_distances(made, delta, with_end):
    graph, parts = made
    n = graph.num_vertices
    if graph.weights is None:
        graph = graph.with_weights(np.ones(graph.num_edges, np.int64) * 5)
        parts = graph.partition([f"cpu:{k}" for k in range(len(parts.devices))], "random")
    source, target = 0, n - 1
    if with_end:
        found = atos.sssp(parts, source, delta=delta, target=target)
        assert found.distance[target] == atos.sssp(graph, source).distance[target]
        near = atos.sssp(parts, source, delta=delta, cutoff=7)
        atos.verify_sssp(graph, source, near.distance.to_numpy(), cutoff=7)
    else:
        atos.verify_sssp(graph, source, atos.sssp(parts, source, delta=delta).distance.to_numpy())


@each_kind
@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.float64, np.int64])
def test_the_order_saves_tasks(kind, dtype):
    graph = atos.generate.road(80, 0.9, device="cpu")
    far = 1 << 40 if dtype == np.int64 else 1  # distances of 64 bits
    graph = graph.with_weights(atos.generate.random_weights(graph, 1, 255).to_numpy().astype(dtype) * far)
    devices = devices_of_kind(kind)
    parts = graph.partition(devices, "random")
    # A bucket as wide as a mean weight, and one for all. By default those of a GPU are wider, which gives all its workers some.
    ordered, by_arrival = atos.sssp(parts, 0, delta=128 * far), atos.sssp(parts, 0, delta=1e30)
    for found in (ordered, by_arrival, atos.sssp(parts, 0), atos.sssp(parts, 0, barrier=True)):
        atos.verify_sssp(graph, 0, found.distance.to_numpy())
    assert ordered.stats.tasks_run < (3 if kind == "cpu" else 5) * graph.num_vertices
    if kind == "cpu":
        assert by_arrival.stats.tasks_run > 2 * ordered.stats.tasks_run


@pytest.mark.parametrize("options", [pytest.param({}, marks=on_gpu), pytest.param({"worker": "cta"}, marks=on_gpu)], ids=str)
def test_large_meshes_run_in_the_order_of_distances(options):
    """Items that no worker waits for go back to their bucket: in the ring they wait while the next buckets are opened.

    That was 75 to 92 tasks for each vertex, and is 1.6 to 6.
    """
    graph = atos.generate.road(4900, 0.62, device="cpu")
    graph = graph.with_weights(atos.generate.random_weights(graph, 1, 255))
    source = graph.num_vertices // 2
    found = atos.sssp(graph.partition(devices_of_kind("cuda")), source, **options)
    expected = atos.sssp(graph.to("cuda:0"), source)
    assert np.array_equal(found.distance.to_numpy(), expected.distance.to_numpy())
    assert found.stats.tasks_run_by["relax" if options else "relax_along"] > graph.num_vertices // 2
    assert found.stats.tasks_run < 16 * graph.num_vertices


@each_kind
@pytest.mark.parametrize("order", ["keep", "random"])
def test_groups_of_threads_follow_paths_on_meshes(monkeypatch, kind, order):
    monkeypatch.setitem(FOLLOWED_DEGREE, "cpu", FOLLOWED_DEGREE["cuda"])
    graph = atos.generate.road(70, 0.8, device="cpu")
    graph = graph.with_weights(atos.generate.random_weights(graph, 1, 255))
    parts = graph.partition(devices_of_kind(kind), order)
    found = atos.bfs(parts, [7, 2400], parents=True)
    assert "visit_along" in found.stats.tasks_run_by
    atos.verify_bfs(graph, [7, 2400], found.depth.to_numpy(), found.parent.to_numpy())
    paths = atos.sssp(parts, [7, 2400])
    assert paths.stats.task == "relax_along"
    atos.verify_sssp(graph, [7, 2400], paths.distance.to_numpy())
    for chosen in (atos.bfs(parts, 7, worker="cta"), atos.bfs(parts, 7, cutoff=9), atos.sssp(parts, 7, barrier=True)):
        assert not chosen.stats.task.endswith("along")


@each_kind
@pytest.mark.parametrize(("longest", "rounds"), [(1, 2), (2**30, 3), (2**31, 1)])
def test_long_distances_are_looked_for_in_32_bits_first(kind, longest, rounds):
    """Two launches if all fit, three if some do not, and one if a single edge might not."""
    graph = atos.generate.road(40, 1.0, device="cpu")
    weights = np.full(graph.num_edges, longest, np.int64)
    weights[-1] = weights[graph.indptr[graph.num_vertices - 3] : graph.indptr[graph.num_vertices - 2]] = max(longest, 2**30)
    graph = graph.with_weights(weights)
    parts = graph.partition(devices_of_kind(kind), "random")
    found = atos.sssp(parts, 3)
    assert found.distance.dtype == np.int64
    atos.verify_sssp(graph, 3, found.distance.to_numpy())
    assert np.array_equal(found.distance.to_numpy(), atos.sssp(graph, 3).distance.to_numpy())
    assert len(found.stats.devices) == len(parts.devices)
    assert found.stats.rounds == rounds
    near = atos.sssp(parts, 3, cutoff=5 * longest)
    atos.verify_sssp(graph, 3, near.distance.to_numpy(), cutoff=5 * longest)


@given(st.lists(st.integers(0, 30), max_size=60), st.integers(1, 6))
@settings(deadline=None)
def test_vertices_are_dealt_by_degree(given_degrees, count):
    degrees = np.array(given_degrees, np.int64)
    n, order = len(degrees), order_by_degree(degrees, count)
    assert np.array_equal(np.sort(order), np.arange(n))
    chunk = max(-(-n // count), 1)
    parts = [order[k * chunk : (k + 1) * chunk] for k in range(count)]
    for part in parts:
        assert (np.diff(degrees[part]) <= 0).all()
    full_parts = [int(degrees[part].sum()) for part in parts if len(part) == chunk]
    if full_parts:  # those that own as many differ by no more than the largest degree
        assert max(full_parts) - min(full_parts) <= degrees.max(initial=0)


def test_each_device_gets_as_many_edges():
    graph = atos.generate.rmat(12, 16, 1, device="cpu")
    for count in (2, 3, 4):
        parts = graph.partition([f"cpu:{k}" for k in range(count)], order="degree")
        edges = np.diff([int(parts.indptr[vertex]) for vertex in parts.ownership.borders])
        assert edges.sum() == graph.num_edges
        if count != 3:  # the last of three owns fewer vertices
            assert edges.max() - edges.min() <= graph.degrees().max()
            assert edges.max() <= 1.02 * edges.mean()
        atos.verify_bfs(graph, 0, atos.bfs(parts, 0).depth.to_numpy())
    with pytest.raises(InvalidArgumentError, match="needs all degrees"):
        atos.generate.rmat(4, devices=["cpu:0", "cpu:1"], order="degree")


def test_graphs_that_fit_one_gpu_stay_on_it():
    gpus, best = [atos.device("cpu:1"), atos.device("cpu:2")], atos.device("cpu")  # in their place
    room = 64 << 30
    assert suit_devices(4_194_304, 128_000_000, gpus, best, room) == (best,)
    assert suit_devices(1 << 28, 1 << 33, gpus, best, room) == tuple(gpus)
    assert suit_devices(1 << 28, 1 << 33, gpus[:1], best, room) == (best,)
    graph = atos.generate.road(3, 1.0, device="cpu")
    assert len(graph.partition("auto").devices) == 1
    assert len(graph.partition(devices="auto", order="random").devices) == 1
    parts = atos.generate.rmat(5, devices="auto", order="random")
    assert len(parts.devices) == 1
    assert parts.num_vertices == 32


each_single = pytest.mark.parametrize("device", ["cpu:0", "cpu:3", pytest.param("cuda:0", marks=on_gpu)])


@each_single
@pytest.mark.parametrize("order", ["keep", "random", "degree"])
def test_parts_of_one_device_are_the_graph(device, order):
    graph = atos.generate.rmat(9, 8, 2, device=device)
    graph = graph.with_weights(atos.generate.random_weights(graph, 1, 9))
    parts = graph.partition([device], order)
    assert parts.ownership.ids is None
    assert parts.original[5] == 5
    if device != "cpu:3":  # cpu:0 in another name has the same memory
        assert parts.indices is graph.indices
    source = int(graph.degrees().argmax())
    for call, name in (
        (lambda where: atos.bfs(where, source, parents=True), "parent"),
        (lambda where: atos.bfs(where, source, direction="auto"), "depth"),
        (lambda where: atos.sssp(where, source, predecessors=True), "distance"),
        (atos.connected_components, "label"),
    ):
        found, expected = call(parts), call(graph)
        array = getattr(found, name)
        assert isinstance(array, atos.PartitionedArray)
        assert array.ownership is parts.ownership
        assert np.array_equal(array.to_numpy(), getattr(expected, name).to_numpy())
        assert found.stats.task == expected.stats.task
        assert found.stats.registers == expected.stats.registers
        (only,) = found.stats.devices
        assert (only.device, only.tasks_run) == (str(atos.device(device)), found.stats.tasks_run)
    paths = atos.sssp(parts, source, predecessors=True)
    atos.verify_sssp(graph, source, paths.distance.to_numpy(), paths.predecessor.to_numpy())
    for ranks in (atos.pagerank(parts), atos.pagerank(parts, find="push"), atos.pagerank(graph=parts, start=np.ones(512))):
        atos.verify_pagerank(graph.with_weights(None), ranks.rank.to_numpy(), 1e-4)


@each_single
@pytest.mark.parametrize("worker", ["thread", "warp", "cta"])
def test_a_task_of_ones_own_runs_over_one_device_as_on_it(device, worker):
    @atos.task
    def search(worker, v, graph, depth):
        for edge in worker.split(range(graph.indptr[v], graph.indptr[v + 1])):
            u = graph.indices[edge]
            if atos.atomic_min(depth, u, depth[v] + np.uint32(1)) > depth[v] + np.uint32(1):
                worker.push(u)

    graph = atos.generate.road(30, 0.9, device=device)
    parts = graph.partition([device], "random")
    found = atos.bfs(parts, 17)
    runs = []
    for where in ({"device": device}, {"partition": parts}):
        depth = atos.full(graph.num_vertices, 2**32 - 1, dtype=np.uint32, **where)
        depth[17] = 0
        queue = atos.Queue(4, owner=parts) if "partition" in where else atos.Queue(4, device=device)
        queue.push(range(17, 18))
        runs.append(getattr(queue, f"launch_{worker}")(search, parts if "partition" in where else graph, depth, trace=0.01))
        assert np.array_equal(depth.to_numpy(), found.depth.to_numpy())
    assert runs[0].registers == runs[1].registers
    assert runs[1].devices[0].trace is not None
    assert len(runs[1].trace) == len(runs[1].devices[0].trace)
    queue.push([899])
    with pytest.raises(InvalidArgumentError, match="900"):
        queue.push(range(895, 901))
    assert queue.peek().tolist() == [899]
    doubled = atos.Queue(4, owner=parts)  # goes on with an array that an algorithm has returned
    doubled.push(range(900))
    getattr(doubled, f"launch_{worker}")(double, found.depth, 900)
    assert np.array_equal(found.depth.to_numpy(), 2 * depth.to_numpy())


@atos.task
def hand_over(worker, v, depth, other, pool):
    """Double the depth of v, put v into another queue, and write it down in a pool."""
    if worker.rank == 0:
        depth[v] = depth[v] * np.uint32(2)
        other.push(v)
        pool.vertex[pool.take(1)] = v


def never(worker, depth, other, pool):
    """Do nothing."""


@each_single
def test_what_several_devices_refuse_may_be_done_over_one(device):
    parts = atos.generate.road(6, 1.0, device=device).partition([device])
    depth = atos.full(36, 3, dtype=np.uint32, partition=parts)
    queue, other = atos.Queue(50, owner=parts), atos.Queue(200, device=device)
    pool = atos.Pool([("vertex", np.uint32)], 200, device=device)
    for options in ({"persistent": False}, {"idle": never}):
        queue.push(range(36))
        assert queue.launch_warp(hand_over, depth, other, pool, **options).tasks_run == 36
    with queue.start(hand_over, depth, other, pool, worker="warp") as run:
        run.push([7, 35])
        with pytest.raises(InvalidArgumentError, match=r"of which there are 36 \(got 36\)"):
            run.push([36])
    assert run.wait().devices[0].tasks_run == 2
    expected = np.full(36, 12)
    expected[[7, 35]] = 24
    assert np.array_equal(depth.to_numpy(), expected)
    assert sorted(other.peek()) == sorted([*range(36), *range(36), 7, 35])
    assert sorted(pool.vertex[:]) == sorted(other.peek())
    two = atos.generate.road(6, 1.0, device="cpu").partition(["cpu:0", "cpu:1"])
    ones, over_two = atos.full(36, 1, dtype=np.uint32, partition=two), atos.Queue(5, owner=two)
    with pytest.raises(LaunchConfigError, match="persistent=False"):
        over_two.launch_warp(double, ones, 1, persistent=False)


@atos.task
def double(worker, v, depth, n):
    if worker.rank == 0:
        depth[v] = depth[v] * np.uint32(2)


def test_results_over_parts_are_of_no_other_library():
    graph = atos.generate.road(5, 1.0, device="cpu")
    for array in (graph.indptr, graph.indices):
        array.library = "jax"  # as if it had made them, whose arrays nobody may write
    found = atos.bfs(graph.partition(["cpu"]), 0)
    found.depth[3] = 7
    assert found.depth[3] == 7


@pytest.mark.parametrize("devices", [["cpu"], ["cpu:0", "cpu:1"]], ids=["one", "two"])
def test_a_function_between_the_rounds_of_long_distances(devices):
    def between(worker, graph, distance, target, cutoff):
        pass

    graph = atos.generate.road(20, 1.0, device="cpu")
    graph = graph.with_weights(np.full(graph.num_edges, 2**25, np.int64))
    found = atos.sssp(graph.partition(devices), 0, barrier=True, each_round=between)
    assert found.distance.dtype == np.int64
    atos.verify_sssp(graph, 0, found.distance.to_numpy())


def test_nothing():
    parts = atos.Graph.from_edges([], [], num_vertices=0, device="cpu").partition(["cpu:0", "cpu:1"])
    assert atos.connected_components(parts).num_components == 0
    assert atos.pagerank(parts).rank.shape == (0,)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda parts: atos.bfs(parts, 0, direction="down"), InvalidArgumentError, "direction must be one of"),
        (lambda parts: atos.bfs(parts, 0, parents=1), UnsupportedTypeError, "parents must be True or False"),
        (lambda parts: atos.bfs(parts, 9), InvalidArgumentError, "9"),
        (lambda parts: atos.bfs(parts, 0, target=9), InvalidArgumentError, "9"),
        (lambda parts: atos.bfs(parts, 0, fetch=1), UnsupportedTypeError, "fetch_size"),
        (lambda parts: atos.bfs(parts, 0, persistent=False), LaunchConfigError, "persistent=False"),
        (lambda parts: atos.sssp(parts, 0, predecessors=True), LaunchConfigError, "no predecessors yet"),
        (lambda parts: atos.sssp(parts, 0, delta=-3), InvalidArgumentError, "delta"),
        (lambda parts: atos.connected_components(parts, worker="grid"), InvalidArgumentError, "worker"),
        (lambda parts: atos.connected_components(parts, barrier=False), LaunchConfigError, "barrier=False"),
        (lambda parts: atos.connected_components(parts, each_round=len), LaunchConfigError, "each_round"),
        (lambda parts: atos.pagerank(parts, find="push"), LaunchConfigError, "no find yet"),
        (lambda parts: atos.pagerank(parts, start=[1, 1, 1]), LaunchConfigError, "no start yet"),
        (lambda parts: atos.pagerank(parts, barrier=False), LaunchConfigError, "barrier=False"),
        (lambda parts: atos.core_number(parts), UnsupportedTypeError, "must be an atos.Graph.*not its parts"),
    ],
)
def test_what_is_not_there_yet_is_refused(call, error, text):
    graph = atos.Graph.from_edges([0, 1], [1, 2], symmetrize=True, device="cpu")
    with pytest.raises(error, match=text):
        call(graph.partition(["cpu:0", "cpu:1"]))
