"""Tasks that edit rows of edges which have room to grow: an insertion takes the next place of a row, or moves the row first.

A row that is full moves to the end of the arrays, where it gets twice the room, so that an edge is copied a constant number of
times on average. A deletion closes the gaps of a row, whose other neighbours keep their order.

Source: Busato, Green, Bombieri and Bader, "Hornet: an efficient data structure for dynamic sparse graphs and matrices on GPUs",
HPEC 2018, whose rows are blocks of 2^k edges too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..arrays.array import Array
from ..compile.atomics import atomic_add
from ..compile.task import task
from ..operators.row_map import by_groups, by_workers
from ..operators.vertex_map import append, vertex_map

__all__ = [
    "LEAST_ROOM",
    "PLACES_PER_ITEM",
    "DynamicRows",
    "copy_rows",
    "count_insertion",
    "delete_in_rows",
    "list_first",
    "make_room",
    "pack_rows",
    "store_insertion",
]

LEAST_ROOM = 4  # of a row
_LONG_ROW = 2048  # edges from which on all threads of a worker work on a row
_WARPS = 32  # of a worker, at most
PLACES_PER_ITEM = 256  # of a list of rows, of which some take long


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


def by_length(
    is_wanted: Callable[..., Any], length: Callable[..., Any], by_group: Callable[..., Any], by_worker: Callable[..., Any]
) -> Callable[..., Any]:
    """Return a function for flat tasks, which has groups do something with short rows of a range, and workers with long ones.

    It is called as ``function(worker, first, end, *args)``, and asks for the `length` of rows that are wanted. The two do the
    same. What they return is added up. Rows that were short stay so.
    """

    def is_short(place, *args):  # type: ignore[no-untyped-def]
        return is_wanted(place, *args) and length(place, *args) < _LONG_ROW

    def is_long(place, *args):  # type: ignore[no-untyped-def]
        return is_wanted(place, *args) and length(place, *args) >= _LONG_ROW

    run_short, run_long = by_groups(is_short, by_group), by_workers(is_long, by_worker)

    def run(worker, first, end, *args):  # type: ignore[no-untyped-def]
        total = run_short(worker, first, end, *args)
        return total + run_long(worker, first, end, *args)

    return run


@vertex_map
def count_insertion(k, sources, table, touched):  # type: ignore[no-untyped-def]
    """Count an edge at its source, and list that vertex if it is the first edge there."""
    u = sources[k]
    if atomic_add(table.needed, u, 1) == 0:
        append(touched, u)


def is_full(place, touched, rows, table):  # type: ignore[no-untyped-def]
    """Whether the row of a listed vertex has too little room."""
    u = touched[1 + place]
    return rows.degree[u] + table.needed[u] > table.room[u]


def length_of_touched(place, touched, rows, table):  # type: ignore[no-untyped-def]
    """Return the number of edges of a listed vertex."""
    return rows.degree[touched[1 + place]]


def move_row(team, place, touched, rows, table):  # type: ignore[no-untyped-def]
    """Move a row to the end, unless the arrays are full."""
    u = touched[1 + place]
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
    """Copy the elements of a row, if there are any such."""
    if values is not None:
        for i in team.split(count):
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


move_rows = by_length(is_full, length_of_touched, move_row, move_row)


@task
def make_room(worker, item, count, touched, rows, table):  # type: ignore[no-untyped-def]
    """Move the rows of listed vertices that are full."""
    first = item * PLACES_PER_ITEM
    move_rows(worker, first, min(first + PLACES_PER_ITEM, count), touched, rows, table)


@vertex_map
def store_insertion(k, sources, targets, weights, rows, table):  # type: ignore[no-untyped-def]
    """Store an edge in the next place of its row."""
    u = sources[k]
    place = rows.start[u] + atomic_add(rows.degree, u, 1)
    rows.indices[place] = targets[k]
    set_element(rows.weights, place, element(weights, k))
    table.needed[u] = 0


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


copy_rows = by_length(has_edges, length_of_row, pack_row, pack_row)


@task
def pack_rows(worker, item, n, rows, start, indices, weights):  # type: ignore[no-untyped-def]
    """Copy the rows of a range of vertices to other arrays."""
    first = item * PLACES_PER_ITEM
    copy_rows(worker, first, min(first + PLACES_PER_ITEM, n), rows, start, indices, weights)


def source_of(key):  # type: ignore[no-untyped-def]
    """Return the source of an edge (source, target) in a word of 64 bits."""
    return np.int64(key >> np.uint64(32))


@vertex_map
def list_first(k, keys, firsts):  # type: ignore[no-untyped-def]
    """List a place of sorted edges if it is the first with its source."""
    if k == 0 or source_of(keys[k]) != source_of(keys[k - 1]):
        append(firsts, k)


def lower_bound(keys, low, high, key):  # type: ignore[no-untyped-def]
    """Return the first place in [low, high) of sorted keys that is not less than a key: a binary search."""
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low


def count_bits(bits):  # type: ignore[no-untyped-def]
    """Return how many bits of 32 are set."""
    bits -= (bits >> 1) & 0x55555555
    bits = (bits & 0x33333333) + ((bits >> 2) & 0x33333333)
    bits = (bits + (bits >> 4)) & 0x0F0F0F0F
    return (bits * 0x01010101 & 0xFFFFFFFF) >> 24


def count_in_group(group, stays):  # type: ignore[no-untyped-def]
    """Return how many threads before this one, and of all, have an edge that stays; collective."""
    staying = group.sum(np.int64(stays) << group.rank)
    return count_bits(staying & ((1 << group.rank) - 1)), count_bits(staying)


def count_in_worker(worker, stays):  # type: ignore[no-untyped-def]
    """Return the same of all threads of a worker, by a sum over its groups."""
    group = worker.group(32)
    before, here = count_in_group(group, stays)
    counts = worker.scratch(np.int32, _WARPS)
    if group.rank == 0:
        counts[group.index] = here
    worker.sync()
    total = 0
    for k in range(group.count):
        if k == group.index:
            before += total
        total += counts[k]
    return before, total


def row_deletion(count_staying: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function by which a team, a group or a worker, deletes from a row: a stable compaction in place."""

    def delete_in_row(team, place, firsts, keys, rows):  # type: ignore[no-untyped-def]
        """Delete the edges of a row that are among the sorted keys; return how many, of one thread."""
        low = np.int64(firsts[1 + place])
        u = source_of(keys[low])
        high = lower_bound(keys, low, np.int64(keys.size), np.uint64(u + 1) << np.uint64(32))
        first = rows.start[u]
        count = rows.degree[u]
        kept = 0
        # A team reads as many edges as it has threads, and then writes those that stay before the next ones.
        for base in range(0, count, team.size):
            i = base + team.rank
            stays = False
            target = np.uint32(0)
            if i < count:
                target = rows.indices[first + i]
                key = np.uint64(u) << np.uint64(32) | np.uint64(target)
                found = lower_bound(keys, low, high, key)
                stays = found == high or keys[found] != key
            weight = element(rows.weights, first + min(i, count - 1))
            before, staying = count_staying(team, stays)
            team.sync()
            if stays:
                to = first + kept + before
                rows.indices[to] = target
                set_element(rows.weights, to, weight)
            kept += staying
        team.sync()
        if team.rank != 0:
            return 0
        rows.degree[u] = kept
        return count - kept

    return delete_in_row


def every(place, firsts, keys, rows):  # type: ignore[no-untyped-def]
    """Say of each listed row that it is wanted."""
    return True


def length_of_listed(place, firsts, keys, rows):  # type: ignore[no-untyped-def]
    """Return the number of edges of the source of a listed edge."""
    return rows.degree[source_of(keys[firsts[1 + place]])]


delete_listed = by_length(every, length_of_listed, row_deletion(count_in_group), row_deletion(count_in_worker))


@task
def delete_in_rows(worker, item, count, firsts, keys, rows, deleted):  # type: ignore[no-untyped-def]
    """Delete edges in the rows of a range of a list; add up how many."""
    first = item * PLACES_PER_ITEM
    total = worker.sum(delete_listed(worker, first, min(first + PLACES_PER_ITEM, count), firsts, keys, rows))
    if worker.rank == 0 and total > 0:
        atomic_add(deleted, 0, total)
