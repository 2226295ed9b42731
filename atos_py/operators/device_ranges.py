"""Range takers over several devices: the items of a device take ranges of its own vertices from a counter that it has.

As `range_takers`, for launches with barriers over the parts of a graph. The function between rounds sets the counters of all
devices to 0, by `reset_ranges`. A task goes on like this::

    start, end = vertices_of_device(v, n, ranges)  # v is the item
    first = start + worker.max(ask_for_range(worker, ranges.taken, 0)) * ranges.size
    while first < end:
        taken = ask_for_range(worker, ranges.taken, 0)  # the answer comes meanwhile
        ...
        first = start + worker.max(taken) * ranges.size
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays.array import Array
from ..arrays.ownership import Ownership
from ..arrays.private import PrivateArray
from .range_takers import plan_takers

__all__ = ["DeviceRanges", "plan_device_ranges", "reset_ranges", "takers_of", "vertices_of_device"]


class DeviceRanges(NamedTuple):
    """Ranges of the vertices of each device, and the items that take them."""

    taken: PrivateArray  # how many ranges of the device are, in this round
    all_taken: Array  # the same of all devices, a row for each
    chunk: int  # vertices of a device
    size: int  # vertices of a range
    takers: int  # items of a device


def plan_device_ranges(ownership: Ownership, worker: str | None, taken: PrivateArray) -> DeviceRanges:
    """Return the ranges for workers of a kind, by default CTAs; `taken` is an int64 that is 0, on each device."""
    size, takers = plan_takers(ownership.chunk, ownership.local, worker)
    # GPUs have room for half as many workers of kernels over several of them; CPU devices share the cores.
    takers = -(-takers // (2 if ownership.over_gpus else len(ownership.devices)))
    return DeviceRanges(taken, taken.rows, ownership.chunk, size, takers)


def takers_of(ownership: Ownership, ranges: DeviceRanges) -> NDArray[np.uint32]:
    """Return the items of all devices, for the host to push: ids of vertices that these own."""
    numbers = np.arange(len(ownership.devices))[:, None] * ranges.chunk + np.arange(ranges.takers)
    numbers = numbers[numbers < ownership.size]
    return (numbers if ownership.ids is None else ownership.ids[numbers]).astype(np.uint32)


def reset_ranges(worker, ranges):  # type: ignore[no-untyped-def]
    """Let all ranges be taken anew, in the next round; collective, in the function between rounds."""
    for k in worker.split(ranges.all_taken.shape[0]):
        ranges.all_taken[k, 0] = 0


def vertices_of_device(v, n, ranges):  # type: ignore[no-untyped-def]
    """Return the first vertex of the device that owns v, and the end of its vertices; for tasks."""
    start = np.int64(v // ranges.chunk * ranges.chunk)
    return start, min(start + ranges.chunk, np.int64(n))
