"""Queues that grow by themselves, up to their limit, and go on beyond it when that is raised."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from item_types import DTYPES, random_items
from shared_tasks import (
    TASKS,
    assert_each_once,
    assert_nothing_is_missing,
    configurations,
    every_schedule,
    forest_on_host,
    launch,
    nodes_as_items,
    on_device,
)

import atos_py as atos
from atos_py.errors import InvalidArgumentError, QueueFullError, UnsupportedTypeError


@every_schedule
@pytest.mark.parametrize("dtype", ["uint32", "16 bytes", "32 bytes"])
def test_a_launch_grows_its_queue(device, worker, persistent, barrier, dtype):
    forest = forest_on_host(20_000, 3, most=5, seed=2)
    there, counts = on_device(forest, device)
    queue = atos.Queue(3, dtype=DTYPES[dtype], device=device)
    queue.push(nodes_as_items(np.arange(3), queue.dtype))
    stats = launch(queue, worker, TASKS[dtype], there, counts, persistent=persistent, barrier=barrier)
    assert_each_once(counts.seen.to_numpy())
    assert stats.tasks_run == 20_000
    assert stats.grown > 0
    assert queue.capacity > 3
    assert not barrier or counts.early[0] == 0
    before = queue.capacity
    queue.push(nodes_as_items(np.arange(3), queue.dtype))
    grown = launch(queue, worker, TASKS[dtype], there, counts, persistent=persistent, barrier=barrier).grown
    assert grown == 0 or before << (grown - 1) < 2 * 20_000  # not beyond room for all tasks at once
    assert queue.capacity >= before


@pytest.mark.parametrize("dtype", ["uint32", "16 bytes", "32 bytes"])
def test_workers_go_on_while_the_queue_grows(device, worker, dtype):
    """A persistent launch is one kernel: were it stopped for a larger ring, it would be several."""
    forest = forest_on_host(300_000, 1, most=5, seed=4)
    there, counts = on_device(forest, device)
    queue = atos.Queue(20_000, dtype=DTYPES[dtype], device=device)  # of which few workers fill less than a half at once
    queue.push(nodes_as_items(np.arange(1), queue.dtype))
    stats = launch(queue, worker, TASKS[dtype], there, counts, num_blocks=4, num_threads=128)
    assert_each_once(counts.seen.to_numpy())
    assert stats.rounds == 1
    assert stats.grown > 0
    assert queue.capacity == 20_000 << stats.grown
    assert len(queue) == 0


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    worker=st.sampled_from(["thread", "warp", "cta"]),
    dtype=st.sampled_from(list(TASKS)),
    capacity=st.integers(1, 20),
    more=st.integers(0, 200),
    seed=st.integers(0, 20),
    options=configurations,
)
def test_a_limit_that_is_raised_changes_nothing(device, worker, dtype, capacity, more, seed, options):
    """Results are as if the queue had been large enough from the start."""
    forest = forest_on_host(1000, 1, most=5, seed=seed)
    there, counts = on_device(forest, device)
    queue = atos.Queue(capacity, max_capacity=capacity + more, dtype=DTYPES[dtype], device=device)
    queue.push(nodes_as_items(np.arange(1), queue.dtype))
    while True:
        try:
            launch(queue, worker, TASKS[dtype], there, counts, **options)
            break
        except QueueFullError as error:
            assert error.pending > queue.max_capacity  # noqa: PT017
            assert_nothing_is_missing(queue, forest, counts, error)
            queue.max_capacity = error.pending + more
    assert_each_once(counts.seen.to_numpy())
    assert not options["barrier"] or counts.early[0] == 0
    assert queue.capacity <= queue.max_capacity


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_pushes_grow_the_queue_in_order(device, dtype):
    queue = atos.Queue(2, max_capacity=1000, dtype=dtype, device=device)
    items = random_items(queue.dtype, 1001)
    for begin in range(0, 1000, 40):
        queue.push(items[begin : begin + 40])
    assert queue.peek().tolist() == items[:1000].tolist()
    assert queue.capacity == queue.max_capacity == 1000
    with pytest.raises(QueueFullError, match=r"would exceed its max_capacity of 1000.*max_capacity = 1001") as full:
        queue.push(items[1000:])
    assert (full.value.capacity, full.value.pending, full.value.lost) == (1000, 1000, 0)
    queue.max_capacity = 1001
    queue.push(items[1000:])
    assert queue.peek().tolist() == items.tolist()


def test_the_limit_is_what_the_device_can_spare(device):
    free, _ = device.memory
    queue = atos.Queue(10, device=device)
    assert 10 < queue.max_capacity <= free  # half of it, at 8 bytes for each item
    assert atos.Queue(10, dtype=np.int64, device=device).max_capacity < queue.max_capacity
    assert queue.capacity == 10


def test_limits_that_make_no_sense(device):
    with pytest.raises(InvalidArgumentError, match=r"max_capacity must be from 10 to \d+ \(got 9\)"):
        atos.Queue(10, max_capacity=9, device=device)
    with pytest.raises(UnsupportedTypeError, match="max_capacity must be an integer"):
        atos.Queue(10, max_capacity=10.5, device=device)  # type: ignore[arg-type]
    queue = atos.Queue(10, max_capacity=20, device=device)
    with pytest.raises(InvalidArgumentError, match=r"max_capacity must be at least the capacity, 10 \(got 9\)"):
        queue.max_capacity = 9
    with pytest.raises(InvalidArgumentError, match="max_capacity must be from 1"):
        queue.max_capacity = 0
    assert (queue.capacity, queue.max_capacity) == (10, 20)


def test_resize_and_the_limit(device):
    queue = atos.Queue(10, max_capacity=20, device=device)
    queue.resize(30)
    assert (queue.capacity, queue.max_capacity) == (30, 30)
    queue.resize(5)  # as large as may be, and stays so
    assert (queue.capacity, queue.max_capacity) == (5, 5)
    queue.max_capacity = 8
    queue.push(range(7))
    assert queue.capacity == 8
    assert queue.peek().tolist() == list(range(7))


@atos.task
def spread(worker, v, n, ran, count, last, leaves):
    """Pushes a tree of n nodes; the task that comes after `last` others stops the launch, and pushes leaves all the same."""
    if worker.rank == 0:
        atos.atomic_add(ran, v, 1)
        for child in range(3 * v + 1, min(3 * v + 4, n)):
            worker.push(child)
        if atos.atomic_add(count, 0, 1) == last:
            worker.stop()
            for leaf in range(leaves):
                worker.push(n + leaf)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("leaves", [0, 3000])
def test_rings_stay_after_a_stop_and_the_next_launch_goes_on(device, worker, leaves, dtype):
    n = 3000
    for last in (0, 40, 700):
        ran = atos.zeros(n + leaves + 1, dtype=np.int32, device=device)
        count = atos.zeros(1, dtype=np.int64, device=device)
        queue = atos.Queue(8, dtype=dtype, device=device)
        queue.push(0)
        assert queue.launch(spread, n, ran, count, last, leaves, worker=worker, timeout=60).stopped
        left = queue.peek()
        assert len(left) == len(queue) == len(set(left.tolist()))
        assert not ran[:][left].any()
        queue.push(n + leaves)  # there is room behind all that is pending, or it is made now
        assert queue.peek().tolist() == [*left.tolist(), n + leaves]
        queue.launch(spread, n, ran, count, -1, leaves, worker=worker, timeout=60)
        assert (ran[:] == 1).all()
