"""All that a task can do in a launch: loops of any length, the methods of a worker, scratch memory and atomics."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
import pytest
from item_types import INTEGERS
from shared_tasks import Forest, assert_each_once, every_schedule, grow, launch, on_device, threads_of

import atos_py as atos
from atos_py.errors import LaunchConfigError

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
def test_methods_of_a_worker(threaded, worker, persistent, barrier, num_threads):
    device, items = threaded, 40
    size = threads_of(device, worker, num_threads)
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
