"""Spread edges: a group of threads visits the edges of a row of each of its threads, an equal share each.

The lengths of the rows are scanned, and a thread finds the row of an edge by a search in the scan: a load-balancing search, by
shuffles. The core does the same with the items of a nested task; this is for tasks that find their rows themselves.

Source: Merrill, Garland and Grimshaw, "Scalable GPU graph traversal", PPoPP 2012, for gathering edges by scans.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["scan", "spread_edges"]


def scan(group, number):  # type: ignore[no-untyped-def]
    """Return the sum of the numbers of a group's threads up to this one, an int32; collective."""
    total = np.int32(number)
    step = 1
    while step < group.size:
        below = group.shuffle(total, group.rank - step)
        total = np.int32(total + (below if group.rank >= step else 0))
        step *= 2
    return total


def _find_edge(group, place, start, offset):  # type: ignore[no-untyped-def]
    """Return the edge at a place among those of all rows of a group.

    The row of a thread begins at the place `start`, with an edge whose number is `offset` more.
    """
    owner = 0  # the last thread whose row begins at the place or before it
    step = group.size >> 1
    while step > 0:
        if group.shuffle(start, owner + step) <= place:
            owner += step
        step >>= 1
    return place + group.shuffle(offset, owner)


def spread_edges(look: Callable[..., Any], settle: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return two functions by which a group of threads visits the edges of a row of each of its threads, and those of one row.

    All threads of the group call the first as ``visit_rows(group, first, length, *args)``, with the first edge of the row and
    how many edges it has, maybe none. All rows of a group have less than 2^31 edges. The second is ``visit_row(group, edge,
    end, *args)``, with the first edge and the end of the row.

    For each edge one thread calls ``look(edge, *args)``, and if that returns a number that is not negative, ``settle(number,
    *args)``. It looks at four edges before it settles any, since a GPU then has four loads under way at once. A group of one
    thread, as on the CPU, takes one edge after the other.
    """
    none = np.int64(-1)

    def settle_all(a, b, c, d, *args):  # type: ignore[no-untyped-def]
        if a >= 0:
            settle(a, *args)
        if b >= 0:
            settle(b, *args)
        if c >= 0:
            settle(c, *args)
        if d >= 0:
            settle(d, *args)

    def visit_alone(edge, end, *args):  # type: ignore[no-untyped-def]
        while edge < end:
            found = look(edge, *args)
            if found >= 0:
                settle(found, *args)
            edge += 1

    def visit_rows(group, first, length, *args):  # type: ignore[no-untyped-def]
        if group.size == 1:
            visit_alone(np.int64(first), np.int64(first) + length, *args)
            return
        end = scan(group, length)
        start = np.int32(end - length)
        offset = np.int64(first) - start
        total = group.shuffle(end, group.size - 1)
        size = group.size
        for base in range(0, total, 4 * size):
            i = np.int32(base + group.rank)
            j, k, m = np.int32(i + size), np.int32(i + 2 * size), np.int32(i + 3 * size)
            edge_i, edge_j = _find_edge(group, i, start, offset), _find_edge(group, j, start, offset)
            edge_k, edge_m = _find_edge(group, k, start, offset), _find_edge(group, m, start, offset)
            a = look(edge_i, *args) if i < total else none
            b = look(edge_j, *args) if j < total else none
            c = look(edge_k, *args) if k < total else none
            d = look(edge_m, *args) if m < total else none
            settle_all(a, b, c, d, *args)

    def visit_row(group, edge, end, *args):  # type: ignore[no-untyped-def]
        if group.size == 1:
            visit_alone(edge, end, *args)
            return
        edge += group.rank
        size = group.size
        while edge < end:
            a = look(edge, *args)
            b = look(edge + size, *args) if edge + size < end else none
            c = look(edge + 2 * size, *args) if edge + 2 * size < end else none
            d = look(edge + 3 * size, *args) if edge + 3 * size < end else none
            settle_all(a, b, c, d, *args)
            edge += 4 * size

    return visit_rows, visit_row
