"""Stops while one task pushes far more than its ring holds: the spill area keeps these items until there is room for them."""

from __future__ import annotations

import numpy as np
import pytest
from item_types import DTYPES
from shared_tasks import nodes_as_items

import atos_py as atos
from atos_py.errors import QueueFullError

MANY = 100_003  # items, more than the host copies at once


@atos.task
def push_numbers(worker, item, seen):
    """Push the numbers of all others, if it is item 0."""
    if worker.rank == 0:
        atos.atomic_add(seen, item, 1)
        if item == 0:
            for number in range(1, len(seen)):
                worker.push(number)


@atos.task
def push_pairs(worker, item, seen):
    if worker.rank == 0:
        atos.atomic_add(seen, item.vertex, 1)
        if item.vertex == 0:
            for number in range(1, len(seen)):
                worker.push((number, number + 0.5))


@atos.task
def push_large(worker, item, seen):
    if worker.rank == 0:
        atos.atomic_add(seen, item.vertex, 1)
        if item.vertex == 0:
            for number in range(1, len(seen)):
                worker.push((number, number + 0.5, 3 * number, -number))


PUSHES = {"uint32": push_numbers, "int64": push_numbers, "16 bytes": push_pairs, "32 bytes": push_large}


def full_queue(device: atos.Device, dtype: str, worker: str, capacity: int) -> tuple[atos.Queue, atos.Array, np.ndarray]:
    """Return a queue that one task has filled beyond its capacity, what has run, and the items that have not."""
    queue = atos.Queue(capacity, max_capacity=capacity, dtype=DTYPES[dtype], device=device)
    queue.push(nodes_as_items(np.zeros(1, np.int64), queue.dtype))
    seen = atos.zeros(MANY, dtype=np.int64, device=device)
    with pytest.raises(QueueFullError) as caught:
        queue.launch(PUSHES[dtype], seen, worker=worker, num_blocks=1, num_threads=32)  # nobody else takes items meanwhile
    missing = nodes_as_items(np.flatnonzero(seen.to_numpy() == 0), queue.dtype)
    assert caught.value.pending == len(queue) == len(missing)
    return queue, seen, missing


@pytest.mark.parametrize("dtype", PUSHES)
@pytest.mark.parametrize("capacity", [3, 40_000])
def test_items_beyond_the_ring_are_all_there(device, dtype, worker, capacity):
    queue, seen, missing = full_queue(device, dtype, worker, capacity)
    assert len(missing) > MANY // 2
    pending = queue.peek()  # in the order of their numbers, but for those that a GPU's worker kept to run next
    assert (np.sort(pending) == missing).all()
    assert device.kind == "cuda" or (pending == missing).all()
    queue.resize(2 * MANY)
    assert (queue.peek() == pending).all()
    assert queue.launch(PUSHES[dtype], seen, worker=worker).tasks_run == len(missing)
    assert (seen.to_numpy() == 1).all()


@atos.task
def push_new_numbers(worker, item, first, limit):
    """Push up to 64 new numbers below limit for each item; item 1000 asks for a stop."""
    if worker.rank == 0:
        if item == 1000:
            worker.stop()
        for _ in range(64):
            number = atos.atomic_add(first, 0, 1)
            if number < limit:
                worker.push(number)


@pytest.mark.parametrize("dtype", ["uint32", "int64"])
def test_each_item_runs_once_however_often_a_growing_queue_stops(device, dtype, worker):
    """Spilled items that a stop leaves in the spill area move into the rings before the next launch."""
    limit = 1 << (22 if device.kind == "cuda" else 17)
    queue = atos.Queue(4, dtype=DTYPES[dtype], device=device)
    first = atos.asarray(np.array([1]), device=device)
    queue.push([0])
    stats = queue.launch(push_new_numbers, first, limit, worker=worker)
    ran = stats.tasks_run
    while stats.stopped:
        pending = queue.peek()
        assert len(np.unique(pending)) == len(pending) == len(queue)
        stats = queue.launch(push_new_numbers, first, limit, worker=worker)
        ran += stats.tasks_run
    assert ran == limit
    assert len(queue) == 0


def test_the_area_goes_into_checkpoints_and_is_cleared(device, tmp_path):
    queue, _, missing = full_queue(device, "int64", "cta", 1000)
    queue.save(tmp_path / "queue.atos")
    assert (np.sort(atos.Queue.load(tmp_path / "queue.atos", device=device).peek()) == missing).all()
    queue.clear()
    assert len(queue) == 0
    assert queue.peek().tolist() == []


@atos.task
def stop_at_once(worker, item):
    if worker.rank == 0:
        worker.push(item)
        worker.stop()


@pytest.mark.parametrize("dtype", ["uint32", "int64", "16 bytes", "32 bytes"])
@pytest.mark.parametrize("claimed", [0, 1])
def test_many_pending_items_move_to_a_larger_ring(device, dtype, claimed):
    """From a ring whose first tickets have run, so that pending items lie around its end."""
    queue = atos.Queue(MANY, dtype=DTYPES[dtype], device=device)
    items = nodes_as_items(np.arange(MANY), queue.dtype)
    queue.push(items)
    for _ in range(3 * claimed):
        assert queue.launch_cta(stop_at_once, num_blocks=1).stopped
    pending = queue.peek()
    queue.resize(3 * MANY)
    assert (queue.peek() == pending).all()
    queue.push(items[:10])
    assert (queue.peek() == np.concatenate([pending, items[:10]])).all()
    assert (np.sort(pending) == items).all()


@atos.task
def two_rounds(worker, v, done, early, n, last):
    """Push v + n in the first round; in the second, count the items for which not all of the first round have run."""
    if worker.rank == 0:
        if v >= n:
            if done[0] < n:
                atos.atomic_add(early, 0, 1)
        else:
            worker.push(v + n)
            if atos.atomic_add(done, 0, 1) == last:
                worker.stop()


@pytest.mark.parametrize("dtype", ["uint32", "int64"])
def test_an_interrupted_round_goes_on_first_in_a_larger_ring(device, dtype, worker):
    queue = atos.Queue(2 * MANY, dtype=dtype, device=device)
    queue.push(range(MANY))
    done, early = atos.zeros(1, dtype=np.int64, device=device), atos.zeros(1, dtype=np.int64, device=device)
    few = {"num_blocks": 4, "num_threads": 128}  # so that many items are left
    stats = queue.launch(two_rounds, done, early, MANY, 1000, worker=worker, barrier=True, **few)
    assert stats.stopped
    assert 1000 < done[0] < MANY
    queue.resize(5 * MANY)
    rest = queue.launch(two_rounds, done, early, MANY, -1, worker=worker, barrier=True)
    assert (int(done[0]), int(early[0]), stats.tasks_run + rest.tasks_run) == (MANY, 0, 2 * MANY)
