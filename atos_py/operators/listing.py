"""Listing what vertices have, in their order whatever the schedule, and adding it up: for results of which no run is to differ.

Each range of vertices has a place in the list, known from a count before, and so has each thread of a worker in that of its
range, which is cut into parts of neighboring vertices. Sums are those of ranges, each of them added up in one order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..compile.task import Task
from .reductions import plus, sum_of_lower_ranks
from .vertex_map import named

__all__ = ["listing"]


def listing(listed: Callable[..., Any], write: Callable[..., Any], zero: Any) -> Task:
    """Return the flat task that lists vertices with ``listed(v, *args)``, by ``write(v, place, *args)`` for each.

    `write` returns three numbers, of the type of `zero`, whose sums over a range of vertices become its row of `sums`. The
    items are range items, and the arguments of a launch ``(size, n, places, sums, *args)``: vertices of a range, of n in all,
    and the place of each range. A worker takes scratch of `reductions.SCRATCH_BYTES`.
    """
    add, zeros = plus(3), (zero,) * 3

    def run(worker, item, size, n, places, sums, *args):  # type: ignore[no-untyped-def]
        first = item * size
        last = min(first + size, n)
        share = (last - first + worker.size - 1) // worker.size
        begin = min(first + worker.rank * share, last)
        end = min(begin + share, last)
        count = 0
        for v in range(begin, end):
            count += listed(v, *args)
        place = places[item] + sum_of_lower_ranks(worker, count)
        total = zeros
        for v in range(begin, end):
            if listed(v, *args):
                total = add(total, write(v, place, *args))
                place += 1
        a = worker.sum(total[0])
        b = worker.sum(total[1])
        c = worker.sum(total[2])
        if worker.rank == 0:
            sums[item, 0] = a
            sums[item, 1] = b
            sums[item, 2] = c

    return Task(named(run, write))
