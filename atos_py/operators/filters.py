"""Filters: what finds the active vertices of the next round, as a list in the queue or as a bit for each vertex.

The *online* filter lists a vertex as soon as it becomes active. It counts it in a *bin*, and pushes it as long as that bin has
room. Bins belong to vertices, not to threads, since the inner loops of a task are spread over the threads of workers. A bin
also has the sum of the edges of its vertices, by which the next direction may be chosen.

The *ballot* filter scans all vertices for active ones, and finds each once. It makes the list, or sets bits.

The items of a scan are ranges of vertices, few enough for one worker to push them all between two rounds.

Source: Liu and Huang, "SIMD-X: Programming and processing of graph algorithms on GPUs", USENIX ATC 2019.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays.array import Array, asarray, zeros
from ..compile.atomics import atomic_add
from ..core.devices import Device

__all__ = [
    "Filters",
    "activate",
    "add_to_bin",
    "ballot",
    "in_frontier",
    "make_filters",
    "range_bounds",
    "share_of_bin",
    "take_bins",
]

BINS = 1024  # a power of 2
_ONE = 1 << 40  # a vertex in a bin, above the sum of edges
_GROUP = 32
_RANGES, _LEAST_SIZE = 4096, 256  # the most ranges, and the fewest vertices of one


class Filters(NamedTuple):
    """Arrays and numbers of the filters of a launch."""

    bins: Array
    bits: Array | None  # of the frontier, in words of 32; None if nobody looks at them
    size: int  # vertices of a range
    ranges: int
    threshold: int  # vertices of a bin that the online filter pushes; of more, the list is not complete
    counted: int  # vertices of a bin from which on it leaves out others altogether
    edges: int | None  # anything but None has the edges of vertices summed up


def make_filters(n: int, device: Device, threshold: int, frontier: NDArray[Any] | None, sums_edges: bool) -> Filters:
    """Return the filters for n vertices, with bits if there is a first frontier to set them of."""
    bits = None
    if frontier is not None:
        marks = np.zeros(-(-n // _GROUP) * _GROUP, np.bool_)
        marks[frontier] = True
        bits = asarray(np.packbits(marks, bitorder="little").view("<u4").astype(np.uint32), device=device)
    size = -(-max(_LEAST_SIZE, -(-n // _RANGES)) // _GROUP) * _GROUP
    counted = 1 << 62 if sums_edges else threshold
    bins = zeros(BINS, dtype=np.int64, device=device)
    return Filters(bins, bits, size, -(-n // size), threshold, counted, 1 if sums_edges else None)


def in_frontier(u, bits):  # type: ignore[no-untyped-def]
    """Whether the bit of a vertex is set."""
    return bits[u >> 5] >> (u & 31) & 1 == 1


def share_of_bin(v, indptr, edges):  # type: ignore[no-untyped-def]
    """Return what a vertex adds to its bin."""
    if edges is None:
        return _ONE
    return _ONE + indptr[v + 1] - indptr[v]


def activate(worker, u, indptr, filters):  # type: ignore[no-untyped-def]
    """Put a vertex into its bin, and push it if there was room; or just push it, without filters."""
    if filters is None:
        worker.push(u)
    else:
        mine = u & (filters.bins.size - 1)
        has_room = False
        if filters.bins[mine] >> 40 <= filters.counted:
            has_room = atomic_add(filters.bins, mine, share_of_bin(u, indptr, filters.edges)) >> 40 < filters.threshold
        if has_room:
            worker.push(u)


def add_to_bin(worker, item, share, filters):  # type: ignore[no-untyped-def]
    """Add what the threads of a worker have found in a range to a bin; collective."""
    share = worker.sum(share)
    if worker.rank == 0 and share > 0:
        atomic_add(filters.bins, item & (filters.bins.size - 1), share)


def take_bins(worker, filters):  # type: ignore[no-untyped-def]
    """Empty the bins; return the vertices of the fullest one, and the vertices and edges of all; collective."""
    most, count, edges = 0, 0, 0
    for k in worker.split(filters.bins.size):
        found = filters.bins[k]
        if found != 0:
            filters.bins[k] = 0
            most = max(most, found >> 40)
            count += found >> 40
            edges += found & (_ONE - 1)
    return worker.max(most), worker.sum(count), worker.sum(edges)


def range_bounds(item, n, filters):  # type: ignore[no-untyped-def]
    """Return the first vertex of a range, and the end of it."""
    first = item * filters.size
    return first, min(first + filters.size, n)


def list_vertex(worker, lists, v):  # type: ignore[no-untyped-def]
    """Push a vertex into another queue if there is one, otherwise for the first task of the launch."""
    if lists is None:
        worker.push(v)
    else:
        lists.push(v)


def ballot(is_active: Callable[..., Any], take: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function by which all threads of a worker scan a range, for flat tasks.

    It is called as ``scan(worker, item, sets_bits, n, indptr, filters, lists, *args)``. A vertex v with ``is_active(v, *args)``
    is pushed, into the queue `lists` if that is not None. If `sets_bits`, its bit is set instead, after ``take(v, *args)``.
    """

    def set_bits(worker, first, end, indptr, filters, bits, *args):  # type: ignore[no-untyped-def]
        share = 0
        if bits is not None:
            group = worker.group(_GROUP)
            for base in range(first + _GROUP * group.index, end, _GROUP * group.count):
                word = 0
                for k in group.split(_GROUP):
                    if base + k < end and is_active(base + k, *args):
                        take(base + k, *args)
                        share += share_of_bin(base + k, indptr, filters.edges)
                        word |= 1 << k
                word = group.sum(word)
                if group.rank == 0:
                    bits[base >> 5] = word
        return share

    def scan(worker, item, sets_bits, n, indptr, filters, lists, *args):  # type: ignore[no-untyped-def]
        first, end = range_bounds(item, n, filters)
        share = 0
        if sets_bits:
            share += set_bits(worker, first, end, indptr, filters, filters.bits, *args)
        else:
            for v in worker.split(range(first, end)):
                if is_active(v, *args):
                    share += share_of_bin(v, indptr, filters.edges)
                    list_vertex(worker, lists, v)
        add_to_bin(worker, item, share, filters)

    return scan
