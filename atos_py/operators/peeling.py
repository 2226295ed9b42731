"""Peeling, level by level in one launch: of what is left, a vertex with no more edges than the level is removed.

The launch proceeds in rounds (`barrier=True`). The first round of a level *scans* what is left: a vertex whose degree has come
down to the level is removed, which lowers the degrees of its neighbours. One of those that comes down to the level is removed
in turn, in the same round: by the same thread if it has few edges, otherwise by all threads of the worker, from a short list in
its scratch memory. So paths, trees and small avalanches do not take a round for each step. What has very many edges, or no
place in that list, is removed in the next round, its edges spread over workers. Once a round has pushed nothing, the level is
over, and the function between rounds opens the next one: one level up, or, after a level without vertices, the smallest degree
that its scan has found. Scans read a list of the vertices left, which is written anew whenever the level has doubled. So they
read a few times the sum over the vertices of their last levels in all, which is at most that of the degrees.

Two may find at the same time that a vertex has to go: a scan, and whoever lowered its degree to the level. An atomic exchange
of the degree says who removes it. Whoever finds one edge more than the level removes the vertex by one compare-and-swap, which
fails only if another has removed it or is about to. Degrees that are lowered below the level meanwhile do no harm: nothing
reads how far.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays.array import Array, asarray, empty
from ..compile.atomics import atomic_add, atomic_cas, atomic_exch, atomic_min
from ..compile.task import task
from ..core.devices import Device
from .compaction import append, share_of_thread
from .edge_map import THREAD_MAX_DEGREE

__all__ = [
    "LAST_LEVEL",
    "REMOVED",
    "SCRATCH",
    "Peeling",
    "list_ranges",
    "make_peeling",
    "open_next_level",
    "remove_row",
    "scan",
]

LAST_LEVEL = 1 << 62  # beyond all degrees
REMOVED = -(1 << 29)  # the degree of a vertex that is removed, less the edges that were removed later
_PLACES = 16  # of the list, which one thread looks at before it removes what it has found
_LEAST_PLACES, _MOST_PLACES, _MANY_RANGES = 64, 4096, 256  # of a range, and ranges of a list
_WARP = 32
_ROOM, _MOST_EDGES = 64, 1024  # vertices of a worker's list, and edges of one that it removes by itself
_DEPTH = 16  # of a thread's stack

#: Bytes of scratch of a worker: for two lists of vertices, their lengths, and in what is left a stack for each thread. Not
#: less than `sum_of_lower_ranks` takes.
SCRATCH = {"thread": 4 * 34, "warp": 4 * (130 + 32 * _DEPTH), "cta": 4 * (130 + 256 * _DEPTH)}

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


def comes_down(u, degree, level, p):  # type: ignore[no-untyped-def]
    """Lower the degree of a vertex, which was read before; return whether it has to go now, and this thread has removed it."""
    if degree == level + 1:
        if atomic_cas(p.degree, u, degree, REMOVED) != degree:
            return False
        p.removed_at[u] = level
        return True
    return degree > level and atomic_add(p.degree, u, -1) == level + 1 and is_removed_now(u, level, p)


def room_of_lists(scratch):  # type: ignore[no-untyped-def]
    """Return the places of each of the worker's two lists."""
    return min((scratch.size - 2) >> 2, _ROOM)


def put(worker, v, which, graph, scratch):  # type: ignore[no-untyped-def]
    """Append a removed vertex, whose edges are still there, to a list of the worker.

    It is pushed instead if it has very many edges, or there is no room.
    """
    room = room_of_lists(scratch)
    place = room
    if graph.indptr[v + 1] - graph.indptr[v] <= _MOST_EDGES:
        place = min(atomic_add(scratch, which, 1), room)
    if place < room:
        scratch[2 + which * room + place] = v
    else:
        worker.push(v, task=remove_row)


def keep(worker, u, follow, depth, graph, scratch):  # type: ignore[no-untyped-def]
    """Note a removed vertex: as the one that follows, on the stack of the thread, or in a list if that is full."""
    if follow < 0:
        return np.int64(u), depth
    base = 2 + 2 * room_of_lists(scratch) + worker.rank
    if base + depth * worker.size < scratch.size:
        scratch[base + depth * worker.size] = u
        return follow, depth + 1
    put(worker, u, 0, graph, scratch)
    return follow, depth


def remove_by_thread(worker, v, depth, level, graph, p, scratch):  # type: ignore[no-untyped-def]
    """Remove the edges of a vertex if they are few; return a neighbour that follows, or -1, and the depth of the stack.

    Two edges at a time, so that a GPU asks for the degrees of both neighbours at once. A vertex with more edges is listed.
    """
    follow = np.int64(-1)
    edge, end = graph.indptr[v], graph.indptr[v + 1]
    if end - edge > p.thread_max_degree:
        put(worker, v, 0, graph, scratch)
        edge = end
    while edge < end:
        other = min(edge + 1, end - 1)
        a, b = graph.indices[edge], graph.indices[other]
        degree_a, degree_b = p.degree[a], p.degree[b]
        if comes_down(a, degree_a, level, p):
            follow, depth = keep(worker, a, follow, depth, graph, scratch)
        if other != edge and comes_down(b, degree_b, level, p):
            follow, depth = keep(worker, b, follow, depth, graph, scratch)
        edge += 2
    if follow < 0 and depth > 0:
        depth -= 1
        follow = np.int64(scratch[2 + 2 * room_of_lists(scratch) + worker.rank + depth * worker.size])
    return follow, depth


