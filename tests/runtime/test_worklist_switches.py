"""Switches for what workers keep, share and gather: whatever they are, each task runs once."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from shared_tasks import assert_each_once, every_schedule, forest_on_host, grow, launch, on_device

import atos_py as atos
from atos_py.runtime.stats import COUNTED

SWITCHES = [
    {"experiment": atos.Experiment(local_items=False)},
    {"experiment": atos.Experiment(local_items=1)},
    {"experiment": atos.Experiment(local_items=4096)},
    {"experiment": atos.Experiment(work_sharing=False)},
    {"experiment": atos.Experiment(push_buffer=0)},
    {"experiment": atos.Experiment(push_buffer=3)},
    {"streams": 1},
    {"streams": 32},
    {"experiment": atos.Experiment(local_items=0, work_sharing=False, push_buffer=0)},
]


@every_schedule
def test_each_task_runs_once(device, worker, persistent, barrier):
    """Also where the queue is full at first, and grows."""
    forest = forest_on_host(3000, 3)
    for switches, capacity in itertools.product(SWITCHES, (4000, 3)):
        there, counts = on_device(forest, device)
        queue = atos.Queue(capacity, device=device)
        queue.push([0, 1, 2])
        stats = launch(queue, worker, grow, there, counts, persistent=persistent, barrier=barrier, fetch_size=8, **switches)
        assert_each_once(counts.seen.to_numpy())
        assert (stats.tasks_run, stats.tasks_pushed) == (3000, 2997)


def some(v, reached, last):
    return 2


@atos.task(workload=some)
def double(worker, v, i, reached, last):
    """Count v, and push the two numbers behind it in a binary tree, with its depth as priority."""
    if i == 0:
        atos.atomic_add(reached, v, 1)
    u = 2 * v + 1 + i
    if u <= last:
        worker.push(u, priority=v % 7)


@every_schedule
def test_each_task_runs_once_in_order_of_priority(device, worker, persistent, barrier):
    last = 5000
    queue = atos.Queue(50, dtype=np.int64, device=device, buckets=4, delta=1)
    for switches in SWITCHES:
        reached = atos.zeros(last + 1, dtype=np.int32, device=device)
        queue.push(0)
        launch(queue, worker, double, reached, last, persistent=persistent, barrier=barrier, fetch_size=8, **switches)
        assert_each_once(reached.to_numpy())


def far(v, touched, length):
    return length if v < 4 else 1


@atos.task(workload=far)
def touch(worker, v, i, touched, length):
    """Count each iteration of the first four items, which are long."""
    if v < 4:
        atos.atomic_add(touched, v * length + i, 1)
        if i == 0:
            worker.push(v + 4)


@every_schedule
@pytest.mark.parametrize("work_sharing", [True, False])
def test_iterations_of_long_items(device, worker, persistent, barrier, work_sharing):
    length = 50_000
    touched = atos.zeros(4 * length, dtype=np.int32, device=device)
    queue = atos.Queue(20, device=device)
    queue.push([0, 1, 2, 3])
    schedule = {"persistent": persistent, "barrier": barrier}
    usual = atos.Experiment(work_sharing=work_sharing)
    stats = launch(queue, worker, touch, touched, length, experiment=usual, **schedule)
    assert_each_once(touched.to_numpy())
    assert stats.tasks_run == 8
    assert [getattr(stats, name) for name in COUNTED] == [None] * 4
    touched.fill(0)
    queue.push([0, 1, 2, 3])
    counted = atos.Experiment(work_sharing=work_sharing, counters=True)
    stats = launch(queue, worker, touch, touched, length, experiment=counted, **schedule)
    assert_each_once(touched.to_numpy())
    shares = work_sharing and device.kind == "cuda" and worker != "thread"
    assert 0 < stats.items_split <= 4 if shares else stats.items_split == 0
    assert shares or stats.chunks_donated == 0
    if shares and persistent and not barrier:  # all others have nothing else to do
        assert stats.chunks_donated > 0


def keeps_items(device, worker, persistent, barrier):
    """Return whether workers of a queue with priorities may keep items."""
    return persistent and not barrier and (device.kind == "cpu" or worker != "thread")


@every_schedule
def test_what_workers_keep_is_counted(device, worker, persistent, barrier):
    last = 5000
    queue = atos.Queue(6000, dtype=np.int64, device=device, buckets=4, delta=1)
    reached = atos.zeros(last + 1, dtype=np.int32, device=device)
    found = {}
    schedule = {"persistent": persistent, "barrier": barrier}
    for name, switches in (("usual", {}), ("off", {"local_items": False}), ("no gifts", {"work_sharing": False})):
        experiment = atos.Experiment(counters=True, **switches)
        for _ in range(2):  # counts begin anew
            queue.push(0)
            found[name] = launch(queue, worker, double, reached, last, experiment=experiment, **schedule)
            assert found[name].local_items <= last
    assert (found["usual"].local_items > 0) == keeps_items(device, worker, persistent, barrier)
    assert (found["no gifts"].local_items > 0) == keeps_items(device, worker, persistent, barrier)
    assert found["off"].local_items == found["off"].items_donated == found["no gifts"].items_donated == 0


def test_one_worker_keeps_all():
    """A thread that nobody waits for donates nothing, and runs all but the first item without the queue."""
    queue = atos.Queue(6000, dtype=np.int64, device="cpu", buckets=4, delta=1000)
    reached = atos.zeros(5001, dtype=np.int32, device="cpu")
    queue.push(0)
    stats = queue.launch_cta(double, reached, 5000, num_blocks=1, experiment=atos.Experiment(counters=True))
    assert (stats.local_items, stats.items_donated, stats.items_split, stats.chunks_donated) == (5000, 0, 0, 0)
