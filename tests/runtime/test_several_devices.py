"""One launch over several CPU devices: the same tasks, each on the owner of its item, and an exact end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tasks_over_devices
from cases import CASES
from tasks_over_devices import again, check_interrupt, check_progress, check_traces, count, parts_of_path

import atos_py as atos
from atos_py.errors import (
    InvalidArgumentError,
    LaunchConfigError,
    LaunchTimeoutError,
    QueueFullError,
    TaskError,
    UnsupportedTypeError,
)

TWO, FIVE = ["cpu:0", "cpu:1"], [f"cpu:{i}" for i in range(5)]
WORKERS = ["thread", "warp", "cta"]


@atos.task
def follow(worker, v, parts, seen):
    """Mark a vertex, and push its neighbors that were not marked."""
    for e in range(parts.indptr[v], parts.indptr[v + 1]):
        if atos.atomic_exch(seen, parts.indices[e], 1) == 0:
            worker.push(parts.indices[e])


def parts_of(n: int, devices: list[str] = TWO, order: str = "random") -> atos.Partition:
    return parts_of_path(n, devices, order)


def search(*given: Any, capacity: int = 100, **options: Any) -> atos.LaunchStats:
    return tasks_over_devices.search(*given, capacity, **options)


@pytest.mark.parametrize("worker", WORKERS)
@pytest.mark.parametrize("order", ["keep", "random"])
@pytest.mark.parametrize("devices", [["cpu"], TWO, FIVE], ids=["one", "two", "five"])
@pytest.mark.parametrize("barrier", [False, True], ids=["relaxed", "barrier"])
def test_bfs(worker, order, devices, barrier):
    graph = atos.generate.rmat(10, 8, 1, device="cpu")
    parts = graph.partition(devices, order=order)
    source = int(np.argmax(graph.degrees()))
    stats = search(graph, parts, source, worker, barrier=barrier)
    if barrier:  # one vertex after another, level by level; the last level pushes nothing
        depth = atos.bfs(graph, source).depth.to_numpy()
        assert stats.tasks_run == np.count_nonzero(depth != atos.UNREACHED)
        assert stats.rounds == depth[depth != atos.UNREACHED].max() + 1
    assert stats.device == ", ".join(["cpu", *devices[1:]])
    assert [each.device for each in stats.devices] == ["cpu", *devices[1:]]
    for name in ("tasks_run", "tasks_pushed", "num_workers", "grown"):
        assert getattr(stats, name) == sum(getattr(each, name) for each in stats.devices)
    assert stats.tasks_run == stats.tasks_pushed + 1
    assert all(each.tasks_run > 0 for each in stats.devices)


def test_random_searches():
    """Any graph, any number of devices and threads, queues that grow."""
    random = np.random.default_rng(5)
    for seed in range(CASES // 4):
        devices = [f"cpu:{i}" for i in range(random.integers(2, 9))]
        graph = atos.generate.uniform(int(random.integers(60, 400)), int(random.integers(1, 1200)), seed, device="cpu")
        parts = graph.partition(devices, order="random", seed=seed)
        source = int(random.integers(graph.num_vertices))
        options = {"num_blocks": int(random.integers(1, 3)), "capacity": int(random.integers(1, 50)), "timeout": 60}
        options["barrier"] = bool(seed % 2)
        search(graph, parts, source, "cta", **options)


def test_cores_are_divided():
    parts = parts_of(10, FIVE)
    queue = atos.Queue(10, owner=parts)
    seen = atos.full(10, 0, partition=parts)
    workers = [each.num_workers for each in queue.launch_thread(count, seen).devices]
    cores = atos.device("cpu").processors
    assert all(each >= 1 for each in workers)
    assert sum(workers) == max(cores, 5)
    assert [each.num_workers for each in queue.launch_thread(count, seen, num_blocks=3).devices] == [3] * 5
    with pytest.raises(LaunchConfigError, match="at most"):
        queue.launch_thread(count, seen, num_blocks=100_000)


@pytest.mark.parametrize("order", ["keep", "random"])
def test_the_host_speaks_the_ids_of_the_graph(order):
    parts = parts_of(9, order=order)
    queue = atos.Queue(10, devices=TWO, owner=parts)
    queue.push([8, 0, 8, 3])
    assert sorted(queue.peek().tolist()) == [0, 3, 8, 8]
    assert queue.devices == parts.devices
    assert queue.device == parts.devices[0]
    assert (len(queue), queue.dtype) == (4, np.uint32)
    seen = atos.full(9, 0, partition=parts)
    assert queue.launch_warp(count, seen).tasks_run == 4
    assert seen.to_numpy().tolist() == [1, 0, 0, 1, 0, 0, 0, 0, 2]
    assert (queue.tasks_run, queue.tasks_pushed) == (4, 0)


def test_ids_in_tasks():
    """Values that are ids go through `original`."""

    @atos.task
    def note(worker, v, parts, found):
        found[v] = parts.original[v]

    parts = parts_of(50, FIVE)
    found = atos.full(50, 0, dtype=np.int64, partition=parts)
    queue = atos.Queue(50, owner=parts)
    queue.push(range(50))
    queue.launch_thread(note, parts, found)
    assert found.to_numpy().tolist() == list(range(50))


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64])
def test_items_of_integers(dtype):
    parts = parts_of(20, FIVE)
    queue = atos.Queue(20, dtype=dtype, owner=parts)
    queue.push(np.arange(20, dtype=dtype))
    assert queue.peek().dtype == dtype
    seen = atos.full(20, 0, partition=parts)
    queue.launch_thread(count, seen)
    assert seen.to_numpy().tolist() == [1] * 20


@pytest.mark.parametrize("dtype", [[("vertex", "u4"), ("hops", "u4")], [("vertex", "i8"), ("hops", "i2"), ("x", "f4")]])
def test_items_of_records(dtype):
    """They go to the owner of the vertex that they begin with; the other fields are as they were."""

    @atos.task
    def walk(worker, item, parts, seen):
        seen[item.vertex] = item.hops
        if item.hops > 0:
            for e in range(parts.indptr[item.vertex], parts.indptr[item.vertex + 1]):
                if parts.original[parts.indices[e]] == parts.original[item.vertex] + 1:
                    rest = (item.hops - 1,) if len(item) == 2 else (item.hops - 1, item[2])
                    worker.push((parts.indices[e], *rest))

    parts = parts_of(30, FIVE)
    seen = atos.full(30, -1, partition=parts)
    queue = atos.Queue(30, dtype=dtype, owner=parts)
    queue.push(np.array([(2, 20, 0.5)[: len(dtype)]], dtype))
    assert queue.peek()[0].item()[:2] == (2, 20)
    assert queue.launch_thread(walk, parts, seen).tasks_run == 21
    assert seen.to_numpy().tolist() == [-1, -1, *range(20, -1, -1), *[-1] * 7]


def test_a_full_queue_keeps_everything():
    parts = parts_of(200, FIVE, "keep")
    graph = atos.generate.uniform(200, 4000, 1, device="cpu")
    parts = graph.partition(FIVE)
    seen = atos.full(200, 0, partition=parts)
    seen[0] = 1
    queue = atos.Queue(2, max_capacity=2, owner=parts)
    assert (queue.capacity, queue.max_capacity) == (2, 2)
    queue.push(0)
    with pytest.raises(QueueFullError, match="more than the queue's capacity of 2") as error:
        queue.launch_thread(follow, parts, seen, num_blocks=1)
    assert error.value.pending == len(queue) > 0
    assert error.value.lost == 0
    queue.max_capacity = 1000
    queue.launch_thread(follow, parts, seen)
    reached = atos.bfs(graph, 0).depth.to_numpy() != atos.UNREACHED
    assert np.array_equal(seen.to_numpy() != 0, reached)


def test_a_push_that_does_not_fit_pushes_nothing():
    queue = atos.Queue(2, max_capacity=3, owner=parts_of(10, TWO, "keep"))
    with pytest.raises(QueueFullError, match=r"4 items to cpu:1, where 0 are waiting.*max_capacity = 4"):
        queue.push([0, 5, 6, 7, 8])
    assert len(queue) == 0
    queue.resize(4)
    queue.push([0, 5, 6, 7, 8])
    queue.clear()
    assert len(queue) == 0


def test_rounds_are_of_all_devices():
    """A task sees the number of its round, and a level that was interrupted goes on as one."""

    @atos.task
    def step(worker, v, parts, level, stop_at):
        level[v] = worker.round
        if parts.original[v] == stop_at:
            worker.stop()
        for e in range(parts.indptr[v], parts.indptr[v + 1]):
            if parts.original[parts.indices[e]] > parts.original[v]:
                worker.push(parts.indices[e])

    parts = parts_of(40, FIVE)
    level = atos.full(40, -1, partition=parts)
    queue = atos.Queue(40, owner=parts)
    queue.push(0)
    stats = queue.launch_thread(step, parts, level, 9, barrier=True)
    assert stats.stopped
    assert stats.rounds == 10
    assert queue.peek().tolist() == [10]
    assert level.to_numpy().tolist() == [*range(10), *[-1] * 30]
    assert queue.launch_thread(step, parts, level, -1, barrier=True).rounds == 30
    assert level.to_numpy()[10:].tolist() == list(range(30))


@pytest.mark.parametrize("barrier", [False, True], ids=["relaxed", "barrier"])
def test_a_timeout_stops_all(barrier):
    parts = parts_of(10, FIVE)
    queue = atos.Queue(10, owner=parts)
    queue.push(range(7))
    for _ in range(3):
        with pytest.raises(LaunchTimeoutError, match="7 tasks are unfinished") as error:
            queue.launch_cta(again, timeout=0.02, barrier=barrier)
        assert error.value.pending == 7
        assert sorted(queue.peek().tolist()) == list(range(7))


def test_ctrl_c_stops_all():
    check_interrupt(parts_of(10))


def test_a_task_stops_all():
    @atos.task
    def stop_at(worker, v, last):
        if v == last:
            worker.stop()
        worker.push(v)

    queue = atos.Queue(10, owner=parts_of(10, FIVE, "keep"))
    queue.push(range(10))
    stats = queue.launch_cta(stop_at, 9, timeout=60)
    assert stats.stopped
    assert sorted(queue.peek().tolist()) == list(range(10))


@pytest.mark.parametrize("dtype", [np.uint32, [("vertex", "u4"), ("x", "i4")]], ids=["integers", "records"])
def test_a_failed_check_names_the_item_by_its_id(dtype):
    @atos.task
    def check_vertex(worker, v, parts, seen):
        seen[parts.original[v] + (3 if parts.original[v] == 7 else 0)] = 1

    @atos.task
    def check_record(worker, item, parts, seen):
        seen[parts.original[item.vertex] + (3 if parts.original[item.vertex] == 7 else 0)] = 1

    parts = parts_of(10, FIVE)
    queue = atos.Queue(10, dtype=dtype, owner=parts)
    is_record = queue.dtype.names is not None
    queue.push([(v, 5) for v in range(10)] if is_record else range(10))
    with pytest.raises(TaskError, match="index 10") as error:
        queue.launch_cta(check_record if is_record else check_vertex, parts, np.zeros(10), debug=True)
    assert error.value.item == ((7, 5) if is_record else 7)


def test_statistics_of_several_launches_are_added_up():
    parts = parts_of(10)
    queue, seen = atos.Queue(10, owner=parts), atos.full(10, 0, partition=parts)
    runs = []
    for _ in range(3):
        queue.push(range(10))
        runs.append(queue.launch_thread(count, seen))
    total = atos.LaunchStats.total(runs)
    assert [each.tasks_run for each in total.devices] == [15, 15]
    assert [each.device for each in total.devices] == ["cpu", "cpu:1"]
    alone = atos.Queue(10, device="cpu").launch_thread(again)
    assert atos.LaunchStats.total([*runs, alone]).devices == ()


def test_workers_have_numbers_of_their_own():
    @atos.task
    def mark(worker, v, seen, workers):
        seen[worker.index] = 1
        workers[0] = worker.count

    parts = parts_of(100, FIVE)
    queue = atos.Queue(100, owner=parts)
    queue.push(range(100))
    seen, workers = atos.zeros(10, dtype=np.int64, device="cpu"), atos.zeros(1, dtype=np.int64, device="cpu")
    queue.launch_cta(mark, seen, workers, num_blocks=2)
    assert workers[0] == 10
    assert seen.to_numpy().reshape(5, 2).any(axis=1).all()


@pytest.mark.parametrize("barrier", [False, True], ids=["relaxed", "barrier"])
def test_a_trace_of_each_device_and_of_all(barrier):
    check_traces(parts_of(2000, TWO, "keep"), barrier)


@pytest.mark.parametrize("with_trace", [False, True])
def test_progress_is_that_of_all_devices(with_trace):
    check_progress(parts_of(3000, FIVE), 50_000, {"trace": 50} if with_trace else {})


def test_arrays_of_any_of_the_devices():
    parts = parts_of(10)
    queue = atos.Queue(10, owner=parts)
    queue.push(range(10))
    seen = np.zeros(10, np.int64)
    queue.launch_cta(count, seen)
    elsewhere = atos.zeros(10, dtype=np.int64, device="cpu:1")
    queue.push(range(10))
    queue.launch_cta(count, elsewhere)
    assert seen.tolist() == elsewhere.to_numpy().tolist() == [1] * 10
    with pytest.raises(InvalidArgumentError, match=r"argument 0 is on cpu:7, the task runs on cpu, cpu:1"):
        queue.launch_cta(count, atos.zeros(10, dtype=np.int64, device="cpu:7"))


def test_the_graph_is_no_argument_where_its_vertices_have_other_numbers():
    graph = atos.generate.road(5, 1.0, device="cpu")

    @atos.task
    def add_degree(worker, v, graph, total):
        atos.atomic_add(total, 0, np.int64(graph.indptr[v + 1]) - np.int64(graph.indptr[v]))

    for order in "keep", "random":
        queue = atos.Queue(30, owner=graph.partition(["cpu:0", "cpu:1"], order))
        queue.push(range(25))
        total = np.zeros(1, np.int64)
        if order == "keep":
            queue.launch_cta(add_degree, graph, total)
            assert total[0] == graph.num_edges
        else:
            with pytest.raises(InvalidArgumentError, match=r"argument 0 is a graph .* pass what Graph\.partition returned"):
                queue.launch_cta(add_degree, graph, total)


REFUSED = {
    "persistent=False": lambda queue: queue.launch_cta(again, persistent=False),
    "idle=": lambda queue: queue.launch_cta(again, idle=lambda worker: None),
    "start": lambda queue: queue.start(again),
    "no other queue": lambda queue: queue.launch_cta(count, atos.Queue(3, device="cpu")),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_done_yet_is_refused(what, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    queue = atos.Queue(10, owner=parts_of(10))
    queue.push(1)
    with pytest.raises(LaunchConfigError, match=what):
        REFUSED[what](queue)
    assert queue.peek().tolist() == [1]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda parts: atos.Queue(10, devices=TWO), InvalidArgumentError, "has an owner="),
        (lambda parts: atos.Queue(10, owner=[1, 2]), UnsupportedTypeError, "owner must be what Graph.partition returns"),
        (lambda parts: atos.Queue(10, devices=FIVE, owner=parts), InvalidArgumentError, "those of owner, cpu, cpu:1"),
        (lambda parts: atos.Queue(10, device="cpu", owner=parts), LaunchConfigError, "no device="),
        (
            lambda parts: atos.Queue(10, dtype=[("x", "f4")], owner=parts),
            UnsupportedTypeError,
            "begin with a vertex",
        ),
        (lambda parts: atos.Queue(10, owner=parts).push(10), InvalidArgumentError, r"of which there are 10 \(got 10\)"),
        (lambda parts: atos.Queue(10, dtype=np.int32, owner=parts).push(-1), InvalidArgumentError, r"\(got -1\)"),
        (lambda parts: atos.Queue(10, owner=parts).push(1, priority=1), InvalidArgumentError, "buckets"),
    ],
)
def test_queues_that_cannot_be(make, error, message):
    with pytest.raises(error, match=message):
        make(parts_of(10))


def test_what_belongs_to_another_partition_is_refused():
    parts, other = parts_of(10), parts_of(10)
    array = atos.full(10, 0, partition=other)
    with pytest.raises(InvalidArgumentError, match="argument 0 is over cpu, cpu:1, and the queue has another partition"):
        atos.Queue(10, owner=parts).launch_cta(count, array)
    with pytest.raises(InvalidArgumentError, match="argument 0 is over cpu, cpu:1, and the queue runs on one device"):
        atos.Queue(10, device="cpu").launch_cta(count, array)
    with pytest.raises(InvalidArgumentError, match="argument 0 is over"):
        atos.Queue(10, device="cpu").launch_cta(follow, parts, np.zeros(10, np.int64))
    for queue in (atos.Queue(10, device="cpu"), atos.Queue(10, owner=parts)):
        with pytest.raises(InvalidArgumentError, match="argument 0 is a queue with an owner"):
            queue.launch_cta(count, atos.Queue(3, owner=parts))
