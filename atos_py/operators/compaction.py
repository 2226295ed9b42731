"""Compaction: lists of what is left of a list, in its order within each range, made by workers beside each other.

A worker counts what its threads keep, reserves so many places of the new list by one atomic, and a prefix sum over its threads
says which of them are whose. So neighbors in the old list stay neighbors, though ranges come in any order.

Source: Blelloch, "Prefix sums and their applications", Carnegie Mellon University, 1990.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..compile.atomics import atomic_add
from .reductions import sum_of_lower_ranks

__all__ = ["compaction"]

_MOST_PLACES = 32  # of a list, which a thread looks at before it appends what it keeps


def share_of_thread(worker, first, last, most):  # type: ignore[no-untyped-def]
    """Return the part of a range that a thread of a worker has: where it begins and ends, at most `most` places."""
    last = min(last, first + most * worker.size)
    share = (last - first + worker.size - 1) // worker.size
    begin = min(first + worker.rank * share, last)
    return begin, min(begin + share, last)


def append(worker, bits, begin, lists, target, counts, at):  # type: ignore[no-untyped-def]
    """Append elements of a list whose bits are set, beginning with place `begin`, to the list at `target`; collective.

    Element `at` of `counts` is the length of that list. A launch has to give `reductions.SCRATCH_BYTES` of scratch.
    """
    number, left = 0, bits
    while left != 0:
        number += 1
        left &= left - 1
    total = worker.sum(number)
    place = sum_of_lower_ranks(worker, number)
    base = 0
    if worker.rank == 0 and total > 0:
        base = atomic_add(counts, at, total)
    place += target + worker.sum(base)
    while bits != 0:
        if bits & 1:
            lists[place] = lists[begin]
            place += 1
        bits >>= 1
        begin += 1


def compaction(keeps: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function for flat tasks, which appends the vertices of a range of a list with ``keeps(v, *args)`` to another.

    All threads of a worker call it as ``function(worker, first, last, lists, target, counts, at, *args)``, with the range of
    places in `lists`, and otherwise as for `append`.
    """

    def compact(worker, first, last, lists, target, counts, at, *args):  # type: ignore[no-untyped-def]
        for base in range(first, last, _MOST_PLACES * worker.size):
            begin, end = share_of_thread(worker, base, last, _MOST_PLACES)
            bits = 0
            for place in range(begin, end):
                if keeps(lists[place], *args):
                    bits |= 1 << (place - begin)
            append(worker, bits, begin, lists, target, counts, at)

    return compact
