"""Several floats added at once: as many additions of one each, and with checks an error where they are not aligned."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from shared_tasks import launch

import atos_py as atos
from atos_py.errors import TaskError


@atos.task(workload=lambda v, n, pairs, fours, table: n)
def add_vectors(worker, v, i, n, pairs, fours, table):
    at = (v * 7919 + i * 104729) % (len(pairs) // 4)
    atos.atomic_add2(pairs, 2 * at, 1, v % 3)
    atos.atomic_add4(fours, 4 * at, 1, i % 5, -2.5, v % 3)
    atos.atomic_add2(table, (at % table.shape[0], 2), 0.5, 1)


def test_vectors_under_contention(device, worker):
    items, n, size = 40, 300, 64
    pairs, fours = (atos.zeros(size, dtype=np.float32, device=device) for _ in range(2))
    table = atos.zeros((5, 4), dtype=np.float32, device=device)
    queue = atos.Queue(items, device=device)
    queue.push(np.arange(items))
    launch(queue, worker, add_vectors, n, pairs, fours, table)
    v, i = (part.ravel() for part in np.meshgrid(np.arange(items), np.arange(n)))
    at = (v * 7919 + i * 104729) % (size // 4)
    expected: list[Any] = [np.zeros(size), np.zeros(size), np.zeros((5, 4))]
    for k, value in enumerate((1, v % 3)):
        np.add.at(expected[0], 2 * at + k, value)
    for k, value in enumerate((1, i % 5, -2.5, v % 3)):
        np.add.at(expected[1], 4 * at + k, value)
    for k, value in enumerate((0.5, 1)):
        np.add.at(expected[2], (at % 5, 2 + k), value)
    for found, wanted in zip((pairs, fours, table), expected, strict=True):
        assert np.array_equal(found.to_numpy(), wanted)


@atos.task
def add_in_scratch(worker, v, out):
    sums = worker.scratch(np.float32)
    for k in worker.split(len(sums)):
        sums[k] = 0
    worker.sync()
    for k in worker.split(600):
        atos.atomic_add4(sums, 4 * (k % 2), 1, k, 0.5, -1)
    worker.sync()
    for k in worker.split(8):
        out[v, k] = sums[k]
    worker.sync()


def test_vectors_in_scratch(device, worker):
    out = atos.zeros((2, 8), dtype=np.float32, device=device)
    queue = atos.Queue(2, device=device)
    queue.push([0, 1])
    launch(queue, worker, add_in_scratch, out, shared_memory=32)
    rows = [[300, sum(range(first, 600, 2)), 150, -300] for first in (0, 1)]
    assert out.to_numpy().tolist() == [[*rows[0], *rows[1]]] * 2


@atos.task
def add_four(worker, first, sums):
    if worker.rank == 0:
        atos.atomic_add4(sums, first, 1, 2, 3, 4)


@atos.task
def add_to_a_row(worker, v, rows):
    if worker.rank == 0:
        atos.atomic_add2(rows, (v, 2), 1, 2)


@pytest.mark.parametrize(
    ("task", "shape", "item", "kind", "says"),
    [
        (
            add_four,
            (8,),
            2,
            "alignment",
            "atomic_add4 at element 2 of array 'sums', which has to be a multiple of 4, in item 2",
        ),
        (add_four, (6,), 4, "index", "index 7 is out of range for array 'sums' of length 6"),
        (add_four, (8,), 8, "index", "index 8 is out of range for array 'sums' of length 8"),
        (add_to_a_row, (2, 3), 0, "index", "index 3 is out of range for array 'rows' of length 3 along axis 1"),
        (add_to_a_row, (2, 5), 1, "alignment", "atomic_add2 at element 7 of array 'rows', which has to be a multiple of 2"),
    ],
)
def test_checks(device, worker, task, shape, item, kind, says):
    sums = atos.zeros(shape, dtype=np.float32, device=device)
    queue = atos.Queue(4, device=device)
    queue.push(item)
    with pytest.raises(TaskError, match=re.escape(says)) as failed:
        launch(queue, worker, task, sums, debug=True)
    assert failed.value.kind == kind
    assert not sums.to_numpy().any()


def test_what_is_aligned_passes_the_checks(device, worker):
    sums = atos.zeros(8, dtype=np.float32, device=device)
    queue = atos.Queue(4, device=device)
    queue.push([0, 4])
    launch(queue, worker, add_four, sums, debug=True)
    assert sums.to_numpy().tolist() == [1, 2, 3, 4] * 2


def test_an_array_that_begins_in_between_is_told():
    part = np.zeros(9, np.float32)[1:]
    assert part.ctypes.data % 16 == 4
    queue = atos.Queue(4, device="cpu")
    queue.push(4)
    with pytest.raises(TaskError, match="atomic_add4 on array 'sums', which does not begin at a multiple of 16 bytes; copy it"):
        queue.launch_thread(add_four, part, debug=True)
    queue.clear()
    queue.push(4)
    queue.launch_thread(add_four, part)
    assert part.tolist() == [0, 0, 0, 0, 1, 2, 3, 4]
