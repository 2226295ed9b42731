"""Sums over all vertices: a thread adds up tuples, a worker combines those of its threads, and one atomic adds the result.

And prefix sums over the threads of a worker, by which they write the elements of a list next to each other.

A tuple has one to three numbers. Each number of them is written out, since indexing a tuple in a loop would take a GPU's stack.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..compile.atomics import atomic_add

__all__ = ["NUM_PARTIAL_SUMS", "SCRATCH_BYTES", "plus", "store_sums", "sum_of_lower_ranks"]

#: Places that a sum over many vertices is spread over: one address would delay thousands of threads.
NUM_PARTIAL_SUMS = 1024

#: Scratch of a worker that `sum_of_lower_ranks` takes: a number of 4 bytes for each thread.
SCRATCH_BYTES = {"thread": 4, "warp": 4 * 32, "cta": 4 * 1024}


def _plus_1(a, b):  # type: ignore[no-untyped-def]
    return (a[0] + b[0],)


def _plus_2(a, b):  # type: ignore[no-untyped-def]
    return a[0] + b[0], a[1] + b[1]


def _plus_3(a, b):  # type: ignore[no-untyped-def]
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


def _store_1(worker, sums, totals):  # type: ignore[no-untyped-def]
    a = worker.sum(sums[0])
    if worker.rank == 0:
        atomic_add(totals, 0, a)


def _store_2(worker, sums, totals):  # type: ignore[no-untyped-def]
    a = worker.sum(sums[0])
    b = worker.sum(sums[1])
    if worker.rank == 0:
        atomic_add(totals, 0, a)
        atomic_add(totals, 1, b)


def _store_3(worker, sums, totals):  # type: ignore[no-untyped-def]
    a = worker.sum(sums[0])
    b = worker.sum(sums[1])
    c = worker.sum(sums[2])
    if worker.rank == 0:
        atomic_add(totals, 0, a)
        atomic_add(totals, 1, b)
        atomic_add(totals, 2, c)


_PLUS = {1: _plus_1, 2: _plus_2, 3: _plus_3}
_STORE = {1: _store_1, 2: _store_2, 3: _store_3}


def plus(count: int) -> Callable[..., Any]:
    """Return the function that adds two tuples of so many numbers."""
    return _PLUS[count]


def store_sums(count: int) -> Callable[..., Any]:
    """Return the function by which the threads of a worker add their tuples to the array `totals`."""
    return _STORE[count]


def sum_of_lower_ranks(worker, count):  # type: ignore[no-untyped-def]
    """Return the sum of an integer over the threads of the worker before this one, below 2**31; collective, for flat tasks.

    The launch has to give `SCRATCH_BYTES` of scratch: a task cannot know how many threads a worker has.
    """
    sums = worker.scratch(np.int32)
    sums[worker.rank] = count
    worker.sync()
    distance = 1
    while distance < worker.size:
        before = sums[worker.rank - distance] if worker.rank >= distance else 0
        worker.sync()
        sums[worker.rank] += before
        worker.sync()
        distance *= 2
    found = sums[worker.rank] - count
    worker.sync()  # before the next call
    return found
