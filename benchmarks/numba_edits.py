"""Batches of edges into and out of an undirected graph in Numba with ``prange``, for `dynamic_graph.py`.

Rows have room to grow, as those of `atos_py.DynamicGraph`. Numba has no atomics on the CPU, so each of T threads owns every
T-th vertex, and looks at all edges of a batch for those that begin at one of its own.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

parallel = numba.njit(parallel=True, error_model="numpy")


@parallel
def list_rows(ends: Any, need: Any, rows: Any, count: Any) -> None:
    """Count the edges of a batch that begin at each vertex, and list the vertices of each thread."""
    threads = len(count)
    for t in numba.prange(threads):
        found = 0
        for side in range(2):
            for k in range(ends.shape[1]):
                u = ends[side, k]
                if u % threads == t and (side == 0 or u != ends[0, k]):  # a loop has one direction
                    if need[u] == 0:
                        rows[t, found] = u
                        found += 1
                    need[u] += 1
        count[t] = found


@parallel
def insert(ends: Any, begin: Any, size: Any, room: Any, stored: Any, end: int, need: Any, rows: Any, count: Any) -> int:
    """Insert a batch of edges in both directions; return how much is stored then."""
    threads = len(count)
    first = np.zeros(threads + 1, np.int64)
    for t in numba.prange(threads):
        total = 0
        for k in range(count[t]):
            u = rows[t, k]
            if size[u] + need[u] > room[u]:
                total += 2 * (size[u] + need[u])
        first[t + 1] = total
    for t in range(threads):
        first[t + 1] += first[t] if t else end
    first[0] = end
    for t in numba.prange(threads):
        place = first[t]
        for k in range(count[t]):
            u = rows[t, k]
            if size[u] + need[u] > room[u]:
                room[u] = 2 * (size[u] + need[u])
                stored[place : place + size[u]] = stored[begin[u] : begin[u] + size[u]]
                begin[u] = place
                place += room[u]
            need[u] = 0
        for side in range(2):
            for k in range(ends.shape[1]):
                u = ends[side, k]
                if u % threads == t and (side == 0 or u != ends[0, k]):  # a loop has one direction
                    stored[begin[u] + size[u]] = ends[1 - side, k]
                    size[u] += 1
    return int(first[threads])


@parallel
def delete(
    ends: Any, begin: Any, size: Any, stored: Any, need: Any, place: Any, rows: Any, count: Any, gone: Any, mark: Any
) -> None:
    """Delete a batch of edges in both directions, all copies of each."""
    threads = len(count)
    for t in numba.prange(threads):
        total = 0
        for k in range(count[t]):
            u = rows[t, k]
            place[u] = total
            total += need[u]
        for side in range(2):
            for k in range(ends.shape[1]):
                u = ends[side, k]
                if u % threads == t and (side == 0 or u != ends[0, k]):  # a loop has one direction
                    gone[t, place[u]] = ends[1 - side, k]
                    place[u] += 1
        for k in range(count[t]):
            u = rows[t, k]
            for i in range(place[u] - need[u], place[u]):
                mark[t, gone[t, i]] = k
            left = begin[u]
            for i in range(begin[u], begin[u] + size[u]):
                if mark[t, stored[i]] != k:
                    stored[left] = stored[i]
                    left += 1
            size[u] = left - begin[u]
            need[u] = 0
        for k in range(total):
            mark[t, gone[t, k]] = -1


class NumbaEdits:
    """An undirected graph on the host, with room for so many batches of so many edges."""

    def __init__(self, graph: Any, edges: int, batches: int) -> None:
        n, threads = graph.num_vertices, numba.get_num_threads()
        indptr, indices = graph.indptr.to_numpy().astype(np.int64), graph.indices.to_numpy()
        self.begin, self.size = indptr[:-1].copy(), np.diff(indptr)
        self.room = self.size.copy()
        self.stored, self.end = np.zeros(8 * (indices.size + edges * batches), np.uint32), indices.size
        self.stored[: self.end] = indices
        self.need, self.place = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self.rows, self.gone = (np.zeros((threads, 2 * edges), np.uint32) for _ in range(2))
        self.count, self.mark = np.zeros(threads, np.int64), np.full((threads, n), -1, np.int64)

    def insert(self, ends: Any) -> None:
        """Do what `DynamicGraph.insert_edges` does."""
        list_rows(ends, self.need, self.rows, self.count)
        arrays = self.begin, self.size, self.room, self.stored
        self.end = insert(ends, *arrays, self.end, self.need, self.rows, self.count)

    def delete(self, ends: Any) -> None:
        """Do what `DynamicGraph.delete_edges` does."""
        list_rows(ends, self.need, self.rows, self.count)
        arrays = self.begin, self.size, self.stored, self.need, self.place
        delete(ends, *arrays, self.rows, self.count, self.gone, self.mark)

    def check(self, graph: Any) -> None:
        """Compare the edges with those of a graph."""
        rows = np.repeat(np.arange(len(self.size), dtype=np.int64), self.size) << 32
        places = np.arange(self.size.sum()) - np.repeat(np.cumsum(self.size) - self.size, self.size)
        own = rows | self.stored[np.repeat(self.begin, self.size) + places]
        indptr = graph.indptr.to_numpy().astype(np.int64)
        other = np.repeat(np.arange(indptr.size - 1, dtype=np.int64), np.diff(indptr)) << 32 | graph.indices.to_numpy()
        if not np.array_equal(np.sort(own), np.sort(other)):
            raise SystemExit("the edges differ")