def remove_listed(worker, level, graph, p, scratch):  # type: ignore[no-untyped-def]
    """Remove the edges of what is in the worker's first list, then of what that has listed, and so on; collective.

    Edge j of row k is for thread j + 32 k, modulo their number, so that warps share short rows.
    """
    room = room_of_lists(scratch)
    which = 0
    worker.sync()
    count = min(scratch[0], room)
    while count > 0:
        for k in range(count):
            v = scratch[2 + which * room + k]
            edge = graph.indptr[v] + (worker.rank + _WARP * k) % worker.size
            while edge < graph.indptr[v + 1]:
                u = graph.indices[edge]
                if comes_down(u, p.degree[u], level, p):
                    put(worker, u, 1 - which, graph, scratch)
                edge += worker.size
        worker.sync()
        count = min(scratch[1 - which], room)
        if worker.rank == 0:
            scratch[which] = 0
        which = 1 - which
        worker.sync()


@task
def scan(worker, item, graph, p):  # type: ignore[no-untyped-def]
    """Remove the vertices in a range of the list that have come down to the level, and those that follow."""
    scratch, state, level = worker.scratch(np.uint32), p.state, p.first + worker.mode
    first = state[SOURCE] + item * state[SIZE]
    last = min(first + state[SIZE], state[SOURCE] + state[COUNT])
    lowest, found = LAST_LEVEL, False
    for base in range(first, last, _PLACES * worker.size):
        begin, end = share_of_thread(worker, base, last, _PLACES)
        goes, survivors = 0, 0  # a bit for each place
        for place in range(begin, end):
            degree = p.degree[p.lists[place]]
            if degree > level:
                survivors |= 1 << (place - begin)
                lowest = min(lowest, degree)
            elif degree >= 0:
                goes |= 1 << (place - begin)
        if state[WRITES] == 1:
            append(worker, survivors, begin, p.lists, p.degree.size - state[SOURCE], state, WRITTEN)
        if worker.any(goes != 0):
            if worker.rank == 0:
                scratch[0], scratch[1] = 0, 0
            worker.sync()
            # One step for each turn: threads of a warp whose paths are short begin with their next vertex meanwhile.
            place, follow, depth = begin, np.int64(-1), 0
            while goes != 0 or follow >= 0:
                if follow < 0:
                    while goes & 1 == 0:
                        goes >>= 1
                        place += 1
                    v = p.lists[place]
                    goes &= -2
                    if is_removed_now(v, level, p):
                        found, follow = True, np.int64(v)
                if follow >= 0:
                    follow, depth = remove_by_thread(worker, follow, depth, level, graph, p, scratch)
            remove_listed(worker, level, graph, p, scratch)
    lowest, found = worker.min(lowest), worker.any(found)
    if worker.rank == 0:
        if found:
            state[FOUND] = 1
        if lowest < state[LOWEST]:
            atomic_min(state, LOWEST, lowest)


def edges_of(v, graph, p):  # type: ignore[no-untyped-def]
    """Return the number of edges of a vertex, and the first."""
    first = np.int64(graph.indptr[v])
    return np.int64(graph.indptr[v + 1]) - first, first


@task(workload=edges_of)
def remove_row(worker, v, i, first, graph, p):  # type: ignore[no-untyped-def]
    """Remove edge i of a vertex; push the neighbour if it has to go in turn."""
    u = graph.indices[first + i]
    if comes_down(u, p.degree[u], p.first + worker.mode, p):
        worker.push(u, task=remove_row)


def places_of_range(count):  # type: ignore[no-untyped-def]
    """Return the places of a range of a list, so few that there are ranges for many workers."""
    return min(max(count // _MANY_RANGES, _LEAST_PLACES), _MOST_PLACES)


def open_next_level(worker, graph, p):  # type: ignore[no-untyped-def]
    """Between rounds: let the level go on, or open the next one that may have vertices, if there is one."""
    state, n, level = p.state, p.degree.size, p.first + worker.mode
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
            worker.push(k)


def make_peeling(n: int, removed_at: Array, first: int, last: int, dtype: type[np.signedinteger], device: Device) -> Peeling:
    """Return what a launch shares; the caller writes the degrees, of `dtype`, and the ids of all vertices to the list."""
    begin = np.zeros(LISTED + 1, np.int64)
    begin[[LOWEST, COUNT, SIZE]] = LAST_LEVEL, n, places_of_range(n)
    degree, lists = empty(n, dtype=dtype, device=device), empty(2 * n, dtype=np.uint32, device=device)
    return Peeling(degree, removed_at, lists, asarray(begin, device=device), first, last, THREAD_MAX_DEGREE[device.kind])


def list_ranges(n: int) -> NDArray[np.uint32]:
    """Return the items of the first round."""
    return np.arange(-(-n // places_of_range(n)), dtype=np.uint32)
