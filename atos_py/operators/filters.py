"""Filters: what finds the active vertices of the next round, as a list in the queue or as a bit for each vertex.

The *online* filter lists a vertex as soon as it becomes active: it is a push, and `worker.pending` says how many there were.

The *ballot* filter scans all vertices for active ones, and finds each once. It makes the list, or sets bits. The items of a
scan take ranges of vertices from a counter (`range_takers`). `pull_from_bits` has the pull, by which vertices look for
neighbors whose bits are set.

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
from ..arrays.filled import full
from ..arrays.record import places
from ..compile.atomics import atomic_add, atomic_or_
from ..core.devices import Device
from .edge_map import THREAD_MAX_DEGREE
from .range_takers import ask_for_range, fit_takers, plan_takers
from .reductions import NUM_PARTIAL_SUMS
from .row_pull import SEARCHED_ALONE, row_fold, row_search

__all__ = [
    "ONE_VERTEX",
    "Filters",
    "Fold",
    "ballot",
    "bits_of",
    "count_active",
    "count_range",
    "make_filters",
    "open_ranges",
    "over_ranges",
    "pull_from_bits",
    "set_bit",
    "take_sums",
]

ONE_VERTEX = 1 << 36  # in the sums, above the edges: room for 134 million vertices
_GROUP = 32
_FEW = 8  # vertices of a frontier that the host marks one by one


class Ranges(NamedTuple):
    """Words of `Filters.ranges` (`arrays.record`)."""

    taken: int = 1  # ranges that are taken in this round
    size: int = 1  # vertices of a range


AT = places(Ranges)


class Filters(NamedTuple):
    """Arrays and numbers of the filters of a launch."""

    takers: int  # items that take ranges, as planned
    ranges: Array | None = None  # how many are taken in this round, and the vertices of one; None without rounds
    bits: Array | None = None  # of the frontier, in words of 32; None if nobody looks at them
    sums: Array | None = None  # None if nobody asks
    alone: int = 0  # in-edges of a vertex that one thread looks at

    @property
    def opened(self) -> int:
        """The number of items that take ranges in the next round."""
        return int(self.ranges[AT.taken])  # type: ignore[index]


class Fold(NamedTuple):
    """A reduction: of two terms, its neutral element, and over the threads of a team, or None if one thread has all terms."""

    merge: Callable[..., Any]
    neutral: Any
    by_all: Callable[..., Any] | None


def make_filters(
    n: int, device: Device, frontier: NDArray[Any] | range | None = None, fold: Fold | None = None, worker: str | None = None
) -> Filters:
    """Return the filters for n vertices; if there is a first frontier to set bits of, for `pull_from_bits` with `fold` too."""
    size, takers = plan_takers(n, device, worker)
    ranges = asarray(np.array([takers, size]), device=device, copy=True)
    if frontier is None:
        return Filters(takers, ranges)
    bits = bits_of(frontier, n, device)
    alone = SEARCHED_ALONE[device.kind] if fold is None else THREAD_MAX_DEGREE[device.kind] if fold.by_all else 1 << 62
    return Filters(takers, ranges, bits, zeros(NUM_PARTIAL_SUMS, dtype=np.int64, device=device), alone)


def bits_of(frontier: NDArray[Any] | range, n: int, device: Device) -> Array:
    """Return words of 32 bits, in which those of a frontier are set: one by one if there are few; a range is all vertices."""
    if isinstance(frontier, range) and len(frontier) == n:
        return full(-(-n // _GROUP), 0xFFFF_FFFF, dtype=np.uint32, device=device)
    if len(frontier) <= _FEW:
        words: dict[int, int] = {}
        for v in map(int, frontier):
            words[v >> 5] = words.get(v >> 5, 0) | 1 << (v & 31)
        bits = zeros(-(-n // _GROUP), dtype=np.uint32, device=device)
        for k, word in words.items():
            bits[k] = word
        return bits
    marks = np.zeros(-(-n // _GROUP) * _GROUP, np.bool_)
    marks[frontier] = True
    return asarray(np.packbits(marks, bitorder="little").view("<u4").astype(np.uint32), device=device)


def in_frontier(u, bits):  # type: ignore[no-untyped-def]
    """Whether the bit of a vertex is set."""
    return bits[u >> 5] >> (u & 31) & 1 == 1


def set_bit(v, bits, sets):  # type: ignore[no-untyped-def]
    """Set the bit of a vertex, unless `sets` is None."""
    if sets is not None:
        atomic_or_(bits, v >> 5, np.uint32(1 << (v & 31)))


def clear_bits(worker, first, end, bits, sets):  # type: ignore[no-untyped-def]
    """Clear the bits of a range, whose words nobody else has, unless `sets` is None; collective."""
    if sets is not None:
        for k in worker.split(range(first >> 5, (end + _GROUP - 1) >> 5)):
            bits[k] = 0
        worker.sync()


def share(v, indptr):  # type: ignore[no-untyped-def]
    """Return what a vertex adds to the sums."""
    return ONE_VERTEX + indptr[v + 1] - indptr[v]


def count_active(v, indptr, sums):  # type: ignore[no-untyped-def]
    """Add a vertex to the sums, if there are any."""
    if sums is not None:
        atomic_add(sums, v % NUM_PARTIAL_SUMS, share(v, indptr))


def count_range(worker, item, shares, sums):  # type: ignore[no-untyped-def]
    """Add what the threads of a worker have found in ranges to the sums, if there are any; collective."""
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


def open_ranges(worker, n, filters):  # type: ignore[no-untyped-def]
    """Let all ranges be taken anew, in the next round, and return the number of items that take them; collective."""
    size, takers = fit_takers(worker, n, filters.takers)
    if worker.rank == 0:
        filters.ranges[AT.taken] = takers
        filters.ranges[AT.size] = size
    return takers


def over_ranges(run: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls ``run(worker, first, end, *args)`` for ranges of vertices until all are taken.

    It is called as ``each(worker, item, n, filters, *args)`` by all threads of a worker, and adds up what `run` returns.
    """

    def each(worker, item, n, filters, *args):  # type: ignore[no-untyped-def]
        total = np.int64(0)
        k, size = np.int64(item), np.int64(np.uint32(filters.ranges[AT.size]))  # of 32 bits, so that it takes one register
        while k * size < n:
            taken = ask_for_range(worker, filters.ranges, AT.taken)  # the answer comes meanwhile
            total += run(worker, k * size, min((k + 1) * size, n), *args)
            k = worker.max(taken)
        return total

    return each


