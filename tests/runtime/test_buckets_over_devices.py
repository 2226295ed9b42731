"""Queues over several devices with buckets: an item goes among the near or the far ones of its owner."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tasks_over_devices import parts_of_path

import atos_py as atos
from atos_py.errors import QueueFullError

ITEM = np.dtype([("vertex", np.uint32), ("distance", np.uint32)])
GPUS = [str(device) for device in atos.devices() if device.kind == "cuda"]
PAIR = GPUS[:2] if len(GPUS) > 1 else GPUS * 2
DEVICES = [
    pytest.param(["cpu:0", "cpu:1"], id="two"),
    pytest.param(["cpu:0", "cpu:1", "cpu:2"], id="three"),
    pytest.param(PAIR, id="gpus", marks=pytest.mark.gpu),
]
EITHER = [DEVICES[0], DEVICES[2]]


@atos.task
def relax(worker, item, graph, distance):
    v = item.vertex
    if distance[v] < item.distance:
        return
    for edge in worker.split(range(graph.indptr[v], graph.indptr[v + 1])):
        target = graph.indices[edge]
        there = item.distance + graph.weights[edge]
        if atos.atomic_min(distance, target, there) > there:
            worker.push((target, there), priority=there)


def shortest_paths(
    graph: atos.Graph, parts: atos.Partition, worker: str, capacity: int, buckets: int, delta: Any, **options: Any
) -> atos.LaunchStats:
    """Find the distances from vertex 0, prove them right, and return the statistics."""
    distance = atos.full(graph.num_vertices, atos.UNREACHED, dtype=np.uint32, partition=parts)
    distance[0] = 0
    queue = atos.Queue(capacity, dtype=ITEM, owner=parts, buckets=buckets, delta=delta)
    assert (queue.buckets, queue.delta) == (buckets, delta)
    queue.push([(0, 0)])
    stats: atos.LaunchStats = getattr(queue, f"launch_{worker}")(relax, parts, distance, timeout=60, **options)
    assert len(queue) == 0
    atos.verify_sssp(graph, 0, distance.to_numpy())
    return stats


def roads(size: int) -> atos.Graph:
    """Return a road network with weights from 1 to 99."""
    graph = atos.generate.road(size, device="cpu")
    return graph.with_weights(atos.generate.random_weights(graph, 1, 99))


@pytest.mark.parametrize("barrier", [False, True], ids=["relaxed", "barrier"])
@pytest.mark.parametrize("delta", ["auto", 100, 3.5])
@pytest.mark.parametrize("order", ["keep", "random"])
@pytest.mark.parametrize("devices", DEVICES)
def test_shortest_paths(devices, order, delta, barrier, worker):
    graph = roads(40)
    for capacity in (10, 10_000):
        shortest_paths(graph, graph.partition(devices, order), worker, capacity, 16, delta, barrier=barrier)


def test_priorities_save_work():
    graph = roads(200)
    parts = graph.partition(["cpu:0", "cpu:1", "cpu:2"], "random")
    stats = shortest_paths(graph, parts, "cta", 1000, 16, 100, barrier=True)
    assert stats.tasks_run < 2 * graph.num_vertices  # 22 times as many as vertices without an order
    assert sum(part.tasks_run for part in stats.devices) == stats.tasks_run


NODES, STEP = 8000, 4801  # of a tree; node k of it is vertex k * STEP % NODES, so that children are on all devices
BACK = pow(STEP, -1, NODES)


@atos.task
def fan_out(worker, v, seen):
    """Push three children or, of node 0, more than a push buffer holds, by all threads, with priorities that have no order."""
    if worker.rank == 0:
        atos.atomic_add(seen, v, 1)
    node = v * BACK % NODES
    first, last = (1, 2001) if node == 0 else (3 * node + 1998, 3 * node + 2001)
    for child in worker.split(range(first, min(last, NODES))):
        worker.push(child * STEP % NODES, priority=child * 7919 % 97)


@pytest.mark.parametrize("barrier", [False, True], ids=["relaxed", "barrier"])
@pytest.mark.parametrize("devices", [*DEVICES, pytest.param(GPUS[:1], id="one gpu", marks=pytest.mark.gpu)])
def test_more_pushes_at_once_than_the_buffer_holds(devices, barrier, worker):
    parts = parts_of_path(NODES, devices, "keep")
    seen = atos.full(NODES, 0, dtype=np.int32, partition=parts)
    queue = atos.Queue(10_000, owner=parts, buckets=2, delta=1)
    queue.push(0)
    getattr(queue, f"launch_{worker}")(fan_out, seen, barrier=barrier, timeout=60, num_blocks=2)
    assert (seen.to_numpy() == 1).all()


@atos.task
def note(worker, v, parts, turn, counter, priority):
    """Note when a vertex runs, and the first time push it with its priority."""
    if worker.rank == 0:
        if turn[v] < 0:
            turn[v] = 0
            worker.push(v, priority=priority[parts.original[v]])
        else:
            turn[v] = atos.atomic_add(counter, 0, 1)


@settings(max_examples=25, deadline=None)
@given(
    priorities=st.lists(st.floats(-1e6, 1e6) | st.integers(-9, 9).map(float), min_size=1, max_size=60),
    devices=st.integers(1, 4),
    buckets=st.sampled_from([2, 8]),
    delta=st.sampled_from([1.0, 50.0]),
)
def test_with_a_barrier_all_devices_work_a_bucket_off_before_the_next(priorities, devices, buckets, delta):
    n = len(priorities)
    parts = parts_of_path(n, [f"cpu:{k}" for k in range(devices)])
    turn = atos.full(n, -1, dtype=np.int64, partition=parts)
    counter = atos.asarray([1], device="cpu", copy=True)
    queue = atos.Queue(2 * n, owner=parts, buckets=buckets, delta=delta)
    queue.push(range(n), priority=-2e6)
    queue.launch_cta(note, parts, turn, counter, atos.asarray(np.array(priorities), device="cpu"), barrier=True, num_blocks=1)
    assert counter[0] == n + 1
    bucket = np.floor(np.float32(priorities) * np.float32(1 / delta))
    assert (np.diff(bucket[np.argsort(turn.to_numpy())]) >= 0).all()


@atos.task
def sink(worker, v, ran, level, last):
    """Count a vertex, and push it until it has run as often as `last` says; the first one that is through stops the launch."""
    if worker.rank == 0:
        if atos.atomic_add(ran, v, 1) + 1 < last:
            worker.push(v, priority=level[0] - ran[v])  # deeper ones first
        elif level[0] == 0:
            level[0] = 1
            worker.stop()


@pytest.mark.parametrize("barrier", [False, True], ids=["relaxed", "barrier"])
@pytest.mark.parametrize("devices", EITHER)
def test_a_stopped_launch_goes_on(devices, barrier, worker):
    n, last = 200, 5
    parts = parts_of_path(n, devices)
    ran, level = atos.full(n, 0, dtype=np.int64, partition=parts), atos.zeros(1, dtype=np.int64, device=devices[0])
    queue = atos.Queue(n, owner=parts, buckets=4, delta=1.0)
    queue.push(range(n), priority=np.arange(n) % 7)
    assert (queue.peek() % 7).tolist() == sorted(v % 7 for v in range(n))
    launch = getattr(queue, f"launch_{worker}")
    assert launch(sink, ran, level, last, barrier=barrier, timeout=60).stopped
    assert len(queue) > 0
    assert np.array_equal(np.sort(queue.peek()), np.flatnonzero(ran.to_numpy() < last))
    assert not launch(sink, ran, level, last, barrier=barrier, timeout=60).stopped
    assert (ran.to_numpy() == last).all()


@atos.task
def flood(worker, v, ran, many):
    if worker.rank == 0 and atos.atomic_add(ran, v, 1) == 0:
        for k in range(many):
            worker.push((v + k) % ran.size, priority=k)


@pytest.mark.parametrize("devices", EITHER)
def test_a_queue_that_may_not_grow_is_full(devices, worker):
    n, many = 64, 3000
    parts = parts_of_path(n, devices)
    ran = atos.full(n, 0, dtype=np.int64, partition=parts)
    queue = atos.Queue(n, max_capacity=n, owner=parts, buckets=4, delta=1.0)
    queue.push(range(n))
    with pytest.raises(QueueFullError):
        getattr(queue, f"launch_{worker}")(flood, ran, many, timeout=60)
    queue.max_capacity = n * many
    queue.resize(n * many)
    getattr(queue, f"launch_{worker}")(flood, ran, many, timeout=60)
    assert ran.to_numpy().sum() == n * (many + 1)


@pytest.mark.parametrize("devices", EITHER)
def test_checkpoints_keep_priorities(devices, tmp_path):
    n = 50
    parts = parts_of_path(n, devices)
    queue = atos.Queue(n, owner=parts, buckets=8, delta=2.5)
    queue.push(range(n), priority=np.arange(n)[::-1])
    queue.save(tmp_path / "queue.atos")
    for owner in (parts, parts_of_path(n, ["cpu:0", "cpu:1", "cpu:2"]), None):
        where: dict[str, Any] = {"device": "cpu"} if owner is None else {"owner": owner}
        loaded = atos.Queue.load(tmp_path / "queue.atos", **where)
        assert (loaded.buckets, loaded.delta, loaded.peek().tolist()) == (8, 2.5, list(range(n))[::-1])
    one = atos.Queue(n, device="cpu", buckets=8, delta=2.5)
    one.push(range(n), priority=np.arange(n) % 3)
    one.save(tmp_path / "one.atos")
    loaded = atos.Queue.load(tmp_path / "one.atos", owner=parts).peek()
    assert (loaded % 3).tolist() == (one.peek() % 3).tolist()
    assert sorted(loaded) == list(range(n))


@atos.task
def settle(worker, v, ran):
    if worker.rank == 0:
        atos.atomic_add(ran, v, 100)


@atos.task
def open_(worker, v, ran):
    if worker.rank == 0:
        atos.atomic_add(ran, v, 1)
        worker.push((v + 1) % ran.size, priority=v % 5, task=settle)


@pytest.mark.parametrize("devices", EITHER)
def test_kinds_with_priorities(devices, worker):
    n = 100
    parts = parts_of_path(n, devices)
    ran = atos.full(n, 0, dtype=np.int64, partition=parts)
    queue = atos.Queue(2 * n, owner=parts, buckets=4, delta=1.0)
    queue.push(range(n), priority=3)
    stats = getattr(queue, f"launch_{worker}")((open_, settle), ran, timeout=60)
    assert stats.tasks_run_by == {"open_": n, "settle": n}
    assert (ran.to_numpy() == 101).all()
