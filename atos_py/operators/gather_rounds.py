"""Gathering in rounds: in each, every vertex gets a new value from those of its neighbors, all in one launch.

Values are read from one array and written to another, which change places after the round. A launch has a few items, each of
which takes ranges of vertices, and pieces of long rows, from a counter until there are none, and pushes itself for the next
round. The function between rounds stops the launch once no vertex is active.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..arrays.array import Array, empty, zeros
from ..arrays.record import new_record, places, read_record
from ..compile.atomics import atomic_add
from ..compile.task import Task
from ..core.devices import Device
from .edge_map import range_gather, row_sum
from .long_rows import LongRows, gather_pieces
from .vertex_map import named

__all__ = ["GatherRanges", "GatherRounds", "bounds_of", "gather_rounds", "make_gather_rounds", "range_takers", "take_range"]


class RoundsState(NamedTuple):
    """Words of the state of a launch (`arrays.record`)."""

    rounds: int = 1
    limited: int = 1  # whether vertices are active after the last round
    done: int = 1


AT = places(RoundsState)


class GatherRanges(NamedTuple):
    """Ranges of vertices that workers take one after the other to gather for them."""

    begins: Array  # the first vertex of each, and the number of all vertices, uint32
    thread_max_degree: int  # edges of a vertex that one thread gathers
    order: Array  # of the ranges and pieces
    worker: str


class GatherRounds(NamedTuple):
    """Arrays and numbers that the task and the function between rounds share."""

    indptr: Array
    indices: Array
    values: Array
    others: Array  # values of every second round
    begins: Array  # of the ranges: the first vertex of each, and the number of all
    order: Array  # of the ranges and pieces
    taken: Array  # how many of them are
    long_rows: LongRows
    long_sums: Array  # what these have gathered in this round
    num_active: Array  # vertices, in this round
    state: Array
    thread_max_degree: int  # edges of a vertex that one thread gathers
    limit: int  # of rounds
    is_stepped: int  # whether each round is a launch of its own

    @property
    def is_done(self) -> bool:
        """Whether no vertex is active, or the rounds are over."""
        return bool(self.state[AT.done])

    def finish(self) -> tuple[int, bool]:
        """Put the last values into `values`; return how many rounds there were, and whether vertices are still active."""
        state = read_record(RoundsState, self.state)
        rounds = state.rounds - 1
        if rounds % 2:
            self.values[...] = self.others
        return rounds, bool(state.limited)


def make_gather_rounds(
    rows: tuple[Array, Array], values: Array, zero: Any, ranges: GatherRanges, long_rows: LongRows, *numbers: int
) -> GatherRounds:
    """Return what a launch shares; `numbers` are the last two, and `zero` that of `gather_rounds`."""
    device, wide = values.device, np.dtype(type(zero))
    return GatherRounds(
        *rows,
        values,
        empty(values.size, dtype=values.dtype, device=device),
        ranges.begins,
        ranges.order,
        zeros(1, dtype=np.uint32, device=device),
        long_rows,
        zeros(long_rows.vertices.size, dtype=wide, device=device),
        zeros(1, dtype=wide, device=device),
        new_record(RoundsState, device, rounds=1),
        ranges.thread_max_degree,
        *numbers,
    )


def range_takers(num_ranges: int, device: Device) -> range:
    """Return the items that take so many ranges: no more than those, and more than workers."""
    return range(min(64 * device.processors, max(num_ranges, 1)))


def bounds_of(begins, k):  # type: ignore[no-untyped-def]
    """Return the first vertex of a range, and the end."""
    return np.int64(begins[k]), np.int64(begins[k + 1])


def take_range(worker, run):  # type: ignore[no-untyped-def]
    """Return a range, of `run.order`, that no other worker takes in this round, or -1; collective."""
    k = np.int32(-1)
    if worker.rank == 0:
        place = atomic_add(run.taken, 0, 1)
        if place < run.order.size:
            k = np.int32(run.order[place])
    return worker.max(k)


def gather_rounds(
    term: Callable[..., Any], settle: Callable[..., Any], zero: Any, made_for: Callable[..., Any]
) -> tuple[Task, Callable[..., Any]]:
    """Return the task of gathering in rounds, and the function between rounds, which stops if no vertex is active.

    They are launched with arguments ``(run, *args)``, `run` being `GatherRounds`. The task has the name of `made_for`.

    For each vertex v the numbers ``term(v, u, edge, source, *args)`` of its edges (v, u) are summed up, in the type of `zero`,
    where `source` has the values of the round before. Then ``settle(v, received, source, *args)`` returns its next value, and
    whether it is active.
    """
    one = type(zero)(1)

    def edge_term(v, u, edge, source, target, *args):  # type: ignore[no-untyped-def]
        return term(v, u, edge, source, *args)

    def no_term(source, target, *args):  # type: ignore[no-untyped-def]
        return zero

    def update(v, degree, received, source, target, *args):  # type: ignore[no-untyped-def]
        value, is_active = settle(v, received, source, *args)
        target[v] = value
        return (one if is_active else zero,)

    accumulate = row_sum(edge_term, no_term, zero, with_edge=True)
    gather_range = range_gather(accumulate, update, zero, 1)
    gather_piece, settle_long_rows = gather_pieces(accumulate, update, zero, 1)

    def run_rounds(worker, item, run, *args):  # type: ignore[no-untyped-def]
        if worker.rank == 0:
            worker.push(item)
        is_odd = run.state[AT.rounds] & 1 == 1
        source = run.values if is_odd else run.others
        target = run.others if is_odd else run.values
        fixed = run.thread_max_degree, run.long_rows.longest, run.indptr, run.indices, run.num_active
        k = take_range(worker, run)
        while k >= 0:
            if k < run.long_rows.first_piece:
                gather_range(worker, *bounds_of(run.begins, k), *fixed, source, target, *args)
            else:
                gather_piece(worker, k, run.long_rows, run.long_sums, run.indptr, run.indices, source, target, *args)
            k = take_range(worker, run)

    def end_round(worker, run, *args):  # type: ignore[no-untyped-def]
        rounds = run.state[AT.rounds]
        source = run.values if rounds & 1 == 1 else run.others
        target = run.others if rounds & 1 == 1 else run.values
        (own,) = settle_long_rows(worker, run.long_rows, run.long_sums, source, target, *args)
        num_active = run.num_active[0] + worker.sum(own)
        worker.sync()  # all threads have read them
        is_done = num_active == 0 or rounds >= run.limit
        if worker.rank == 0:
            run.taken[0] = 0
            run.num_active[0] = 0
            run.state[AT.rounds] = rounds + 1
            run.state[AT.limited] = num_active != 0
            run.state[AT.done] = is_done
        if is_done or run.is_stepped:
            worker.stop()

    # A round of PageRank takes 0.31 ms on an H200 with 40 registers, 0.34 with 48 and 0.39 with 64 (road4900), or 1.07, 1.06
    # and 1.06 (rmat22).
    return Task(named(run_rounds, made_for), spills=128), end_round
