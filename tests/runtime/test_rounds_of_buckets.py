"""Rounds, the function between them, and a stop from inside tasks, of queues with buckets."""

from __future__ import annotations

import numpy as np
import pytest
from shared_tasks import launch

import atos_py as atos

WALKS, STEPS = 100, 9


@atos.task
def walk(worker, v, ran, calls):
    """Go on a step, with a higher priority than the items of now; the last walk in step 5 of the first launch stops it."""
    if worker.rank == 0:
        if atos.atomic_add(ran, v, 1) == WALKS - 1 and v == 5 and calls[1] == 1:
            worker.stop()
        if v < STEPS:
            worker.push(v + 1, v + 1)


def begin_two_more(worker, ran, calls):
    if worker.rank == 0:
        if calls[0] == 0:
            worker.push(2, 50.0)  # beyond the window
            worker.push(7)  # near
        calls[0] += 1


@pytest.mark.parametrize("capacity", [1000, 16], ids=["roomy", "grows"])
@pytest.mark.parametrize("persistent", [True, False], ids=["persistent", "discrete"])
def test_the_function_is_called_once_for_each_round(device, worker, persistent, capacity):
    ran, calls = (atos.zeros(12, dtype=np.int64, device=device) for _ in range(2))
    queue = atos.Queue(capacity, device=device, buckets=8, delta=1.0)
    queue.push([0] * WALKS)
    stats = launch(queue, worker, walk, ran, calls, each_round=begin_two_more, barrier=True, persistent=persistent)
    assert ran[:].tolist() == [WALKS] * 2 + [WALKS + 1] * 5 + [WALKS + 2] * 3 + [0] * 2
    assert calls[0] == stats.rounds > STEPS


@pytest.mark.parametrize("barrier", [True, False], ids=["barrier", "relaxed"])
@pytest.mark.parametrize("persistent", [True, False], ids=["persistent", "discrete"])
def test_far_items_of_a_stopped_launch_are_pending(device, worker, persistent, barrier):
    ran, calls = (atos.zeros(12, dtype=np.int64, device=device) for _ in range(2))
    queue = atos.Queue(1000, device=device, buckets=8, delta=1.0)
    queue.push([0] * WALKS)
    calls[1] = 1
    stats = launch(queue, worker, walk, ran, calls, barrier=barrier, persistent=persistent)
    assert stats.stopped
    assert len(queue) == WALKS - ran[STEPS] > 0
    calls[1] = 0
    assert not launch(queue, worker, walk, ran, calls, barrier=barrier, persistent=persistent).stopped
    assert ran[:].tolist() == [WALKS] * (STEPS + 1) + [0] * 2


@atos.task
def climb(worker, v, turn, counter):
    """Note when an item runs; 0 to 9 push the next higher one, and 0 pushes one of level 5 beyond the window, too."""
    if worker.rank == 0:
        turn[v] = atos.atomic_add(counter, 0, 1)
        if v < 9:
            worker.push(v + 1, v + 1)
        if v == 0:
            worker.push(10, 5)


@pytest.mark.parametrize("persistent", [True, False], ids=["persistent", "discrete"])
def test_what_was_beyond_the_window_runs_with_its_bucket(device, worker, persistent):
    turn, counter = (atos.zeros(11, dtype=np.int64, device=device) for _ in range(2))
    queue = atos.Queue(100, device=device, buckets=2, delta=1.0)
    queue.push(0)
    launch(queue, worker, climb, turn, counter, barrier=True, persistent=persistent)
    order = turn[:]
    assert order[4] < order[10] < order[6]
    assert counter[0] == 11
