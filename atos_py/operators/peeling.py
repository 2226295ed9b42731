"""Peeling, level by level in one launch: of what is left, a vertex with no more edges than the level is removed.

The launch proceeds in rounds (`barrier=True`). The first round of a level *scans* what is left: a vertex whose degree has come
down to the level is removed, which lowers the degrees of its neighbours. One of those that comes down to the level is removed
in turn: by the same thread if it has few edges, so that paths and trees do not take a round for each step, otherwise in the
next round, its edges spread over threads. Once a round has pushed nothing, the level is over, and the function between rounds
opens the next one: one level up, or, after a level without vertices, the smallest degree that its scan has found. Scans read a
list of the vertices left, which is written anew whenever the level has doubled. So they read a few times the sum over the
vertices of their last levels in all, which is at most that of the degrees.

Two may find at the same time that a vertex has to go: a scan, and whoever lowered its degree to the level. An atomic exchange
of the degree says who removes it. Degrees that are lowered below the level meanwhile do no harm: nothing reads how far.

Items are mixed items (`ranges`), but of places in the list: n + k stands for range k, and `places_of_range` says of which size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays.array import Array, asarray, empty
from ..compile.atomics import atomic_add, atomic_exch, atomic_min
from ..compile.task import task
from ..core.devices import Device
from .edge_map import THREAD_MAX_DEGREE

__all__ = ["LAST_LEVEL", "REMOVED", "Peeling", "list_ranges", "make_peeling", "open_next_level", "peel"]

LAST_LEVEL = 1 << 62  # beyond all degrees
REMOVED = -(1 << 29)  # the degree of a vertex that is removed, less the edges that were removed later
_CHUNK = 16  # places of the list that one thread scans, with one atomic for what it appends
_MOST_PLACES, _MANY_RANGES = 4096, 256  # of a range, and ranges of a list

# Words of the state of a launch. Those that change in a scan are in lines of memory of their own.
FOUND = 0  # 1 if the scan of this level has found vertices of it
LOWEST = 16  # the smallest degree above the level that the scan has found
WRITTEN = 32  # vertices appended to the other list
SOURCE, COUNT, SIZE = 48, 49, 50  # the list that is read: where it begins, its length, and places of a range
WRITES = 51  # 1 if the scan writes the other list
LISTED = 52  # the level at which the list was written


class Peeling(NamedTuple):
    """Arrays and numbers that all tasks of a launch share."""

    degree: Array  # to vertices that are left, loops aside; negative if the vertex itself is removed
    removed_at: Array  # the level at which each vertex was removed
    lists: Array  # two, of which one is read and the other one written
    state: Array
    first: int  # the level that mode 0 stands for
    last: int  # the level after which the launch ends
    thread_max_degree: int  # edges up to which one thread removes a vertex


def is_removed_now(v, level, p):  # type: ignore[no-untyped-def]
    """Remove a vertex; return whether nobody else has."""
    if atomic_exch(p.degree, v, REMOVED) < 0:
        return False
    p.removed_at[v] = level
    return True


def comes_down(u, level, p):  # type: ignore[no-untyped-def]
    """Lower the degree of a vertex that is left; return whether it has to go now, and this thread has removed it."""
    return p.degree[u] > level and atomic_add(p.degree, u, -1) == level + 1 and is_removed_now(u, level, p)


def remove_edges(worker, v, level, graph, p):  # type: ignore[no-untyped-def]
    """Remove the edges of a vertex, then those of one that has to go in turn, and so on, by one thread; push all others."""
    follow = np.int64(v)
    if graph.indptr[v + 1] - graph.indptr[v] > p.thread_max_degree:
        worker.push(v)
        follow = np.int64(-1)
    while follow >= 0:
        edge, end = graph.indptr[follow], graph.indptr[follow + 1]
        follow = np.int64(-1)
        while edge < end:
            u = graph.indices[edge]
            if comes_down(u, level, p):
                if follow < 0 and graph.indptr[u + 1] - graph.indptr[u] <= p.thread_max_degree:
                    follow = np.int64(u)
                else:
                    worker.push(u)
            edge += 1


def edges_or_chunks(item, graph, p):  # type: ignore[no-untyped-def]
    """Return the number of edges of a vertex, or of chunks of a range, and where they begin."""
    n = graph.indptr.size - 1
    if item < n:
        first = np.int64(graph.indptr[item])
        return np.int64(graph.indptr[item + 1]) - first, first
    size = p.state[SIZE]
    first = (item - n) * size
    return (min(size, p.state[COUNT] - first) + _CHUNK - 1) // _CHUNK, first


@task(workload=edges_or_chunks)
def peel(worker, item, i, first, graph, p):  # type: ignore[no-untyped-def]
    """Remove edge i of a vertex, or scan chunk i of a range."""
    level, n = p.first + worker.mode, graph.indptr.size - 1
    if item < n:
        u = graph.indices[first + i]
        if comes_down(u, level, p):
            remove_edges(worker, u, level, graph, p)
        return
    state, begin = p.state, p.state[SOURCE] + first + i * _CHUNK
    left, lowest, survivors = 0, LAST_LEVEL, 0  # a bit for each place
    for k in range(min(_CHUNK, state[COUNT] - first - i * _CHUNK)):
        v = p.lists[begin + k]
        degree = p.degree[v]
        if degree > level:
            survivors |= 1 << k
            left += 1
            lowest = min(lowest, degree)
        elif degree >= 0 and is_removed_now(v, level, p):
            if state[FOUND] == 0:
                state[FOUND] = 1
            remove_edges(worker, v, level, graph, p)
    if left > 0:
        atomic_min(state, LOWEST, lowest)
        if state[WRITES] == 1:
            at = n - state[SOURCE] + atomic_add(state, WRITTEN, left)
            for k in range(_CHUNK):
                if survivors >> k & 1:
                    p.lists[at] = p.lists[begin + k]
                    at += 1


def places_of_range(count):  # type: ignore[no-untyped-def]
    """Return the places of a range of a list: a multiple of a chunk, so few that there are ranges for many workers."""
    return min(max(count // _MANY_RANGES // _CHUNK, 1) * _CHUNK, _MOST_PLACES)


def open_next_level(worker, graph, p):  # type: ignore[no-untyped-def]
    """Between rounds: let the level go on, or open the next one that may have vertices, if there is one."""
    state, n, level = p.state, graph.indptr.size - 1, p.first + worker.mode
    if worker.pending > 0:
        return
    lowest, writes, listed = state[LOWEST], state[WRITES], state[LISTED]
    source, count, following = state[SOURCE], state[COUNT], level + 1 if state[FOUND] else lowest
    if writes:
        source, count, listed = n - source, state[WRITTEN], level
    worker.sync()  # all threads have read the state
    if lowest != LAST_LEVEL and following <= p.last:
        size = places_of_range(count)
        if worker.rank == 0:
            state[FOUND], state[LOWEST], state[WRITTEN] = 0, LAST_LEVEL, 0
            state[SOURCE], state[COUNT], state[SIZE], state[LISTED] = source, count, size, listed
            state[WRITES] = 1 if following >= 2 * listed else 0
        worker.set_mode(following - p.first)
        for k in worker.split((count + size - 1) // size):
            worker.push(n + k)


def make_peeling(n: int, removed_at: Array, first: int, last: int, dtype: type[np.signedinteger], device: Device) -> Peeling:
    """Return what a launch shares; the caller writes the degrees, of `dtype`, and the ids of all vertices to the list."""
    begin = np.zeros(LISTED + 1, np.int64)
    begin[[LOWEST, COUNT, SIZE]] = LAST_LEVEL, n, places_of_range(n)
    degree, lists = empty(n, dtype=dtype, device=device), empty(2 * n, dtype=np.uint32, device=device)
    return Peeling(degree, removed_at, lists, asarray(begin, device=device), first, last, THREAD_MAX_DEGREE[device.kind])


def list_ranges(n: int) -> NDArray[np.int64]:
    """Return the items of the first round."""
    return n + np.arange(-(-n // places_of_range(n)))
