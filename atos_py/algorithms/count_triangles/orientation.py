"""Orientation by degree: each undirected edge belongs to the end that comes first, the one of smaller degree.

Ties go by the id. The rows of a graph are divided: each has its later neighbors in front, in ascending order, and the earlier
ones at its end, in any order, loops and parallel edges left out. No row has more later neighbors than the square root of twice
the number of edges, however many edges a hub has, for each of them has at least as many edges.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...arrays.array import Array
from ...compile.task import task
from ...operators.ranges import split_range

__all__ = ["SCRATCH_BYTES", "Oriented", "comes_before", "is_in_row", "orient", "range_size"]

_VERTICES_PER_ITEM, _OF_SPARSE, _SPARSE = 64, 1024, 8  # of graphs of a mean degree below the last, whose rows are for threads
SCRATCH_BYTES = {"thread": 8, "warp": 8 * 32, "cta": 8 * 1024}  # of `orient`: a number of each thread


class Oriented(NamedTuple):
    """The divided rows of a graph, each in the place that it has in the graph."""

    indptr: Array
    indices: Array
    length: Array  # later neighbors of each vertex
    degree: Array  # neighbors


def range_size(num_edges: int, n: int) -> int:
    """Return how many vertices a range item has: few where rows are long, enough for all threads of a worker elsewhere."""
    return _OF_SPARSE if num_edges < _SPARSE * n else _VERTICES_PER_ITEM


def comes_before(v, u, indptr):  # type: ignore[no-untyped-def]
    """Whether v is before u in the order by degree."""
    difference = indptr[u + 1] - indptr[u] - indptr[v + 1] + indptr[v]
    return difference > 0 or (difference == 0 and v < u)


def divide_edges(v, first, end, later, earlier, graph, rows):  # type: ignore[no-untyped-def]
    """Write the neighbors of v by edges `first` to `end`: those after v from `later` on, the others down from `earlier`.

    With a negative `later`, nothing is written. Returns how many there are of the first kind, and 2**32 times how many of the
    second, and whether they are out of order.
    """
    begin, last, unsorted = later, earlier, False
    previous = np.int64(graph.indices[first - 1]) if first > graph.indptr[v] else np.int64(-1)
    for edge in range(first, end):
        u = np.int64(graph.indices[edge])
        unsorted |= u < previous
        if u != previous and u != v:
            if comes_before(v, u, graph.indptr):
                if begin >= 0:
                    rows.indices[later] = u
                later += 1
            else:
                earlier -= 1
                if begin >= 0:
                    rows.indices[earlier] = u
        previous = u
    return later - begin + ((last - earlier) << 32), unsorted


def write_lengths(v, numbers, rows):  # type: ignore[no-untyped-def]
    """Write down the numbers of neighbors that `divide_edges` returned for a whole row."""
    rows.length[v] = numbers & 0xFFFF_FFFF
    rows.degree[v] = (numbers & 0xFFFF_FFFF) + (numbers >> 32)


@task(max_registers={"cta": (64, None)})
def orient(worker, item, size, graph, rows, thread_max_degree, disorder):  # type: ignore[no-untyped-def]
    """Divide the rows of a range of vertices; note in `disorder` whether neighbors are not in ascending order."""
    n = graph.indptr.size - 1
    first = item * size
    any_high, disordered = False, False
    for v in split_range(worker, item, n, size):
        begin, end = np.int64(graph.indptr[v]), np.int64(graph.indptr[v + 1])
        if end - begin > thread_max_degree:
            any_high = True
        else:
            numbers, unsorted = divide_edges(v, begin, end, begin, end, graph, rows)
            write_lengths(v, numbers, rows)
            disordered |= unsorted
    if worker.any(any_high):
        before = worker.scratch(np.int64)
        for v in range(first, min(first + size, n)):
            begin, end = np.int64(graph.indptr[v]), np.int64(graph.indptr[v + 1])
            if end - begin > thread_max_degree:  # each thread has a part of the row, so that the order stays
                part = (end - begin + worker.size - 1) // worker.size
                left = min(begin + worker.rank * part, end)
                right = min(left + part, end)
                numbers, unsorted = divide_edges(v, left, right, np.int64(-1), end, graph, rows)
                disordered |= unsorted
                before[worker.rank] = numbers
                worker.sync()
                skip = np.int64(0)
                for rank in range(worker.rank):
                    skip += before[rank]
                divide_edges(v, left, right, begin + (skip & 0xFFFF_FFFF), end - (skip >> 32), graph, rows)
                numbers = worker.sum(numbers)
                if worker.rank == 0:
                    write_lengths(v, numbers, rows)
                worker.sync()  # before the next row overwrites the numbers
    if worker.any(disordered) and worker.rank == 0:
        disorder[0] = 1


def is_in_row(v, u, rows):  # type: ignore[no-untyped-def]
    """Whether u is in the oriented row of v, by binary search."""
    low = np.int64(rows.indptr[v])
    end = low + rows.length[v]
    high = end
    while low < high:
        middle = (low + high) >> 1
        if rows.indices[middle] < u:
            low = middle + 1
        else:
            high = middle
    return low < end and rows.indices[low] == u