def ballot(is_active: Callable[..., Any], take: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function by which all threads of a worker scan ranges, for flat tasks.

    It is called as ``scan(worker, item, sets_bits, n, indptr, filters, bits, stale, clears, *args)``. A vertex v with
    ``is_active(v, bits, *args)`` is pushed, for the first task of the launch. If `sets_bits`, its bit is set instead, after
    ``take(v, bits, *args)``. Unless `clears` is None, a scan that pushes clears the bits `stale`.
    """

    def set_bits(worker, first, end, indptr, bits, *args):  # type: ignore[no-untyped-def]
        shares = 0
        if bits is not None:
            group = worker.group(_GROUP)
            for base in range(first + _GROUP * group.index, end, _GROUP * group.count):
                word = 0
                for k in group.split(_GROUP):
                    if base + k < end and is_active(base + k, bits, *args):
                        take(base + k, bits, *args)
                        shares += share(base + k, indptr)
                        word |= 1 << k
                word = group.sum(word)
                if group.rank == 0:
                    bits[base >> 5] = word
        return shares

    def push_list(worker, first, end, indptr, bits, stale, clears, *args):  # type: ignore[no-untyped-def]
        shares = 0
        clear_bits(worker, first, end, stale, clears)
        for v in worker.split(range(first, end)):
            if is_active(v, bits, *args):
                shares += share(v, indptr)
                worker.push(v)
        return shares

    set_all_bits, push_all = over_ranges(set_bits), over_ranges(push_list)

    def scan(worker, item, sets_bits, n, indptr, filters, bits, stale, clears, *args):  # type: ignore[no-untyped-def]
        if sets_bits:
            shares = set_all_bits(worker, item, n, filters, indptr, bits, *args)
        else:
            shares = push_all(worker, item, n, filters, indptr, bits, stale, clears, *args)
        count_range(worker, item, shares, filters.sums)

    return scan


def pull_from_bits(
    wants: Callable[..., Any], term: Callable[..., Any], settle: Callable[..., Any], fold: Fold | None
) -> Callable[..., Any]:
    """Return the function by which the vertices of ranges pull from the frontier, for flat tasks.

    All threads of a worker call it as ``pull(worker, item, back, indptr, filters, bits, following, sets, *args)``: `back` has
    the in-edges, and `bits` the frontier. Each vertex v with ``wants(v, *args)`` folds ``term(v, edge, *args)`` of its edges
    from the frontier, and one thread calls ``settle(v, number, *args)``, which says whether v is active now. Unless `sets` is
    None, the bits of those are set in `following`, and no others. Without `fold`, a vertex stops at the first such edge.
    """

    def accepts(edge, back, indptr, bits, following, sets, *args):  # type: ignore[no-untyped-def]
        return in_frontier(back.indices[edge], bits)

    def wants_any(v, back, indptr, bits, following, sets, *args):  # type: ignore[no-untyped-def]
        return wants(v, *args)

    def edge_term(v, edge, back, indptr, bits, following, sets, *args):  # type: ignore[no-untyped-def]
        return term(v, edge, *args)

    def settle_shares(v, number, back, indptr, bits, following, sets, *args):  # type: ignore[no-untyped-def]
        is_active = settle(v, number, *args)
        if is_active:
            set_bit(v, following, sets)
        return share(v, indptr) if is_active else 0

    functions = wants_any, accepts, edge_term, settle_shares
    if fold is None:
        pull_rows = row_search(*functions)
    else:
        pull_rows = row_fold(*functions, fold.merge, fold.neutral, fold.by_all or (lambda team, number: number))

    def pull_range(worker, first, end, alone, back, indptr, bits, following, sets, *args):  # type: ignore[no-untyped-def]
        clear_bits(worker, first, end, following, sets)
        return pull_rows(worker, first, end, alone, back.indptr, back, indptr, bits, following, sets, *args)

    pull_all = over_ranges(pull_range)

    def pull(worker, item, back, indptr, filters, bits, following, sets, *args):  # type: ignore[no-untyped-def]
        shares = pull_all(worker, item, indptr.size - 1, filters, filters.alone, back, indptr, bits, following, sets, *args)
        count_range(worker, item, shares, filters.sums)

    return pull
