"""Pools: what tasks take is theirs alone, a pool that is full loses no work, and the host reads and appends."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared_tasks import every_schedule, launch

import atos_py as atos
from atos_py.errors import (
    DeviceMemoryError,
    InvalidArgumentError,
    LaunchConfigError,
    PoolFullError,
    TaskCompileError,
    TaskError,
    UnsupportedTypeError,
)

RECORD = [("owner", np.int32), ("place", np.int16, 2)]
LEVELS = 9


@atos.task
def branch(worker, v, pool, limit):
    """Take v % 5 elements, say in each whose it is, and push the children; or the same item again, if the pool is full."""
    if worker.rank == 0:
        first = pool.take(v % 5)
        if first < 0:
            worker.push(v)
        else:
            for k in range(first, first + v % 5):
                pool.owner[k], pool.place[k, 0], pool.place[k, 1] = v, k - first, pool.place.shape[1]
            if 2 * v + 1 < limit:
                worker.push(2 * v)
                worker.push(2 * v + 1)


def check_runs(pool: atos.Pool, limit: int) -> None:
    """Check that every item took its elements once, beside each other."""
    owner, place = pool.owner.to_numpy(), pool.place.to_numpy()
    expected = np.arange(1, limit) % 5
    assert len(pool) == expected.sum()
    assert np.bincount(owner, minlength=limit)[1:].tolist() == expected.tolist()
    assert place[:, 1].tolist() == [2] * len(pool)
    firsts = np.flatnonzero(place[:, 0] == 0)
    for first in firsts:
        count = owner[first] % 5
        assert owner[first : first + count].tolist() == [owner[first]] * count
        assert place[first : first + count, 0].tolist() == list(range(count))


@every_schedule
def test_elements_are_taken_once(device, worker, persistent, barrier):
    """Most of them beyond what there is memory for at first."""
    limit = 2**LEVELS
    pool, queue = atos.Pool(RECORD, 3, max_capacity=100_000, device=device), atos.Queue(limit, device=device)
    for _ in range(2):
        queue.push(1)
        stats = launch(queue, worker, branch, pool, limit, persistent=persistent, barrier=barrier)
        assert (stats.tasks_run, stats.stopped) == (limit - 1, False)
        check_runs(pool, limit)
        pool.clear()
        assert len(pool) == 0


@every_schedule
def test_a_full_pool_loses_nothing(device, worker, persistent, barrier):
    limit = 2**LEVELS
    pool, queue = atos.Pool(RECORD, 7, max_capacity=7, device=device), atos.Queue(limit, device=device)
    queue.push(1)
    errors = []
    while len(queue):
        try:
            launch(queue, worker, branch, pool, limit, persistent=persistent, barrier=barrier)
        except PoolFullError as error:
            errors.append((error, pool.max_capacity, len(pool), len(queue)))
            pool.resize(2 * error.needed)
    assert len(errors) > 1
    for error, capacity, used, unfinished in errors:
        assert error.needed > error.capacity == capacity >= used
        assert unfinished > 0
    assert pool.max_capacity == 2 * errors[-1][0].needed
    check_runs(pool, limit)


def test_the_error_says_what_to_do(device):
    pool, queue = atos.Pool(np.int64, 4, max_capacity=4, device=device), atos.Queue(10, device=device)
    queue.push([3, 3])

    @atos.task
    def take(worker, v, pool):
        if worker.rank == 0:
            pool.take(v)

    with pytest.raises(
        PoolFullError, match=r"argument 0 of take was full: tasks asked for 6 .*pool.resize\(...\) with more than 6, such as 12"
    ) as full:
        queue.launch_warp(take, pool)
    assert (full.value.capacity, full.value.needed, len(pool)) == (4, 6, 3)
    queue.push(1)
    assert queue.launch_warp(take, pool).tasks_run == 1  # what was refused is forgotten
    assert len(pool) == 4


def test_a_full_pool_ends_a_launch_that_would_go_on(device, worker):
    """By itself: tasks that push themselves again would run for ever."""
    pool, queue = atos.Pool(RECORD, 1, max_capacity=1, device=device), atos.Queue(10, device=device)
    queue.push([4, 9])
    with pytest.raises(PoolFullError):
        launch(queue, worker, branch, pool, 0, timeout=60)
    assert sorted(queue.peek().tolist()) == [4, 9]


class Both(NamedTuple):
    numbers: Any
    few: Any
    data: Any


def reserve(v, both, factor, records):
    first = both.few.take(v)
    return max(first, 0) * 0 + v, first, records.take()


@atos.task(workload=reserve)
def store(worker, v, i, first, record, both, factor, records):
    k = both.numbers.take(2)
    if k >= 0 and first >= 0:
        both.numbers.values[k], both.numbers.values[k + 1] = v * factor, len(both.few)
        both.few.values[first + i] = i + 0.5
        atos.atomic_add(both.data, 0, 1)
        atos.atomic_add(records.place, (record, 1), v)


@pytest.mark.parametrize("fits", [True, False])
def test_pools_in_a_tuple_and_in_a_workload(device, worker, fits):
    data = atos.zeros(1, dtype=np.int32, device=device)
    few = atos.Pool(np.float32, 1, max_capacity=100 if fits else 12, device=device)
    numbers, records = atos.Pool(np.int64, 1, device=device), atos.Pool(RECORD, 10, device=device)
    records.append(owner=[0, 0, 0], place=np.zeros((3, 2)))
    records.take(7)
    records.place[:], queue = 0, atos.Queue(20, device=device)
    queue.push([3, 5, 8])
    arguments = Both(numbers, few, data), 10, records
    if not fits:
        with pytest.raises(PoolFullError, match="argument 0 of store was full"):
            launch(queue, worker, store, *arguments)
        return
    launch(queue, worker, store, *arguments)
    assert (len(numbers), len(few), len(records), data[0]) == (32, 16, 13, 16)
    assert sorted(numbers.values[:].reshape(-1, 2)[:, 0]) == [30] * 3 + [50] * 5 + [80] * 8
    assert sorted(few.values[:]) == sorted(i + 0.5 for v in (3, 5, 8) for i in range(v))
    assert sorted(records.place.to_numpy()[10:, 1]) == [9, 25, 64]


def test_a_check_names_the_field(device):
    pool, queue = atos.Pool(RECORD, 5, max_capacity=6, device=device), atos.Queue(20, device=device)
    queue.push(6)

    @atos.task
    def beyond(worker, v, pool):
        first = pool.take(2)
        pool.owner[first + v] = 7

    with pytest.raises(TaskError, match=r"out of range for array 'pool.owner' of length 6"):
        queue.launch_thread(beyond, pool, debug=True)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            lambda worker, v, pool: pool.push(v),
            "a pool has no 'push' in a task; it offers take, len and the arrays owner, place",
        ),
        (lambda worker, v, pool: pool.take(1.5), "pool.take takes a number of elements, an integer"),
        (lambda worker, v, pool: pool.take(1, 2), "pool.take takes at most one argument, by position"),
        (lambda worker, v, pool: pool.take(n=1), "pool.take takes at most one argument, by position"),
    ],
)
def test_what_a_task_may_not_do(body, message):
    body.__name__ = "body"
    queue = atos.Queue(20, device="cpu")
    with pytest.raises(TaskCompileError, match=message.replace("(", r"\(")):
        queue.launch_thread(atos.task(body), atos.Pool(RECORD, 5, device="cpu"))


def test_pools_that_a_launch_refuses():
    queue, pool = atos.Queue(20, device="cpu"), atos.Pool(RECORD, 5, device="cpu")
    with pytest.raises(InvalidArgumentError, match="at most 8 pools"):
        queue.launch_thread(branch, *[pool] * 9)
    other = atos.Pool(RECORD, 5, device="cpu:1")
    with pytest.raises(InvalidArgumentError, match="a pool on cpu:1, and the task runs on cpu"):
        queue.launch_thread(branch, other, 5)
    parts = atos.generate.road(3, device="cpu").partition(["cpu:0", "cpu:1"])
    with pytest.raises(LaunchConfigError, match="take no pool yet"):
        atos.Queue(20, owner=parts).launch_thread(branch, pool, 5)


@given(st.lists(st.one_of(st.lists(st.integers(-9, 9), max_size=5), st.sampled_from(["clear", "larger"])), max_size=12))
def test_the_host_appends(steps):
    pool, expected = atos.Pool(np.int8, 2, max_capacity=4, device="cpu"), []
    for step in steps:
        if step == "clear":
            pool.clear()
            expected = []
        elif step == "larger":
            pool.resize(pool.max_capacity + 3)
        elif len(expected) + len(step) > pool.max_capacity:
            with pytest.raises(PoolFullError) as full:
                pool.append(step)
            assert full.value.needed == len(expected) + len(step)
        else:
            assert pool.append(step) == len(expected)
            expected += step
        assert (len(pool), pool.values.to_numpy().tolist()) == (len(expected), expected)


def test_a_pool_of_rows(device):
    pool = atos.Pool((np.float64, (2, 3)), 4, device=device)
    rows = np.arange(12.0).reshape(2, 2, 3)
    assert pool.append(rows) == 0
    assert np.array_equal(pool.values.to_numpy(), rows)
    pool.values[1, 1, 2] = -1
    assert pool.values[1].tolist() == [[6, 7, 8], [9, 10, -1]]
    assert repr(pool).endswith(f"2 of {pool.max_capacity:,} elements in use on {device}>")


def test_fields_live_longer_than_their_pool(device):
    pool = atos.Pool(np.int32, 10, device=device)
    pool.append([1, 2, 3])
    before = pool.values
    pool.resize(5)
    del pool
    assert before.to_numpy().tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: atos.Pool("S3", 3), UnsupportedTypeError, "arrays hold integers"),
        (lambda: atos.Pool([("x", "i4"), ("y", "f2")], 3), UnsupportedTypeError, "arrays hold integers"),
        (lambda: atos.Pool([("_x", "i4")], 3), UnsupportedTypeError, "'_x' has a name that a task could not write"),
        (lambda: atos.Pool([("take", "i4")], 3), InvalidArgumentError, "'take' has the name of something else of a pool"),
        (lambda: atos.Pool([("x", "i4", 0)], 3), InvalidArgumentError, "which holds nothing"),
        (lambda: atos.Pool(np.dtype([]), 3), UnsupportedTypeError, "at least one field"),
        (lambda: atos.Pool("i4", 0), InvalidArgumentError, "capacity must be from 1"),
        (lambda: atos.Pool("i4", 5, max_capacity=4), InvalidArgumentError, "max_capacity must be from 5"),
        (lambda: atos.Pool("i4", 2**47, device="cpu"), DeviceMemoryError, "more than the host has"),
        (lambda: filled().resize(1), InvalidArgumentError, "max_capacity must be from 2"),
        (lambda: filled().take(-1), InvalidArgumentError, "n must be from 0"),
        (lambda: filled().append(y=[1]), InvalidArgumentError, r"have values \(got y\)"),
        (lambda: filled().append(), InvalidArgumentError, r"have values \(got none\)"),
        (lambda: filled().append(3), InvalidArgumentError, r"must have the shape \('n',\) \(got \(\)\)"),
        (lambda: atos.Pool(RECORD, 3).append(owner=[1], place=[[1, 2], [3, 4]]), InvalidArgumentError, "got 1, 2"),
        (lambda: atos.Pool(RECORD, 3).append(owner=[1], place=[1]), InvalidArgumentError, r"\('n', 2\)"),
        (lambda: filled().x, AttributeError, "a pool of values has no 'x'"),
    ],
)
def test_what_the_host_may_not_do(call, error, message):
    with pytest.raises(error, match=message):
        call()


def filled() -> atos.Pool:
    pool = atos.Pool("i4", 3, device="cpu")
    pool.append([1, 2])
    return pool
