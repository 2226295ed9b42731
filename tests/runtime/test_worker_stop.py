"""Launches that a task ends from inside, by `worker.stop()`: no error, and what is unfinished stays in the queue."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest
from shared_tasks import again, every_schedule, forest_on_host, grow, launch, on_device, plan

import atos_py as atos
from atos_py.errors import LaunchTimeoutError, QueueFullError, TaskCompileError


@atos.task
def stop_flat(worker, v, last, ran):
    """Count up to `last`, push the next number, and stop there; before that there is always something to run."""
    if worker.rank == 0:
        atos.atomic_add(ran, 0, 1)
        if v == last:
            worker.stop()
        worker.push(v + 1)


def twice(v, last, ran):
    return 2


@atos.task(workload=twice)
def stop_nested(worker, v, i, last, ran):
    if i == 0:
        atos.atomic_add(ran, 0, 1)
        if v == last:
            worker.stop()
    else:
        worker.push(v + 1)


@every_schedule
@pytest.mark.parametrize("task", [stop_flat, stop_nested], ids=["flat", "nested"])
def test_a_task_ends_its_launch(device, worker, persistent, barrier, task):
    """What it pushed is kept, though the launch would never end, and a further launch goes on from there."""
    ran = atos.zeros(1, dtype=np.int64, device=device)
    queue = atos.Queue(1000, device=device)
    queue.push(0)
    for last in (20, 100):
        before = ran[0]
        stats = launch(queue, worker, task, last, ran, persistent=persistent, barrier=barrier, timeout=30)
        assert stats.stopped is True
        assert stats.tasks_run == ran[0] - before
        assert len(queue) == 1
        assert queue.peek()[0] > last
        assert "ended by a task, which called worker.stop()" in str(stats)
    assert ran[0] == queue.peek()[0]


@every_schedule
def test_what_is_unfinished_stays_in_the_queue(device, worker, persistent, barrier):
    """Every task ran once or is in the queue, and a launch without a stop runs what is left."""

    @atos.task(workload=plan)
    def grow_to(worker, item, i, first, forest, counts):
        worker.push(first + i)
        if first + i == 1000:
            worker.stop()

    forest = forest_on_host(3000, 1, most=4, seed=3)
    there, counts = on_device(forest, device)
    queue = atos.Queue(16, device=device)
    queue.push(0)
    stats = launch(queue, worker, grow_to, there, counts, persistent=persistent, barrier=barrier, fetch_size=1)
    seen = counts.seen.to_numpy()
    pushed = 1 + np.diff(forest.first)[seen == 1].sum()
    assert stats.stopped
    assert stats.tasks_run == seen.sum()
    assert len(queue) == pushed - seen.sum()
    rest = launch(queue, worker, grow, there, counts, persistent=persistent, barrier=barrier)
    assert not rest.stopped
    assert counts.seen.to_numpy().tolist() == [1] * 3000
    assert not barrier or counts.early[0] == 0


@every_schedule
def test_an_idle_function_ends_a_launch(device, worker, persistent, barrier):
    """It would push for ever."""

    def look(worker, calls):
        if worker.rank == 0:
            if atos.atomic_add(calls, 0, 1) >= 3:
                worker.stop()
            worker.push(0)

    @atos.task
    def nothing(worker, v, calls):
        pass

    calls = atos.zeros(1, dtype=np.int32, device=device)
    queue = atos.Queue(100_000, device=device)
    stats = launch(queue, worker, nothing, calls, idle=look, persistent=persistent, barrier=barrier, num_blocks=2, timeout=30)
    assert stats.stopped
    assert calls[0] >= 4
    assert len(queue) == calls[0] - stats.tasks_run


@atos.task
def spread(worker, v, last):
    if worker.rank == 0:
        for k in range(v % 3):
            worker.push(2 * v + k)


def stop_after(worker, last):
    if worker.round == last:
        worker.stop()


@pytest.mark.parametrize("persistent", [True, False])
@pytest.mark.parametrize(("capacity", "dtype"), [(13, np.uint32), (13, np.int64), (40, np.uint32), (1000, np.int64)])
def test_what_a_stop_between_rounds_leaves_is_the_next_round(device, worker, persistent, capacity, dtype):
    """Wherever in the ring it lies, also where the ring grew, and behind many rounds that are over."""
    queue = atos.Queue(capacity, dtype=dtype, device=device)
    level = [1, 2, 5, 7, 8, 11]
    queue.push(level)
    for last in (0, 3, 1, 4):
        options = {"persistent": persistent, "barrier": True, "each_round": stop_after, "num_blocks": 2}
        assert launch(queue, worker, spread, last, **options).stopped
        for _ in range(last + 1):
            level = [2 * v + k for v in level for k in range(v % 3)]
        assert sorted(queue.peek().tolist()) == sorted(level)


@every_schedule
def test_a_stop_that_leaves_nothing_is_one_too(device, worker, persistent, barrier):
    @atos.task
    def stop(worker, v):
        worker.stop()

    queue = atos.Queue(10, device=device)
    queue.push(0)
    stats = launch(queue, worker, stop, persistent=persistent, barrier=barrier)
    assert (stats.stopped, stats.tasks_run, len(queue)) == (True, 1, 0)
    queue.push(0)
    assert launch(queue, worker, stop, persistent=persistent, barrier=barrier).stopped
    assert launch(queue, worker, stop, persistent=persistent, barrier=barrier).stopped is False


@atos.task
def burst(worker, v, size):
    """Stop, and push more than the queue holds. Other workers may run some of that before they see the stop."""
    if v == 0:
        if worker.rank == 0:
            worker.stop()
        for k in worker.split(range(1, size)):
            worker.push(k)


@every_schedule
def test_a_full_queue_grows_and_the_launch_still_ends(device, worker, persistent, barrier):
    queue = atos.Queue(8, device=device)
    queue.push(0)
    stats = launch(queue, worker, burst, 5000, persistent=persistent, barrier=barrier)
    assert stats.stopped
    left = queue.peek()
    assert len(set(left)) == len(left) == 5000 - stats.tasks_run
    assert set(left) <= set(range(1, 5000))
    queue.push(5000)  # the queue has grown for them, or does now
    assert queue.capacity >= len(queue) == len(left) + 1
    assert queue.peek()[: len(left)].tolist() == left.tolist()


def test_a_queue_that_cannot_grow_says_so_all_the_same(device, worker):
    queue = atos.Queue(8, max_capacity=16, device=device)
    queue.push(0)
    with pytest.raises(QueueFullError) as full:
        launch(queue, worker, burst, 100)
    assert 16 < full.value.pending == len(queue) <= 99


def test_a_stop_is_not_lost_beside_a_timeout(device):
    """Where both come, the launch ends as its task wants."""

    @atos.task
    def stop_late(worker, v, turns, sink):
        state = v + 1
        for _ in range(turns):
            state = state * 6364136223846793005 + 1442695040888963407
        sink[0] = state
        worker.stop()

    queue = atos.Queue(10, device=device)
    queue.push([0, 1])
    sink = atos.zeros(1, dtype=np.int64, device=device)
    stats = None
    for timeout in 0.002, 0.02, 0.2:  # on a busy machine a launch may be over before a task begins
        with contextlib.suppress(LaunchTimeoutError):
            stats = queue.launch_thread(stop_late, 10_000_000, sink, num_blocks=1, timeout=timeout, fetch_size=1)
        if sink[0] != 0:
            break
    assert stats is not None
    assert stats.stopped
    queue.push(0)
    with pytest.raises(LaunchTimeoutError):
        queue.launch_thread(again, timeout=0.01)


def test_stop_takes_no_arguments():
    @atos.task
    def wrong(worker, v):
        worker.stop(1)

    with pytest.raises(TaskCompileError, match=r"worker\.stop takes no arguments"):
        atos.Queue(1, device="cpu").launch_cta(wrong)


def test_totals_tell_of_a_stop():
    def run(task: Any) -> atos.LaunchStats:
        queue = atos.Queue(10, device="cpu")
        queue.push(0)
        return queue.launch_cta(task)

    stopped = run(atos.task(lambda worker, v: worker.stop()))
    ended = run(atos.task(lambda worker, v: None))
    assert atos.LaunchStats.total([stopped, ended]).stopped
    assert not atos.LaunchStats.total([ended, ended]).stopped
    assert "by a task, which called worker.stop()" in stopped._repr_html_()
    assert (stopped.to_dict()["stopped"], ended.to_dict()["stopped"]) == (True, False)
