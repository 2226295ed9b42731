"""Peeling, level by level in one launch: of what is left, a vertex with no more edges than the level is removed.

The launch proceeds in rounds (`barrier=True`). The first round of a level *scans* what is left: a vertex whose degree has come
down to the level is removed, which lowers the degrees of its neighbors. One of those that comes down to the level is removed
in turn, in the same round: by the same thread if it has few edges, otherwise by threads of the same worker, from a short list
in its scratch memory. So paths, trees and small avalanches do not take a round for each step. What has very many edges, or no
place in that list, is removed in the next round, its edges spread over workers; so is what follows after a worker has removed
many rows, since the others wait for it. Once a round has pushed nothing, the level is over, and the function between rounds
opens the next one: one level up, or, after a level without vertices, the smallest degree that its scan has found. Scans read a
list of the vertices left, which is written anew whenever the level has doubled. So they read a few times the sum over the
vertices of their last levels in all, which is at most that of the degrees.

Two may find at the same time that a vertex has to go: a scan, and whoever lowered its degree to the level. An atomic exchange
of the degree says who removes it. A thread that removes a short row alone uses one compare-and-swap instead, where it finds one
edge more than the level. That fails only if another thread has removed the vertex or is about to. Degrees that are lowered
below the level meanwhile do no harm: nothing reads how far.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays.array import Array, empty
from ..arrays.memory import copy_bytes
from ..arrays.record import begin_record, new_record, places
from ..compile.atomics import atomic_add, atomic_cas, atomic_exch, atomic_min
from ..compile.task import task
from .compaction import compaction

__all__ = [
    "LAST_LEVEL",
    "REMOVED",
    "SCRATCH",
    "Peeling",
    "begin_peeling",
    "list_ranges",
    "open_next_level",
    "peeling_arrays",
    "remove_row",
    "scan",
]

LAST_LEVEL = 1 << 62  # beyond all degrees
REMOVED = -(1 << 29)  # the degree of a vertex that is removed, less the edges that were removed later
_LEAST_PLACES, _MOST_PLACES, _MANY_RANGES = 64, 4096, 256  # of a range, and ranges of a list
_WARP = 32
_ROOM, _MOST_EDGES = 128, 1024  # vertices of a worker's list, and edges of one that it removes by itself
_MOST_ROWS = 128  # that a worker removes from its list before it pushes what follows
_DEPTH = 16  # of a thread's stack

#: Bytes of scratch of a worker: for two lists of vertices, their lengths, and in what is left a stack for each thread. Not
#: less than `sum_of_lower_ranks` takes.
SCRATCH = {"thread": 4 * 34, "warp": 4 * (258 + 32 * _DEPTH), "cta": 4 * (258 + 256 * _DEPTH)}

_LINE = 16  # words of a line of memory, of which what changes in a scan has its own


class PeelingState(NamedTuple):
    """Words of the state of a launch (`arrays.record`)."""

    found: int = _LINE  # 1 if the scan of this level has found vertices of it
    lowest: int = _LINE  # the smallest degree above the level that the scan has found
    written: int = _LINE  # vertices appended to the other list
    source: int = 1  # where the list that is read begins
    length: int = 1  # of that list
    size: int = 1  # places of a range of that list
    writes: int = 1  # 1 if the scan writes the other list
    listed: int = 1  # the level at which the list was written


AT = places(PeelingState)


class Peeling(NamedTuple):
    """Arrays and numbers that all tasks of a launch share."""

    degree: Array  # to vertices that are left, loops aside; negative if the vertex itself is removed
    removed_at: Array  # the level at which each vertex was removed
    lists: Array  # two, of which one is read and the other one written
    state: Array
    thread_max_degree: int  # edges up to which one thread removes a vertex


def is_removed_now(v, level, p):  # type: ignore[no-untyped-def]
    """Remove a vertex; return whether nobody else has."""
    if atomic_exch(p.degree, v, REMOVED) < 0:  # race: who reads the degree looks again before it removes the vertex
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
    return (
        degree > level
        and atomic_add(p.degree, u, -1) == level + 1  # race: who has read a higher degree does no more than look again
        and is_removed_now(u, level, p)
    )


def room_of_lists(scratch):  # type: ignore[no-untyped-def]
    """Return the places of each of the worker's two lists."""
    return min((scratch.size - 2) >> 2, _ROOM)


def put(worker, v, which, room, graph, scratch):  # type: ignore[no-untyped-def]
    """Append a removed vertex, whose edges are still there, to a list of the worker that has `room` for vertices.

    It is pushed instead if it has very many edges, or there is no room.
    """
    place = room
    if room > 0 and graph.indptr[v + 1] - graph.indptr[v] <= _MOST_EDGES:
        place = min(atomic_add(scratch, which, 1), room)
    if place < room:
        scratch[2 + which * room_of_lists(scratch) + place] = v
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
    put(worker, u, 0, room_of_lists(scratch), graph, scratch)
    return follow, depth


