"""Launches: every way to run a task graph whose totals are known, and all that tasks can do, on each device."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import threading
import time
from typing import Any, NamedTuple

import numpy as np
import pytest
from item_types import DTYPES, INTEGERS, RECORDS, random_items
from shared_tasks import (
    SCHEDULES,
    TASKS,
    Forest,
    assert_each_once,
    count_item,
    every_schedule,
    forest_on_host,
    grow,
    grow_flat,
    launch,
    on_device,
    plan,
    run_through,
)

import atos_py as atos
from atos_py.errors import (
    DeviceNotFoundError,
    InvalidArgumentError,
    LaunchConfigError,
    QueueFullError,
    TaskCompileError,
    UnsupportedTypeError,
)


@every_schedule
@pytest.mark.parametrize("fetch_size", [1, 3, 32, 128])
@pytest.mark.parametrize("task", [grow, grow_flat], ids=["nested", "flat"])
def test_every_task_runs_once(device, worker, persistent, barrier, fetch_size, task):
    forest = forest_on_host(3000, 3)
    there, counts = on_device(forest, device)
    queue = atos.Queue(4000, device=device)
    queue.push([0, 1, 2])
    stats = launch(queue, worker, task, there, counts, persistent=persistent, barrier=barrier, fetch_size=fetch_size)
    assert_each_once(counts.seen.to_numpy())
    assert (stats.tasks_run, stats.tasks_pushed) == (3000, 2997)
    assert (stats.worker, stats.persistent, stats.barrier, stats.fetch_size) == (worker, persistent, barrier, fetch_size)
    assert (stats.task, stats.device) == (task.name, str(device))
    assert stats.milliseconds > 0
    assert stats.rounds >= 1
    assert len(queue) == 0
    if barrier:
        assert counts.early[0] == 0
        assert stats.rounds == len(forest.of_level)


@every_schedule
@pytest.mark.parametrize(("num_blocks", "num_threads"), [(1, 32), (1, 512), (2, 64), (7, 128)])
def test_blocks_and_threads(device, worker, persistent, barrier, num_blocks, num_threads):
    forest = forest_on_host(3000, 3)
    there, counts = on_device(forest, device)
    queue = atos.Queue(4000, device=device)
    queue.push([0, 1, 2])
    options = {"num_blocks": num_blocks, "num_threads": num_threads, "persistent": persistent, "barrier": barrier}
    stats = launch(queue, worker, grow, there, counts, **options)
    assert_each_once(counts.seen.to_numpy())
    assert stats.num_blocks == num_blocks
    if device.kind == "cpu":
        assert (stats.num_threads, stats.num_workers) == (1, num_blocks)
    else:
        per_block = {"thread": num_threads, "warp": num_threads // 32, "cta": 1}[worker]
        assert (stats.num_threads, stats.num_workers) == (num_threads, num_blocks * per_block)


@every_schedule
@pytest.mark.parametrize("dtype", TASKS)
def test_every_type_of_item(device, worker, persistent, barrier, dtype):
    queue = atos.Queue(2000, dtype=DTYPES[dtype], device=device)
    assert run_through(queue, worker, forest_on_host(1500, 2), device, persistent=persistent, barrier=barrier) == 0


@every_schedule
def test_a_barrier_keeps_levels_apart(device, worker, persistent, barrier):
    """Wide levels, more than the workers take at once, and so early pushes that could run at once."""
    forest = forest_on_host(12000, 2000, most=2, seed=3)
    there, counts = on_device(forest, device)
    queue = atos.Queue(12000, device=device)
    queue.push(np.arange(2000))
    stats = launch(queue, worker, grow, there, counts, persistent=persistent, barrier=barrier, fetch_size=4)
    assert_each_once(counts.seen.to_numpy())
    if barrier:
        assert counts.early[0] == 0
        assert stats.rounds == len(forest.of_level)


def test_without_a_barrier_levels_overlap():
    """What shows that the count of early nodes can be other than 0."""
    forest = forest_on_host(2000, 1, most=3)
    there, counts = on_device(forest, atos.device("cpu"))
    queue = atos.Queue(4000, device="cpu")
    queue.push(np.arange(1, 2000)[forest.level[1:] == forest.level.max()])
    queue.launch_cta(grow, there, counts)
    assert counts.early[0] > 0


@every_schedule
def test_an_empty_queue(device, worker, persistent, barrier):
    there, counts = on_device(forest_on_host(10), device)
    queue = atos.Queue(10, device=device)
    stats = launch(queue, worker, grow, there, counts, persistent=persistent, barrier=barrier)
    assert (stats.tasks_run, stats.tasks_pushed, counts.seen.to_numpy().sum()) == (0, 0, 0)


def test_results_add_up_over_launches_on_a_small_ring(device, worker):
    """Many launches wrap around a ring that is hardly larger than what is pending."""
    chain = forest_on_host(30, most=1)
    there, counts = on_device(chain, device)
    queue = atos.Queue(3, device=device)
    rounds = 50
    for number in range(rounds):
        queue.push([0] if number % 2 else [0, 29])  # node 29 is the last of the chain
        persistent, barrier = SCHEDULES[number % 4]
        launch(queue, worker, grow, there, counts, persistent=persistent, barrier=barrier)
    expected = np.full(30, rounds)
    expected[29] += rounds // 2
    assert counts.seen.to_numpy().tolist() == expected.tolist()


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
@pytest.mark.parametrize("dtype", ["uint32", "int64", "16 bytes"])
def test_a_launch_that_fills_its_queue_loses_nothing(device, worker, persistent, barrier, capacity, dtype):
    filled = 0
    for seed in range(3):
        queue = atos.Queue(capacity, max_capacity=capacity, dtype=DTYPES[dtype], device=device)
        forest = forest_on_host(600, 1, most=5, seed=seed)
        filled += run_through(queue, worker, forest, device, persistent=persistent, barrier=barrier, fetch_size=4, num_blocks=2)
    assert filled > 0


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


def idle_pushing(worker, counts):
    """Count calls, and push as long as the budget lasts."""
    if worker.rank == 0:
        atos.atomic_add(counts, 1, 1)
        if atos.atomic_add(counts, 2, -1) > 0:
            worker.push(7)


@every_schedule
@pytest.mark.parametrize("budget", [0, 1, 1000])
@pytest.mark.parametrize("pushed", [0, 5])
def test_idle_pushes_run_and_a_quiet_round_ends_it(device, worker, persistent, barrier, budget, pushed):
    counts = atos.asarray(np.array([0, 0, budget]), device=device)
    queue = atos.Queue(2000, device=device)
    queue.push(np.arange(pushed))
    stats = launch(queue, worker, count_item, counts, idle=idle_pushing, persistent=persistent, barrier=barrier)
    ran, calls, left = counts.to_numpy()
    assert ran == stats.tasks_run == pushed + budget
    assert stats.tasks_pushed == budget
    assert left <= 0
    assert calls == budget - left
    assert calls >= budget + stats.num_workers if budget == 0 else calls >= stats.num_workers
    assert len(queue) == 0


def plan_with_seeds(item, forest, counts, seeds):
    return plan(item, forest, counts)


@atos.task(workload=plan_with_seeds)
def grow_seeded(worker, item, i, first, forest, counts, seeds):
    worker.push(first + i)


def plant(worker, forest, counts, seeds):
    """Push the next root: each of them once, however many ask."""
    if worker.rank == 0:
        root = atos.atomic_add(seeds, 0, 1)
        if root < forest.first[0]:
            worker.push(root)


@every_schedule
def test_idle_feeds_a_whole_forest(device, worker, persistent, barrier):
    forest = forest_on_host(3000, 400, most=2)
    there, counts = on_device(forest, device)
    seeds = atos.zeros(1, dtype=np.int64, device=device)
    queue = atos.Queue(6000, device=device)
    stats = launch(queue, worker, grow_seeded, there, counts, seeds, idle=plant, persistent=persistent, barrier=barrier)
    assert_each_once(counts.seen.to_numpy())
    assert stats.tasks_pushed == stats.tasks_run == 3000


# Loops


def lengths(v, given, totals, sums, wrong):
    atos.atomic_add(wrong, 1, 1)
    return given[v], v * 7, given[v] + 0.5, v % 2 == 0, np.int8(-v)


@atos.task(workload=lengths)
def add_up(worker, v, i, seven, half, even, negative, given, totals, sums, wrong):
    if seven != v * 7 or half != given[v] + 0.5 or even != (v % 2 == 0) or negative != -v or i < 0 or i >= given[v]:
        atos.atomic_add(wrong, 0, 1)
    atos.atomic_add(totals, v, 1)
    atos.atomic_add(sums, v, i)


@every_schedule
def test_loops_of_every_length(device, worker, persistent, barrier):
    """The body runs for each iteration, with the values of its item; the workload once for each item."""
    near = [4095, 4096, 4097, 8191, 8192, 8193]
    given = np.array([0, 1, -1, 31, 32, 33, 255, 256, 257, *near, -(2**40), 100_003, 0, *[5] * 80, 70_001, 12_345])
    expected = np.maximum(given, 0)
    totals, sums = (atos.zeros(len(given), dtype=np.int64, device=device) for _ in range(2))
    wrong = atos.zeros(2, dtype=np.int64, device=device)
    queue = atos.Queue(len(given), device=device)
    queue.push(np.arange(len(given)))
    launch(
        queue, worker, add_up, atos.asarray(given, device=device), totals, sums, wrong, persistent=persistent, barrier=barrier
    )
    assert totals.to_numpy().tolist() == expected.tolist()
    assert sums.to_numpy().tolist() == (expected * (expected - 1) // 2).tolist()
    assert wrong.to_numpy().tolist() == [0, len(given)]


@atos.task(workload=lambda v, n, histogram: n)
def histogram_of(worker, v, i, n, histogram):
    atos.atomic_add(histogram, i & 1023, 1)


@pytest.mark.parametrize("worker", ["thread", "cta"])
def test_a_loop_of_ten_million(device, worker):
    n = 10_000_000
    histogram = atos.zeros(1024, dtype=np.uint32, device=device)
    queue = atos.Queue(1, device=device)
    queue.push(0)
    launch(queue, worker, histogram_of, n, histogram)
    expected = n // 1024 + (np.arange(1024) < n % 1024)
    assert histogram.to_numpy().tolist() == expected.tolist()


@every_schedule
def test_hubs_that_push_many(device, worker, persistent, barrier):
    """Long items next to short ones, all of whose pushes run once."""
    hubs, leaves = 12, 20_000
    first = np.concatenate([hubs + leaves * np.arange(hubs), np.full(hubs * leaves + 1, hubs * (leaves + 1))])
    level = np.concatenate([np.zeros(hubs), np.ones(hubs * leaves)])
    forest = Forest(first, level.astype(np.int32), np.bincount(level.astype(int)).astype(np.int32))
    there, counts = on_device(forest, device)
    queue = atos.Queue(hubs * (leaves + 1), device=device)
    queue.push(np.arange(hubs))
    stats = launch(queue, worker, grow, there, counts, persistent=persistent, barrier=barrier)
    assert_each_once(counts.seen.to_numpy())
    assert stats.tasks_pushed == hubs * leaves
    assert counts.early[0] == 0 or not barrier


# Flat tasks


def take_scratch(worker, v):
    worker.scratch(np.int16)[0] = 1
    worker.scratch(np.int64)[0] = v


@atos.task
def scratch_in_a_helper(worker, v):
    take_scratch(worker, v)


@atos.task(workload=lambda v: 1)
def scratch_in_idle(worker, v, i):
    pass


@pytest.mark.parametrize(
    ("task", "idle"), [(scratch_in_a_helper, None), (scratch_in_idle, lambda worker: take_scratch(worker, 0))]
)
@pytest.mark.parametrize("debug", [False, True])
def test_scratch_takes_shared_memory(device, worker, task, idle, debug):
    queue = atos.Queue(4, device=device)
    queue.push([1, 2])
    launch = functools.partial(getattr(queue, f"launch_{worker}"), task, idle=idle, debug=debug)
    for options in ({}, {"shared_memory": 7}):
        given = options.get("shared_memory", 0)
        with pytest.raises(LaunchConfigError, match=rf"elements of 8 bytes, .* {given} bytes; pass shared_memory="):
            launch(**options)
    assert queue.peek().tolist() == [1, 2]
    assert launch(shared_memory=8).tasks_run == 2


@atos.task
def together(worker, v, out, floats, counts):
    """Leave what the methods of a worker return in a row of `out` and `floats`."""
    rank, size = worker.rank, worker.size
    mine = worker.scratch(np.int64)
    mine[rank] = rank * (v + 1)
    worker.sync()
    opposite = mine[size - 1 - rank]
    worker.sync()
    in_place = worker.all(opposite == (size - 1 - rank) * (v + 1))
    total = worker.sum(rank + v)
    low = worker.min(v - rank)
    high = worker.max(v + rank)
    one = worker.any(rank == size - 1)
    none = worker.any(rank < 0)
    every = worker.all(rank < size)
    not_every = worker.all(rank > 0)
    for k in worker.split(100):
        atos.atomic_add(counts, (v, k), 1)
    for k in worker.split(range(200, 100, -3)):
        atos.atomic_add(counts, (v, k), 1)
    half = worker.sum(np.float32(0.5))
    least = worker.min(rank * 0.25 - 1)
    unsigned = worker.max(np.uint64(rank) + np.uint64(2**63))
    if rank == 0:
        out[v, 0] = size
        out[v, 1] = total
        out[v, 2] = low
        out[v, 3] = high
        out[v, 4] = one
        out[v, 5] = none
        out[v, 6] = every
        out[v, 7] = not_every
        out[v, 8] = in_place
        out[v, 9] = len(mine)
        out[v, 10] = unsigned - np.uint64(2**63)
        floats[v, 0] = half
        floats[v, 1] = least


@every_schedule
@pytest.mark.parametrize("num_threads", [32, 256, 1024])
def test_methods_of_a_worker(device, worker, persistent, barrier, num_threads):
    items = 40
    size = 1 if device.kind == "cpu" or worker == "thread" else 32 if worker == "warp" else num_threads
    out = atos.full((items, 11), -1, dtype=np.int64, device=device)
    floats = atos.zeros((items, 2), dtype=np.float64, device=device)
    counts = atos.zeros((items, 201), dtype=np.int32, device=device)
    queue = atos.Queue(items, device=device)
    queue.push(np.arange(items))
    options = {
        "persistent": persistent,
        "barrier": barrier,
        "fetch_size": 7,
        "shared_memory": 8 * size,
        "num_threads": num_threads,
    }
    launch(queue, worker, together, out, floats, counts, **options)
    for v, row in enumerate(out.to_numpy().tolist()):
        expected = [size, size * (size - 1) // 2 + size * v, v - size + 1, v + size - 1, 1, 0, 1, 0, 1, size, size - 1]
        assert row == expected, f"item {v}"
    assert floats.to_numpy().tolist() == [[size / 2, -1]] * items
    expected_counts = np.zeros(201, int)
    expected_counts[:100] += 1
    expected_counts[200:100:-3] += 1
    assert counts.to_numpy().tolist() == [expected_counts.tolist()] * items


# Atomics


class Cells(NamedTuple):
    """One element for each operation."""

    total: Any
    low: Any
    high: Any
    turns: Any
    last: Any


def compete_plan(v, n, cells, handed_on):
    return n


@atos.task(workload=compete_plan)
def compete(worker, v, i, n, cells, handed_on):
    number = (v * 7919 + i * 104729) % 10007
    atos.atomic_add(cells.total, 0, 1)
    atos.atomic_min(cells.low, 0, number + 3)
    atos.atomic_max(cells.high, 0, number)
    seen = cells.turns[0]
    while True:  # one more, by compare and swap
        before = atos.atomic_cas(cells.turns, 0, seen, seen + 1)
        if before == seen:
            break
        seen = before
    taken = atos.atomic_exch(cells.last, 0, number)  # each number is handed on once
    atos.atomic_add(handed_on, 0, np.int64(taken) - number)


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64", "float32", "float64"])
def test_atomics_under_contention(device, worker, dtype):
    items, n = 40, 500
    kind = np.dtype(dtype)
    most = np.iinfo(kind).max if kind.kind in "iu" else np.finfo(kind).max
    cells = Cells(*(atos.full(1, value, dtype=kind, device=device) for value in (0, most, 0, 0, 0)))
    handed_on = atos.zeros(1, dtype=np.int64, device=device)
    queue = atos.Queue(items, device=device)
    queue.push(np.arange(items))
    launch(queue, worker, compete, n, cells, handed_on)
    v, i = np.meshgrid(np.arange(items), np.arange(n))
    numbers = (v * 7919 + i * 104729) % 10007
    assert (cells.total[0], cells.turns[0]) == (items * n, items * n)
    assert (cells.low[0], cells.high[0]) == (numbers.min() + 3, numbers.max())
    assert handed_on[0] + int(cells.last[0]) == 0


@pytest.mark.parametrize("dtype", INTEGERS)
def test_atomics_of_bits(device, worker, dtype):
    @atos.task(workload=lambda v, raised, cleared, firsts: 31)
    def flip(worker, v, i, raised, cleared, firsts):
        bit = 1 << i
        if atos.atomic_or_(raised, 0, bit) & bit == 0:
            atos.atomic_add(firsts, i, 1)
        if atos.atomic_and_(cleared, 0, -1 - bit) & bit != 0:
            atos.atomic_add(firsts, i, 1)

    raised, cleared = atos.zeros(1, dtype=dtype, device=device), atos.full(1, 2**31 - 1, dtype=dtype, device=device)
    firsts = atos.zeros(31, dtype=np.int32, device=device)
    queue = atos.Queue(100, device=device)
    queue.push(np.arange(100))
    launch(queue, worker, flip, raised, cleared, firsts)
    assert (raised[0], cleared[0]) == (2**31 - 1, 0)
    assert firsts.to_numpy().tolist() == [2] * 31


# Arguments


class Inner(NamedTuple):
    scale: Any
    values: Any
    nothing: Any


class Outer(NamedTuple):
    inner: Inner
    table: Any


@atos.task
def use(worker, v, outer, flag, small, byte, large, single, double, nothing, out):
    """Leave what comes in as arguments in `out`."""
    if worker.rank == 0:
        out[0] = outer.inner.scale * outer.inner.values[v]
        out[1] = outer.table[1, 2] + outer.table.shape[0] * 100 + outer.table.shape[1] * 1000
        out[2] = 1 if flag else 2
        out[3] = small
        out[4] = byte
        out[5] = large
        out[6] = single
        out[7] = double
        out[8] = 1 if nothing is None else 2
        out[9] = 1 if outer.inner.nothing is None else 2
        out[10] = len(outer.inner.values)


class Sized(Inner):
    def __new__(cls, n: int) -> Sized:
        return super().__new__(cls, n, np.zeros(n), None)


def test_a_named_tuple_that_is_made_in_its_own_way():
    @atos.task
    def scale(worker, v, sized):
        sized.values[v] = sized.scale

    sized = Sized(3)
    queue = atos.Queue(3, device="cpu")
    queue.push([0, 2])
    queue.launch_cta(scale, sized)
    assert sized.values.tolist() == [3, 0, 3]


@pytest.mark.parametrize("worker", ["warp"])
def test_arguments_of_every_kind(device, worker):
    inner = Inner(2.5, atos.asarray(np.array([1.0, 4.0]), device=device, readonly=True), None)
    outer = Outer(inner, atos.asarray(np.arange(6, dtype=np.int16).reshape(2, 3), device=device))
    out = atos.zeros(11, dtype=np.float64, device=device)
    queue = atos.Queue(1, device=device)
    queue.push(1)
    launch(queue, worker, use, outer, True, np.int8(-3), np.uint8(200), np.uint64(2**63), np.float32(0.1), -7.25, None, out)
    assert out.to_numpy().tolist() == [10.0, 3205.0, 1, -3, 200, 2.0**63, float(np.float32(0.1)), -7.25, 1, 1, 2]


@atos.task
def write(worker, v, out):
    out[v] = v + 1


def test_numpy_arrays_on_the_cpu_are_written_in_place():
    queue = atos.Queue(10, device="cpu")
    out = np.zeros(10, np.uint16)
    queue.push(np.arange(10))
    queue.launch_cta(write, out)
    assert out.tolist() == list(range(1, 11))
    array = atos.asarray(out, device="cpu")
    queue.push([0])
    out[0] = 0
    queue.launch_cta(write, array)
    assert out[0] == 1
    part = np.zeros((4, 10), np.uint16)
    queue.push([3])
    queue.launch_cta(write, part[2])
    assert part.sum() == part[2, 3] == 4


class Foreign:
    """An array of another library in the memory of the host."""

    def __init__(self, data: np.ndarray) -> None:
        self.data = data

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, **options: Any) -> Any:
        return self.data.__dlpack__(**options)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.data


def test_host_arrays_of_others_are_written_in_place(monkeypatch):
    monkeypatch.setenv("ATOS_DEVICE", "cpu")
    out = Foreign(np.zeros(10, np.int32))
    queue = atos.Queue(10, device="cpu")
    queue.push([4])
    queue.launch_cta(write, out)
    assert out.data.sum() == out.data[4] == 5


def test_host_arrays_of_others_have_to_be_contiguous(monkeypatch):
    monkeypatch.setenv("ATOS_DEVICE", "cpu")
    queue = atos.Queue(10, device="cpu")
    queue.push([4])
    with pytest.raises(InvalidArgumentError, match="contiguous"):
        queue.launch_cta(write, Foreign(np.zeros(20, np.int32)[::2]))


@pytest.mark.gpu
def test_host_arrays_of_others_are_refused_on_a_gpu():
    queue = atos.Queue(10, device="cuda")
    queue.push([4])
    with pytest.raises((InvalidArgumentError, UnsupportedTypeError)):
        queue.launch_cta(write, Foreign(np.zeros(10, np.int32)))


def test_arrays_that_may_not_be_written():
    queue = atos.Queue(10, device="cpu")
    queue.push([4])
    frozen = np.zeros(10, np.int32)
    frozen.flags.writeable = False
    for array in (frozen, atos.zeros(10, dtype=np.int32, device="cpu")):
        if isinstance(array, atos.Array):
            array = atos.asarray(array, readonly=True)
        with pytest.raises(TaskCompileError, match=r"read-only|readonly"):
            queue.launch_cta(write, array)
    assert queue.peek().tolist() == [4]


def test_arguments_have_to_be_contiguous():
    queue = atos.Queue(10, device="cpu")
    for array in (np.zeros((10, 2))[:, 0], np.zeros((3, 4)).T, np.zeros(10)[::-1]):
        with pytest.raises(InvalidArgumentError, match=r"argument 1 is not C-contiguous; pass numpy.ascontiguousarray"):
            queue.launch_cta(use, None, array)


def test_arguments_on_another_device():
    there = atos.Array(1 << 20, (4,), np.dtype(np.int32), atos.Device("cuda", 3), readonly=False, owner=None)
    queue = atos.Queue(10, device="cpu")
    for args in ((there,), (Inner(1, there, None),), (Outer(Inner(1, 2, there), None),)):
        with pytest.raises(
            InvalidArgumentError, match=r"argument 0 is on cuda:3, .*the task runs on cpu; copy it with atos.asarray"
        ):
            queue.launch_cta(write, *args)


@pytest.mark.gpu
def test_arguments_of_the_host_on_a_gpu():
    queue = atos.Queue(10, device="cuda")
    queue.push([4])
    with pytest.raises(
        UnsupportedTypeError, match=r"argument 0 is an array of the host, which a task on cuda:0 cannot reach.*atos.asarray"
    ):
        queue.launch_cta(write, np.zeros(10))
    with pytest.raises(InvalidArgumentError, match=r"argument 0 is on cpu, .*the task runs on cuda:0"):
        queue.launch_cta(write, atos.zeros(10, device="cpu"))
    cpu = atos.Queue(10, device="cpu")
    with pytest.raises(InvalidArgumentError, match=r"argument 0 is on cuda:0, .*the task runs on cpu"):
        cpu.launch_cta(write, atos.zeros(10, device="cuda"))


@pytest.mark.parametrize(
    "value",
    [[1, 2], {"a": 1}, "text", (1, 2), 1j, object(), np.complex64(1), np.float16(1), np.datetime64(1, "s")],
    ids=lambda value: type(value).__name__,
)
def test_arguments_that_tasks_cannot_take(value):
    queue = atos.Queue(10, device="cpu")
    queue.push([4])
    with pytest.raises(UnsupportedTypeError, match=type(value).__name__):
        queue.launch_cta(write, value)
    assert queue.peek().tolist() == [4]


@pytest.mark.parametrize("dtype", ["float16", "complex128", "O", "S3", ">i4", "i4,i4"])
def test_arrays_that_tasks_cannot_take(dtype):
    queue = atos.Queue(10, device="cpu")
    with pytest.raises(UnsupportedTypeError, match="arrays hold integers of 8 to 64 bits, float32, float64 or bool"):
        queue.launch_cta(write, np.zeros(3, dtype))


def test_integers_beyond_64_bits():
    queue = atos.Queue(10, device="cpu")
    queue.push([4])
    with pytest.raises(InvalidArgumentError, match=r"argument 9223372036854775808 does not fit a signed 64-bit integer"):
        queue.launch_cta(atos.task(lambda worker, v, x: None), 2**63)


def test_more_arguments_than_there_is_room_for():
    many = NamedTuple("many", [(f"x{i}", int) for i in range(257)])  # type: ignore[misc]
    queue = atos.Queue(10, device="cpu")
    with pytest.raises(InvalidArgumentError, match=r"the arguments take 257 words of 8 bytes, .*\b256\b"):
        queue.launch_cta(atos.task(lambda worker, v, x: None), many(*range(257)))
    queue.push(1)
    assert queue.launch_cta(atos.task(lambda worker, v, x, y: None), many(*range(257))[0], 1).tasks_run == 1


# Options

WRONG_OPTIONS = [
    ({"num_threads": 33}, LaunchConfigError, r"num_threads must be a multiple of 32, at most 1024 \(got 33\)"),
    ({"num_threads": 1}, LaunchConfigError, "multiple of 32"),
    ({"num_threads": 0}, InvalidArgumentError, r"num_threads must be from 1 to 1024 \(got 0\)"),
    ({"num_threads": -32}, InvalidArgumentError, r"num_threads must be from 1 to 1024 \(got -32\)"),
    ({"num_threads": 1056}, InvalidArgumentError, r"num_threads must be from 1 to 1024 \(got 1056\)"),
    ({"num_threads": 2**64}, InvalidArgumentError, "num_threads"),
    ({"num_threads": 32.0}, UnsupportedTypeError, r"num_threads must be an integer \(got 32.0\)"),
    ({"num_threads": True}, UnsupportedTypeError, "num_threads must be an integer"),
    ({"num_blocks": 0}, InvalidArgumentError, r"num_blocks must be from 1 to 2147483647 \(got 0\)"),
    ({"num_blocks": -1}, InvalidArgumentError, "num_blocks"),
    ({"num_blocks": 2**31}, InvalidArgumentError, "num_blocks"),
    ({"num_blocks": "2"}, UnsupportedTypeError, "num_blocks must be an integer"),
    ({"fetch_size": 0}, InvalidArgumentError, r"fetch_size must be from 1 to 4096 \(got 0\)"),
    ({"fetch_size": -1}, InvalidArgumentError, "fetch_size"),
    ({"fetch_size": 4097}, InvalidArgumentError, r"fetch_size must be from 1 to 4096 \(got 4097\)"),
    ({"fetch_size": 1.5}, UnsupportedTypeError, "fetch_size must be an integer"),
    ({"shared_memory": -1}, InvalidArgumentError, r"shared_memory must be from 0 to 1048576 \(got -1\)"),
    ({"shared_memory": 2**21}, InvalidArgumentError, "shared_memory"),
    ({"shared_memory": None}, UnsupportedTypeError, "shared_memory must be an integer"),
    ({"device": "tpu"}, InvalidArgumentError, "a device is 'cpu', 'cuda' or 'cuda:N'"),
    ({"device": "cuda:99"}, DeviceNotFoundError, "cuda:99"),
    ({"device": atos.Device("cuda", 99)}, LaunchConfigError, "make a queue there"),
    (
        {"fetch": 3},
        UnsupportedTypeError,
        "a launch has no option 'fetch'; did you mean 'fetch_size'[?] it has idle, persistent",
    ),
    ({"qqq": 3}, UnsupportedTypeError, "a launch has no option 'qqq'; it has idle, persistent, barrier, fetch_size"),
    ({"idle": 3}, UnsupportedTypeError, "idle must be a function"),
    ({"idle": lambda worker, x, y: None}, TaskCompileError, "idle function"),
]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    WRONG_OPTIONS,
    ids=[f"{next(iter(options))}-{i}" for i, (options, *_) in enumerate(WRONG_OPTIONS)],
)
def test_options_that_make_no_sense(device, options, error, message):
    queue = atos.Queue(10, device=device)
    queue.push([1, 2])
    with pytest.raises(error, match=message):
        queue.launch_cta(count_item, atos.zeros(3, dtype=np.int64, device=device), **options)
    assert queue.peek().tolist() == [1, 2]


def test_only_tasks_are_launched(device):
    queue = atos.Queue(10, device=device)
    for wrong in (lambda worker, v: None, None, count_item.body):
        with pytest.raises(UnsupportedTypeError, match=r"launch a task made with @atos.task"):
            queue.launch_cta(wrong)


def test_a_task_that_does_not_compile_leaves_the_queue(device):
    queue = atos.Queue(10, device=device)
    queue.push([1, 2])
    with pytest.raises(TaskCompileError, match="undefined_name"):
        queue.launch_cta(atos.task(lambda worker, v: undefined_name(v)))  # noqa: F821
    with pytest.raises(TaskCompileError, match="takes 3 arguments"):
        queue.launch_cta(count_item)
    assert queue.peek().tolist() == [1, 2]


def test_the_device_may_be_named(device):
    counts = atos.zeros(3, dtype=np.int64, device=device)
    queue = atos.Queue(10, device=device)
    queue.push([1, 2])
    assert queue.launch_cta(count_item, counts, device=str(device)).tasks_run == 2
    assert queue.launch_cta(count_item, counts, device=device).tasks_run == 0


@pytest.mark.parametrize("num_blocks", [1000, 2**31 - 1])
def test_more_threads_than_the_cpu_can_have(num_blocks):
    """More than a launch may have, or than fit in little memory, in a process of its own; the tasks are still there."""
    code = f"""
