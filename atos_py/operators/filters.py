"""Filters: what finds the active vertices of the next round, as a list in the queue or as a bit for each vertex.

The *online* filter lists a vertex as soon as it becomes active: it is a push, and `worker.pending` says how many there were.

The *ballot* filter scans all vertices for active ones, and finds each once. It makes the list, or sets bits. The items of a
scan are ranges of vertices, few enough for one worker to push them all between two rounds. `pull_from_bits` has the pull, by
which vertices look for neighbours whose bits are set.

Where vertices may pull, which needs no list, those that become active are counted with their edges, in *sums*: vertices above
the lowest 36 bits, edges in these. They are spread over many words, since one would delay thousands of threads.

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
from .edge_map import THREAD_MAX_DEGREE
from .reductions import NUM_PARTIAL_SUMS
from .row_pull import SEARCHED_ALONE, row_fold, row_search

__all__ = [
    "ONE_VERTEX",
    "Filters",
    "Fold",
    "ballot",
    "count_active",
    "count_range",
    "make_filters",
    "pull_from_bits",
    "range_bounds",
    "take_sums",
]

ONE_VERTEX = 1 << 36  # in the sums, above the edges: room for 134 million vertices
_GROUP = 32
_RANGES, _LEAST_SIZE = 4096, 256  # the most ranges, and the fewest vertices of one


class Filters(NamedTuple):
    """Arrays and numbers of the filters of a launch."""

    size: int  # vertices of a range
    ranges: int
    bits: Array | None = None  # of the frontier, in words of 32; None if nobody looks at them
    sums: Array | None = None  # None if nobody asks
    alone: int = 0  # in-edges of a vertex that one thread looks at


class Fold(NamedTuple):
    """A reduction: of two terms, its neutral element, and over the threads of a team, or None if one thread has all terms."""

    merge: Callable[..., Any]
    neutral: Any
    by_all: Callable[..., Any] | None


def make_filters(n: int, device: Device, frontier: NDArray[Any] | None = None, fold: Fold | None = None) -> Filters:
    """Return the filters for n vertices; if there is a first frontier to set bits of, for `pull_from_bits` with `fold` too."""
    size = -(-max(_LEAST_SIZE, -(-n // _RANGES)) // _GROUP) * _GROUP
    if frontier is None:
        return Filters(size, -(-n // size))
    marks = np.zeros(-(-n // _GROUP) * _GROUP, np.bool_)
    marks[frontier] = True
    bits = asarray(np.packbits(marks, bitorder="little").view("<u4").astype(np.uint32), device=device)
    alone = SEARCHED_ALONE[device.kind] if fold is None else THREAD_MAX_DEGREE[device.kind] if fold.by_all else 1 << 62
    return Filters(size, -(-n // size), bits, zeros(NUM_PARTIAL_SUMS, dtype=np.int64, device=device), alone)


def in_frontier(u, bits):  # type: ignore[no-untyped-def]
    """Whether the bit of a vertex is set."""
    return bits[u >> 5] >> (u & 31) & 1 == 1


def share(v, indptr):  # type: ignore[no-untyped-def]
    """Return what a vertex adds to the sums."""
    return ONE_VERTEX + indptr[v + 1] - indptr[v]


def count_active(v, indptr, sums):  # type: ignore[no-untyped-def]
    """Add a vertex to the sums, if there are any."""
    if sums is not None:
        atomic_add(sums, v % NUM_PARTIAL_SUMS, share(v, indptr))


def count_range(worker, item, shares, sums):  # type: ignore[no-untyped-def]
    """Add what the threads of a worker have found in a range to the sums, if there are any; collective."""
    if sums is not None:
        total = worker.sum(shares)
        if worker.rank == 0 and total > 0:
            atomic_add(sums, item % NUM_PARTIAL_SUMS, total)


def take_sums(worker, sums):  # type: ignore[no-untyped-def]
    """Return the vertices and the edges that were counted, and begin anew; collective, in the function between rounds."""
    if sums is None:
        return worker.pending, np.int64(0)
    total = np.int64(0)
    for k in worker.split(sums.size):
        total += sums[k]
        sums[k] = 0
    total = worker.sum(total)
    return total >> 36, total & (ONE_VERTEX - 1)


def range_bounds(item, n, filters):  # type: ignore[no-untyped-def]
    """Return the first vertex of a range, and the end of it."""
    first = item * filters.size
    return first, min(first + filters.size, n)


def ballot(is_active: Callable[..., Any], take: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function by which all threads of a worker scan a range, for flat tasks.

    It is called as ``scan(worker, item, sets_bits, n, indptr, filters, *args)``. A vertex v with ``is_active(v, *args)`` is
    pushed, for the first task of the launch. If `sets_bits`, its bit is set instead, after ``take(v, *args)``.
    """

    def set_bits(worker, first, end, indptr, bits, *args):  # type: ignore[no-untyped-def]
        shares = 0
        if bits is not None:
            group = worker.group(_GROUP)
            for base in range(first + _GROUP * group.index, end, _GROUP * group.count):
                word = 0
                for k in group.split(_GROUP):
                    if base + k < end and is_active(base + k, *args):
                        take(base + k, *args)
                        shares += share(base + k, indptr)
                        word |= 1 << k
                word = group.sum(word)
                if group.rank == 0:
                    bits[base >> 5] = word
        return shares

    def push_list(worker, first, end, indptr, *args):  # type: ignore[no-untyped-def]
        shares = 0
        for v in worker.split(range(first, end)):
            if is_active(v, *args):
                shares += share(v, indptr)
                worker.push(v)
        return shares

    def scan(worker, item, sets_bits, n, indptr, filters, *args):  # type: ignore[no-untyped-def]
        first, end = range_bounds(item, n, filters)
        if sets_bits:
            shares = set_bits(worker, first, end, indptr, filters.bits, *args)
        else:
            shares = push_list(worker, first, end, indptr, *args)
        count_range(worker, item, shares, filters.sums)

    return scan


