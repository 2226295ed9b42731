"""Row pulls: the vertices of a range look along their rows for edges that are accepted, and fold them, or stop at the first.

For tasks that do several things with a range, as `row_map`. `edge_map.gather` is a whole task of a single pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .row_map import by_groups, row_map

__all__ = ["SEARCHED_ALONE", "row_fold", "row_search"]

#: Edges of a row that one thread looks at; on the CPU a worker is a thread.
SEARCHED_ALONE = {"cuda": 64, "cpu": 1 << 62}


def row_fold(
    wants: Callable[..., Any],
    accepts: Callable[..., Any],
    term: Callable[..., Any],
    settle: Callable[..., Any],
    merge: Callable[..., Any],
    neutral: Any,
    by_all: Callable[..., Any],
) -> Callable[..., Any]:
    """Return a function for flat tasks, by which the vertices of a range each fold the terms of their edges.

    All threads of a worker call it as ``function(worker, first, end, thread_max_degree, indptr, *args)``. For each vertex v
    with ``wants(v, *args)``, the numbers ``term(v, edge, *args)`` of its edges with ``accepts(edge, *args)`` are merged, two by
    ``merge(a, b)``, beginning with `neutral`, and those of the threads of a team by ``by_all(team, number)``. One thread calls
    ``settle(v, number, *args)``.
    Rows are mapped to threads, groups and workers as by `row_map`.

    Returns the sum, over the calls of this thread, of what `settle` returns: a number.
    """

    def fold(v, edge, last, step, *args):  # type: ignore[no-untyped-def]
        total = neutral
        while edge < last:
            if accepts(edge, *args):
                total = merge(total, term(v, edge, *args))
            edge += step
        return total

    def fold_row(v, edge, last, *args):  # type: ignore[no-untyped-def]
        return settle(v, fold(v, np.int64(edge), last, 1, *args), *args) if wants(v, *args) else 0

    def fold_row_by_all(team, v, edge, last, *args):  # type: ignore[no-untyped-def]
        total = by_all(team, fold(v, np.int64(edge) + team.rank, last, team.size, *args))
        return settle(v, total, *args) if team.rank == 0 else 0

    return row_map(fold_row, fold_row_by_all, wants)


def row_search(
    wants: Callable[..., Any],
    accepts: Callable[..., Any],
    term: Callable[..., Any],
    settle: Callable[..., Any],
    still_wants: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """Return a function for flat tasks, by which the vertices of a range each look for an edge.

    All threads of a worker call it as ``function(worker, first, end, alone, indptr, *args)``. Each vertex v with
    ``wants(v, *args)`` looks for an edge with ``accepts(edge, *args)``, and one thread calls ``settle(v, number, *args)`` with
    ``term(v, edge, *args)``. One thread looks at the first `alone` edges of a row. The others are for groups of 32, all threads
    of which stop when one accepts an edge: collaborative early termination. They ask ``still_wants(v, *args)``, by default
    `wants`, which is false after a call of `settle`.

    Returns the sum, over the calls of this thread, of what `settle` returns: a number.
    """
    wants_rest = still_wants or wants

    def found(v, edge, *args):  # type: ignore[no-untyped-def]
        return settle(v, term(v, edge, *args), *args)

    def find(edge, last, *args):  # type: ignore[no-untyped-def]
        while edge < last and not accepts(edge, *args):
            edge += 1
        return edge

    def is_left(v, alone, indptr, *args):  # type: ignore[no-untyped-def]
        return indptr[v + 1] - indptr[v] > alone and wants_rest(v, *args)

    def find_by_all(group, v, alone, indptr, *args):  # type: ignore[no-untyped-def]
        edge, last = np.int64(indptr[v]) + alone, np.int64(indptr[v + 1])
        while edge < last:
            mine = edge + group.rank
            hit = mine < last and accepts(min(mine, last - 1), *args)
            if group.any(hit):
                mine = group.max(mine if hit else np.int64(-1))
                return found(v, mine, *args) if group.rank == 0 else 0
            edge += group.size
        return 0

    find_left = by_groups(is_left, find_by_all)

    def search_rows(worker, first, end, alone, indptr, *args):  # type: ignore[no-untyped-def]
        total = 0
        any_left = False
        for v in worker.split(range(first, end)):
            if wants(v, *args):
                edge = np.int64(indptr[v])
                last = np.int64(indptr[v + 1])
                short = min(last, edge + alone)
                edge = find(edge, short, *args)
                if edge < short:
                    total += found(v, edge, *args)
                elif short < last:
                    any_left = True
        if worker.any(any_left):
            worker.sync()  # those that have found an edge want none any more
            total += find_left(worker, first, end, alone, indptr, *args)
        return total

    return search_rows
