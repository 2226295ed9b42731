"""The clock of a worker, `worker.clock()`: nanoseconds that do not go back."""

from __future__ import annotations

import time

import numpy as np
import pytest
from shared_tasks import launch

import atos_py as atos
from atos_py.errors import TaskCompileError

TASKS, READS = 64, 8


@atos.task
def read(worker, v, times, kept):
    """Write down the clock several times, with some work between."""
    for k in range(READS):
        now = worker.clock()
        if worker.rank == 0:
            times[v, k] = now
        for i in range(200):
            kept[v] += worker.clock() % 2 + i


def test_it_does_not_go_back(device, worker):
    queue = atos.Queue(TASKS, device=device)
    times, kept = atos.zeros((TASKS, READS), dtype=np.int64, device=device), atos.zeros(TASKS, dtype=np.int64, device=device)
    queue.push(range(TASKS))
    before = time.monotonic_ns()
    stats = launch(queue, worker, read, times, kept)
    after = time.monotonic_ns()
    found = times.to_numpy()
    assert (np.diff(found, axis=1) >= 0).all()
    assert (found[:, -1] > found[:, 0]).all()
    assert found.max() - found.min() < after - before + 1e6
    assert stats.tasks_run == TASKS
    if device.kind == "cpu":
        assert before <= found.min() <= found.max() <= after


def test_workers_wait_for_a_time(device):
    """The time in a task is the time of the device: a loop of a millisecond takes one."""

    @atos.task
    def wait(worker, v, ended):
        began = worker.clock()
        while worker.clock() - began < 1_000_000:
            pass
        ended[v] = worker.clock() - began

    queue, ended = atos.Queue(4, device=device), atos.zeros(4, dtype=np.int64, device=device)
    queue.push(range(4))
    stats = queue.launch_thread(wait, ended)
    assert (ended.to_numpy() >= 1_000_000).all()
    assert stats.milliseconds >= 0.5


def two(v, times):
    return 2


@atos.task(workload=two)
def read_nested(worker, v, i, times):
    times[v, i] = worker.clock()


def test_nested_tasks_have_it(device):
    queue, times = atos.Queue(4, device=device), atos.zeros((3, 2), dtype=np.int64, device=device)
    queue.push(range(3))
    queue.launch_cta(read_nested, times)
    assert (times.to_numpy() > 0).all()


def test_it_takes_no_arguments(device):
    queue = atos.Queue(4, device=device)
    queue.push(0)
    with pytest.raises(TaskCompileError, match=r"worker\.clock takes no arguments"):
        queue.launch_thread(atos.task(lambda worker, v: worker.clock(v)))
