"""Row maps: a function of every row of edges in a range of vertices, mapped by degree to a thread, a warp or a whole worker.

For tasks that do several things with a range, such as one in each round. `edge_map` has whole tasks of a single pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.devices import Device
from ..runtime.queue import Queue
from .ranges import range_items

__all__ = ["VERTICES_PER_ROW_ITEM", "by_groups", "by_team", "csr_bounds", "row_items", "row_map", "row_queue"]

#: Vertices of a range. On a GPU few, since some rows take long.
VERTICES_PER_ROW_ITEM = {"cuda": 1024, "cpu": 4096}
_GROUP = 32
_LOG_ROWS_OF_WORKERS = 6  # a worker takes rows of so many times the degree, as a power of 2, that a thread takes at most


def row_items(n: int, device: Device) -> tuple[range, int]:
    """Return the range items that cover n vertices, and how many vertices a range has."""
    size = VERTICES_PER_ROW_ITEM[device.kind]
    return range_items(n, size), size


def row_queue(n: int, device: Device) -> Queue:
    """Return a queue with room for the ranges of n vertices in this round and in the next one."""
    return Queue(max(2 * len(row_items(n, device)[0]), 1), device=device)


def _itself(v, *args):  # type: ignore[no-untyped-def]
    """Return the vertex of a range as it is."""
    return v


def _groups(worker):  # type: ignore[no-untyped-def]
    group = worker.group(_GROUP)
    return group, group.index, group.count


def _itself_alone(team):  # type: ignore[no-untyped-def]
    return team, 0, 1


def by_groups(is_wanted: Callable[..., Any], run: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function for flat tasks, which has groups of 32 threads run another for some vertices of a range.

    All threads of a worker call it as ``function(worker, first, end, *args)``. Each thread looks at one vertex v with
    ``is_wanted(v, *args)``; all threads of a group then call ``run(group, v, *args)`` for those wanted, one after the other.

    Returns the sum, over the calls of this thread, of what `run` returns: a number.
    """
    return _by_teams(_groups, is_wanted, run)


def by_team(is_wanted: Callable[..., Any], run: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function as that of `by_groups`, which any team calls, and all of whose threads call ``run(team, v, *args)``."""
    return _by_teams(_itself_alone, is_wanted, run)


def _by_teams(teams: Callable[..., Any], is_wanted: Callable[..., Any], run: Callable[..., Any]) -> Callable[..., Any]:
    def run_wanted(worker, first, end, *args):  # type: ignore[no-untyped-def]
        total = 0
        team, index, count = teams(worker)
        for base in range(first + index * team.size, end, count * team.size):
            mine = base + team.rank
            if mine >= end or not is_wanted(mine, *args):
                mine = end
            chosen = team.min(mine)
            while chosen < end:
                total += run(team, chosen, *args)
                if mine == chosen:
                    mine = end
                chosen = team.min(mine)
        return total

    return run_wanted


def _every(v, *args):  # type: ignore[no-untyped-def]
    """Say of each vertex that its row is wanted."""
    return True


def csr_bounds(v, indptr):  # type: ignore[no-untyped-def]
    """Return the first edge of v and the end of its edges in a CSR graph."""
    return indptr[v], indptr[v + 1]


def row_map(
    row: Callable[..., Any],
    row_by_all: Callable[..., Any],
    wants: Callable[..., Any] = _every,
    vertex: Callable[..., Any] = _itself,
    bounds: Callable[..., Any] = csr_bounds,
) -> Callable[..., Any]:
    """Return a function for flat tasks, which calls another for the row of every vertex of a range.

    All threads of a worker call it as ``function(worker, first, end, thread_max_degree, indptr, *args)``. For a vertex v with
    at most `thread_max_degree` edges (`edge_map.THREAD_MAX_DEGREE`), one thread calls ``row(v, edge, last, *args)``; its edges
    are those from `edge` up to `last`. For one with up to 64 times as many, all threads of a group of 32 call
    ``row_by_all(team, v, edge, last, *args)``, and for others all threads of the worker. They split the edges among them: the
    team is the group or the worker, with its collective functions. That is not done for a vertex with many edges for which
    ``wants(v, *args)`` is false, which one thread finds out.

    With `vertex`, the range is one of places, for instance in a list, and ``vertex(place, *args)`` is the vertex of a place.
    With `bounds`, another thing takes the place of `indptr`: ``bounds(v, indptr)`` says where the edges of v begin and end.

    Returns the sum, over the calls of this thread, of what they return: a number.
    """

    def is_medium(place, thread_max_degree, indptr, *args):  # type: ignore[no-untyped-def]
        v = vertex(place, *args)
        edge, last = bounds(v, indptr)
        degree = last - edge
        return degree > thread_max_degree and degree >> _LOG_ROWS_OF_WORKERS <= thread_max_degree and wants(v, *args)

    def row_by_group(group, place, thread_max_degree, indptr, *args):  # type: ignore[no-untyped-def]
        v = vertex(place, *args)
        edge, last = bounds(v, indptr)
        return row_by_all(group, v, edge, last, *args)

    map_medium_rows = by_groups(is_medium, row_by_group)

    def map_rows(worker, first, end, thread_max_degree, indptr, *args):  # type: ignore[no-untyped-def]
        total = 0
        most = 0
        for place in worker.split(range(first, end)):
            v = vertex(place, *args)
            edge, last = bounds(v, indptr)
            if last - edge <= thread_max_degree:
                total += row(v, edge, last, *args)
            elif wants(v, *args):
                most = max(most, last - edge)
        if worker.any(most > thread_max_degree):
            total += map_medium_rows(worker, first, end, thread_max_degree, indptr, *args)
        if worker.any(most >> _LOG_ROWS_OF_WORKERS > thread_max_degree):
            for place in range(first, end):
                v = vertex(place, *args)
                edge, last = bounds(v, indptr)
                if (last - edge) >> _LOG_ROWS_OF_WORKERS > thread_max_degree and worker.any(
                    worker.rank == 0 and wants(v, *args)
                ):
                    total += row_by_all(worker, v, edge, last, *args)
        return total

    return map_rows
