"""Breadth-first search over several devices, level by level: a small frontier pushes, a large one is pulled from.

Pushing: a device has a bit for every vertex, whether it has tried to reach it. So of its edges to a vertex one alone crosses
the link to the owner. The owner gets the depth, and the vertex as an item of the next round.

Pulling: each device has a copy of bits that say which vertices were reached. A vertex that pulls looks for a neighbor with a
bit. That is one of the last level, since a neighbor of an earlier one would have reached the vertex. A device that has pulled
sends the bits of its own vertices to all, for the next level. A vertex without edges has a bit too, though it is not reached:
so it does not look, and a word of bits that are all set, of which there are soon many, says that 32 vertices need nothing.

A level is a round; before the first level that pulls, another one sends the bits of what was pushed. While levels may still be
pulled, a level that pushes only counts what it reaches, and a level that is to push lists its vertices first. `open_level` is
the function between rounds, which chooses what the next round does, the mode. Each device has items that take ranges of its
vertices (`operators.device_ranges`) in all rounds that do not push, and push themselves for the next round: if that function
pushed them, all devices would wait for the one worker that runs it.

Source: Beamer, Asanović and Patterson, "Direction-optimizing breadth-first search", SC 2012.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...algorithms.bfs.direction import ALPHA, MAX_PUSHED_LEVELS
from ...algorithms.bfs.pushed_levels import is_first_try
from ...algorithms.bfs.tasks import UNREACHED
from ...algorithms.launch_sequence import LaunchSequence
from ...arrays.array import Array
from ...arrays.mirrored import MirroredArray
from ...arrays.partitioned import PartitionedArray
from ...arrays.private import PrivateArray, arrays_together
from ...arrays.record import places, record_size
from ...arrays.shared import common_zeros
from ...compile.atomics import atomic_add, atomic_min
from ...compile.cached_load import load_cached
from ...compile.task import task
from ...graph.partition import Partition
from ...operators.device_ranges import DeviceRanges, plan_device_ranges, reset_ranges, takers_of, vertices_of_device
from ...operators.range_takers import ask_for_range
from ...operators.row_pull import SEARCHED_ALONE, row_search
from ...runtime.launch_options import LaunchOptions

__all__ = ["LEVEL_TASKS", "Search", "expand", "open_level", "search_over_devices", "take_ranges"]

# Modes of a round. The level pushes; its vertices are listed; its bits are sent; it is pulled from; its vertices are listed, by
# depths or by bits, and no level will be pulled from any more; the search is over.
_PUSH, _LIST, _SEND, _PULL, _LAST, _LAST_BY_BITS, _END = range(7)


class LevelState(NamedTuple):
    """Words of the state of a search (`arrays.record`)."""

    level: int = 1
    found: int = 1  # edges found before the level


AT = places(LevelState)
_ALL = np.uint32(0xFFFF_FFFF)  # bits of a word
_GROUP = 4  # threads that make a word of bits
_NUM_SUMS = 256  # places of a device that a sum is spread over, all of which are read between two rounds


class Search(NamedTuple):
    """Arrays and limits of a search, the last argument of its tasks."""

    depth: PartitionedArray
    tried: PrivateArray  # a bit for each vertex that the device has tried to reach by pushing
    reached: MirroredArray  # a bit for each vertex that was reached, twice: for levels of even and of odd number
    state: Array
    edges: PrivateArray  # of what tasks of the device have reached: a sum, spread over many places
    all_edges: Array  # the same of all devices, a row for each
    ranges: DeviceRanges
    alone: int  # edges of a vertex at which one thread looks
    limit: int  # the largest depth
    target: int  # or -1


def add_found(search, place, edges):  # type: ignore[no-untyped-def]
    """Add up edges of vertices that were reached."""
    atomic_add(search.edges, place % _NUM_SUMS, edges)


def out_edges(v, parts, search):  # type: ignore[no-untyped-def]
    """Return the number of neighbors of v, where they begin, and the depth that they get."""
    first = parts.indptr[v]
    return parts.indptr[v + 1] - first, first, search.depth[v] + 1


@task(workload=out_edges, max_registers={"cta": 64})
def expand(worker, v, i, first, next_depth, parts, search):  # type: ignore[no-untyped-def]
    """Relax edge i of v; add up the edges of its target, or push it, if all levels to come are pushed."""
    u = np.int64(parts.indices[first + i])
    if is_first_try(search.tried, u) and atomic_min(search.depth, u, next_depth) > next_depth:
        if worker.mode < _LAST:
            add_found(search, u, np.int64(parts.indptr[u + 1]) - np.int64(parts.indptr[u]))
        elif next_depth < search.limit:
            worker.push(u)


def bits_of(is_set):  # type: ignore[no-untyped-def]
    """Return the function by which the threads of a group make a word of bits of 32 vertices, an equal share each."""

    def make_word(group, word, end, *args):  # type: ignore[no-untyped-def]
        share = 32 // group.size  # bits of a thread
        bits = np.uint32(0)
        for k in range(share):
            v = (word << 5) + group.rank * share + k
            found = is_set(min(v, end - 1), *args)  # in any case, so that all are asked for at once
            bits |= np.uint32(found & (v < end)) << np.uint32(v & 31)
        return bits

    return make_word


def is_reached(v, search):  # type: ignore[no-untyped-def]
    """Whether a vertex was reached."""
    return search.depth[v] != UNREACHED


def is_isolated(v, parts):  # type: ignore[no-untyped-def]
    """Whether a vertex has no edges."""
    return parts.indptr[v] == parts.indptr[v + 1]


bits_of_reached, bits_of_isolated = bits_of(is_reached), bits_of(is_isolated)


def send_words(worker, first, end, level, search):  # type: ignore[no-untyped-def]
    """Send all devices the bits of a level, of a range of vertices that begins with a word and was pulled for."""
    group = worker.group(_GROUP)
    for word in range((first >> 5) + group.index, (end + 31) >> 5, group.count):
        bits = search.reached[(level + 1) & 1, word]
        if bits != _ALL:
            bits |= group.sum(np.int64(bits_of_reached(group, word, end, search)) & ~bits)
        if group.rank == 0:
            search.reached[level & 1, word] = bits


def send_first_words(worker, first, end, parts, level, search):  # type: ignore[no-untyped-def]
    """Send all devices the bits of a range of vertices for the first level that is pulled from."""
    group = worker.group(_GROUP)
    for word in range((first >> 5) + group.index, (end + 31) >> 5, group.count):
        bits = group.sum(bits_of_reached(group, word, end, search) | bits_of_isolated(group, word, end, parts))
        if group.rank == 0:
            search.reached[level & 1, word] = bits


def push_new(worker, first, end, level, search):  # type: ignore[no-untyped-def]
    """Push the vertices of a range that were reached in the last level, which was pulled from."""
    for byte in worker.split(range(first >> 3, (end + 7) >> 3)):  # a thread looks at eight vertices
        word = byte >> 2
        new = search.reached[level & 1, word] & ~search.reached[(level + 1) & 1, word]
        new = new >> np.uint32((byte & 3) << 3) & np.uint32(255)
        v = byte << 3
        while new != 0:
            if new & 1 != 0:
                worker.push(v, task=expand)
            new >>= np.uint32(1)
            v += 1


def is_unreached(v, parts, level, search):  # type: ignore[no-untyped-def]
    """Whether a vertex looks for a parent in this level."""
    return load_cached(search.reached, (level & 1, v >> 5)) >> (v & 31) & 1 == 0


def is_still_unreached(v, parts, level, search):  # type: ignore[no-untyped-def]
    """Whether a vertex has found no parent in this level yet."""
    return search.depth[v] == UNREACHED


def is_parent(edge, parts, level, search):  # type: ignore[no-untyped-def]
    """Whether an edge leads to a vertex that was reached."""
    u = np.int64(parts.indices[edge])
    return load_cached(search.reached, (level & 1, u >> 5)) >> (u & 31) & 1 != 0


def depth_below(v, edge, parts, level, search):  # type: ignore[no-untyped-def]
    """Return the depth of a vertex with an edge to the last level."""
    return level + 1


def settle(v, depth, parts, level, search):  # type: ignore[no-untyped-def]
    """Store the depth of v; return its edges."""
    search.depth[v] = depth
    return np.int64(parts.indptr[v + 1]) - np.int64(parts.indptr[v])


look_for_parents = row_search(is_unreached, is_parent, depth_below, settle, is_still_unreached)


@task
def take_ranges(worker, v, parts, search):  # type: ignore[no-untyped-def]
    """Do what the mode says with ranges of the device's vertices, and push the item again for the next round."""
    mode, level, ranges = worker.mode, np.int64(search.state[AT.level]), search.ranges
    if worker.rank == 0 and mode < _LAST:
        worker.push(v, task=take_ranges)
    if mode in (_PUSH, _END):
        return
    start, end = vertices_of_device(v, search.depth.size, ranges)
    found = np.int64(0)
    first = start + worker.max(ask_for_range(worker, ranges.taken, 0)) * ranges.size
    while first < end:
        taken = ask_for_range(worker, ranges.taken, 0)  # the answer comes meanwhile
        last = min(first + ranges.size, end)
        if mode == _PULL:
            found += look_for_parents(worker, first, last, search.alone, parts.indptr, parts, level, search)
            worker.sync()  # all depths of the range are stored
            send_words(worker, first, last, level + 1, search)
        elif mode == _SEND:
            send_first_words(worker, first, last, parts, level, search)
        elif mode == _LAST_BY_BITS:
            push_new(worker, first, last, level, search)
        else:
            for u in worker.split(range(first, last)):
                if search.depth[u] == level:
                    worker.push(u, task=expand)
        first = start + worker.max(taken) * ranges.size
    edges = worker.sum(found)
    if worker.rank == 0 and edges > 0:
        add_found(search, v, edges)


