"""Loads that a GPU's L1 cache may serve: nothing older than the last barrier, or than the push of the item."""

from __future__ import annotations

import numpy as np
import pytest
from shared_tasks import launch

import atos_py as atos
from atos_py.errors import TaskError

ROUNDS, SIZE = 50, 1 << 14  # an even number of rounds


@atos.task
def shift(worker, v, values):
    """Take the value of a place far away, of the round before, and add one; push the item again."""
    now, then = worker.round & 1, (worker.round + 1) & 1
    for k in worker.split(range(v * 64, v * 64 + 64)):
        far = (k * 5 + 4099) % SIZE  # a permutation
        values[then, k] = atos.load_cached(values, (now, far)) + 1
    if worker.rank == 0 and worker.round < ROUNDS - 1:
        worker.push(v)


def test_each_round_sees_what_the_one_before_has_written(device, worker):
    values = atos.zeros((2, SIZE), dtype=np.int64, device=device)
    queue = atos.Queue(SIZE // 32, device=device)
    expected = np.arange(SIZE)
    values[0] = expected
    for _ in range(3):
        queue.push(range(SIZE // 64))
        stats = launch(queue, worker, shift, values, barrier=True)
        assert stats.rounds == ROUNDS
        for _ in range(ROUNDS):
            expected = expected[(np.arange(SIZE) * 5 + 4099) % SIZE] + 1
        assert np.array_equal(values.to_numpy()[0], expected)


@atos.task
def pass_on(worker, v, values, end):
    """Read what the worker that pushed the item has written, write the next value, and push its number."""
    if worker.rank == 0:
        value = atos.load_cached(values, v % 7)
        values[(v + 1) % 7] = value + 1
        if v + 1 < end:
            worker.push(v + 1)


def test_a_task_sees_what_was_written_before_its_item_was_pushed(device, worker):
    values = atos.zeros(7, dtype=np.int64, device=device)
    queue = atos.Queue(10, device=device)
    queue.push(0)
    launch(queue, worker, pass_on, values, 5000)
    assert values[5000 % 7] == 5000


@atos.task
def claim(worker, v, flags, claimed):
    """Claim a place by an atomic operation, unless a look at it shows that it is taken."""
    k = v % flags.size
    if worker.rank == 0 and atos.load_cached(flags, k) == 0 and atos.atomic_exch(flags, k, 1) == 0:
        atos.atomic_add(claimed, k, 1)


def test_a_look_at_a_flag_before_an_atomic_operation(device, worker):
    flags, claimed = (atos.zeros(100, dtype=np.uint32, device=device) for _ in range(2))
    queue = atos.Queue(20_000, device=device)
    queue.push(range(20_000))
    launch(queue, worker, claim, flags, claimed)
    assert (claimed.to_numpy() == 1).all()


@atos.task
def read_all_kinds(worker, v, whole, part, flag, table, out):
    out[v, 0] = atos.load_cached(whole, v)
    out[v, 1] = atos.load_cached(part, v)
    out[v, 2] = atos.load_cached(flag, v)
    out[v, 3] = atos.load_cached(table, (v, 1))


def test_types_and_axes(device):
    whole, part = np.array([-3, 4], np.int8), np.array([0.25, -7], np.float32)
    flag, table = np.array([True, False]), np.arange(4.0).reshape(2, 2)
    out = atos.zeros((2, 4), dtype=np.float64, device=device)
    queue = atos.Queue(2, device=device)
    queue.push([0, 1])
    given = [atos.asarray(array, device=device) for array in (whole, part, flag, table)]
    queue.launch_thread(read_all_kinds, *given, out)
    assert out.to_numpy().tolist() == [[-3, 0.25, 1, 1], [4, -7, 0, 3]]


def test_checks_find_an_index_out_of_range(device):
    flags, claimed = atos.zeros(3, dtype=np.int32, device=device), atos.zeros(9, dtype=np.int32, device=device)
    queue = atos.Queue(2, device=device)
    queue.push(7)

    @atos.task
    def look(worker, v, flags, claimed):
        claimed[v] = atos.load_cached(flags, v)

    with pytest.raises(TaskError, match=r"index 7 .* 3"):
        queue.launch_thread(look, flags, claimed, debug=True)
