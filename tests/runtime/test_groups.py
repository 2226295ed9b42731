"""Groups: the threads that run an iteration together, or that share an item; the same results on each device."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest
from shared_tasks import Forest, assert_each_once, every_schedule, forest_on_host, launch, on_device, plan, threads_of

import atos_py as atos
from atos_py.errors import InvalidArgumentError, UnsupportedTypeError

SIZES = [2, 4, 8, 16, 32]


@pytest.fixture
def device(threaded):
    return threaded


# Flat tasks


@functools.cache
def together(k: int) -> atos.Task:
    """Return a task that leaves what the methods of each group return in a row of `out`."""

    @atos.task
    def use_group(worker, v, out, counts):
        group = worker.group(k)
        rank, size = group.rank, group.size
        mine = rank * 3 + v + group.index
        total, low, high = group.sum(mine), group.min(v - rank), group.max(v + rank)
        one, none = group.any(rank == size - 1), group.any(rank < 0)
        every, not_every = group.all(rank < size), group.all(rank > 0)
        next_one, broadcast = group.shuffle(mine, rank + 1), group.shuffle(mine, size - 1)
        right = group.all(next_one == (rank + 1) % size * 3 + v + group.index)
        for i in group.split(50):
            atos.atomic_add(counts, (v, i), 1)
        for i in group.split(range(100, 50, -3)):
            atos.atomic_add(counts, (v, i), 1)
        alone = 0
        if group.index % 3 == 1:  # one group after the other, and some not at all
            for _ in range(group.index):
                alone += group.sum(1)
        if rank == size - 1:
            row = group.index
            out[v, row, 0], out[v, row, 1] = size, group.count
            out[v, row, 2], out[v, row, 3], out[v, row, 4] = total, low, high
            out[v, row, 5], out[v, row, 6], out[v, row, 7], out[v, row, 8] = one, none, every, not_every
            out[v, row, 9], out[v, row, 10], out[v, row, 11] = right, broadcast, alone

    return use_group


@pytest.mark.parametrize("k", SIZES)
@pytest.mark.parametrize("num_threads", [32, 96])
def test_methods_of_a_group(device, worker, k, num_threads):
    items, threads = 12, threads_of(device, worker, num_threads)
    size = min(k, threads)
    out = atos.full((items, threads // size, 12), -1, dtype=np.int64, device=device)
    counts = atos.zeros((items, 101), dtype=np.int32, device=device)
    queue = atos.Queue(items, device=device)
    queue.push(np.arange(items))
    launch(queue, worker, together(k), out, counts, fetch_size=5, num_threads=num_threads)
    for v, groups in enumerate(out.to_numpy().tolist()):
        for index, row in enumerate(groups):
            total = sum(rank * 3 + v + index for rank in range(size))
            votes = [1, 0, 1, 0, 1]
            alone = index * size if index % 3 == 1 else 0
            expected = [
                *(size, threads // size, total, v - size + 1, v + size - 1),
                *(*votes, (size - 1) * 3 + v + index, alone),
            ]
            assert row == expected, f"item {v}, group {index}"
    expected_counts = np.zeros(101, int)
    expected_counts[:50] += threads // size
    expected_counts[100:50:-3] += threads // size
    assert counts.to_numpy().tolist() == [expected_counts.tolist()] * items


def reduce_all(group, x, dtype, out):
    """Leave the reductions of a value in a row of `out`, and whether they have its type."""
    out[dtype, 0], out[dtype, 1], out[dtype, 2] = group.sum(x), group.min(x), group.max(x)
    out[dtype, 3] = group.shuffle(x, 1)


@functools.cache
def reduce_types(k: int) -> atos.Task:
    """Return a task that reduces values of all types."""

    @atos.task
    def reductions(worker, v, ints, unsigned, floats):
        group = worker.group(k)
        r = group.rank
        reduce_all(group, np.int8(r - 3), 0, ints)
        reduce_all(group, np.int16(r * 1000 - 3), 1, ints)
        reduce_all(group, np.int32((r - 3) * 2**25), 2, ints)
        reduce_all(group, (r - 3) * 2**40, 3, ints)
        reduce_all(group, np.uint8(r), 0, unsigned)
        reduce_all(group, np.uint16(r * 1000), 1, unsigned)
        reduce_all(group, np.uint32(r * 2**26 + 2**31), 2, unsigned)
        reduce_all(group, np.uint64(r) + np.uint64(2**63), 3, unsigned)
        reduce_all(group, np.float32(r * 0.25 - 1), 0, floats)
        reduce_all(group, r * 2.0**-40 - 1, 1, floats)

    return reductions


@pytest.mark.parametrize("k", [2, 8, 32])
def test_reductions_of_each_type(device, worker, k):
    size = min(k, threads_of(device, worker))
    ints = atos.zeros((4, 4), dtype=np.int64, device=device)
    unsigned = atos.zeros((4, 4), dtype=np.uint64, device=device)
    floats = atos.zeros((2, 4), dtype=np.float64, device=device)
    queue = atos.Queue(1, device=device)
    queue.push(0)
    launch(queue, worker, reduce_types(k), ints, unsigned, floats)
    r = np.arange(size)
    values = {
        "int8": r - 3, "int16": r * 1000 - 3, "int32": (r - 3) * 2**25, "int64": (r - 3) * 2**40,
        "uint8": r, "uint16": r * 1000, "uint32": r * 2**26 + 2**31, "uint64": r.astype(np.uint64) + np.uint64(2**63),
        "float32": r * 0.25 - 1, "float64": r * 2.0**-40 - 1,
    }  # fmt: skip
    found = [*ints.to_numpy().tolist(), *unsigned.to_numpy().tolist(), *floats.to_numpy().tolist()]
    for (name, value), row in zip(values.items(), found, strict=True):
        x = value.astype(name)
        with np.errstate(over="ignore"):
            assert row == [x.sum(dtype=name).item(), x.min().item(), x.max().item(), x[1 % size].item()], name


@atos.task
def reduce_nan(worker, v, out):
    group = worker.group(8)
    x = math.nan if group.rank % 2 == 1 else float(group.rank)
    low, high = group.min(x), group.max(np.float32(x))
    if group.all(low == group.shuffle(low, 0)) and group.all(high == group.shuffle(high, 0)):
        out[v, 0], out[v, 1] = low, high


def test_a_nan_loses_in_all_threads(device, worker):
    size = min(8, threads_of(device, worker))
    out = atos.full((1, 2), -1.0, dtype=np.float64, device=device)
    queue = atos.Queue(1, device=device)
    queue.push(0)
    launch(queue, worker, reduce_nan, out)
    assert out.to_numpy().tolist() == [[0, 0 if size == 1 else 6]]


# Nested tasks

LENGTHS = [0, 1, -1, 2, 3, 31, 32, 33, 255, 257, 4095, 4096, 4097, 8193, *[5] * 40, 0, 0, 20_001]
FEATURES = 11


def lengths(v, given, out):
    return given[v], v * 7


@functools.cache
def features(k: int) -> atos.Task:
    """Return a task whose groups walk over features, of which each iteration has a few."""

    @atos.task(workload=lengths, group=k)
    def walk(worker, v, i, seven, given, out):
        group = worker.group
        mine = 0
        for f in group.split(FEATURES):
            mine += (f + 1) * (i % 5)
        total = group.sum(mine)
        same = group.min(i) == i and group.max(i) == i and group.shuffle(v, group.size - 1) == v and seven == v * 7
        if i % 3 == 0:  # other groups do not come here
            total += group.sum(1) // group.size
        if not group.all(same):
            atos.atomic_add(out, (v, 3), 1)
        atos.atomic_add(out, (v, 1), 1)
        if group.rank == 0:
            atos.atomic_add(out, (v, 0), 1)
            atos.atomic_add(out, (v, 2), total)

    return walk


@every_schedule
@pytest.mark.parametrize("k", SIZES)
def test_nested_loops_of_every_length(device, worker, k, persistent, barrier):
    """Each iteration is run by all threads of one group, also where items are long enough to be split."""
    given = np.array(LENGTHS)
    out = atos.zeros((len(given), 4), dtype=np.int64, device=device)
    queue = atos.Queue(len(given), device=device)
    queue.push(np.arange(len(given)))
    options = {"persistent": persistent, "barrier": barrier, "num_threads": 96}
    launch(queue, worker, features(k), atos.asarray(given, device=device), out, **options)
    size = min(k, threads_of(device, worker))
    expected = []
    for length in np.maximum(given, 0):
        i = np.arange(length)
        total = (i % 5).sum() * FEATURES * (FEATURES + 1) // 2 + (i % 3 == 0).sum()
        expected.append([length, length * size, total, 0])
    assert out.to_numpy().tolist() == expected


@functools.cache
def grow_in_groups(k: int) -> atos.Task:
    """Return the task that pushes the children of a node, each by one thread of a group."""

    @atos.task(workload=plan, group=k)
    def grow(worker, item, i, first, forest, counts):
        group = worker.group
        child = group.shuffle(first + i, 0)
        if group.rank == group.size - 1:
            worker.push(child)

    return grow


@every_schedule
@pytest.mark.parametrize("k", [2, 32])
def test_pushes_of_groups(device, worker, k, persistent, barrier):
    forest = forest_on_host(5000)
    there, counts = on_device(forest, device)
    queue = atos.Queue(5000, device=device)
    queue.push(0)
    stats = launch(queue, worker, grow_in_groups(k), there, counts, persistent=persistent, barrier=barrier, fetch_size=3)
    assert_each_once(counts.seen.to_numpy())
    assert stats.tasks_pushed == 4999
    assert counts.early[0] == 0 or not barrier


def test_pushes_of_split_items(device, worker):
    hubs, leaves = 3, 9000
    first = np.concatenate([hubs + leaves * np.arange(hubs), np.full(hubs * leaves + 1, hubs * (leaves + 1))])
    level = np.concatenate([np.zeros(hubs), np.ones(hubs * leaves)])
    forest = Forest(first, level.astype(np.int32), np.bincount(level.astype(int)).astype(np.int32))
    there, counts = on_device(forest, device)
    queue = atos.Queue(hubs * (leaves + 1), device=device)
    queue.push(np.arange(hubs))
    assert launch(queue, worker, grow_in_groups(4), there, counts).tasks_pushed == hubs * leaves
    assert_each_once(counts.seen.to_numpy())


@atos.task(workload=lambda v: 3, group=4)
def push_by_all(worker, v, i):
    if v == 0:
        worker.push(1)


def test_each_thread_that_calls_push_pushes(device, worker):
    queue = atos.Queue(100, device=device)
    queue.push(0)
    assert launch(queue, worker, push_by_all).tasks_pushed == 3 * min(4, threads_of(device, worker))


# Idle functions, and what is refused


def idle_in_groups(worker, out):
    group = worker.group(16)
    total = group.sum(1)
    if group.rank == 0:
        out[group.index] = total


@atos.task(workload=lambda v, out: 1)
def nothing(worker, v, i, out):
    pass


def test_idle_has_groups(device, worker):
    threads = threads_of(device, worker)
    out = atos.zeros(16, dtype=np.int64, device=device)
    queue = atos.Queue(1, device=device)
    queue.push(0)
    launch(queue, worker, nothing, out, idle=idle_in_groups)
    size = min(16, threads)
    assert out.to_numpy().tolist() == [size] * (threads // size) + [0] * (16 - threads // size)


@pytest.mark.parametrize(
    ("group", "error", "message"),
    [
        (3, InvalidArgumentError, r"group must be 2, 4, 8, 16 or 32 \(got 3\)"),
        (1, InvalidArgumentError, r"group must be from 2 to 32 \(got 1\)"),
        (64, InvalidArgumentError, r"group must be from 2 to 32 \(got 64\)"),
        ("4", UnsupportedTypeError, r"group must be an integer \(got '4'\)"),
    ],
)
def test_a_group_of_a_wrong_size_is_refused(group, error, message):
    with pytest.raises(error, match=message):
        atos.task(workload=lengths, group=group)


def test_a_group_takes_a_workload():
    with pytest.raises(InvalidArgumentError, match=r"task\(group=4\) takes a workload"):
        atos.task(group=4)


def test_the_size_is_part_of_the_task(device):
    """The same functions with another group are another task, also in the cache."""

    def body(worker, v, i, out):
        atos.atomic_add(out, 0, 1)

    def count(group: Any) -> int:
        out = atos.zeros(1, dtype=np.int64, device=device)
        queue = atos.Queue(1, device=device)
        queue.push(0)
        queue.launch_warp(atos.task(workload=lambda v, out: 10, group=group)(body), out)
        return int(out[0])

    threads = min(threads_of(device, "warp"), 4)
    assert [count(None), count(4), count(None)] == [10, 10 * threads, 10]