def open_level(worker, parts, search):  # type: ignore[no-untyped-def]
    """Choose the mode of the next round: the direction of the next level, if this one is over."""
    mode, state = worker.mode, search.state
    if mode >= _LAST:
        return
    reset_ranges(worker, search.ranges)
    if mode == _LIST:
        worker.set_mode(_PUSH)
        return
    found = np.int64(0)
    for k in worker.split(search.all_edges.shape[0] * _NUM_SUMS):
        found += search.all_edges[k // _NUM_SUMS, k % _NUM_SUMS]
    found = worker.sum(found)
    edges = found - state[AT.found]  # of the frontier
    level = state[AT.level] + 1
    pulls = edges * ALPHA > parts.indices.size - found
    pushes_rest = not pulls and (mode == _PULL or level == MAX_PUSHED_LEVELS)
    is_met = search.target >= 0 and search.depth[max(search.target, 0)] != UNREACHED
    worker.sync()  # all have read the state
    if mode == _SEND:  # the level is still to be pulled from
        worker.set_mode(_PULL)
        return
    if worker.rank == 0:
        state[AT.level] = level
        state[AT.found] = found
    if edges == 0 or level >= search.limit or is_met:
        worker.set_mode(_END)
    elif pulls:
        worker.set_mode(_PULL if mode == _PULL else _SEND)  # levels that pull send the bits themselves
    else:
        worker.set_mode(_LAST_BY_BITS if mode == _PULL else _LAST if pushes_rest else _LIST)


LEVEL_TASKS = expand, take_ranges


def search_over_devices(
    parts: Partition,
    sources: NDArray[Any],
    depth: PartitionedArray,
    launches: LaunchSequence,
    target: int | None,
    limit: int,
) -> None:
    """Find the depths of an undirected graph: up to a limit, or to the level in which a target is reached.

    After the last level that pulls the rest is searched to its end, whatever the target.
    """
    ownership = parts.ownership
    num_words = -(-parts.num_vertices // 32)
    taken, edges, tried, reached = arrays_together(
        ownership,
        (PrivateArray, 1, np.int64),
        (PrivateArray, _NUM_SUMS, np.int64),
        (PrivateArray, num_words, np.uint32),
        (MirroredArray, (2, num_words), np.uint32),
    )
    state = common_zeros(record_size(LevelState), np.int64, ownership)
    limits = SEARCHED_ALONE[ownership.devices[0].kind], limit, -1 if target is None else target
    ranges = plan_device_ranges(ownership, launches.worker, taken)
    search = Search(depth, tried, reached, state, edges, edges.rows, ranges, *limits)
    rounds: LaunchOptions = {"barrier": True, "each_round": open_level}
    launches.queue.push(takers_of(ownership, ranges), task=take_ranges)
    launches.launch(sources, LEVEL_TASKS, parts, search, overrides=rounds)