def remove_by_thread(worker, v, depth, level, graph, p, scratch):  # type: ignore[no-untyped-def]
    """Remove the edges of a vertex if they are few; return a neighbor that follows, or -1, and the depth of the stack.

    Two edges at a time, so that a GPU asks for the degrees of both neighbors at once. A vertex with more edges is listed.
    """
    follow = np.int64(-1)
    edge, end = graph.indptr[v], graph.indptr[v + 1]
    if end - edge > p.thread_max_degree:
        put(worker, v, 0, room_of_lists(scratch), graph, scratch)
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


def lowered(u, degree, level, p):  # type: ignore[no-untyped-def]
    """Lower the degree of a vertex, which was read before, if it is above the level; return what it was, or the level."""
    return np.int64(atomic_add(p.degree, u, -1)) if degree > level else np.int64(level)


def remove_edges(worker, edge, step, end, level, which, room, graph, p, scratch):  # type: ignore[no-untyped-def]
    """Remove the edges of a row from `edge` on, `step` apart, and list the neighbors that have to go.

    Four at a time, so that a GPU has their loads and atomic operations under way at once.
    """
    while edge < end:
        second, third, fourth, last = edge + step, edge + 2 * step, edge + 3 * step, end - 1
        a, b = graph.indices[edge], graph.indices[min(second, last)]
        c, d = graph.indices[min(third, last)], graph.indices[min(fourth, last)]
        degree_a, degree_b, degree_c, degree_d = p.degree[a], p.degree[b], p.degree[c], p.degree[d]
        before_a = lowered(a, degree_a, level, p)
        before_b = lowered(b, degree_b if second < end else level, level, p)
        before_c = lowered(c, degree_c if third < end else level, level, p)
        before_d = lowered(d, degree_d if fourth < end else level, level, p)
        if before_a == level + 1 and is_removed_now(a, level, p):
            put(worker, a, which, room, graph, scratch)
        if before_b == level + 1 and is_removed_now(b, level, p):
            put(worker, b, which, room, graph, scratch)
        if before_c == level + 1 and is_removed_now(c, level, p):
            put(worker, c, which, room, graph, scratch)
        if before_d == level + 1 and is_removed_now(d, level, p):
            put(worker, d, which, room, graph, scratch)
        edge += 4 * step