import resource
import numpy as np, atos_py as atos
queue = atos.Queue(2000, max_capacity=2000, device="cpu")  # the addresses into which another might grow are given back
@atos.task
def task(worker, v):
    if v == 5000:
        for child in range(1000):
            worker.push(child)
queue.launch_cta(task)
taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + (1 << 30),) * 2)
for persistent in (True, False):
    for barrier in (True, False):
        queue.push(np.arange(1000))
        try:
            queue.launch_cta(task, num_blocks={num_blocks}, persistent=persistent, barrier=barrier, fetch_size=1)
        except atos.LaunchConfigError as error:
            print(error)
        assert queue.peek().tolist() == list(range(1000))
        assert queue.launch_cta(task, num_blocks=2).tasks_run == 1000
        queue.push(5000)  # which alone needs one thread only, but what it pushes needs them all
        try:
            queue.launch_cta(task, num_blocks={num_blocks}, persistent=persistent, barrier=barrier, fetch_size=1)
        except atos.LaunchConfigError as error:
            print(error)
        assert queue.peek().tolist() == [5000]
        queue.clear()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 8
    for line in done.stdout.splitlines():
        assert line.startswith(f"{num_blocks} threads asked for, but ")


def test_stats_in_words(device):
    counts = atos.zeros(3, dtype=np.int64, device=device)
    queue = atos.Queue(3000, device=device)
    queue.push(np.arange(1234))
    stats = queue.launch_warp(count_item, counts, persistent=False, barrier=True, fetch_size=5)
    text = str(stats)
    for part in (
        "count_item: 1,234 tasks run, 0 pushed in",
        "discrete, barrier; 1 round;",
        "fetch size 5",
        f"on {device}",
        "warp workers",
    ):
        assert part in text
    fields = stats.to_dict()
    assert (fields["tasks_run"], fields["worker"], fields["rounds"]) == (1234, "warp", 1)
    assert stats.throughput == pytest.approx(1234 / stats.milliseconds * 1e3)


