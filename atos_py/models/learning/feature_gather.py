"""Gathering of feature vectors: every vertex adds up vectors over its edges, as a sparse times a dense matrix does.

*Mapping.* Neighboring threads take neighboring features of one edge, so that a row of features is read at once. A team of as
many threads as there are features, rounded up to a power of 2 and at most 32, takes a vertex of low degree. A warp takes one of
more than `LOW_DEGREE` edges, with several edges at a time, and all threads of the worker one of 64 times as many. A thread has
one feature of every 32. If terms are vectors of 4 features, which are loaded at once, a quarter as many threads do the same. On
the CPU a thread has all features, side by side as they lie in memory, for vector instructions.

No atomics are used, and the order of the additions does not depend on the schedule: the sums are the same in every run.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from ...compile.local_array import local_array
from ...compile.task import Task
from ...compile.vector_access import WIDTH
from ...operators.ranges import range_items
from ...operators.vertex_map import named

__all__ = [
    "DENSE",
    "LOW_DEGREE",
    "MOST_FEATURES",
    "RANGES_AT_ONCE",
    "Rows",
    "feature_gather",
    "gather_items",
    "team_size",
]

MOST_FEATURES = 128
RANGES_AT_ONCE = 1  # that a worker takes: a range with a hub takes long
LOW_DEGREE = 32
DENSE = 8  # edges of a vertex on average
_HIGH_DEGREE = 64 * LOW_DEGREE
_WARPS = 32  # of a worker, at most

Rows = Literal["short", "dense", "mixed"]


def team_size(k: int) -> int:
    """Return how many threads of a GPU share a vector of k features: a power of 2, at most 32."""
    return min(32, 1 << (k - 1).bit_length())


def gather_items(n: int, k: int, kind: str, width: int = 1, rows: Rows = "mixed") -> Any:
    """Return the items of a gather over n vertices with k features, on a kind of device."""
    return range_items(n, vertices_per_item(k // width, kind, rows))


def vertices_per_item(terms: int, kind: str, rows: Rows = "mixed") -> int:
    """Return the vertices of an item: few, so that rows that lie near each other are read at about the same time.

    Where vertices have many edges, items are larger, since all threads wait for the longest row of one: but not those whose
    vertices have a thread each, of which few have a long row.
    """
    team = team_size(terms)
    if kind == "cpu":
        return 512
    if rows == "dense":
        return 512 if team == 1 else 2048
    return max(2048 // team, 256)


def _place_of_thread(worker):  # type: ignore[no-untyped-def]
    return worker.rank, worker.size, 0, 1


def _place_in_team(size: int) -> Callable[..., Any]:
    def place_in_team(worker):  # type: ignore[no-untyped-def]
        team = worker.group(size)
        return team.index, team.count, team.rank, team.size

    return place_in_team


class _Terms(NamedTuple):
    """What a task does with terms: numbers, or tuples of several features."""

    number: Callable[..., Any]  # the term in the type of the sums
    plus: Callable[..., Any]
    add: Callable[..., Any]  # the j-th sum of a thread and a term, in place
    part: Callable[..., Any]  # the j-th sum
    zero: Any


def _terms(dtype: Any, width: int) -> _Terms:
    def number(term):  # type: ignore[no-untyped-def]
        return dtype(term)

    def plus(a, b):  # type: ignore[no-untyped-def]
        return a + b

    def add(totals, j, term):  # type: ignore[no-untyped-def]
        totals[j] += term

    def part(totals, j):  # type: ignore[no-untyped-def]
        return totals[j]

    def vector(term):  # type: ignore[no-untyped-def]
        return term

    def plus_vector(a, b):  # type: ignore[no-untyped-def]
        return a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]

    def add_vector(totals, j, term):  # type: ignore[no-untyped-def]
        for i in range(WIDTH):
            totals[WIDTH * j + i] += term[i]

    def part_vector(totals, j):  # type: ignore[no-untyped-def]
        return totals[WIDTH * j], totals[WIDTH * j + 1], totals[WIDTH * j + 2], totals[WIDTH * j + 3]

    if width == 1:
        return _Terms(number, plus, add, part, dtype(0))
    return _Terms(vector, plus_vector, add_vector, part_vector, (dtype(0),) * WIDTH)


@functools.lru_cache(256)
def feature_gather(
    term: Callable[..., Any],
    finish: Callable[..., Any],
    k: int,
    dtype: Any,
    kind: str,
    pipelined: bool = True,
    width: int = 1,
    rows: Rows = "mixed",
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
    width : {1, 4}
        Features of a term. With 4, `term` returns a tuple of float32, and `finish` takes one, of features f to f + 3; k is a
        multiple of 4.
    rows : {'mixed', 'dense', 'short'}
        Whether vertices have `DENSE` edges or more on average, none has more than `LOW_DEGREE`, or neither; the same as for
        `gather_items`. Where all rows are short, no threads wait for others.
    """
    count = k // width  # of terms for an edge
    team = team_size(count) if kind == "cuda" else 1
    parts = -(-count // team)  # terms of a thread
    size = vertices_per_item(count, kind, rows)
    number, plus, add, part, zero = _terms(dtype, width)
    mine = parts * width  # sums of a thread
    place = _place_in_team(team) if team > 1 else _place_of_thread
    edges_of_warp, at_once = 32 // team, pipelined and kind == "cuda"
    most_of_team = LOW_DEGREE if team < 32 else _HIGH_DEGREE  # edges of a vertex; such a team is a warp
    cells = _WARPS * k

    def accumulate(totals, v, edge, end, step, lane, lanes, indices, *args):  # type: ignore[no-untyped-def]
        # Four edges at a time, so that several loads are under way at once.
        while pipelined and edge + 3 * step < end:
            second, third, fourth = edge + step, edge + 2 * step, edge + 3 * step
            a, b, c, d = indices[edge], indices[second], indices[third], indices[fourth]
            for j in range(parts):
                q = lane + j * lanes
                if q < count:
                    f = q * width
                    left = plus(number(term(f, v, a, edge, *args)), number(term(f, v, b, second, *args)))
                    right = plus(number(term(f, v, c, third, *args)), number(term(f, v, d, fourth, *args)))
                    add(totals, j, plus(left, right))
            edge += 4 * step
        if at_once and edge < end:
            # What is left too: the first edge stands for what is missing, and counts once.
            second = edge + step if edge + step < end else edge
            third = edge + 2 * step if edge + 2 * step < end else edge
            a, b, c = indices[edge], indices[second], indices[third]
            for j in range(parts):
                q = lane + j * lanes
                if q < count:
                    f = q * width
                    left, middle = number(term(f, v, a, edge, *args)), number(term(f, v, b, second, *args))
                    right = number(term(f, v, c, third, *args))
                    if second == edge:
                        middle = zero
                    if third == edge:
                        right = zero
                    add(totals, j, plus(left, plus(middle, right)))
        while not at_once and edge < end:
            u = indices[edge]
            for j in range(parts):
                q = lane + j * lanes
                if q < count:
                    add(totals, j, number(term(q * width, v, u, edge, *args)))
            edge += step

    def by_teams(worker, first, last, most, indptr, indices, *args):  # type: ignore[no-untyped-def]
        begin_at, stride, lane, lanes = place(worker)
        longest, v = np.int64(0), first + begin_at
        ahead = min(v, last - 1)
        next_edge, next_end = np.int64(indptr[ahead]), np.int64(indptr[ahead + 1])
        while v < last:
            # The place of the next vertex is loaded ahead, while this one waits for its edges.
            edge, end, ahead = next_edge, next_end, min(v + stride, last - 1)
            next_edge, next_end = np.int64(indptr[ahead]), np.int64(indptr[ahead + 1])
            longest = max(longest, end - edge)
            if end - edge <= most:
                totals = local_array(dtype, mine)
                accumulate(totals, v, edge, end, 1, lane, lanes, indices, *args)
                for j in range(parts):
                    q = lane + j * lanes
                    if q < count:
                        finish(q * width, v, part(totals, j), *args)
            v += stride
        return longest

    def run_alone(worker, item, indptr, indices, *args):  # type: ignore[no-untyped-def]
        by_teams(worker, item * size, min(item * size + size, indptr.size - 1), 1 << 62, indptr, indices, *args)

    def next_row(team, first, last, least, most, indptr):  # type: ignore[no-untyped-def]
        """Return the first vertex of a range with more edges than `least` and at most `most`, or `last`; collective."""
        found = last
        for v in team.split(range(first, last)):
            if least < indptr[v + 1] - indptr[v] <= most:
                found = min(found, v)
        return team.min(found)

    def combine(warp, totals):  # type: ignore[no-untyped-def]
        distance = team
        while distance < 32:
            for j in range(mine):
                totals[j] += warp.shuffle(totals[j], warp.rank ^ distance)
            distance *= 2

    def run(worker, item, indptr, indices, *args):  # type: ignore[no-untyped-def]
        first = item * size
        last = min(first + size, indptr.size - 1)
        longest = by_teams(worker, first, last, most_of_team, indptr, indices, *args)
        if not worker.any(longest > most_of_team):
            return
        is_high = worker.any(longest > _HIGH_DEGREE)
        warp = worker.group(32)
        lane = warp.rank % team
        if team < 32:
            share = -(-size // warp.count)
            v, end_of_warp = first + warp.index * share, min(first + (warp.index + 1) * share, last)
            v = next_row(warp, v, end_of_warp, most_of_team, _HIGH_DEGREE, indptr)
            while v < end_of_warp:
                edge, end = np.int64(indptr[v]), np.int64(indptr[v + 1])
                totals = local_array(dtype, mine)
                accumulate(totals, v, edge + warp.rank // team, end, edges_of_warp, lane, team, indices, *args)
                combine(warp, totals)
                for j in range(parts):
                    if warp.rank < team and lane + j * team < count:
                        finish((lane + j * team) * width, v, part(totals, j), *args)
                v = next_row(warp, v + 1, end_of_warp, most_of_team, _HIGH_DEGREE, indptr)
        if not is_high:
            return
        sums, v = worker.scratch(dtype, cells), next_row(worker, first, last, _HIGH_DEGREE, 1 << 62, indptr)
        while v < last:
            edge, end = np.int64(indptr[v]), np.int64(indptr[v + 1])
            totals = local_array(dtype, mine)
            accumulate(totals, v, edge + worker.rank // team, end, worker.size // team, lane, team, indices, *args)
            combine(warp, totals)
            for j in range(mine):
                f = (lane + j // width * team) * width + j % width
                if warp.rank < team and f < k:
                    sums[warp.index * k + f] = totals[j]
            worker.sync()
            for q in worker.split(count):
                totals = local_array(dtype, width)
                for i in range(width):
                    for other in range(warp.count):
                        totals[i] += sums[other * k + q * width + i]
                finish(q * width, v, part(totals, 0), *args)
            v = next_row(worker, v + 1, last, _HIGH_DEGREE, 1 << 62, indptr)  # after all have read the sums

    return Task(named(run_alone if kind == "cpu" or rows == "short" else run, term))
