"""Direction-optimizing breadth-first search over several devices, level by level.

Each device has a bit for every vertex: whether it was reached before the level. A vertex that pushes asks its own device's bit
of a neighbour first, so that an edge seldom crosses a link. A vertex that pulls looks for a neighbour with a bit. That is one
of the last level, since a neighbour of an earlier one would have reached the vertex. Bits are set in words that the owner of
their vertices has, and sent to all devices before a level that pulls.

A level is a round that pushes, or two that pull: one sends the bits, one looks for neighbours. What a level that pulls has
reached is listed in a round of its own, if the next one pushes. `open_level` is the function between rounds.

Source: Beamer, Asanović and Patterson, "Direction-optimizing breadth-first search", SC 2012.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...arrays.array import Array
from ...arrays.mirrored import MirroredArray
from ...arrays.partitioned import PartitionedArray
from ...arrays.shared import common_zeros
from ...compile.atomics import atomic_add, atomic_min, atomic_or_
from ...compile.task import task
from ...graph.partition import Partition
from ...operators.reductions import NUM_PARTIAL_SUMS
from ...operators.row_pull import SEARCHED_ALONE, row_search
from ...runtime.launch_options import LaunchOptions
from ..launch_sequence import LaunchSequence
from .direction import ALPHA
from .tasks import UNREACHED

__all__ = ["search_over_devices"]

# Rounds: vertices push to their neighbours; bits are sent; unreached vertices pull; what was reached is listed; the end.
_PUSH, _SEND, _PULL, _LIST, _END = range(5)
# Places in the state. The edges of what has been reached are a sum that is spread over the last ones.
_KIND, _LEVEL, _FOUND, _SUMS = range(4)
_SIZE = 2048  # vertices of a range


class Search(NamedTuple):
    """Arrays and limits of a search, the last argument of its tasks."""

    depth: PartitionedArray
    reached: PartitionedArray  # a bit for each vertex, where its owner has it
    before: PartitionedArray  # those of earlier levels, on each device
    state: Array
    alone: int  # edges of a vertex at which one thread looks
    limit: int  # the largest depth
    target: int  # or -1


def has_bit(words, v):  # type: ignore[no-untyped-def]
    """Whether the bit of a vertex is set."""
    return words[v >> 5] >> (v & 31) & 1 != 0


def set_bit(parts, search, v):  # type: ignore[no-untyped-def]
    """Set the bit of a vertex, and add up its edges."""
    atomic_or_(search.reached, v >> 5, np.uint32(1 << (v & 31)))
    return np.int64(parts.indptr[v + 1]) - np.int64(parts.indptr[v])


def add_found(search, place, edges):  # type: ignore[no-untyped-def]
    """Add up edges of vertices that were reached."""
    atomic_add(search.state, _SUMS + place % NUM_PARTIAL_SUMS, edges)


def out_edges(v, parts, search):  # type: ignore[no-untyped-def]
    """Return the number of neighbours of v, none if this round does not push, where they begin, and the depth that they get."""
    first = parts.indptr[v]
    degree = parts.indptr[v + 1] - first if search.state[_KIND] == _PUSH else 0
    return degree, first, search.depth[v] + 1


@task(workload=out_edges)
def push_level(worker, v, i, first, next_depth, parts, search):  # type: ignore[no-untyped-def]
    """Relax edge i of v, unless its target was reached before."""
    u = parts.indices[first + i]
    if not has_bit(search.before, u) and atomic_min(search.depth, u, next_depth) > next_depth:
        add_found(search, u, set_bit(parts, search, u))
        worker.push(u)


@task
def send_bits(worker, v, parts, search):  # type: ignore[no-untyped-def]
    """Send all devices the bits of a range of vertices, as far as they have changed."""
    last = min(v + _SIZE, search.depth.size) - 1
    for word in worker.split(range(v >> 5, (last >> 5) + 1)):
        bits = search.reached[word]
        if bits != search.before[word]:
            search.before[word] = bits


def is_unreached(v, parts, level, search):  # type: ignore[no-untyped-def]
    """Whether a vertex looks for a parent."""
    return search.depth[v] == UNREACHED


def is_parent(edge, parts, level, search):  # type: ignore[no-untyped-def]
    """Whether an edge leads to a vertex that was reached."""
    return has_bit(search.before, parts.indices[edge])


def depth_below(v, edge, parts, level, search):  # type: ignore[no-untyped-def]
    """Return the depth of a vertex with an edge to the last level."""
    return level + 1


def settle(v, depth, parts, level, search):  # type: ignore[no-untyped-def]
    """Store the depth of v; return its edges."""
    search.depth[v] = depth
    return set_bit(parts, search, v)


look_for_parents = row_search(is_unreached, is_parent, depth_below, settle)


@task
def pull_level(worker, v, parts, search):  # type: ignore[no-untyped-def]
    """Have the vertices of a range look for a parent."""
    level, end = np.uint32(search.state[_LEVEL]), min(v + _SIZE, search.depth.size)
    edges = worker.sum(look_for_parents(worker, v, end, search.alone, parts.indptr, parts, level, search))
    if worker.rank == 0 and edges > 0:
        add_found(search, v // _SIZE, edges)


@task
def list_level(worker, v, parts, search):  # type: ignore[no-untyped-def]
    """Push the vertices of the level, of a range."""
    level = search.state[_LEVEL]
    for u in worker.split(range(v, min(v + _SIZE, search.depth.size))):
        if search.depth[u] == level:
            worker.push(u, task=push_level)


def open_level(worker, parts, search):  # type: ignore[no-untyped-def]
    """Choose the next round, and push the ranges that it goes through."""
    state, n = search.state, search.depth.size
    kind, level, before = state[_KIND], state[_LEVEL], state[_FOUND]
    found = 0
    for k in worker.split(range(_SUMS, _SUMS + NUM_PARTIAL_SUMS)):
        found += state[k]
    found = worker.sum(found)
    edges = found - before  # of the level
    target = search.target
    is_met = target >= 0 and search.depth[max(target, 0)] != UNREACHED
    following = _PULL
    if kind == _LIST:
        following = _PUSH
    elif kind != _SEND:
        level += 1
        if edges == 0 or level >= search.limit or is_met:
            following = _END
        elif edges * ALPHA > parts.indices.size - found:
            following = _SEND
        else:
            following = _PUSH if kind == _PUSH else _LIST
    worker.sync()  # all have read the state
    if worker.rank == 0:
        state[_KIND] = following
        state[_LEVEL] = level
        state[_FOUND] = found
    for k in worker.split((n + _SIZE - 1) // _SIZE):
        if following == _SEND:
            worker.push(k * _SIZE, task=send_bits)
        elif following == _PULL:
            worker.push(k * _SIZE, task=pull_level)
        elif following == _LIST:
            worker.push(k * _SIZE, task=list_level)


def search_over_devices(
    parts: Partition, sources: NDArray[Any], depth: PartitionedArray, launches: LaunchSequence, target: int | None, limit: int
) -> None:
    """Find the depths of an undirected graph: up to a limit, or to the level in which a target is reached."""
    ownership = parts.ownership
    words = ownership.others(-(-parts.num_vertices // 32))
    reached, before = PartitionedArray(words.size, np.uint32, words), MirroredArray(words.size, np.uint32, words)
    with ownership.all_at("the sources of a search"):
        numbers = np.unique(ownership.to_numbers(sources))
        bits = np.zeros(words.size, np.uint32)
        np.bitwise_or.at(bits, numbers >> 5, np.uint32(1) << (numbers & 31).astype(np.uint32))
        reached[:] = bits
        before[:] = bits
    state = common_zeros(_SUMS + NUM_PARTIAL_SUMS, np.int64, ownership)
    limits = SEARCHED_ALONE[ownership.devices[0].kind], limit, -1 if target is None else target
    search = Search(depth, reached, before, state, *limits)
    rounds: LaunchOptions = {"barrier": True, "each_round": open_level}
    tasks = push_level, send_bits, pull_level, list_level
    launches.launch(np.unique(sources), tasks, parts, search, overrides=rounds)