def pull_from_bits(
    wants: Callable[..., Any], term: Callable[..., Any], settle: Callable[..., Any], fold: Fold | None
) -> Callable[..., Any]:
    """Return the function by which the vertices of a range pull from the frontier, for flat tasks.

    All threads of a worker call it as ``pull(worker, item, back, indptr, filters, *args)``: `back` has the in-edges. Each
    vertex v with ``wants(v, *args)`` folds ``term(v, edge, *args)`` of its edges from the frontier, and one thread calls
    ``settle(v, number, *args)``, which says whether v is active now. Without `fold`, a vertex stops at the first such edge.
    """

    def accepts(edge, back, indptr, filters, *args):  # type: ignore[no-untyped-def]
        return in_frontier(back.indices[edge], filters.bits)

    def wants_any(v, back, indptr, filters, *args):  # type: ignore[no-untyped-def]
        return wants(v, *args)

    def edge_term(v, edge, back, indptr, filters, *args):  # type: ignore[no-untyped-def]
        return term(v, edge, *args)

    def settle_shares(v, number, back, indptr, filters, *args):  # type: ignore[no-untyped-def]
        return share(v, indptr) if settle(v, number, *args) else 0

    functions = wants_any, accepts, edge_term, settle_shares
    if fold is None:
        pull_rows = row_search(*functions)
    else:
        pull_rows = row_fold(*functions, fold.merge, fold.neutral, fold.by_all or (lambda team, number: number))

    def pull(worker, item, back, indptr, filters, *args):  # type: ignore[no-untyped-def]
        first, end = range_bounds(item, indptr.size - 1, filters)
        shares = pull_rows(worker, first, end, filters.alone, back.indptr, back, indptr, filters, *args)
        count_range(worker, item, shares, filters.sums)

    return pull