# The process around it


def test_queues_of_several_threads_run_side_by_side(device, worker):
    forest = forest_on_host(3000, 3)
    failures: list[Any] = []

    def work(number: int) -> None:
        try:
            for turn in range(4):
                there, counts = on_device(forest, device)
                queue = atos.Queue(4000, device=device)
                queue.push([0, 1, 2])
                persistent, barrier = SCHEDULES[(number + turn) % 4]
                launch(queue, worker, grow, there, counts, persistent=persistent, barrier=barrier, num_blocks=2)
                assert_each_once(counts.seen.to_numpy())
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(240)
        assert not thread.is_alive()
    assert failures == []


def test_one_queue_in_several_threads(device):
    forest = forest_on_host(2000, 1)
    there, counts = on_device(forest, device)
    queue = atos.Queue(10_000, device=device)
    ran: list[int] = []

    def work() -> None:
        for _ in range(5):
            queue.push([0])
            ran.append(queue.launch_cta(grow, there, counts).tasks_run)
            assert len(queue) <= 2  # what others pushed and have not launched: nothing in between is seen

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(240)
        assert not thread.is_alive()
    assert sum(ran) == 15 * 2000
    assert set(counts.seen.to_numpy().tolist()) == {15}


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_small_launches_do_not_add_up(device):
    counts = atos.zeros(3, dtype=np.int64, device=device)
    queue = atos.Queue(16, device=device)

    def some(n: int) -> None:
        for number in range(n):
            queue.push([number])
            persistent, barrier = SCHEDULES[number % 4]
            assert queue.launch_cta(count_item, counts, persistent=persistent, barrier=barrier).tasks_run == 1

    some(200)
    before, threads = resident_bytes(), len(os.listdir("/proc/self/task"))
    some(2000)
    assert resident_bytes() - before < 4 << 20
    assert len(os.listdir("/proc/self/task")) <= threads
    assert counts[0] == 2200
    if device.kind == "cuda":  # where other processes take memory too, now and then; what launches leave is there each time
        for _ in range(3):
            on_gpu = device.memory[0]
            some(2000)
            lost = on_gpu - device.memory[0]
            if lost < 4 << 20:
                break
        assert lost < 4 << 20


