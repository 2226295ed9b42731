"""Records: named words of an array that tasks and the host share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import atos_py as atos
from atos_py.arrays.record import first_words, new_record, places, read_record, record_size

SUMS = 4


class Counts(NamedTuple):
    level: int = 1
    sums: int = SUMS
    found: int = 1


AT = places(Counts)


@atos.task
def count(worker, v, state):
    if worker.rank == 0:
        atos.atomic_add(state, AT.sums + v % SUMS, 1)
        atos.atomic_max(state, AT.found, v)


def test_fields_follow_each_other():
    assert places(Counts) == Counts(level=0, sums=1, found=1 + SUMS)
    assert record_size(Counts) == 2 + SUMS


def test_a_record_begins_with_what_is_given(device):
    assert new_record(Counts, device).to_numpy().tolist() == [0] * 6
    state = new_record(Counts, device, np.float64, level=0.5, found=7)
    assert state.dtype == np.float64
    assert state.to_numpy().tolist() == [0.5, 0, 0, 0, 0, 7]
    assert read_record(Counts, state) == Counts(level=0.5, sums=0, found=7)
    assert np.array_equal(first_words(Counts, level=3), [3, 0, 0, 0, 0, 0])


def test_a_field_that_there_is_not_is_refused():
    with pytest.raises(AttributeError, match="levels"):
        first_words(Counts, levels=1)


def test_tasks_know_the_places(device):
    state, queue = new_record(Counts, device, level=5), atos.Queue(capacity=16, device=device)
    queue.push(range(10))
    queue.launch_cta(count, state)
    assert state.to_numpy().tolist() == [5, 3, 3, 2, 2, 9]
    assert read_record(Counts, state).found == 9
