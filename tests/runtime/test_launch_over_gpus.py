"""One launch over several GPUs: the same tasks, each on the owner of its item, and an exact end.

With one GPU alone it is two devices, which share its blocks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tasks_over_devices
from tasks_over_devices import again, check_interrupt, check_progress, check_traces, count, parts_of_path, visit

import atos_py as atos
from atos_py.errors import (
    InvalidArgumentError,
    LaunchConfigError,
    LaunchTimeoutError,
    QueueFullError,
    TaskError,
)

FOUND = [str(device) for device in atos.devices() if device.kind == "cuda"]
PAIR = FOUND[:2] if len(FOUND) > 1 else FOUND * 2
FOUR = [device for device in PAIR for _ in range(2)]
WORKERS = ["thread", "warp", "cta"]
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not FOUND, reason="needs a GPU")]


@atos.task
def step(worker, v, parts, level, stop_at):
    """Note the round, and push the next vertex of a path."""
    if worker.rank == 0:
        level[v] = worker.round
        if parts.original[v] == stop_at:
            worker.stop()
    for e in worker.split(range(parts.indptr[v], parts.indptr[v + 1])):
        if parts.original[parts.indices[e]] > parts.original[v]:
            worker.push(parts.indices[e])


def parts_of(n: int, devices: list[str] = PAIR, order: str = "random") -> atos.Partition:
    return parts_of_path(n, devices, order)


def search(*given: Any, capacity: int = 100_000, **options: Any) -> atos.LaunchStats:
    return tasks_over_devices.search(*given, capacity, timeout=20, **options)


@pytest.fixture(scope="module")
def graph() -> atos.Graph:
    return atos.generate.rmat(14, 16, 1, device=FOUND[0])


@pytest.mark.parametrize("worker", WORKERS)
@pytest.mark.parametrize("order", ["keep", "random"])
@pytest.mark.parametrize("devices", [PAIR[:1], PAIR, FOUR], ids=["one", "two", "four"])
@pytest.mark.parametrize("barrier", [False, True], ids=["relaxed", "barrier"])
def test_bfs(graph, worker, order, devices, barrier):
    source = int(np.argmax(graph.degrees()))
    stats = search(graph, graph.partition(devices, order=order), source, worker, barrier=barrier)
    if barrier:  # level by level; the last level pushes nothing
        depth = atos.bfs(graph, source).depth.to_numpy()
        assert stats.tasks_run == np.count_nonzero(depth != atos.UNREACHED)
        assert stats.rounds == depth[depth != atos.UNREACHED].max() + 1
    assert [each.device for each in stats.devices] == devices
    for name in ("tasks_run", "tasks_pushed", "num_workers", "grown"):
        assert getattr(stats, name) == sum(getattr(each, name) for each in stats.devices)
    assert stats.tasks_run == stats.tasks_pushed + 1
    assert all(each.tasks_run > 0 for each in stats.devices)


@pytest.mark.parametrize("worker", WORKERS)
@pytest.mark.parametrize("barrier", [False, True], ids=["relaxed", "barrier"])
def test_a_queue_grows_while_all_push(graph, worker, barrier):
    source = int(np.argmax(graph.degrees()))
    stats = search(graph, graph.partition(PAIR, "random"), source, worker, barrier=barrier, capacity=16)
    assert all(each.grown > 0 for each in stats.devices)


def test_a_full_queue_keeps_everything(graph):
    """Items that find no room are in the queue of their owner."""
    parts = graph.partition(PAIR, "random")
    source = int(np.argmax(graph.degrees()))
    depth = atos.full(graph.num_vertices, atos.UNREACHED, dtype=np.uint32, partition=parts)
    depth[source] = 0
    queue = atos.Queue(30, max_capacity=30, owner=parts)
    queue.push(source)
    with pytest.raises(QueueFullError, match="more than the queue's capacity of 30") as error:
        queue.launch_cta(visit, parts, depth, timeout=20)
    assert error.value.pending == len(queue) > 0
    assert error.value.lost == 0
    queue.max_capacity = 1 << 20
    queue.launch_cta(visit, parts, depth, timeout=20)
    atos.verify_bfs(graph, source, depth.to_numpy())


@pytest.mark.parametrize("worker", WORKERS)
@pytest.mark.parametrize("dtype", [np.uint32, np.int64, [("vertex", "u4"), ("hops", "i4")], [("vertex", "i8"), ("x", "f8", 2)]])
def test_items_of_all_sizes(worker, dtype):
    if isinstance(dtype, list) and len(dtype[1]) == 3:
        dtype = [("vertex", "i8"), ("hops", "i8"), ("x", "f8"), ("y", "f8")]
    kind = np.dtype(dtype)

    @atos.task
    def mark(worker, v, seen):
        if worker.rank == 0:
            atos.atomic_add(seen, v, 1)
            if seen[v] < 3:
                worker.push(v)

    @atos.task
    def mark_record(worker, item, seen):
        if worker.rank == 0:
            atos.atomic_add(seen, item.vertex, 1)
            if item.hops > 0:
                rest = (item.hops - 1,) if len(item) == 2 else (item.hops - 1, item[2], item[3])
                worker.push((item.vertex + 1, *rest))

    parts = parts_of(2000, FOUR, "keep")
    queue, seen = atos.Queue(100, dtype=kind, owner=parts), atos.full(2000, 0, dtype=np.int64, partition=parts)
    if kind.names is None:
        queue.push(np.arange(2000, dtype=kind))
        stats = getattr(queue, f"launch_{worker}")(mark, seen, timeout=20)
        assert stats.tasks_run == 6000
        assert seen.to_numpy().tolist() == [3] * 2000
        return
    items = np.zeros(3, kind)
    items["vertex"], items["hops"] = (0, 500, 1500), (1900, 100, 499)
    queue.push(items)
    stats = getattr(queue, f"launch_{worker}")(mark_record, seen, timeout=20)
    assert stats.tasks_run == 1901 + 101 + 500
    expected = np.zeros(2000, np.int64)
    for first, hops in ((0, 1900), (500, 100), (1500, 499)):
        expected[first : first + hops + 1] += 1
    assert np.array_equal(seen.to_numpy(), expected)


@pytest.mark.parametrize("worker", WORKERS)
def test_rounds_are_of_all_devices(worker):
    """A task sees the number of its round, and a level that was interrupted goes on as one."""
    parts = parts_of(40, FOUR)
    level = atos.full(40, -1, partition=parts)
    queue = atos.Queue(40, owner=parts)
    queue.push(0)
    launch = getattr(queue, f"launch_{worker}")
    stats = launch(step, parts, level, 9, barrier=True, timeout=20)
    assert stats.stopped
    assert stats.rounds == 10
    assert queue.peek().tolist() == [10]
    assert level.to_numpy().tolist() == [*range(10), *[-1] * 30]
    assert launch(step, parts, level, -1, barrier=True, timeout=20).rounds == 30
    assert level.to_numpy()[10:].tolist() == list(range(30))


@pytest.mark.parametrize("worker", WORKERS)
@pytest.mark.parametrize("barrier", [False, True], ids=["relaxed", "barrier"])
def test_a_timeout_stops_all(worker, barrier):
    queue = atos.Queue(10, owner=parts_of(10, FOUR))
    queue.push(range(7))
    for _ in range(3):
        with pytest.raises(LaunchTimeoutError, match="7 tasks are unfinished") as error:
            getattr(queue, f"launch_{worker}")(again, timeout=0.05, barrier=barrier)
        assert not error.value.stuck
        assert sorted(queue.peek().tolist()) == list(range(7))


def test_ctrl_c_stops_all():
    check_interrupt(parts_of(10))


@pytest.mark.parametrize("last", [1, 8])
def test_a_task_stops_all(last):
    """On the first device, and on the second."""

    @atos.task
    def stop_at(worker, v, last):
        if worker.rank == 0:
            if v == last:
                worker.stop()
            worker.push(v)

    queue = atos.Queue(10, owner=parts_of(10, PAIR, "keep"))
    queue.push(range(10))
    stats = queue.launch_cta(stop_at, last, timeout=20)
    assert stats.stopped
    assert sorted(queue.peek().tolist()) == list(range(10))


@pytest.mark.parametrize("vertex", [2, 7])
def test_a_failed_check_names_the_item_by_its_id(vertex):
    """On whatever device it failed."""

    @atos.task
    def check_vertex(worker, v, parts, seen, vertex):
        if worker.rank == 0:
            seen[parts.original[v] + (10 if parts.original[v] == vertex else 0)] = 1

    parts = parts_of(10, PAIR, "keep")
    queue = atos.Queue(10, owner=parts)
    queue.push(range(10))
    with pytest.raises(TaskError, match=f"index {vertex + 10}") as error:
        queue.launch_cta(check_vertex, parts, atos.zeros(10, device=PAIR[0]), vertex, debug=True, timeout=20)
    assert error.value.item == vertex


def test_workers_have_numbers_of_their_own():
    @atos.task
    def mark(worker, v, seen, workers):
        if worker.rank == 0:
            seen[worker.index] = 1
            workers[0] = worker.count

    parts = parts_of(1000, PAIR)
    queue = atos.Queue(1000, owner=parts)
    queue.push(range(1000))
    seen, workers = (atos.zeros(n, dtype=np.int64, device=PAIR[0]) for n in (8, 1))
    queue.launch_cta(mark, seen, workers, num_blocks=4, timeout=20)
    assert workers[0] == 8
    assert seen.to_numpy().reshape(2, 4).any(axis=1).all()


def test_long_items_are_split():
    """A star, whose center has enough edges for all workers of its owner."""
    n = 200_000
    star = atos.Graph.from_edges(np.zeros(n - 1, np.uint32), np.arange(1, n), num_vertices=n, symmetrize=True, device="cpu")
    for barrier in (False, True):
        stats = search(star, star.partition(PAIR, "random"), 5, "cta", barrier=barrier)
        assert stats.tasks_run == n


def test_launches_follow_each_other(graph):
    """With the same queue and arrays, and beside launches on each GPU."""
    parts, source = graph.partition(PAIR, "random"), int(np.argmax(graph.degrees()))
    queue = atos.Queue(100_000, owner=parts)
    for turn in range(20):
        depth = atos.full(graph.num_vertices, atos.UNREACHED, dtype=np.uint32, partition=parts)
        depth[source] = 0
        queue.push(source)
        queue.launch_warp(visit, parts, depth, barrier=turn % 3 == 0, timeout=20)
        atos.verify_bfs(graph, source, depth.to_numpy())
        atos.bfs(graph, source)
    assert queue.tasks_run == queue.tasks_pushed + 20


@pytest.mark.parametrize("order", ["keep", "random"])
def test_algorithms(graph, order):
    weighted = graph.with_weights(atos.generate.random_weights(graph, 1, 20))
    parts, source = weighted.partition(PAIR, order), int(np.argmax(graph.degrees()))
    found = atos.bfs(parts, source)
    atos.verify_bfs(graph, source, found.depth.to_numpy())
    paths = atos.sssp(parts, source)
    atos.verify_sssp(weighted, source, paths.distance.to_numpy())
    joined = atos.connected_components(parts)
    atos.verify_connected_components(graph, joined.label.to_numpy(), joined.num_components)
    for each in (found, paths, joined):
        assert [device.device for device in each.stats.devices] == PAIR
    symmetric = graph.to_symmetric()
    ranks = atos.pagerank(symmetric.partition(PAIR, order), tolerance=1e-3)
    atos.verify_pagerank(symmetric, ranks.rank.to_numpy(), 1e-3)


def test_what_other_gpus_do_not_reach_is_refused():
    queue = atos.Queue(10, owner=parts_of(10))
    cupy = pytest.importorskip("cupy")
    with cupy.cuda.Device(0), pytest.raises(InvalidArgumentError, match="another library has allocated"):
        queue.launch_cta(count, cupy.zeros(10, dtype=cupy.int64))


def test_more_blocks_than_are_resident_are_refused():
    parts = parts_of(10, FOUR)
    queue, seen = atos.Queue(10, owner=parts), atos.full(10, 0, partition=parts)
    with pytest.raises(LaunchConfigError, match="are resident at once"):
        queue.launch_cta(count, seen, num_blocks=100_000)


@pytest.mark.parametrize("barrier", [False, True], ids=["relaxed", "barrier"])
def test_a_trace_of_each_device_and_of_all(barrier):
    check_traces(parts_of(2000, order="keep"), barrier)


@pytest.mark.parametrize("devices", [PAIR, FOUR], ids=["two", "four"])
@pytest.mark.parametrize("with_trace", [False, True])
def test_progress_is_that_of_all_devices(devices, with_trace):
    check_progress(parts_of(3000, devices), 2_000_000, {"trace": 50} if with_trace else {})
