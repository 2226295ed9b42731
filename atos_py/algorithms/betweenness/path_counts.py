"""Searches that count shortest paths: each breadth first by one worker, level by level, and many of them side by side.

A worker has a row of its own in all arrays (`Worker.index`). It lists the vertices level by level, so that a task can go
through the levels backwards too (`listed_rows`), and leaves the arrays as it found them (`forget_paths`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...arrays.array import Array, empty, zeros
from ...arrays.filled import full
from ...compile.atomics import atomic_add, atomic_cas
from ...core.devices import Device
from ...operators.row_map import row_map

__all__ = ["UNREACHED", "PathCounts", "count_paths", "forget_paths", "listed_rows", "make_path_counts"]

UNREACHED = 0xFFFF_FFFF


class PathCounts(NamedTuple):
    """Arrays of the searches, with a row for each worker."""

    depth: Array
    paths: Array  # how many shortest ones lead to each vertex
    order: Array  # the vertices that are reached, level by level
    ends: Array  # of what is listed; and from 1 on where each level begins in the list, the last of which is empty


def make_path_counts(workers: int, n: int, device: Device) -> PathCounts:
    """Return the arrays for so many workers, of 20 bytes for each of n vertices."""
    return PathCounts(
        full((workers, n), UNREACHED, dtype=np.uint32, device=device),
        zeros((workers, n), dtype=np.float64, device=device),
        empty((workers, n), dtype=np.uint32, device=device),
        empty((workers, n + 2), dtype=np.uint32, device=device),
    )


def listed(place, s, row, *args):  # type: ignore[no-untyped-def]
    """Return the vertex at a place of the list."""
    return s.order[row, place]


def listed_rows(row: Callable[..., Any], row_by_all: Callable[..., Any]) -> Callable[..., Any]:
    """Return a row map of vertices between two places of a list; the first arguments are the searches and the worker's row."""
    return row_map(row, row_by_all, vertex=listed)


def reach(v, edge, last, step, s, row, level, indices):  # type: ignore[no-untyped-def]
    """Give targets of v the level and list them, if they have none; count the paths to those of the level."""
    paths = s.paths[row, v]
    while edge < last:
        u = indices[edge]
        edge += step
        found = s.depth[row, u]
        if found == UNREACHED:
            found = atomic_cas(s.depth, (row, u), UNREACHED, level)
            if found == UNREACHED:
                s.order[row, atomic_add(s.ends, (row, 0), 1)] = u
                found = level
        if found == level:
            atomic_add(s.paths, (row, u), paths)
    return 0


def reach_row(v, edge, last, s, row, level, indices):  # type: ignore[no-untyped-def]
    """Go from v to the next level."""
    return reach(v, np.int64(edge), last, 1, s, row, level, indices)


def reach_row_by_all(team, v, edge, last, s, row, level, indices):  # type: ignore[no-untyped-def]
    """Do the same by all threads of a team."""
    return reach(v, edge + team.rank, last, team.size, s, row, level, indices)


reach_rows = listed_rows(reach_row, reach_row_by_all)


def count_paths(worker, source, indptr, indices, thread_max_degree, s):  # type: ignore[no-untyped-def]
    """Search from a source by all threads of a worker; return how many levels there are.

    Level k is listed between ``ends[row, k + 1]`` and ``ends[row, k + 2]``.
    """
    row = worker.index
    if worker.rank == 0:
        s.depth[row, source] = 0
        s.paths[row, source] = 1.0
        s.order[row, 0] = source
        s.ends[row, 0] = 1
        s.ends[row, 1] = 0
    worker.sync()
    begin, end, level = 0, 1, 0
    while begin < end:
        reach_rows(worker, begin, end, thread_max_degree, indptr, s, row, level + 1, indices)
        worker.sync()
        level += 1
        begin, end = end, s.ends[row, 0]
        if worker.rank == 0:
            s.ends[row, level + 1] = begin
        worker.sync()  # before anyone lists more
    return level


def forget_paths(worker, s):  # type: ignore[no-untyped-def]
    """Make the arrays of a worker as they were before its search."""
    row = worker.index
    for place in worker.split(s.ends[row, 0]):
        v = s.order[row, place]
        s.depth[row, v] = UNREACHED
        s.paths[row, v] = 0.0
    worker.sync()
