"""Tasks that insert into rows of edges which have room to grow: an edge takes the next place of a row, which may move first.

A row that is full moves to the end of the arrays, where it gets twice the room, so that an edge is copied a constant number of
times on average. One launch counts edges, moves rows and stores, in three rounds. `row_deletion` has the other half.

Source: Busato, Green, Bombieri and Bader, "Hornet: an efficient data structure for dynamic sparse graphs and matrices on GPUs",
HPEC 2018, whose rows are blocks of 2^k edges too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..arrays.array import Array
from ..compile.atomics import atomic_add
from ..compile.task import task
from .row_lists import BAD, EDGES_PER_ITEM, FOUND, GROUP, MOST_ITEMS, STAGE, append_all, by_length, pushing

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
]

LEAST_ROOM = 4  # of a row
UNDER_WAY = 4  # edges of a row that each thread reads before it goes on with them
STORED = 2  # the stage of an insertion whose edges are stored, or would be, had the arrays room


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
    needed: Any  # edges that are to be inserted into each row
    end: Any  # one element: the end of the last row
    capacity: Any  # of the arrays of edges


class Insertion(NamedTuple):
    """A batch of edges to insert."""

    sources: Any
    targets: Any
    weights: Any  # or None
    both: int  # 1 if each edge goes in both directions, and 0 otherwise
    most: int  # edges that there may be, in directions
    touched: Any  # the list of the rows
    rows: DynamicRows
    table: RoomTable


class Packing(NamedTuple):
    """Rows, and where they are copied to."""

    rows: DynamicRows
    start: Any
    indices: Any
    weights: Any


@task
def count_insertion(worker, item, state, batch):  # type: ignore[no-untyped-def]
    """Count edges at their sources, if `both` at their targets too, list the vertices, and count loops."""
    group = worker.group(GROUP)
    needed, n = batch.table.needed, batch.rows.degree.size
    first = np.int64(item) * EDGES_PER_ITEM
    last = min(first + EDGES_PER_ITEM, batch.sources.size)
    loops, bad = 0, 0
    for base in range(first, last, worker.size):
        k = base + worker.rank
        u, v = np.int64(0), np.int64(0)
        first_of_u, first_of_v = False, False
        if k < last:
            u, v = np.int64(batch.sources[k]), np.int64(batch.targets[k])
            if u >= n or v >= n:
                bad += 1
            else:
                first_of_u = atomic_add(needed, u, 1) == 0
                if u == v:
                    loops += 1
                elif batch.both:
                    first_of_v = atomic_add(needed, v, 1) == 0
        append_all(group, batch.touched, state, first_of_u, u)
        append_all(group, batch.touched, state, first_of_v, v)
    loops, bad = worker.sum(loops), worker.sum(bad)
    if worker.rank == 0 and loops > 0:
        atomic_add(state, FOUND, loops)
    if worker.rank == 0 and bad > 0:
        atomic_add(state, BAD, bad)


def is_full(place, batch):  # type: ignore[no-untyped-def]
    """Whether the row of a listed vertex has too little room."""
    u = batch.touched[place]
    return batch.rows.degree[u] + batch.table.needed[u] > batch.table.room[u]


def length_of_touched(place, batch):  # type: ignore[no-untyped-def]
    """Return the number of edges of a listed vertex."""
    return batch.rows.degree[batch.touched[place]]


def move_row(team, place, batch):  # type: ignore[no-untyped-def]
    """Move a row to the end, unless the arrays are full."""
    u, rows, table = batch.touched[place], batch.rows, batch.table
    size = 2 * (rows.degree[u] + table.needed[u])
    first = np.int64(0)
    if team.rank == 0:
        first = atomic_add(table.end, 0, np.int64(size))
    first = team.max(first)
    if first + size <= table.capacity:
        copy_row(team, rows.start[u], first, rows.degree[u], rows.indices, rows.indices)
        copy_row(team, rows.start[u], first, rows.degree[u], rows.weights, rows.weights)
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


def element(values, place):  # type: ignore[no-untyped-def]
    """Return the element at a place; 0 if there are none."""
    if values is None:
        return 0
    return values[place]


def set_element(values, place, value):  # type: ignore[no-untyped-def]
    """Store the element at a place, if there are any."""
    if values is not None:
        values[place] = value


make_room = by_length(is_full, length_of_touched, move_row, move_row)


def store_edge(u, v, weight, rows, table):  # type: ignore[no-untyped-def]
    """Store an edge in the next place of its row."""
    place = rows.start[u] + atomic_add(rows.degree, u, 1)
    rows.indices[place] = v
    set_element(rows.weights, place, weight)
    table.needed[u] = 0


def num_store_items(count):  # type: ignore[no-untyped-def]
    """Return how many items store a batch; for tasks and the host."""
    return min((count + EDGES_PER_ITEM - 1) // EDGES_PER_ITEM, 2 * MOST_ITEMS)


@task
def store_insertion(worker, item, state, batch):  # type: ignore[no-untyped-def]
    """Store edges, and if `both` their reverses unless they are loops."""
    count = batch.sources.size
    for first in range(np.int64(item) * EDGES_PER_ITEM, count, num_store_items(count) * EDGES_PER_ITEM):
        for k in worker.split(range(first, min(first + EDGES_PER_ITEM, count))):
            u, v, weight = batch.sources[k], batch.targets[k], element(batch.weights, k)
            store_edge(u, v, weight, batch.rows, batch.table)
            if batch.both and u != v:
                store_edge(v, u, weight, batch.rows, batch.table)


insertion = count_insertion, *make_room, store_insertion
push_full_rows = pushing(make_room)


def end_insertion_round(worker, state, batch):  # type: ignore[no-untyped-def]
    """Have full rows moved after the count, and edges stored after that, unless something is wrong or the arrays are full."""
    stage, count = state[STAGE], batch.sources.size
    worker.sync()  # all threads have read it
    if worker.rank == 0:
        state[STAGE] = stage + 1
    if stage == 0:
        if state[BAD] == 0 and (1 + batch.both) * count - batch.both * state[FOUND] <= batch.most:
            push_full_rows(worker, state)
    elif stage == 1 and batch.table.end[0] <= batch.table.capacity:
        for k in worker.split(num_store_items(count)):
            worker.push(k, task=store_insertion)


def has_edges(v, packing):  # type: ignore[no-untyped-def]
    """Whether there is something to copy."""
    return packing.rows.degree[v] > 0


def length_of_row(v, packing):  # type: ignore[no-untyped-def]
    """Return the number of edges of a vertex."""
    return packing.rows.degree[v]


def pack_row(team, v, packing):  # type: ignore[no-untyped-def]
    """Copy a row to where it begins in other arrays."""
    rows = packing.rows
    copy_row(team, rows.start[v], packing.start[v], rows.degree[v], rows.indices, packing.indices)
    copy_row(team, rows.start[v], packing.start[v], rows.degree[v], rows.weights, packing.weights)
    return 0


pack_rows = by_length(has_edges, length_of_row, pack_row, pack_row)
