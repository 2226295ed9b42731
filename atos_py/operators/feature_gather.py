"""Gathering of feature vectors: every vertex adds up vectors over its edges, as a sparse times a dense matrix does.

*Mapping.* Neighbouring threads take neighbouring features of one edge, so that a row of features is read at once. A team of as
many threads as there are features, rounded up to a power of 2 and at most 32, takes a vertex of low degree. A warp takes one of
more than `LOW_DEGREE` edges, with several edges at a time, and all threads of the worker one of 64 times as many. A thread has
one feature of every 32. On the CPU a thread has all of them, side by side as they lie in memory, for vector instructions.

No atomics are used, and the order of the additions does not depend on the schedule: the sums are the same in every run.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..compile.local_array import local_array
from ..compile.task import Task
from .ranges import range_items
from .vertex_map import named

__all__ = ["MOST_FEATURES", "RANGES_AT_ONCE", "feature_gather", "gather_items", "team_size"]

MOST_FEATURES = 128
RANGES_AT_ONCE = 1  # that a worker takes: a range with a hub takes long
LOW_DEGREE = 32
_HIGH_DEGREE = 64 * LOW_DEGREE
_WARPS = 32  # of a worker, at most


def team_size(k: int) -> int:
    """Return how many threads of a GPU share a vector of k features: a power of 2, at most 32."""
    return min(32, 1 << (k - 1).bit_length())


def gather_items(n: int, k: int, kind: str) -> Any:
    """Return the items of a gather over n vertices with k features, on a kind of device."""
    return range_items(n, vertices_per_item(k, kind))


def vertices_per_item(k: int, kind: str) -> int:
    """Return the vertices of an item: some for each team of a block, more where few teams wait for the longest row."""
    team = team_size(k)
    return (2048 if team < 16 else 8192) // team if kind == "cuda" else 512


def _place_of_thread(worker):  # type: ignore[no-untyped-def]
    return worker.rank, worker.size, 0, 1


def _place_in_team(size: int) -> Callable[..., Any]:
    def place_in_team(worker):  # type: ignore[no-untyped-def]
        team = worker.group(size)
        return team.index, team.count, team.rank, team.size

    return place_in_team


@functools.lru_cache(256)
def feature_gather(
    term: Callable[..., Any], finish: Callable[..., Any], k: int, dtype: Any, kind: str, pipelined: bool = True
) -> Task:
    """Return the flat task by which every vertex adds up a vector over its edges.

    For each feature f and vertex v, ``total`` is the sum of ``term(f, v, u, edge, *args)`` over the edges (v, u), and one
    thread calls ``finish(f, v, total, *args)``. The items are those of `gather_items`, and the arguments of a launch
    ``(indptr, indices, *args)``. On a GPU it is for CTA workers, of whole warps.

    Parameters
    ----------
    term, finish : callable
        A term may be asked for more than once.
    k : int
        Features, from 1 to `MOST_FEATURES`.
    dtype : type
        Of the sums: np.float32 or np.float64.
    kind : {'cuda', 'cpu'}
    pipelined : bool
        Whether a thread has several edges under way; otherwise one after the other, for comparison.
    """
    team = team_size(k) if kind == "cuda" else 1
    parts = -(-k // team)  # features of a thread
    size = vertices_per_item(k, kind)
    place = _place_in_team(team) if team > 1 else _place_of_thread
    edges_of_warp, at_once = 32 // team, pipelined and kind == "cuda"
    most_of_team = LOW_DEGREE if team < 32 else _HIGH_DEGREE  # edges of a vertex; such a team is a warp
    cells = _WARPS * k

    def accumulate(totals, v, edge, end, step, lane, width, indices, *args):  # type: ignore[no-untyped-def]
        # Four edges at a time, so that several loads are under way at once.
        while pipelined and edge + 3 * step < end:
            second, third, fourth = edge + step, edge + 2 * step, edge + 3 * step
            a, b, c, d = indices[edge], indices[second], indices[third], indices[fourth]
            for j in range(parts):
                f = lane + j * width
                if f < k:
                    left = dtype(term(f, v, a, edge, *args)) + dtype(term(f, v, b, second, *args))
                    totals[j] += left + (dtype(term(f, v, c, third, *args)) + dtype(term(f, v, d, fourth, *args)))
            edge += 4 * step
        if at_once and edge < end:
            # What is left too: the first edge stands for what is missing, and counts once.
            second = edge + step if edge + step < end else edge
            third = edge + 2 * step if edge + 2 * step < end else edge
            a, b, c = indices[edge], indices[second], indices[third]
            for j in range(parts):
                f = lane + j * width
                if f < k:
                    left, middle = dtype(term(f, v, a, edge, *args)), dtype(term(f, v, b, second, *args))
                    right = dtype(term(f, v, c, third, *args))
                    if second == edge:
                        middle = dtype(0)
                    if third == edge:
                        right = dtype(0)
                    totals[j] += left + (middle + right)
        while not at_once and edge < end:
            u = indices[edge]
            for j in range(parts):
                f = lane + j * width
                if f < k:
                    totals[j] += dtype(term(f, v, u, edge, *args))
            edge += step

    def by_teams(worker, first, last, most, indptr, indices, *args):  # type: ignore[no-untyped-def]
        begin_at, stride, lane, width = place(worker)
        any_high, v = False, first + begin_at
        ahead = min(v, last - 1)
        next_edge, next_end = np.int64(indptr[ahead]), np.int64(indptr[ahead + 1])
        while v < last:
            # The place of the next vertex is loaded ahead, while this one waits for its edges.
            edge, end, ahead = next_edge, next_end, min(v + stride, last - 1)
            next_edge, next_end = np.int64(indptr[ahead]), np.int64(indptr[ahead + 1])
            if end - edge > most:
                any_high = True
            else:
                totals = local_array(dtype, parts)
                accumulate(totals, v, edge, end, 1, lane, width, indices, *args)
                for j in range(parts):
                    if lane + j * width < k:
                        finish(lane + j * width, v, totals[j], *args)
            v += stride
        return any_high

    def run_on_cpu(worker, item, indptr, indices, *args):  # type: ignore[no-untyped-def]
        by_teams(worker, item * size, min(item * size + size, indptr.size - 1), 1 << 62, indptr, indices, *args)

    def combine(warp, totals):  # type: ignore[no-untyped-def]
        distance = team
        while distance < 32:
            for j in range(parts):
                totals[j] += warp.shuffle(totals[j], warp.rank ^ distance)
            distance *= 2

    def run(worker, item, indptr, indices, *args):  # type: ignore[no-untyped-def]
        first = item * size
        last = min(first + size, indptr.size - 1)
        if not worker.any(by_teams(worker, first, last, most_of_team, indptr, indices, *args)):
            return
        warp = worker.group(32)
        lane, any_high = warp.rank % team, False
        for v in range(first + warp.index, last, warp.count):
            edge, end = np.int64(indptr[v]), np.int64(indptr[v + 1])
            any_high |= end - edge > _HIGH_DEGREE
            if most_of_team < end - edge <= _HIGH_DEGREE:
                totals = local_array(dtype, parts)
                accumulate(totals, v, edge + warp.rank // team, end, edges_of_warp, lane, team, indices, *args)
                combine(warp, totals)
                for j in range(parts):
                    if warp.rank < team and lane + j * team < k:
                        finish(lane + j * team, v, totals[j], *args)
        if not worker.any(any_high):
            return
        sums = worker.scratch(dtype, cells)
        for v in range(first, last):
            edge, end = np.int64(indptr[v]), np.int64(indptr[v + 1])
            if end - edge > _HIGH_DEGREE:
                totals = local_array(dtype, parts)
                accumulate(totals, v, edge + worker.rank // team, end, worker.size // team, lane, team, indices, *args)
                combine(warp, totals)
                for j in range(parts):
                    if warp.rank < team and lane + j * team < k:
                        sums[warp.index * k + lane + j * team] = totals[j]
                worker.sync()
                for f in worker.split(k):
                    total = sums[f]
                    for other in range(1, warp.count):
                        total += sums[other * k + f]
                    finish(f, v, total, *args)
                worker.sync()  # before the next vertex overwrites the sums

    return Task(named(run if kind == "cuda" else run_on_cpu, term))
