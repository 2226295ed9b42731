"""The function between rounds of a launch over several devices: one worker of all runs it, and what it sets is for all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from shared_tasks import assert_each_once, forest_on_host, on_device, plan
from tasks_over_devices import parts_of_path

import atos_py as atos
from atos_py.errors import LaunchTimeoutError, QueueFullError, TaskError

TWO, FIVE = ["cpu:0", "cpu:1"], [f"cpu:{i}" for i in range(5)]
each_number = pytest.mark.parametrize("devices", [["cpu"], TWO, FIVE], ids=["one", "two", "five"])


@atos.task
def count_down(worker, v, ran, wrong, first, calls):
    """Count this item in its round, whose mode is ten times its number, and push the vertex before it."""
    atos.atomic_add(ran, worker.round, 1)
    if worker.mode != 10 * worker.round:
        atos.atomic_add(wrong, 0, 1)
    if v > first:
        worker.push(v - 1)


def set_tenfold(worker, ran, wrong, first, calls):
    """Set the mode; what waits is what runs in the next round."""
    if worker.mode != 10 * worker.round or calls[0] != worker.round:
        wrong[1] += 1
    calls[0] += 1
    calls[calls[0]] = worker.pending
    worker.set_mode(10 * worker.round + 10)


@each_number
@pytest.mark.parametrize("num_blocks", [1, 3])
def test_all_workers_know_the_number_and_the_mode_of_the_round(devices, num_blocks):
    queue = atos.Queue(10, owner=parts_of_path(40, devices, "keep"))
    for _ in range(2):  # both begin at 0 in each launch
        ran, wrong, calls = (np.zeros(n, np.int64) for n in (60, 2, 60))
        queue.push([39] * 100 + [10] * 7)
        options: dict[str, Any] = {"barrier": True, "each_round": set_tenfold, "num_blocks": num_blocks}
        stats = queue.launch_cta(count_down, ran, wrong, 0, calls, timeout=60, **options)
        expected = [107] * 11 + [100] * 29
        assert ran.tolist() == expected + [0] * 20
        assert calls.tolist() == [40, *expected[1:], *[0] * 20]
        assert wrong.tolist() == [0, 0]
        assert stats.rounds == 40


@atos.task(workload=plan)
def grow_in_rounds(worker, item, i, first, forest, counts, calls, stop_at):
    """Push child i of a node; some nodes stop the launch. The mode is the number of the round."""
    worker.push(first + i)
    if worker.mode != worker.round:
        atos.atomic_add(calls, 1, 1)
    if stop_at > 0 and (first + i) % stop_at == 0:
        worker.stop()


def check_level(worker, forest, counts, calls, stop_at):
    """Count a call: the level of that number is over, and the one after it, all of which waits, has not begun."""
    worker.set_mode(worker.round + 1)
    level = calls[0]
    begun = level + 1 < counts.done.size and counts.done[level + 1] != 0
    waiting = forest.of_level[level + 1] if level + 1 < counts.done.size else 0
    if counts.done[level] != forest.of_level[level] or begun or worker.pending != waiting:
        calls[1] += 1
    calls[0] = level + 1


@pytest.mark.parametrize("capacity", [1, 100])
def test_it_runs_once_after_each_round_while_the_queues_grow(capacity):
    forest = forest_on_host(3000, 1, most=4, seed=5)
    there, counts = on_device(forest, atos.device("cpu"))
    calls, queue = np.zeros(2, np.int64), atos.Queue(capacity, owner=parts_of_path(3000, FIVE, "keep"))
    queue.push(0)
    stats = queue.launch_warp(grow_in_rounds, there, counts, calls, 0, barrier=True, each_round=check_level, timeout=60)
    assert_each_once(counts.seen.to_numpy())
    assert calls.tolist() == [len(forest.of_level), 0]
    assert stats.rounds == len(forest.of_level)
    assert stats.grown > 0


@pytest.mark.parametrize("why", ["timeout", "stop", "full"])
def test_it_runs_once_after_each_round_of_launches_that_were_interrupted(why):
    """The rest of a round that was interrupted on any device is a round of the next launch, and only after that it runs."""
    forest = forest_on_host(3000, 1, most=4, seed=6)
    there, counts = on_device(forest, atos.device("cpu"))
    calls, queue, launches = np.zeros(2, np.int64), atos.Queue(4, owner=parts_of_path(3000, TWO, "keep")), 0
    queue.push(0)
    if why == "full":
        queue.max_capacity = 4
    while len(queue):
        options: dict[str, Any] = {"barrier": True, "each_round": check_level, "fetch_size": 1, "num_blocks": 2}
        options["timeout"] = 1e-6 * (1 + launches * 7 % 300) if why == "timeout" and launches < 300 else 60
        launches += 1
        try:
            stats = queue.launch_cta(grow_in_rounds, there, counts, calls, 40 if why == "stop" else 0, **options)
            assert stats.stopped or not len(queue)
        except LaunchTimeoutError:
            pass
        except QueueFullError as error:
            queue.max_capacity = queue.max_capacity + error.pending // 4 + 1
    assert_each_once(counts.seen.to_numpy())
    assert calls.tolist() == [len(forest.of_level), 0]
    assert counts.early[0] == 0
    assert why == "timeout" or launches > 5


@atos.task
def note_item(worker, v, seen, seeds, calls):
    atos.atomic_add(seen, v, 1)


@each_number
def test_what_it_pushes_goes_to_the_owners(devices):
    """Into empty queues: a first round of nothing. More than the rings and the buffer of a worker hold is not lost."""

    def push_seeds(worker, seen, seeds, calls):
        done = worker.round * 8000
        for k in range(done, min(done + 8000, seeds.size)):
            worker.push(seeds[k])
        calls[0] += 1

    n = 20_000
    seeds = np.random.default_rng(1).permutation(n).astype(np.int32)
    parts = parts_of_path(n, devices)
    seen, calls, queue = atos.full(n, 0, partition=parts), np.zeros(1, np.int64), atos.Queue(64, owner=parts)
    stats = queue.launch_cta(note_item, seen, seeds, calls, each_round=push_seeds, barrier=True, timeout=60)
    assert_each_once(seen.to_numpy())
    assert (stats.tasks_run, stats.tasks_pushed, stats.rounds, calls[0]) == (n, n, 4, 4)
    assert [each.tasks_run for each in stats.devices] == np.diff(parts.ownership.borders).tolist()


def test_it_stops_all_devices():
    """What it pushed is in the queue then, and what a full queue does not hold is not lost."""

    def stop_third(worker, ran, wrong, first, calls):
        worker.set_mode(10 * worker.round + 10)
        if worker.round == 2:
            worker.stop()
            for k in range(5):
                worker.push(8 * k)

    queue = atos.Queue(10, owner=parts_of_path(40, FIVE, "keep"))
    queue.push([30, 39])
    ran, wrong = np.zeros(60, np.int64), np.zeros(2, np.int64)
    stats = queue.launch_cta(count_down, ran, wrong, 0, ran, each_round=stop_third, barrier=True, timeout=60)
    assert (stats.stopped, stats.rounds, stats.tasks_run, wrong[0]) == (True, 3, 6, 0)
    assert sorted(queue.peek().tolist()) == [0, 8, 16, 24, 27, 32, 36]


def test_a_queue_that_may_not_hold_its_pushes_says_so():
    def push_many(worker, seen, seeds, calls):
        if worker.round == 0:
            for k in range(50):
                worker.push(k)
        calls[0] += 1

    parts = parts_of_path(50, TWO)
    seen, calls = atos.full(50, 0, partition=parts), np.zeros(1, np.int64)
    queue = atos.Queue(8, max_capacity=16, owner=parts)
    with pytest.raises(QueueFullError) as full:
        queue.launch_cta(note_item, seen, calls, calls, each_round=push_many, barrier=True, timeout=60)
    assert (len(queue), full.value.lost, calls[0]) == (50, 0, 1)
    queue.resize(64)
    queue.launch_cta(note_item, seen, calls, calls, barrier=True, timeout=60)
    assert_each_once(seen.to_numpy())


def test_a_check_that_fails_in_it_is_reported():
    def fail_second(worker, seen, seeds, calls):
        if worker.round == 1:
            calls[worker.round] = 0

    queue = atos.Queue(8, owner=parts_of_path(50, TWO))
    queue.push([1])
    with pytest.raises(TaskError, match="index 1"):
        queue.launch_cta(again_below, 0, 0, np.zeros(1), each_round=fail_second, barrier=True, debug=True, timeout=60)
    assert len(queue) == 1


@atos.task
def again_below(worker, v, seen, seeds, calls):
    worker.push(v)
