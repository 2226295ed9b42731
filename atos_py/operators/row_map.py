"""Row maps: a function of every row of edges in a range of vertices, mapped by degree to a thread, a warp or a whole worker.

For tasks that do several things with a range, such as one in each round. `edge_map` has whole tasks of a single pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["VERTICES_PER_ROW_ITEM", "row_map"]

#: Vertices of a range. On a GPU few, since some rows take long.
VERTICES_PER_ROW_ITEM = {"cuda": 1024, "cpu": 4096}
_GROUP = 32
_LOG_ROWS_OF_WORKERS = 6  # a worker takes rows of so many times the degree, as a power of 2, that a thread takes at most


def row_map(row: Callable[..., Any], row_by_all: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function for flat tasks, which calls another for the row of every vertex of a range.

    All threads of a worker call it as ``function(worker, first, end, thread_max_degree, indptr, *args)``. For a vertex v with
    at most `thread_max_degree` edges (`edge_map.THREAD_MAX_DEGREE`), one thread calls ``row(v, edge, last, *args)``; its edges
    are those from `edge` up to `last`. For one with up to 64 times as many, all threads of a group of 32 call
    ``row_by_all(team, v, edge, last, *args)``, and for others all threads of the worker. They split the edges among them: the
    team is the group or the worker, with its collective functions.

    Returns the sum, over the calls of this thread, of what they return: a number.
    """

    def map_rows(worker, first, end, thread_max_degree, indptr, *args):  # type: ignore[no-untyped-def]
        total = 0
        most = 0
        for v in worker.split(range(first, end)):
            edge = indptr[v]
            last = indptr[v + 1]
            most = max(most, last - edge)
            if last - edge <= thread_max_degree:
                total += row(v, edge, last, *args)
        if worker.any(most > thread_max_degree):
            group = worker.group(_GROUP)
            for v in range(first + group.index, end, group.count):
                edge = indptr[v]
                last = indptr[v + 1]
                if last - edge > thread_max_degree and (last - edge) >> _LOG_ROWS_OF_WORKERS <= thread_max_degree:
                    total += row_by_all(group, v, edge, last, *args)
        if worker.any(most >> _LOG_ROWS_OF_WORKERS > thread_max_degree):
            for v in range(first, end):
                edge = indptr[v]
                last = indptr[v + 1]
                if (last - edge) >> _LOG_ROWS_OF_WORKERS > thread_max_degree:
                    total += row_by_all(worker, v, edge, last, *args)
        return total

    return map_rows