def remove_listed(worker, level, graph, p, scratch):  # type: ignore[no-untyped-def]
    """Remove the edges of what is in the worker's first list, then of what that has listed, and so on; collective.

    Each row is for a team of threads: the worker, or a part of it that is at least a warp, if there are several rows. After
    many rows the worker pushes what follows, since others may wait for it at the barrier.
    """
    room, which, rows = room_of_lists(scratch), 0, 0
    worker.sync()
    count = min(scratch[0], room)
    while count > 0:
        rows += count
        teams = 1
        while 2 * teams <= count and 2 * teams * _WARP <= worker.size:
            teams *= 2
        size = worker.size // teams
        for k in range(worker.rank // size, count, teams):
            v = scratch[2 + which * room + k]
            first, end = graph.indptr[v] + worker.rank % size, graph.indptr[v + 1]
            remove_edges(worker, first, size, end, level, 1 - which, room if rows < _MOST_ROWS else 0, graph, p, scratch)
        worker.sync()
        count = min(scratch[1 - which], room)
        if worker.rank == 0:
            scratch[which] = 0
        which = 1 - which
        worker.sync()


def look(place, size, last, level, p):  # type: ignore[no-untyped-def]
    """Look at the vertices of four places of the list, `size` apart, as far as they come before `last`.

    Return a bit for each that has to go, and the smallest degree above the level. The four loads are under way at once.
    """
    end = last - 1
    a, b = p.lists[place], p.lists[min(place + size, end)]
    c, d = p.lists[min(place + 2 * size, end)], p.lists[min(place + 3 * size, end)]
    degree_a, degree_b = np.int64(p.degree[a]), np.int64(p.degree[b])
    degree_c, degree_d = np.int64(p.degree[c]), np.int64(p.degree[d])
    goes = np.int64(0 <= degree_a <= level)
    goes |= np.int64(0 <= degree_b <= level and place + size < last) << 1
    goes |= np.int64(0 <= degree_c <= level and place + 2 * size < last) << 2
    goes |= np.int64(0 <= degree_d <= level and place + 3 * size < last) << 3
    lowest = degree_a if degree_a > level else LAST_LEVEL
    if degree_b > level:
        lowest = min(lowest, degree_b)
    if degree_c > level:
        lowest = min(lowest, degree_c)
    if degree_d > level:
        lowest = min(lowest, degree_d)
    return goes, lowest


def is_left(v, level, p):  # type: ignore[no-untyped-def]
    """Whether a vertex stays at this level, as far as one sees."""
    return p.degree[v] > level


keep_those_left = compaction(is_left)


@task(max_registers={"cta": (64, None)})
def scan(worker, item, graph, p):  # type: ignore[no-untyped-def]
    """Remove the vertices in a range of the list that have come down to the level, and those that follow."""
    scratch, state, level = worker.scratch(np.uint32), p.state, worker.mode
    first = state[AT.source] + item * state[AT.size]
    last = min(first + state[AT.size], state[AT.source] + state[AT.length])
    if state[AT.writes] == 1:
        keep_those_left(worker, first, last, p.lists, p.degree.size - state[AT.source], state, AT.written, level, p)
        worker.sync()  # all have read the scratch memory
    if worker.rank == 0:
        scratch[0], scratch[1] = 0, 0
    worker.sync()
    # One step for each turn: threads of a warp whose paths are short begin with their next vertex meanwhile.
    lowest, found = LAST_LEVEL, False
    place, looked_at, goes, follow, depth = first + worker.rank, np.int64(0), np.int64(0), np.int64(-1), 0
    while place < last or goes != 0 or follow >= 0:
        if follow < 0 and goes == 0:
            goes, least = look(place, worker.size, last, level, p)
            lowest, looked_at = min(lowest, least), place
            place += 4 * worker.size
        if follow < 0 and goes != 0:
            while goes & 1 == 0:
                goes >>= 1
                looked_at += worker.size
            v = p.lists[looked_at]
            goes &= -2
            if is_removed_now(v, level, p):
                found, follow = True, np.int64(v)
        if follow >= 0:
            follow, depth = remove_by_thread(worker, follow, depth, level, graph, p, scratch)
    remove_listed(worker, level, graph, p, scratch)
    lowest, found = worker.min(lowest), worker.any(found)
    if worker.rank == 0:
        if found:
            state[AT.found] = 1
        if lowest < state[AT.lowest]:
            atomic_min(state, AT.lowest, lowest)


def edges_of(v, graph, p):  # type: ignore[no-untyped-def]
    """Return the number of edges of a vertex, and the first."""
    first = np.int64(graph.indptr[v])
    return np.int64(graph.indptr[v + 1]) - first, first


@task(workload=edges_of)
def remove_row(worker, v, i, first, graph, p):  # type: ignore[no-untyped-def]
    """Remove edge i of a vertex; push the neighbor if it has to go in turn."""
    u = graph.indices[first + i]
    if comes_down(u, p.degree[u], worker.mode, p):
        worker.push(u, task=remove_row)


def places_of_range(count):  # type: ignore[no-untyped-def]
    """Return the places of a range of a list, so few that there are ranges for many workers."""
    return min(max(count // _MANY_RANGES, _LEAST_PLACES), _MOST_PLACES)


def open_next_level(worker, graph, p):  # type: ignore[no-untyped-def]
    """Between rounds: let the level go on, or open the next one that may have vertices, if there is one."""
    state, n, level = p.state, p.degree.size, worker.mode
    if worker.pending > 0:
        return
    lowest, writes, listed = state[AT.lowest], state[AT.writes], state[AT.listed]
    source, count, following = state[AT.source], state[AT.length], level + 1 if state[AT.found] else lowest
    if writes:
        source, count, listed = n - source, state[AT.written], level
    worker.sync()  # all threads have read the state
    if lowest != LAST_LEVEL:
        size = places_of_range(count)
        if worker.rank == 0:
            state[AT.found], state[AT.lowest], state[AT.written] = 0, LAST_LEVEL, 0
            state[AT.source], state[AT.length], state[AT.size], state[AT.listed] = source, count, size, listed
            state[AT.writes] = 1 if following >= 2 * listed else 0
        worker.set_mode(following)
        for k in worker.split((count + size - 1) // size):
            worker.push(k)


def begin_peeling(degrees: Array, p: Peeling) -> None:
    """Copy the degrees, which a launch lowers, and begin its state. The caller writes the ids of all vertices to the list."""
    n = degrees.size
    copy_bytes(degrees.device, p.degree.pointer, degrees.pointer, degrees.nbytes)
    begin_record(PeelingState, p.state, lowest=LAST_LEVEL, length=n, size=places_of_range(n))


def peeling_arrays(degrees: Array) -> tuple[Array, Array, Array]:
    """Return the arrays of a `Peeling`, but for its result: degrees, lists and state."""
    n, device = degrees.size, degrees.device
    lists = empty(2 * n, dtype=np.uint32, device=device)
    return empty(n, dtype=degrees.dtype, device=device), lists, new_record(PeelingState, device)


def list_ranges(n: int) -> range:
    """Return the items of the first round."""
    return range(-(-n // places_of_range(n)))
