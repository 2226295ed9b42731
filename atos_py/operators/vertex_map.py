"""Vertex maps: a function of every vertex, in one pass; for its effect, or to sum up or compare what it returns.

An item of the queue is a range of `VERTICES_PER_ITEM` vertices (`ranges.range_items`), of which the threads of a worker take
every so many, so that neighboring threads read neighboring memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..compile.atomics import atomic_add, atomic_max, atomic_min
from ..compile.task import Task
from .ranges import VERTICES_PER_ITEM, split_range
from .reductions import plus, store_sums

__all__ = ["append", "vertex_map", "vertex_max", "vertex_range", "vertex_sums"]


def named(body: Callable[..., Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """Give the body of a task the name and the words of the function that it was made for."""
    body.__name__, body.__doc__ = function.__name__, function.__doc__
    return body


def vertex_map(function: Callable[..., Any]) -> Task:
    """Return the task that calls ``function(v, *args)`` for every vertex, launched with arguments ``(n, *args)``."""

    def run(worker, item, n, *args):  # type: ignore[no-untyped-def]
        for v in split_range(worker, item, n, VERTICES_PER_ITEM):
            function(v, *args)

    return Task(named(run, function))


def vertex_sums(function: Callable[..., Any], count: int = 1) -> Task:
    """Return the task that adds up the `count` numbers of ``function(v, *args)``, a tuple, over all vertices.

    It is launched with arguments ``(n, totals, *args)``, and adds to `totals`, an array of float64.
    """
    add, store = plus(count), store_sums(count)
    zero = (0.0,) * count

    def run(worker, item, n, totals, *args):  # type: ignore[no-untyped-def]
        sums = zero
        for v in split_range(worker, item, n, VERTICES_PER_ITEM):
            sums = add(sums, function(v, *args))
        store(worker, sums, totals)

    return Task(named(run, function))


def vertex_max(function: Callable[..., Any]) -> Task:
    """Return the task that finds the largest ``function(v, *args)``, an integer of at least 0.

    It is launched with arguments ``(n, found, *args)``, and raises `found[0]`.
    """

    def run(worker, item, n, found, *args):  # type: ignore[no-untyped-def]
        most = 0
        for v in split_range(worker, item, n, VERTICES_PER_ITEM):
            most = max(most, function(v, *args))
        most = worker.max(most)
        if worker.rank == 0:
            atomic_max(found, 0, most)

    return Task(named(run, function))


def vertex_range(function: Callable[..., Any]) -> Task:
    """Return the task that finds the least and the greatest number ``function(v, *args)``, and adds all of them up.

    It is launched with arguments ``(n, ends, totals, *args)``: it lowers ``ends[0]`` and raises ``ends[1]``, of the type of
    those numbers, and adds to `totals`, an array of float64.
    """
    store = store_sums(1)

    def run(worker, item, n, ends, totals, *args):  # type: ignore[no-untyped-def]
        least = ends[0]
        most = ends[1]
        total = 0.0
        for v in split_range(worker, item, n, VERTICES_PER_ITEM):
            value = function(v, *args)
            least = min(least, value)
            most = max(most, value)
            total += value
        least = worker.min(least)
        most = worker.max(most)
        if worker.rank == 0:
            atomic_min(ends, 0, least)
            atomic_max(ends, 1, most)
        store(worker, (total,), totals)

    return Task(named(run, function))


def append(found, v):  # type: ignore[no-untyped-def]
    """Append a vertex to a list: an array of integers that has room for it, and counts in its first element; for tasks."""
    found[1 + atomic_add(found, 0, 1)] = v
