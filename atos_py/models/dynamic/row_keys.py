"""Edges as words of 64 bits, source above target, and a sort of them for the CPU, digit by digit, by all threads.

A round counts the digits of each range of keys, and the next one moves the keys, so that those of lower digits stay in order.
Each digit has two rounds, and their number is even: the keys come back to where they were. NumPy sorts in one thread.

Source: Zagha and Blelloch, "Radix sort for vector multiprocessors", SC 1991.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...arrays.array import Array, empty
from ...compile.atomics import atomic_add
from ...compile.task import task
from ...operators.ranges import range_items
from ...runtime.queue import Queue
from .row_lists import AT, EDGES_PER_ITEM

__all__ = ["make_keys", "sort_by_digit", "sort_keys", "source_of"]

_MOST_BITS = 10  # of a digit: as many places as are written to at a time stay in the cache
_KEYS_PER_ITEM = 8192


class Sorting(NamedTuple):
    """Keys that are being sorted."""

    keys: Any
    others: Any  # where they go, and come back from
    counts: Any  # for each item and digit, keys before; then those of all items
    bits: int  # of a digit
    digits: int  # of a vertex


@task
def make_keys(worker, item, state, sources, targets, both, n, keys):  # type: ignore[no-untyped-def]
    """Make words of 64 bits of edges (source, target), if `both` of their reverses too; count ends that are no vertices."""
    count = sources.size
    first = np.int64(item) * EDGES_PER_ITEM
    bad = 0
    for k in worker.split(range(first, min(first + EDGES_PER_ITEM, count))):
        u, v = np.uint64(sources[k]), np.uint64(targets[k])
        bad += u >= n or v >= n
        keys[k] = u << np.uint64(32) | v
        if both:
            keys[count + k] = v << np.uint64(32) | u
    bad = worker.sum(bad)
    if worker.rank == 0 and bad > 0:
        atomic_add(state, AT.bad, bad)


def source_of(key):  # type: ignore[no-untyped-def]
    """Return the source of an edge (source, target) in a word of 64 bits."""
    return np.int64(key >> np.uint64(32))


@task
def sort_by_digit(worker, item, sorting):  # type: ignore[no-untyped-def]
    """Count the digits of a range of keys, and in the next round move the keys; by one thread."""
    digit, bits = worker.round >> 1, sorting.bits
    source, target = (sorting.others, sorting.keys) if digit & 1 else (sorting.keys, sorting.others)
    shift = np.uint64(digit * bits if digit < sorting.digits else 32 + (digit - sorting.digits) * bits)
    mask, counts, own = np.uint64((1 << bits) - 1), sorting.counts, np.int64(item) << bits
    of_all = counts.size - (1 << bits)
    first = np.int64(item) * _KEYS_PER_ITEM
    last = min(first + _KEYS_PER_ITEM, source.size)
    if worker.round & 1:
        for k in range(1 << bits):
            counts[own + k] += counts[of_all + k]
        for k in range(first, last):
            key = source[k]
            place = own + np.int64(key >> shift & mask)
            target[counts[place]] = key
            counts[place] += 1
    else:
        for k in range(1 << bits):
            counts[own + k] = 0
        for k in range(first, last):
            counts[own + np.int64(source[k] >> shift & mask)] += 1
    if worker.round + 1 < 4 * sorting.digits:
        worker.push(item)


def sum_counts(worker, sorting):  # type: ignore[no-untyped-def]
    """Make sums of the counts: of each digit in items before, and of lower digits in all items."""
    if not worker.round & 1:
        counts, size = sorting.counts, 1 << sorting.bits
        of_all = counts.size - size
        for k in range(size):
            counts[of_all + k] = 0
        for place in range(of_all):
            of_digit = of_all + (place & size - 1)
            count = counts[place]
            counts[place] = counts[of_digit]
            counts[of_digit] += count
        total = 0
        for place in range(of_all, counts.size):
            count = counts[place]
            counts[place] = total
            total += count


def sort_keys(keys: Array, n: int, queue: Queue) -> None:
    """Sort the keys of edges between n vertices, on the CPU; `queue` runs `sort_by_digit`."""
    of_vertex = max((n - 1).bit_length(), 1)
    digits = -(-of_vertex // _MOST_BITS)
    bits = -(-of_vertex // digits)
    items = range_items(keys.size, _KEYS_PER_ITEM)
    counts = empty((len(items) + 1) << bits, dtype=np.int32, device=keys.device)
    queue.push(items)
    sorting = Sorting(keys, empty(keys.size, dtype=np.uint64, device=keys.device), counts, bits, digits)
    queue.launch_thread(sort_by_digit, sorting, barrier=True, each_round=sum_counts)
