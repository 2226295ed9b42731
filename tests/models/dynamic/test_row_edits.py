"""Insertion into rows by workers of many threads, as on a GPU: threads of Python that meet at barriers."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import numpy as np
import pytest
from thread_teams import run_teams

from atos_py.models.dynamic import row_edits, row_lists

VERTICES, EDGES = 50, 1500


def edges_of(rows: Any) -> Counter[tuple[int, int, float]]:
    places = [(u, rows.start[u] + k) for u in range(VERTICES) for k in range(rows.degree[u])]
    return Counter((u, int(rows.indices[place]), float(rows.weights[place])) for u, place in places)


@pytest.mark.parametrize("both", [0, 1])
def test_many_threads_insert(both, monkeypatch):
    """In rows with room for all, for some and for none; afterwards everything is taken back."""
    lock, rng = threading.Lock(), np.random.default_rng(both)

    def atomic_add(array: Any, index: int, value: Any) -> Any:
        with lock:
            before = array[index]
            array[index] += value
        return before

    for module in (row_edits, row_lists):
        monkeypatch.setattr(module, "atomic_add", atomic_add)
    degree = rng.integers(0, 9, VERTICES).astype(np.int32)
    room = degree + rng.integers(0, 70, VERTICES)
    start, end = np.cumsum(room) - room, np.array([room.sum()])
    capacity = 10 * EDGES
    indices, weights = rng.integers(0, VERTICES, capacity).astype(np.uint32), rng.random(capacity)
    rows: Any = row_edits.DynamicRows(start, degree, indices, weights)
    old, old_degree = edges_of(rows), degree.copy()
    sources, targets = rng.integers(0, VERTICES, (2, EDGES)).astype(np.uint32)
    values, state = rng.random(EDGES), np.zeros(7, np.int64)
    places, full = np.zeros((1 + both) * EDGES, np.int32), np.zeros(VERTICES, np.uint32)
    table = row_edits.RoomTable(room, end, capacity)
    edit = row_edits.Insertion(sources, targets, values, both, capacity, places, full, rows, table)

    def run(task: Any, items: Any, *args: Any) -> None:
        for item in items:
            run_teams(64, lambda worker, item=item: getattr(task, "body", task)(worker, item, *args))

    ranges = range(-(-EDGES // row_lists.EDGES_PER_ITEM))
    run(row_edits.insertion[0], ranges, state, edit)
    assert (state[row_lists.AT.bad], state[row_lists.AT.found]) == (0, np.count_nonzero(sources == targets))
    run(row_edits.store_insertion, ranges, state, edit)
    num_full = state[row_lists.AT.listed]
    assert 0 < num_full < VERTICES
    assert np.array_equal(np.sort(full[:num_full]), np.flatnonzero(degree > room))
    run(row_edits.move_row, range(num_full), edit)
    run(row_edits.insertion[-1], ranges, state, edit)
    new = Counter(zip(sources.tolist(), targets.tolist(), values.tolist(), strict=True))
    new.update((v, u, weight) for u, v, weight in list(new) if both and u != v)
    assert edges_of(rows) == old + new
    run(row_edits.take_back, ranges, edit)
    assert np.array_equal(degree, old_degree)
    assert edges_of(rows) == old
