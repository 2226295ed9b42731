"""Range takers: items of a round that take ranges of vertices from a counter until there are none (dynamic scheduling).

They are as many as a launch has workers, so that one worker can push them all between two rounds: what its push buffer does
not hold would go to the queue one by one. Ranges are four times as many, so that workers end at about the same time. Were there
a few more, some workers would take a fifth one while the others wait.

Item k begins with range k, and the counter with the number of items. A task goes on like this::

    while k * size < n:
        taken = ask_for_range(worker, counter, place)  # the answer comes meanwhile
        ...
        k = worker.max(taken)

The host plans the first round (`plan_takers`), without knowing how many workers there will be. The function between rounds
knows it (`fit_takers`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compile.atomics import atomic_add
from ..core.devices import Device

__all__ = ["RangeTakers", "ask_for_range", "fit_takers", "plan_takers"]

_OF_PROCESSOR = {"cta": 8, "warp": 64, "thread": 64}  # items for each multiprocessor
_THREADS, _MAX_SIZE, _GROUP = 2048, 2048, 32  # threads of a multiprocessor; vertices of a range, a multiple of the last
_RANGES = 4  # that a worker takes
_FAR_FEWER = 8  # times as many


class RangeTakers(NamedTuple):
    """Items that take ranges of vertices, and the ranges."""

    size: int  # vertices of a range
    takers: int  # items that take them


def plan_takers(n: int, device: Device, worker: str | None) -> RangeTakers:
    """Return the items that take ranges of n vertices, and the size of these, for workers of a kind, by default CTAs."""
    of_processor = _OF_PROCESSOR[worker or "cta"]
    takers = of_processor * device.processors
    size = max(_THREADS // of_processor, min(_MAX_SIZE, n // (2 * takers) // _GROUP * _GROUP))
    return RangeTakers(size, min(takers, -(-n // size)))


def fit_takers(worker, n, planned):  # type: ignore[no-untyped-def]
    """Return the size of ranges of n vertices and the number of items that suit the workers of a launch.

    A launch of far fewer workers than were `planned` for is a small round of a discrete launch, whose next round has others.
    """
    takers = min(planned, worker.count) if worker.count * _FAR_FEWER > planned else planned
    ranges = np.uint32(_RANGES * takers)
    size = np.int64(np.uint32(n - 1 & 0xFFFFFFFF) // ranges)  # unlike those of 64 bits, divisions of 32 bits are no calls
    least = max(worker.size, _GROUP)
    return max(least, min(_MAX_SIZE, (size | (_GROUP - 1)) + 1)), takers


def ask_for_range(worker, counter, place):  # type: ignore[no-untyped-def]
    """Take the next range, in one thread, and return it; 0 in the others."""
    return atomic_add(counter, place, 1) if worker.rank == 0 else np.int64(0)
