"""Arrays of one thread: full of zeros at each call, of every type, untouched by other threads, and checked with debug=True."""

from __future__ import annotations

import numpy as np
import pytest
from cpu_harness import DTYPES
from shared_tasks import launch

import atos_py as atos
from atos_py.errors import TaskError

BINS = 10


def count_digits(number, count):
    """Count into an array that the caller has made."""
    while number:
        count[number % 10] += 1
        number //= 10


@atos.task
def most_frequent(worker, item, first, out):
    """Find the most frequent digit of each number of a part, with two arrays at a time."""
    for k in worker.split(100):
        count, place = atos.local_array(np.int32, BINS), atos.local_array(np.int64, 2)
        number = first + 100 * item + k
        count_digits(number, count)
        for digit in range(len(count)):
            if count[digit] > place[0]:
                place[0], place[1] = count[digit], digit
        out[100 * item + k] = place[1]


def test_each_thread_and_each_call_has_its_own(device, worker):
    items, first = 30, 987_654_321_012
    out = atos.full(100 * items, -1, dtype=np.int64, device=device)
    queue = atos.Queue(items, device=device)
    queue.push(np.arange(items))
    launch(queue, worker, most_frequent, first, out)
    texts = [str(number) for number in range(first, first + 100 * items)]
    assert out.to_numpy().tolist() == [max(range(10), key=lambda digit: text.count(str(digit))) for text in texts]


@atos.task(workload=lambda v, sums: len(sums))
def rotate(worker, v, i, sums):
    """Walk through an array whose indices only the run knows."""
    ring = atos.local_array(np.float32, 7)
    for step in range(i + 20):
        ring[(step * 3) % 7] += step
    total = 0.0
    for k in range(7):
        total += (k + 1) * ring[k]
    sums[i] = total


def test_iterations_of_a_nested_task(device, worker):
    sums = atos.zeros(200, dtype=np.float64, device=device)
    queue = atos.Queue(1, device=device)
    queue.push(0)
    launch(queue, worker, rotate, sums)
    expected = [sum(((step * 3) % 7 + 1) * step for step in range(i + 20)) for i in range(200)]
    assert sums.to_numpy().tolist() == expected


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type(device, dtype):
    kind, n = np.dtype(dtype).type, 5

    @atos.task
    def shift(worker, v, source, out):
        if worker.rank == 0:
            mine = atos.local_array(kind, n)
            for k in range(n):
                out[k] = mine[k]
                mine[(k + v) % n] = source[k]
            for k in range(n):
                out[n + k] = mine[k]
            out[2 * n] = mine.size == n and mine.shape[0] == n and mine.ndim == 1

    given = np.array([1, 0, 1, 1, 1] if dtype == "bool" else [1, 100, 3, 4, 5], dtype)
    out = atos.zeros(2 * n + 1, dtype=dtype, device=device)
    queue = atos.Queue(1, device=device)
    queue.push(2)
    queue.launch_warp(shift, atos.asarray(given, device=device), out)
    before = out.to_numpy()[:n]
    assert not before[:2].any()
    assert before[2:].tolist() == given[:3].tolist()
    assert out.to_numpy()[n : 2 * n].tolist() == np.roll(given, 2).tolist()
    assert out[2 * n]


@atos.task
def beyond(worker, v, out):
    mine = atos.local_array(np.int32, 4)
    mine[v] = 1
    out[0] = mine[0]


def test_indices_are_checked(device, worker):
    out, queue = atos.zeros(1, dtype=np.int32, device=device), atos.Queue(4, device=device)
    queue.push(3)
    launch(queue, worker, beyond, out, debug=True)
    queue.push(4)
    with pytest.raises(TaskError, match="index 4 is out of range for array 'local_array' of length 4, in item 4"):
        launch(queue, worker, beyond, out, debug=True)
