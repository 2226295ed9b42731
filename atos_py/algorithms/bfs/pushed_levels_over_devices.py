"""Breadth-first search over several devices that only pushes, level by level: no edge crosses a link, bits do.

Each device has a *tried* bit for every vertex: whether one of its own edges to it was followed. A level is two rounds. In the
first one the vertices of the level set the bits of their neighbours, each on its own device (`mark`). In the second one the
owner of a vertex ORs the bits that all devices have for it, stores the depth of what is new, and pushes it for the next level
(`merge`). So a level reads one bit of each other device for a vertex, in order, and has no atomic operation across a link,
however many edges cross it.

As on one device, after `MOST_LEVELS` levels the search goes on without rounds.

Source: Buluç and Madduri, "Parallel breadth-first search on distributed memory systems", SC 2011, for the exchange by levels.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...arrays.array import Array
from ...arrays.partitioned import PartitionedArray
from ...arrays.private import PrivateArray, arrays_together
from ...compile.task import task
from ...graph.partition import Partition
from ...operators.device_ranges import DeviceRanges, plan_device_ranges, reset_ranges, takers_of, vertices_of_device
from ...operators.range_takers import ask_for_range
from ...runtime.launch_options import LaunchOptions
from ..launch_sequence import LaunchSequence
from .pushed_levels import MOST_LEVELS, is_first_try
from .tasks import UNREACHED, visit_within

__all__ = ["PUSH_TASKS", "PushedSearch", "search_by_pushed_levels_over"]


_ROOM: LaunchOptions = {"push_buffer": 2048}  # more than by default; with still more, a GPU has less L1 cache


class PushedSearch(NamedTuple):
    """Arrays and limits of a search, the last argument of its tasks."""

    depth: PartitionedArray
    tried: PrivateArray  # a bit for each vertex to which an edge of the device was followed
    all_tried: Array  # the same of all devices, a row for each
    reached: PrivateArray  # a bit for each vertex of the device, whether it was reached up to an even or an odd level
    ranges: DeviceRanges
    takers: int  # items of all devices that take ranges
    limit: int  # the largest depth


def out_edges(v, parts, search):  # type: ignore[no-untyped-def]
    """Return the number of neighbours of v, and where they begin."""
    first = parts.indptr[v]
    return parts.indptr[v + 1] - first, first, 0


@task(workload=out_edges)
def mark(worker, v, i, first, unused, parts, search):  # type: ignore[no-untyped-def]
    """Set the bit of the end of edge i of v."""
    is_first_try(search.tried, np.int64(parts.indices[first + i]))


def merge_words(worker, first, end, level, search):  # type: ignore[no-untyped-def]
    """Reach what is new of a range of vertices of the device, which begins with a word."""
    now, then = level & 1, (level + 1) & 1
    for byte in worker.split(range(first >> 3, (end + 7) >> 3)):  # a thread looks at eight vertices
        word = byte >> 2
        before = search.reached[now, word]
        bits = before
        for k in range(search.all_tried.shape[0]):
            bits |= search.all_tried[k, word]
        if byte & 3 == 0:
            search.reached[then, word] = bits
        new = (bits & ~before) >> np.uint32((byte & 3) << 3) & np.uint32(255)
        v = byte << 3
        while new != 0:
            # A source has a depth, and no bit before.
            if new & 1 != 0 and search.depth[v] == UNREACHED:
                search.depth[v] = level + 1
                if level + 1 < search.limit:
                    worker.push(v, task=mark)
            new >>= np.uint32(1)
            v += 1


@task
def merge(worker, v, parts, search):  # type: ignore[no-untyped-def]
    """In every second round take ranges of the device's vertices; push the item again for the next round."""
    if worker.rank == 0:
        worker.push(v, task=merge)
    if worker.round & 1 == 0:
        return
    level, ranges = worker.round >> 1, search.ranges
    start, end = vertices_of_device(v, search.depth.size, ranges)
    first = start + worker.max(ask_for_range(worker, ranges.taken, 0)) * ranges.size
    while first < end:
        taken = ask_for_range(worker, ranges.taken, 0)  # the answer comes meanwhile
        merge_words(worker, first, min(first + ranges.size, end), level, search)
        first = start + worker.max(taken) * ranges.size


PUSH_TASKS = mark, merge


def end_round(worker, parts, search):  # type: ignore[no-untyped-def]
    """Stop after a level that reached nothing, or leave the rest to a launch without rounds."""
    reset_ranges(worker, search.ranges)
    if worker.round & 1 == 1 and (worker.pending == search.takers or worker.round >= 2 * MOST_LEVELS - 1):
        worker.stop()


def search_by_pushed_levels_over(
    parts: Partition, sources: NDArray[Any], depth: PartitionedArray, launches: LaunchSequence, limit: int
) -> None:
    """Find the depths up to a limit, of at least 1; `depth` is 0 at the sources."""
    ownership, words = parts.ownership, -(-parts.num_vertices // 32)
    taken, tried, reached = arrays_together(
        ownership, (PrivateArray, 1, np.int64), (PrivateArray, words, np.uint32), (PrivateArray, (2, words), np.uint32)
    )
    ranges = plan_device_ranges(ownership, launches.worker, taken)
    takers = takers_of(ownership, ranges)
    search = PushedSearch(depth, tried, tried.rows, reached, ranges, len(takers), limit)
    rounds: LaunchOptions = {"barrier": True, "each_round": end_round}
    launches.queue.push(takers, task=merge)
    launches.launch(sources, PUSH_TASKS, parts, search, defaults=_ROOM, overrides=rounds)
    launches.runs[-1] = replace(launches.runs[-1], stopped=False)
    rest = sources[:0]
    if launches.runs[-1].rounds >= 2 * MOST_LEVELS:
        vertices, tasks = launches.queue.peek(kinds=True)
        rest = vertices[tasks == mark.name]
    launches.queue.clear()
    if rest.size:
        launches.launch(rest, visit_within, parts, depth, None, limit)
