"""Breadth-first search over several devices that only pushes, level by level: no edge crosses a link, bits do.

Each device has a *tried* bit for every vertex: whether one of its own edges to it was followed. A level is two rounds. In the
first one the owner of a vertex ORs the bits that all devices have for it, and stores the depth of what is new (`merge`). In the
second one the new vertices of each device set the bits of their neighbors, each on its own device (`mark`). So a level reads
one bit of each other device for a vertex, in order, and has no atomic operation across a link, however many edges cross it.

The frontier is never listed: in both rounds the items of a device take ranges of its vertices (`operators.device_ranges`), and
a round that marks finds the new ones by their bits. The edges of 32 vertices are spread evenly over 32 threads. Rows that are
long for that are listed in pieces when their vertices are reached, and workers take the pieces after the ranges.

As on one device, after `MOST_LEVELS` levels the search goes on without rounds.

Source: Buluç and Madduri, "Parallel breadth-first search on distributed memory systems", SC 2011, for the exchange by levels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...algorithms.bfs.growing_ranges import GrowingRanges, begin_of, plan_growing_ranges
from ...algorithms.bfs.pushed_levels import MOST_LEVELS
from ...algorithms.bfs.spread_edges import scan, spread_edges
from ...algorithms.bfs.tasks import visit_within
from ...algorithms.launch_sequence import LaunchSequence
from ...arrays.array import Array
from ...arrays.partitioned import PartitionedArray
from ...arrays.private import PrivateArray, arrays_together
from ...arrays.record import places
from ...compile.atomics import atomic_add, atomic_or_
from ...compile.cached_load import load_cached
from ...compile.task import task
from ...graph.partition import Partition
from ...operators.device_ranges import DeviceRanges, plan_device_ranges, reset_ranges, takers_of, vertices_of_device
from ...operators.range_takers import ask_for_range
from ...runtime.experiment import Experiment
from ...runtime.launch_options import LaunchOptions

__all__ = ["PushedSearch", "push_level", "search_by_pushed_levels_over"]

_GROUP, _WORDS = 32, 8  # threads of a group, and words of bits that it reads at once: a sector of memory
_LONG, _PIECE = 512, 1024  # edges of a row above which it is long, and of a piece of it, at most


class LevelCounts(NamedTuple):
    """Words of the counts of a device (`arrays.record`)."""

    pieces: int = 1  # of this level
    found: int = 1  # whether the level has any vertex that goes on


AT = places(LevelCounts)
_RANGES = 64  # for each item, whose warps take one after another
# Each worker pushes one item in a round; what is left is cache.
_ROOM: LaunchOptions = {"experiment": Experiment(push_buffer=64)}


class PushedSearch(NamedTuple):
    """Arrays and limits of a search, the last argument of its task."""

    depth: PartitionedArray
    tried: PrivateArray  # a bit for each vertex to which an edge of the device was followed
    all_tried: Array  # the same of all devices, a row for each
    reached: PrivateArray  # a bit for each vertex of the device, whether it was reached up to an even or an odd level
    pieces: PrivateArray  # of long rows of this level: their vertices, and the number of each piece in its row
    counts: PrivateArray
    all_counts: Array  # the same of all devices, a row for each
    takers: DeviceRanges
    ranges: GrowingRanges  # of words
    limit: int  # the largest depth


def list_long_row(group, v, is_new, parts, search):  # type: ignore[no-untyped-def]
    """List the row of a new vertex of each thread of a group in pieces, if it is long."""
    length = np.int64(0)
    if is_new:
        length = np.int64(parts.indptr[v + 1]) - np.int64(parts.indptr[v])
    if group.any(length > _LONG):
        count = (length + _PIECE - 1) // _PIECE if length > _LONG else 0
        end = scan(group, count)
        place = np.int64(0)
        if group.rank == group.size - 1:
            place = atomic_add(search.counts, AT.pieces, np.int64(end))
        place = group.shuffle(place, group.size - 1) + (end - count)
        for k in range(count):
            search.pieces[0, place + k] = v
            search.pieces[1, place + k] = k


def start_from_sources(group, first, last, parts, search):  # type: ignore[no-untyped-def]
    """Find the sources in a range of words, whose depth is 0; return whether there are any."""
    end, found = min(last << 5, search.depth.size), False
    for base in range(first << 5, end, group.size):
        v = base + group.rank
        is_source = v < end and search.depth[min(v, end - 1)] == 0
        if group.any(is_source):
            found = True
            if is_source:
                atomic_or_(search.reached, (0, v >> 5), np.uint32(1 << (v & 31)))
            list_long_row(group, v, is_source, parts, search)
    return found


def merge(group, first, last, level, parts, search):  # type: ignore[no-untyped-def]
    """Reach what is new of a range of words; return whether there is any."""
    at_once, found = min(_WORDS, group.size), False
    for base in range(first, last, at_once):
        word = min(base + group.rank % at_once, last - 1)
        before = search.reached[level + 1 & 1, word]
        bits = before
        for k in range(search.all_tried.shape[0]):
            bits |= search.all_tried[k, word]
        if group.rank < at_once:
            search.reached[level & 1, word] = bits
        bits = np.uint32(bits & ~before)
        for k in range(min(at_once, last - base)):
            new = group.shuffle(bits, k)
            if new != 0:
                found = True
                for bit in group.split(32):
                    v, is_new = (base + k << 5) + bit, new >> bit & 1 != 0
                    if is_new:
                        search.depth[v] = level
                    list_long_row(group, v, is_new, parts, search)
    return found


def untried_end(edge, parts, search):  # type: ignore[no-untyped-def]
    """Return the end of an edge, or -1 if its bit is set."""
    u = np.int64(parts.indices[edge])
    return u if load_cached(search.tried, u >> 5) >> (u & 31) & 1 == 0 else np.int64(-1)


def set_tried(u, parts, search):  # type: ignore[no-untyped-def]
    """Set the bit of a vertex."""
    atomic_or_(search.tried, u >> 5, np.uint32(1 << (u & 31)))


mark_rows, mark_row = spread_edges(untried_end, set_tried)


def mark(group, first, last, level, parts, search):  # type: ignore[no-untyped-def]
    """Set the bits of the neighbors of new vertices of a range of words, but of those with long rows."""
    at_once = min(_WORDS, group.size)
    for base in range(first, last, at_once):
        word = min(base + group.rank % at_once, last - 1)
        bits = load_cached(search.reached, (level & 1, word)) & ~load_cached(search.reached, (level + 1 & 1, word))
        bits = np.uint32(bits)
        for k in range(min(at_once, last - base)):
            new = group.shuffle(bits, k)
            if new != 0:
                for bit in group.split(32):
                    v, edge, length = (base + k << 5) + bit, np.int64(0), np.int64(0)
                    if new >> bit & 1 != 0:
                        edge = np.int64(parts.indptr[v])
                        length = np.int64(parts.indptr[v + 1]) - edge
                    mark_rows(group, edge, length if length <= _LONG else np.int64(0), parts, search)


def mark_piece(group, k, parts, search):  # type: ignore[no-untyped-def]
    """Set the bits of the ends of a piece of a long row."""
    v = np.int64(search.pieces[0, k])
    edge = np.int64(parts.indptr[v]) + np.int64(search.pieces[1, k]) * _PIECE
    mark_row(group, edge, min(edge + _PIECE, np.int64(parts.indptr[v + 1])), parts, search)


@task(max_registers={"cta": 64})
def push_level(worker, v, parts, search):  # type: ignore[no-untyped-def]
    """Take ranges of the device, to merge or to mark, then pieces of rows; push the item for the next round."""
    if worker.rank == 0:
        worker.push(v)
    group = worker.group(_GROUP)
    level, marks = worker.round >> 1, worker.round & 1 == 1
    taken, num_ranges = search.takers.taken, search.ranges.how_many
    start, end = vertices_of_device(v, search.depth.size, search.takers)
    start, end = start >> 5, (end + 31) >> 5
    num_pieces = search.counts[AT.pieces] if marks else 0
    found = False
    k = group.max(ask_for_range(group, taken, 0))
    while k < num_ranges + num_pieces:
        following = ask_for_range(group, taken, 0)  # the answer comes meanwhile
        first, last = start + begin_of(k, search.ranges), min(start + begin_of(k + 1, search.ranges), end)
        if k >= num_ranges:
            mark_piece(group, k - num_ranges, parts, search)
        elif marks:
            mark(group, first, last, level, parts, search)
        elif level == 0:
            found |= start_from_sources(group, first, last, parts, search)
        else:
            found |= merge(group, first, last, level, parts, search)
        k = group.max(following)
    if found and group.rank == 0 and level < search.limit:
        search.counts[AT.found] = 1


def end_round(worker, parts, search):  # type: ignore[no-untyped-def]
    """Stop after a level that reached nothing, or leave the rest to a launch without rounds."""
    reset_ranges(worker, search.takers)
    found = False
    for k in worker.split(search.all_counts.shape[0]):
        found = found or search.all_counts[k, AT.found] != 0
        search.all_counts[k, AT.found] = 0
        if worker.round & 1 == 1:
            search.all_counts[k, AT.pieces] = 0
    goes_on = worker.any(found) or worker.round & 1 == 1
    if not goes_on or worker.round == 2 * MOST_LEVELS:
        worker.stop()


def search_by_pushed_levels_over(parts: Partition, depth: PartitionedArray, launches: LaunchSequence, limit: int) -> None:
    """Find the depths up to a limit, of at least 1; `depth` is 0 at the sources."""
    ownership, words = parts.ownership, -(-parts.num_vertices // 32)
    # A long row has more than _LONG edges, and one piece at most that is not full.
    most_pieces = parts.num_edges // _LONG + parts.num_edges // _PIECE + 1
    taken, counts, tried, reached, pieces = arrays_together(
        ownership,
        (PrivateArray, 1, np.int64),
        (PrivateArray, 2, np.int64),
        (PrivateArray, words, np.uint32),
        (PrivateArray, (2, words), np.uint32),
        (PrivateArray, (2, most_pieces), np.uint32),
    )
    takers = plan_device_ranges(ownership, launches.worker, taken)
    ranges = plan_growing_ranges(-(-ownership.chunk // 32), _RANGES * takers.takers)
    search = PushedSearch(depth, tried, tried.rows, reached, pieces, counts, counts.rows, takers, ranges, limit)
    rounds: LaunchOptions = {"barrier": True, "each_round": end_round}
    launches.launch(takers_of(ownership, takers), push_level, parts, search, defaults=_ROOM, overrides=rounds)
    launches.runs[-1].stopped = False
    launches.queue.clear()
    if launches.runs[-1].rounds > 2 * MOST_LEVELS and limit > MOST_LEVELS:
        rest = np.flatnonzero(depth.to_numpy() == MOST_LEVELS)
        if rest.size:
            launches.launch(rest, visit_within, parts, depth, None, limit)
