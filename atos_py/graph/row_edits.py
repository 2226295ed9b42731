"""Tasks that insert into rows of edges which have room to grow: an edge takes the next place of a row, which may move first.

A row that is full moves to the end of the arrays, where it gets twice the room, so that an edge is copied a constant number of
times on average. `row_deletion` has the other half.

Source: Busato, Green, Bombieri and Bader, "Hornet: an efficient data structure for dynamic sparse graphs and matrices on GPUs",
HPEC 2018, whose rows are blocks of 2^k edges too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..arrays.array import Array
from ..compile.atomics import atomic_add
from ..compile.task import Task, task
from ..operators.row_map import by_groups, by_workers
from ..operators.vertex_map import vertex_map

__all__ = [
    "EDGES_PER_ITEM",
    "GROUP",
    "LEAST_ROOM",
    "PLACES_PER_ITEM",
    "UNDER_WAY",
    "DynamicRows",
    "RoomTable",
    "append_all",
    "ballot",
    "by_length",
    "count_bits",
    "count_insertion",
    "element",
    "make_room",
    "pack_rows",
    "set_element",
    "store_insertion",
]

LEAST_ROOM = 4  # of a row
_LONG_ROW = 2048  # edges from which on all threads of a worker work on a row
GROUP = 32  # threads of a group
UNDER_WAY = 4  # edges of a row that each thread reads before it goes on with them
PLACES_PER_ITEM = 256  # of a list of rows, of which some take long
EDGES_PER_ITEM = 1024  # of a batch


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


def nothing(worker, total, *args):  # type: ignore[no-untyped-def]
    """Do nothing with a total."""


def by_length(
    is_wanted: Callable[..., Any],
    length: Callable[..., Any],
    by_group: Callable[..., Any],
    by_worker: Callable[..., Any],
    finish: Callable[..., Any] = nothing,
) -> tuple[Task, Task]:
    """Return two tasks for one launch: workers do something with the long rows of a list, and groups with its short ones.

    Both are launched with arguments ``(count, *args)``, and ``range_items(count, PLACES_PER_ITEM)`` for each. They ask for the
    `length` of rows that are wanted, which stays the same in the launch. `by_group` and `by_worker` do the same, and return a
    number; ``finish(worker, total, *args)`` gets their sum in each thread. An item of short rows is a range of them, an item
    of long ones every so many-th, since those take long and are often neighbours.
    """

    def is_short(place, *args):  # type: ignore[no-untyped-def]
        return is_wanted(place, *args) and length(place, *args) < _LONG_ROW

    def is_long(k, step, item, *args):  # type: ignore[no-untyped-def]
        place = k * step + item
        return is_wanted(place, *args) and length(place, *args) >= _LONG_ROW

    def run_long(worker, k, step, item, *args):  # type: ignore[no-untyped-def]
        return by_worker(worker, k * step + item, *args)

    run_short_rows, run_long_rows = by_groups(is_short, by_group), by_workers(is_long, run_long)

    def of_short_rows(worker, item, count, *args):  # type: ignore[no-untyped-def]
        first = item * PLACES_PER_ITEM
        finish(worker, run_short_rows(worker, first, min(first + PLACES_PER_ITEM, count), *args), *args)

    def of_long_rows(worker, item, count, *args):  # type: ignore[no-untyped-def]
        step = (count + PLACES_PER_ITEM - 1) // PLACES_PER_ITEM
        finish(worker, run_long_rows(worker, 0, (count - item + step - 1) // step, step, item, *args), *args)

    of_short_rows.__doc__, of_long_rows.__doc__ = by_group.__doc__, by_worker.__doc__
    of_short_rows.__name__, of_long_rows.__name__ = f"{by_group.__name__}_if_short", f"{by_worker.__name__}_if_long"
    return Task(of_long_rows), Task(of_short_rows)


def count_bits(bits):  # type: ignore[no-untyped-def]
    """Return how many bits of 32 are set."""
    bits -= (bits >> 1) & 0x55555555
    bits = (bits & 0x33333333) + ((bits >> 2) & 0x33333333)
    bits = (bits + (bits >> 4)) & 0x0F0F0F0F
    return (bits * 0x01010101 & 0xFFFFFFFF) >> 24


def ballot(group, condition):  # type: ignore[no-untyped-def]
    """Return the bits of the threads of a group for which a condition holds; collective."""
    return np.int64(group.sum(np.uint32(np.int64(condition) << group.rank)))


def append_all(group, listed, counts, is_wanted, value):  # type: ignore[no-untyped-def]
    """Append the values that are wanted to a list, which counts in the first element of `counts`; collective."""
    bits = ballot(group, is_wanted)
    if bits != 0:
        place = np.int64(0)
        if group.rank == 0:
            place = np.int64(atomic_add(counts, 0, count_bits(bits)))
        place = group.sum(place) + count_bits(bits & ((1 << group.rank) - 1))
        if is_wanted:
            listed[place] = value


@task
def count_insertion(worker, item, count, sources, targets, both, table, touched, counts):  # type: ignore[no-untyped-def]
    """Count edges at their sources, if `both` at their targets too, and list the vertices; count these, and the loops."""
    group = worker.group(GROUP)
    first = item * EDGES_PER_ITEM
    last = min(first + EDGES_PER_ITEM, count)
    loops = 0
    for base in range(first, last, worker.size):
        k = base + worker.rank
        u, v = np.int64(0), np.int64(0)
        first_of_u, first_of_v = False, False
        if k < last:
            u, v = np.int64(sources[k]), np.int64(targets[k])
            first_of_u = atomic_add(table.needed, u, 1) == 0
            if u == v:
                loops += 1
            elif both:
                first_of_v = atomic_add(table.needed, v, 1) == 0
        append_all(group, touched, counts, first_of_u, u)
        append_all(group, touched, counts, first_of_v, v)
    loops = worker.sum(loops)
    if worker.rank == 0 and loops > 0:
        atomic_add(counts, 1, loops)


def is_full(place, touched, rows, table):  # type: ignore[no-untyped-def]
    """Whether the row of a listed vertex has too little room."""
    u = touched[place]
    return rows.degree[u] + table.needed[u] > table.room[u]


def length_of_touched(place, touched, rows, table):  # type: ignore[no-untyped-def]
    """Return the number of edges of a listed vertex."""
    return rows.degree[touched[place]]


def move_row(team, place, touched, rows, table):  # type: ignore[no-untyped-def]
    """Move a row to the end, unless the arrays are full."""
    u = touched[place]
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


@vertex_map
def store_insertion(k, sources, targets, weights, both, rows, table):  # type: ignore[no-untyped-def]
    """Store an edge, and if `both` its reverse unless it is a loop."""
    u, v, weight = sources[k], targets[k], element(weights, k)
    store_edge(u, v, weight, rows, table)
    if both and u != v:
        store_edge(v, u, weight, rows, table)


def has_edges(v, rows, start, indices, weights):  # type: ignore[no-untyped-def]
    """Whether there is something to copy."""
    return rows.degree[v] > 0


def length_of_row(v, rows, start, indices, weights):  # type: ignore[no-untyped-def]
    """Return the number of edges of a vertex."""
    return rows.degree[v]


def pack_row(team, v, rows, start, indices, weights):  # type: ignore[no-untyped-def]
    """Copy a row to where it begins in other arrays."""
    copy_row(team, rows.start[v], start[v], rows.degree[v], rows.indices, indices)
    copy_row(team, rows.start[v], start[v], rows.degree[v], rows.weights, weights)
    return 0


pack_rows = by_length(has_edges, length_of_row, pack_row, pack_row)