def test_threads_that_launched_leave_nothing_behind(device):
    """A Python thread that ends takes the workers of its launches along; what it had of a GPU's driver is for the next."""
    counts = atos.zeros(3, dtype=np.int64, device=device)

    def work() -> None:
        queue = atos.Queue(16, device=device)
        for persistent in True, False:
            queue.push([1])
            queue.launch_cta(count_item, counts, num_blocks=4, persistent=persistent)

    work()
    threads = len(os.listdir("/proc/self/task"))
    for ended in range(1, 41):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        if ended == 10:
            before = resident_bytes()
    assert resident_bytes() - before < 8 << 20
    assert counts[0] == 82
    for _ in range(100):  # the latest may be about to end
        if len(os.listdir("/proc/self/task")) <= threads + 30:
            break
        time.sleep(0.1)
    else:
        pytest.fail(f"{len(os.listdir('/proc/self/task'))} threads are left, of {threads} before")


FORK = """
import multiprocessing, os, signal, sys
import numpy as np
import atos_py as atos

@atos.task(workload=lambda v, out: 3 if v < 1000 else 0)
def spread(worker, v, i, out):
    atos.atomic_add(out, 0, 1)
    worker.push(3 * v + i + 1)

def total():
    queue, out = atos.Queue(5000, device="cpu"), np.zeros(1, np.int64)
    queue.push([0])
    stats = [queue.launch_cta(spread, out, num_blocks=2, persistent=p, barrier=b).num_workers
             for p in (True, False) for b in (True, False) for _ in [queue.push([0])]]
    assert stats == [2] * 4
    return int(out[0])
"""


