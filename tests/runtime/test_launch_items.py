"""Items of every type: each value that a task pushes comes back, and a queue that fills loses none."""

from __future__ import annotations

import numpy as np
import pytest
from item_types import DTYPES, INTEGERS, RECORDS, random_items
from shared_tasks import TASKS, Forest, assert_each_once, every_schedule, forest_on_host, grow, launch, on_device, run_through

import atos_py as atos
from atos_py.errors import InvalidArgumentError, QueueFullError


@every_schedule
@pytest.mark.parametrize("dtype", TASKS)
def test_every_type_of_item(device, worker, persistent, barrier, dtype):
    queue = atos.Queue(2000, dtype=DTYPES[dtype], device=device)
    assert run_through(queue, worker, forest_on_host(1500, 2), device, persistent=persistent, barrier=barrier) == 0


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_fifo_on_the_host_over_many_laps(device, dtype):
    """Pushes after launches begin anywhere in the ring; what is pending stays in order."""

    @atos.task
    def drop(worker, item):
        pass

    queue = atos.Queue(5, dtype=dtype, device=device)
    for number in range(40):
        items = random_items(dtype, 10, seed=number)[5:]
        first = 1 + number % 4
        queue.push(items[:first])
        queue.push(items[first:])
        assert queue.peek().tolist() == items.tolist()
        stats = queue.launch_warp(drop)
        assert (stats.tasks_run, len(queue)) == (5, 0)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_every_value_may_be_pushed_by_a_task(device, worker, dtype):
    @atos.task
    def twice(worker, item, values, runs):
        for j in worker.split(len(values)):
            if values[j] == item and atos.atomic_add(runs, j, 1) == 0:
                worker.push(item)

    values = np.unique(random_items(np.dtype(dtype), 50))
    runs = atos.zeros(len(values), dtype=np.int32, device=device)
    queue = atos.Queue(60, dtype=dtype, device=device)
    queue.push(values)
    stats = launch(queue, worker, twice, atos.asarray(values, device=device), runs)
    assert runs.to_numpy().tolist() == [2] * len(values)
    assert stats.tasks_run == 2 * len(values)


@pytest.mark.parametrize("name", RECORDS)
def test_every_record_may_be_pushed_by_a_task(device, name):
    fields = RECORDS[name].names

    @atos.task(workload=lambda item, first, second, runs: 1)
    def twice(worker, item, i, first, second, runs):
        for j in range(len(first)):
            if first[j] == item[0] and second[j] == item[1] and atos.atomic_add(runs, j, 1) == 0:
                worker.push(item)

    values = random_items(RECORDS[name], 50)
    keep = np.unique([(value[fields[0]], value[fields[1]]) for value in values], axis=0, return_index=True)[1]
    values = values[np.sort(keep)]
    runs = atos.zeros(len(values), dtype=np.int32, device=device)
    queue = atos.Queue(200, dtype=RECORDS[name], device=device)
    queue.push(values)
    first, second = (atos.asarray(np.ascontiguousarray(values[field]), device=device) for field in fields[:2])
    queue.launch_cta(twice, first, second, runs, persistent=False, barrier=True)
    assert runs.to_numpy().tolist() == [2] * len(values)


# Queues that fill


@every_schedule
@pytest.mark.parametrize("capacity", [1, 2, 50])
@pytest.mark.parametrize("dtype", ["uint32", "int64", "16 bytes", "32 bytes"])
def test_a_launch_that_fills_its_queue_loses_nothing(device, worker, persistent, barrier, capacity, dtype):
    filled = 0
    for seed in range(3):
        queue = atos.Queue(capacity, max_capacity=capacity, dtype=DTYPES[dtype], device=device)
        forest = forest_on_host(600, 1, most=5, seed=seed)
        filled += run_through(queue, worker, forest, device, persistent=persistent, barrier=barrier, fetch_size=4, num_blocks=2)
    assert filled > 0


@atos.task
def count_and_follow(worker, v, n, seen):
    """Count the item, and push the one of the next round that belongs to it."""
    if worker.rank == 0:
        atos.atomic_add(seen, v, 1)
        if v < n:
            worker.push(v + n)


@every_schedule
@pytest.mark.parametrize("n", [129, 297, 1001, 3000])
def test_batches_that_do_not_come_out_even(device, worker, persistent, barrier, n):
    """One block claims tickets for all its threads at once: some get fewer than others, and the last of a round none."""
    seen = atos.zeros(2 * n, dtype=np.int32, device=device)
    queue = atos.Queue(2 * n, device=device)
    queue.push(range(n))
    options = {"persistent": persistent, "barrier": barrier, "num_blocks": 1, "fetch_size": 64, "timeout": 20}
    stats = launch(queue, worker, count_and_follow, n, seen, **options)
    assert_each_once(seen.to_numpy())
    assert stats.tasks_run == 2 * n


@pytest.mark.parametrize("persistent", [True, False])
def test_a_barrier_holds_when_a_full_queue_goes_on(device, persistent):
    """The rest of a level is a round of its own, and what that level pushed is the next."""
    first = np.array([4, 6, 6, 6, 6, 6, 6])  # four roots, the first of which has two children
    level = np.array([0, 0, 0, 0, 1, 1], np.int32)
    there, counts = on_device(Forest(first, level, np.array([4, 2], np.int32)), device)
    queue = atos.Queue(4, max_capacity=4, device=device)
    queue.push([0, 1, 2, 3])
    options = {"persistent": persistent, "barrier": True, "num_blocks": 1, "fetch_size": 1}
    with pytest.raises(QueueFullError):
        queue.launch_cta(grow, there, counts, **options)
    assert counts.seen.to_numpy().tolist() == [1, 0, 0, 0, 0, 0]
    queue.resize(8)
    stats = queue.launch_cta(grow, there, counts, **options)
    assert_each_once(counts.seen.to_numpy())
    assert stats.rounds == 2


def test_the_error_of_a_full_queue_says_what_to_do(device):
    forest = forest_on_host(100, most=5)
    there, counts = on_device(forest, device)
    queue = atos.Queue(2, max_capacity=2, device=device)
    queue.push(0)
    with pytest.raises(
        QueueFullError, match=r"leave \d+ unfinished, more than the queue's capacity of 2; all are still in it: raise max_cap"
    ):
        queue.launch_cta(grow, there, counts)
    with pytest.raises(QueueFullError, match="would exceed its max_capacity of 2"):
        queue.push(0)
    pending = len(queue)
    with pytest.raises(InvalidArgumentError, match=f"less than the {pending} tasks pending"):
        queue.resize(pending - 1)
    queue.clear()
    assert len(queue) == 0
    queue.push(0)
    assert queue.peek().tolist() == [0]


@atos.task(workload=lambda item, n: n if item == 0 else 0)
def burst(worker, item, i, n):
    worker.push(i + 1)


@pytest.mark.parametrize("persistent", [True, False])
def test_a_burst_into_a_small_queue_loses_nothing(device, persistent):
    """Far more than the ring holds, from a task in hand, after the stop was asked for."""
    queue = atos.Queue(16, max_capacity=16, device=device)
    queue.push(0)
    n = 3_000_000
    with pytest.raises(QueueFullError, match="all are still in it") as full:
        queue.launch_cta(burst, n, persistent=persistent)
    left = queue.peek()
    assert len(left) == len(queue) == full.value.pending
    assert full.value.lost == 0
    assert len(np.unique(left)) == len(left)
    assert left.min() >= 1
    assert left.max() <= n
    queue.max_capacity = n
    stats = queue.launch_cta(burst, n)
    assert stats.tasks_run == full.value.pending
    assert stats.grown == 1
