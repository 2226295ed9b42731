"""Lists of rows that one round of a launch makes and the next one works on: long rows by workers, short ones by groups.

Both take rows from a counter, so that workers end at about the same time. What the rounds share is `state`, an array of int64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...arrays.array import Array
from ...arrays.record import new_record, places
from ...compile.atomics import atomic_add
from ...compile.task import Task
from ...core.devices import Device
from ...operators.range_takers import ask_for_range
from ...operators.row_map import by_team

__all__ = [
    "AT",
    "EDGES_PER_ITEM",
    "GROUP",
    "MOST_ITEMS",
    "append_all",
    "ballot",
    "by_length",
    "count_bits",
    "every",
    "make_state",
    "num_row_items",
    "pushing",
]


class EditState(NamedTuple):
    """Words of `state` (`arrays.record`)."""

    listed: int = 1  # rows
    short: int = 1  # the next range of short rows that is taken
    long: int = 1  # the same of long ones
    stage: int = 1  # the number of the round
    bad: int = 1  # ends of edges that are no vertices
    found: int = 1  # a count of the edit's own


AT = places(EditState)
_LONG_ROW = 2048  # edges from which on all threads of a worker work on a row
GROUP = 32  # threads of a group
_ROWS_PER_RANGE = 256  # of all groups of a worker: each takes ranges by itself, since some rows take long
EDGES_PER_ITEM = 1024  # of a batch
MOST_ITEMS = 1024  # what one worker can push at once


def num_row_items(count):  # type: ignore[no-untyped-def]
    """Return how many items of a task of `by_length` work on a list of rows at most; for tasks and the host."""
    return min((count + _ROWS_PER_RANGE - 1) // _ROWS_PER_RANGE, MOST_ITEMS)


def make_state(device: Device, count: int = 0) -> Array:
    """Return the state of a launch, which begins with so many rows in the list."""
    return new_record(EditState, device, listed=count)


def pushing(task: Task) -> Callable[..., Any]:
    """Return the function ``push_rows(worker, state)`` by which a hook pushes the items of a task of `by_length`."""

    def push_rows(worker, state):  # type: ignore[no-untyped-def]
        for k in worker.split(min(num_row_items(state[AT.listed]), worker.count)):
            worker.push(k, task=task)

    return push_rows


def every(place, edit):  # type: ignore[no-untyped-def]
    """Say of each listed row that it is wanted."""
    return True


def nothing(worker, total, state, edit):  # type: ignore[no-untyped-def]
    """Do nothing with a total."""


def by_length(
    is_wanted: Callable[..., Any],
    length: Callable[..., Any],
    by_group: Callable[..., Any],
    by_worker: Callable[..., Any],
    finish: Callable[..., Any] = nothing,
) -> Task:
    """Return a task by which workers do something with the long rows of a list, and then groups with its short ones.

    It is launched with arguments ``(state, edit)``, and has up to ``num_row_items(state[AT.listed])`` items, at least one if
    there are rows: all take ranges of rows from counters. It asks for ``length(place, edit)`` of rows for which
    ``is_wanted(place, edit)`` is true; both stay the same in the launch. `by_group` and `by_worker` do the same,
    ``(team, place, edit)``, and return a number; ``finish(worker, total, state, edit)`` gets their sum in each thread. A range
    of short rows is one of the list, that of long ones every so many-th, since those are often neighbors.
    """

    def is_short(place, edit):  # type: ignore[no-untyped-def]
        return is_wanted(place, edit) and length(place, edit) < _LONG_ROW

    def is_long(k, step, first, edit):  # type: ignore[no-untyped-def]
        place = k * step + first
        return is_wanted(place, edit) and length(place, edit) >= _LONG_ROW

    def run_long(worker, k, step, first, edit):  # type: ignore[no-untyped-def]
        return by_worker(worker, k * step + first, edit)

    run_short_rows, run_long_rows = by_team(is_short, by_group), by_team(is_long, run_long)

    def of_rows(worker, item, state, edit):  # type: ignore[no-untyped-def]
        total = np.int64(0)
        count, step = state[AT.listed], (state[AT.listed] + _ROWS_PER_RANGE - 1) // _ROWS_PER_RANGE
        first = np.int64(worker.max(ask_for_range(worker, state, AT.long)))
        while first < step:
            following = ask_for_range(worker, state, AT.long)  # the answer comes meanwhile
            total += run_long_rows(worker, 0, (count - first + step - 1) // step, step, first, edit)
            first = np.int64(worker.max(following))
        group = worker.group(GROUP)
        size = np.int64(_ROWS_PER_RANGE // group.count)
        first = np.int64(group.max(ask_for_range(group, state, AT.short))) * size
        while first < count:
            following = ask_for_range(group, state, AT.short)
            total += run_short_rows(group, first, min(first + size, count), edit)
            first = np.int64(group.max(following)) * size
        finish(worker, total, state, edit)

    of_rows.__doc__, of_rows.__name__ = by_group.__doc__, f"{by_group.__name__}s"
    return Task(of_rows)


def count_bits(bits):  # type: ignore[no-untyped-def]
    """Return how many bits of 32 are set."""
    bits -= (bits >> 1) & 0x55555555
    bits = (bits & 0x33333333) + ((bits >> 2) & 0x33333333)
    bits = (bits + (bits >> 4)) & 0x0F0F0F0F
    return (bits * 0x01010101 & 0xFFFFFFFF) >> 24


def ballot(group, condition):  # type: ignore[no-untyped-def]
    """Return the bits of the threads of a group for which a condition holds; collective."""
    return np.int64(group.sum(np.uint32(np.int64(condition) << group.rank)))


def append_all(group, listed, state, is_wanted, value):  # type: ignore[no-untyped-def]
    """Append the values that are wanted to a list, whose length is in the state; collective."""
    bits = ballot(group, is_wanted)
    if bits != 0:
        place = np.int64(0)
        if group.rank == 0:
            place = np.int64(atomic_add(state, AT.listed, count_bits(bits)))
        place = group.sum(place) + count_bits(bits & ((1 << group.rank) - 1))
        if is_wanted:
            listed[place] = value
