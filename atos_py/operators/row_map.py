"""Row maps: a function of every row of edges in a range of vertices, mapped to one thread or to a whole worker by degree.

For tasks that do several things with a range, such as one in each round. `edge_map` has whole tasks of a single pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["row_map"]


def row_map(row: Callable[..., Any], row_by_all: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function for flat tasks, which calls another for the row of every vertex of a range.

    All threads of a worker call it as ``function(worker, first, end, thread_max_degree, indptr, *args)``. For a vertex v with
    at most `thread_max_degree` edges (`edge_map.THREAD_MAX_DEGREE`), one thread calls ``row(v, edge, last, *args)``; its edges
    are those from `edge` up to `last`. For the others, one after another, all threads of the worker call
    ``row_by_all(worker, v, edge, last, *args)``, which splits the edges among them, and may use collective functions.

    Returns the sum, over the calls of this thread, of what they return: a number.
    """

    def map_rows(worker, first, end, thread_max_degree, indptr, *args):  # type: ignore[no-untyped-def]
        total = 0
        any_high = False
        for v in worker.split(range(first, end)):
            edge = indptr[v]
            last = indptr[v + 1]
            if last - edge > thread_max_degree:
                any_high = True
            else:
                total += row(v, edge, last, *args)
        if worker.any(any_high):
            for v in range(first, end):
                edge = indptr[v]
                last = indptr[v + 1]
                if last - edge > thread_max_degree:
                    total += row_by_all(worker, v, edge, last, *args)
        return total

    return map_rows
