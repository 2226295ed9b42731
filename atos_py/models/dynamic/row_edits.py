"""Tasks that insert into rows of edges which have room to grow: an edge takes the next place of a row, which may move first.

A row that is full moves to the end of the arrays, where it gets twice the room, so that an edge is copied a constant number of
times on average. One launch checks edges, stores those that have room, and if rows are full moves them and stores the rest.
`row_deletion` has the other half.

Source: Busato, Green, Bombieri and Bader, "Hornet: an efficient data structure for dynamic sparse graphs and matrices on GPUs",
HPEC 2018, whose rows are blocks of 2^k edges too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...arrays.array import Array
from ...compile.atomics import atomic_add
from ...compile.task import task
from .row_lists import AT, EDGES_PER_ITEM, GROUP, MOST_ITEMS, append_all, by_length, every, pushing

__all__ = [
    "LEAST_ROOM",
    "STORED",
    "UNDER_WAY",
    "DynamicRows",
    "Insertion",
    "Packing",
    "RoomTable",
    "end_insertion_round",
    "insertion",
    "num_store_items",
    "pack_rows",
    "take_back",
]

LEAST_ROOM = 4  # of a row
UNDER_WAY = 4  # edges of a row that each thread reads before it goes on with them
STORED = -1  # among the places of edges
_AHEAD = 128  # edges for which a thread that works alone fetches what it needs, before it waits for the first one


class DynamicRows(NamedTuple):
    """The rows of a graph that changes, as tasks take them: the edges of vertex v are those from `start[v]` on.

    Attributes
    ----------
    start : Array
        The first edge of each vertex, int64.
    degree : Array
        How many edges each vertex has, int32.
    indices : Array
        Targets of the edges, uint32. Places that are in no row hold anything.
    weights : Array or None
        Weights of the edges.

    Examples
    --------
    >>> rows = atos.DynamicGraph(atos.Graph.from_edges([0, 0, 1], [1, 2, 2])).rows
    >>> first = rows.start[0]
    >>> rows.indices[first : first + rows.degree[0]]
    array([1, 2], dtype=uint32)
    """

    start: Array
    degree: Array
    indices: Array
    weights: Array | None


class RoomTable(NamedTuple):
    """The room of rows, and where new ones begin."""

    room: Any  # edges for which each row has room
    end: Any  # one element: the end of the last row
    capacity: Any  # of the arrays of edges


class Insertion(NamedTuple):
    """A batch of edges to insert."""

    sources: Any
    targets: Any
    weights: Any  # or None
    both: int  # 1 if each edge goes in both directions, and 0 otherwise
    most: int  # edges that there may be, in directions
    places: Any  # of each edge in its row, from 1; `STORED` if it is there, 0 if it has none yet. Then those of the reverses
    full: Any  # the list of the rows without room for all
    rows: DynamicRows
    table: RoomTable


class Packing(NamedTuple):
    """Rows, and where they are copied to."""

    rows: DynamicRows
    room: Any
    start: Any
    indices: Any
    weights: Any


@task
def check_insertion(worker, item, state, batch):  # type: ignore[no-untyped-def]
    """Count ends that are no vertices, and loops."""
    n, first = batch.rows.degree.size, np.int64(item) * EDGES_PER_ITEM
    loops, bad = 0, 0
    for k in worker.split(range(first, min(first + EDGES_PER_ITEM, batch.sources.size))):
        u, v = np.int64(batch.sources[k]), np.int64(batch.targets[k])
        bad += u >= n or v >= n
        loops += u == v
    loops, bad = worker.sum(loops), worker.sum(bad)
    if worker.rank == 0 and loops > 0:
        atomic_add(state, AT.found, loops)
    if worker.rank == 0 and bad > 0:
        atomic_add(state, AT.bad, bad)


def num_store_items(count):  # type: ignore[no-untyped-def]
    """Return how many items store a batch; for tasks and the host."""
    return min((count + EDGES_PER_ITEM - 1) // EDGES_PER_ITEM, MOST_ITEMS)


def fetch_place(u, batch):  # type: ignore[no-untyped-def]
    """Read what `take_place` does, so that it need not wait for memory."""
    return batch.rows.indices[batch.rows.start[u] + min(batch.rows.degree[u], batch.table.room[u] - 1)]


def ends_of(k, side, batch):  # type: ignore[no-untyped-def]
    """Return the ends of an edge, or of its reverse."""
    u, v = np.int64(batch.sources[k]), np.int64(batch.targets[k])
    return (v, u) if side else (u, v)


def take_place(k, u, v, given, batch):  # type: ignore[no-untyped-def]
    """Store an edge, the one `given` with that number, in the next place of its row; return whether it is the first without."""
    rows, room = batch.rows, batch.table.room[u]
    place = atomic_add(rows.degree, u, 1)
    if place < room:
        store_edge(rows.start[u] + place, v, given, batch)
    batch.places[k] = STORED if place < room else place + 1
    return place == room


def store_edge(edge, v, given, batch):  # type: ignore[no-untyped-def]
    """Store an edge to v with the weight of the edge with the number `given` in the batch."""
    batch.rows.indices[edge] = v
    copy_element(batch.rows.weights, edge, batch.weights, given)


@task
def store_insertion(worker, item, state, batch):  # type: ignore[no-untyped-def]
    """Store edges, if `both` their reverses too unless they are loops, as far as rows have room; list the others."""
    group, count = worker.group(GROUP), batch.sources.size
    size = _AHEAD if worker.size == 1 else EDGES_PER_ITEM
    for first in range(np.int64(item) * EDGES_PER_ITEM, count, num_store_items(count) * EDGES_PER_ITEM):
        for begin in range(first, min(first + EDGES_PER_ITEM, count), size):
            last = min(begin + size, count)
            if worker.size == 1:
                for k in range(begin, last):
                    for side in range(1 + batch.both):
                        fetch_place(ends_of(k, side, batch)[0], batch)
            for base in range(begin, last, worker.size):
                k = base + worker.rank
                for side in range(1 + batch.both):
                    u, is_full = np.int64(0), False
                    if k < last:
                        u, v = ends_of(k, side, batch)
                        if side == 0 or u != v:
                            is_full = take_place(side * count + k, u, v, k, batch)
                    append_all(group, batch.full, state, is_full, u)


def length_of_full(place, batch):  # type: ignore[no-untyped-def]
    """Return the number of edges that a listed row will have."""
    return batch.rows.degree[batch.full[place]]


def move_row(team, place, batch):  # type: ignore[no-untyped-def]
    """Move a row to the end, unless the arrays are full."""
    u, rows, table = batch.full[place], batch.rows, batch.table
    size, count = 2 * rows.degree[u], np.int32(table.room[u])
    first = np.int64(0)
    if team.rank == 0:
        first = atomic_add(table.end, 0, np.int64(size))
    first = team.max(first)
    if first + size <= table.capacity:
        copy_row(team, rows.start[u], first, count, rows.indices, rows.indices)
        copy_row(team, rows.start[u], first, count, rows.weights, rows.weights)
        team.sync()
        if team.rank == 0:
            rows.start[u] = first
            table.room[u] = size
    return 0


def copy_row(team, old, new, count, values, target):  # type: ignore[no-untyped-def]
    """Copy the elements of a row, if there are any such; four at a time, since a thread waits for what it stores."""
    if values is not None:
        size = team.size
        whole = count - count % (UNDER_WAY * size)
        for i in range(team.rank, whole, UNDER_WAY * size):
            a, b = values[old + i], values[old + i + size]
            c, d = values[old + i + 2 * size], values[old + i + 3 * size]
            target[new + i], target[new + i + size] = a, b
            target[new + i + 2 * size], target[new + i + 3 * size] = c, d
        for i in team.split(range(whole, count)):
            target[new + i] = values[old + i]


def copy_element(values, new, source, old):  # type: ignore[no-untyped-def]
    """Store an element of other values at a place, if there are any.

    A function that returned the element, or 0 without values, would be of two types; uint64 and int64 become float64.
    """
    if values is not None:
        values[new] = source[old]


move_full_rows = by_length(every, length_of_full, move_row, move_row)


@task
def store_rest(worker, item, state, batch):  # type: ignore[no-untyped-def]
    """Store the edges whose rows had no room, at the places that they have taken."""
    rows, count = batch.rows, batch.sources.size
    for first in range(np.int64(item) * EDGES_PER_ITEM, count, num_store_items(count) * EDGES_PER_ITEM):
        for k in worker.split(range(first, min(first + EDGES_PER_ITEM, count))):
            u, v = batch.sources[k], batch.targets[k]
            if batch.places[k] > 0:
                store_edge(rows.start[u] + batch.places[k] - 1, v, k, batch)
            if batch.both and batch.places[count + k] > 0:
                store_edge(rows.start[v] + batch.places[count + k] - 1, u, k, batch)


@task
def take_back(worker, item, batch):  # type: ignore[no-untyped-def]
    """Take the edges that have got places out of the numbers of edges, which makes rows as they were."""
    first, count = np.int64(item) * EDGES_PER_ITEM, batch.sources.size
    for k in worker.split(range(first, min(first + EDGES_PER_ITEM, count))):
        for side in range(1 + batch.both):
            if batch.places[side * count + k] != 0:
                atomic_add(batch.rows.degree, ends_of(k, side, batch)[0], -1)


insertion = check_insertion, store_insertion, move_full_rows, store_rest
push_full_rows = pushing(move_full_rows)


def end_insertion_round(worker, state, batch):  # type: ignore[no-untyped-def]
    """Have edges stored unless something is wrong, then full rows moved, and the rest stored unless the arrays are full."""
    stage, count = state[AT.stage], batch.sources.size
    worker.sync()  # all threads have read it
    if worker.rank == 0:
        state[AT.stage] = stage + 1
    if stage == 0 and state[AT.bad] == 0 and (1 + batch.both) * count - batch.both * state[AT.found] <= batch.most:
        for k in worker.split(num_store_items(count)):
            worker.push(k, task=store_insertion)
    elif stage == 1 and state[AT.listed] > 0:
        push_full_rows(worker, state)
    elif stage == 2 and batch.table.end[0] <= batch.table.capacity:
        for k in worker.split(num_store_items(count)):
            worker.push(k, task=store_rest)


def has_edges(v, packing):  # type: ignore[no-untyped-def]
    """Whether there is something to copy."""
    return packing.rows.degree[v] > 0


def length_of_row(v, packing):  # type: ignore[no-untyped-def]
    """Return the number of edges of a vertex, without those that have no room yet."""
    return min(packing.rows.degree[v], packing.room[v])


def pack_row(team, v, packing):  # type: ignore[no-untyped-def]
    """Copy a row to where it begins in other arrays."""
    rows, count = packing.rows, np.int32(length_of_row(v, packing))
    copy_row(team, rows.start[v], packing.start[v], count, rows.indices, packing.indices)
    copy_row(team, rows.start[v], packing.start[v], count, rows.weights, packing.weights)
    return 0


pack_rows = by_length(has_edges, length_of_row, pack_row, pack_row)