def run_script(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK + code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_a_forked_process_launches_on_its_own():
    code = """
expected = total()
context = multiprocessing.get_context("fork")
with context.Pool(2) as pool:
    assert pool.starmap(total, [()] * 4) == [expected] * 4
process = context.Process(target=total)
process.start()
process.join(60)
print(process.exitcode, total() == expected)
"""
    assert run_script(code) == "0 True\n"


def test_a_forked_process_does_not_wait_for_its_parents_threads():
    """A queue that a thread of the parent's uses at the fork says so in the child."""
    code = """
import threading, time
@atos.task
def endless(worker, v, running):
    running[0] = 1
    worker.push(v)

queue, running = atos.Queue(10, device="cpu"), np.zeros(1, np.int32)
queue.push([1])
def run():
    try:
        queue.launch_thread(endless, running, timeout=3)
    except atos.LaunchTimeoutError:
        print("stopped", len(queue))
thread = threading.Thread(target=run)
thread.start()
while not running[0]:
    time.sleep(0.01)
child = os.fork()
if child == 0:
    signal.alarm(10)
    for use in (len, atos.Queue.peek, lambda queue: queue.push([1]), lambda queue: queue.launch_cta(endless, running)):
        try:
            use(queue)
        except atos.DeviceStuckError as error:
            assert "fork" in str(error)
        else:
            os._exit(1)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
thread.join()
"""
    assert run_script(code) == "0\nstopped 1\n"


@pytest.mark.parametrize(
    "launches",
    [False, True],
    ids=["without a launch", "after a launch"],
)
def test_a_forked_process_exits_as_any_other(launches):
    """Exit handlers run in the child, which has none of its parent's threads."""
    code = f"""
total()
child = os.fork()
if child == 0:
    signal.alarm(5)
    if {launches}:
        total()
    sys.exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert run_script(code) == "7\n"


def scaled(item, *args):
    """Return as many iterations as the last argument says, and the item times the first."""
    return args[-1], item * args[0]


@atos.task(workload=scaled)
def add_to(worker, item, i, value, factor, *rest):
    atos.atomic_add(rest[0], item, value + i)


@atos.task
def add_all(worker, item, *args):
    if worker.rank == 0:
        atos.atomic_add(args[0], item, len(args))


@atos.task
def beyond(worker, item, *rest):
    rest[1][7] = 1


def test_tasks_that_take_any_number_of_arguments(device, worker):
    """As operators are made from, whose user's functions take what they like."""
    for extra in ((), (2.5,), (None, 7)):
        sums = atos.zeros(5, dtype=np.int64, device=device)
        launch_with(worker, device, add_all, sums, *extra)
        assert sums.to_numpy().tolist() == [1 + len(extra)] * 5
    sums = atos.zeros(5, dtype=np.int64, device=device)
    launch_with(worker, device, add_to, 10, sums, 3)
    assert sums.to_numpy().tolist() == [30 * v + 3 for v in range(5)]
    with pytest.raises(atos.TaskCompileError, match="takes 4 arguments, but this launch gives it 3"):
        launch_with(worker, device, atos.task(lambda worker, item, a, b, *rest: None), 1)
    with pytest.raises(atos.TaskError, match=r"rest\[1\]"):
        launch_with(
            worker, device, beyond, 1, np.zeros(3) if device.kind == "cpu" else atos.zeros(3, device=device), debug=True
        )


def launch_with(worker, device, task, *args, **options):
    queue = atos.Queue(8, device=device)
    queue.push(range(5))
    getattr(queue, f"launch_{worker}")(task, *args, **options)
