"""Direction-optimizing breadth-first search in one launch: a small frontier pushes, a large one is pulled from.

A vertex that pulls stops at its first neighbour in the frontier, whereas a frontier that pushes looks at all of its edges. The
frontier of a level is dense: the vertices of that depth. A level that pushes finds them in the ranges of vertices, or, in the
last levels, in the queue. A level is a round, or two where vertices were pushed out of ranges; `open_level` is the function
between rounds, which chooses the direction.

Source: Beamer, Asanović and Patterson, "Direction-optimizing breadth-first search", SC 2012.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...arrays.array import Array, zeros
from ...compile.atomics import atomic_add, atomic_min
from ...compile.task import task
from ...graph.graph import Graph
from ...operators.edge_map import push
from ...operators.ranges import VERTICES_PER_MIXED_RANGE, mixed_range_bounds
from ...operators.reductions import NUM_PARTIAL_SUMS
from ...operators.row_pull import SEARCHED_ALONE, row_search
from ...runtime.launch import LaunchOptions
from ..launch_sequence import LaunchSequence
from .tasks import UNREACHED

__all__ = ["MAX_PUSHED_LEVELS", "Search", "expand", "open_level", "pull", "search_by_level"]

# Beamer's alpha: an edge of the frontier finds so many times as much as one at which an unreached vertex looks.
ALPHA = 15
MAX_PUSHED_LEVELS = 16  # after which a frontier that never had many edges will not have them any more

# Places in the state of a search. The edges of what has been reached are a sum that is spread over the last ones.
_LEVEL, _FOUND, _PULLED, _REST, _SUMS = range(5)  # the level; edges found before it; whether a level pulled; whether none will


class Search(NamedTuple):
    """Arrays and limits of a direction-optimizing search, the last argument of its tasks."""

    depth: Array
    state: Array
    indptr: Array
    alone: int  # edges of a vertex at which one thread looks
    limit: int  # the largest depth
    target: int  # or -1


def is_in_level(v, degree, search):  # type: ignore[no-untyped-def]
    """Whether a vertex is in the frontier."""
    return search.depth[v] == search.state[_LEVEL]


def child_depth(v, degree, search):  # type: ignore[no-untyped-def]
    """Return the depth that the neighbours of v get."""
    return True, search.depth[v] + 1


def add_found(search, place, edges):  # type: ignore[no-untyped-def]
    """Add up edges of vertices that were reached."""
    atomic_add(search.state, _SUMS + place % NUM_PARTIAL_SUMS, edges)


def expand_edge(worker, v, u, next_depth, search):  # type: ignore[no-untyped-def]
    """Relax an edge; add up the edges of its target, or push it, if all levels to come are pushed."""
    if atomic_min(search.depth, u, next_depth) > next_depth:
        if search.state[_REST] == 0:
            add_found(search, u, np.int64(search.indptr[u + 1]) - np.int64(search.indptr[u]))
        elif next_depth < search.limit:
            worker.push(u)


expand = push(is_in_level, child_depth, expand_edge)


def is_unreached(v, indices, level, search):  # type: ignore[no-untyped-def]
    """Whether a vertex looks for a parent."""
    return search.depth[v] == UNREACHED


def is_parent(edge, indices, level, search):  # type: ignore[no-untyped-def]
    """Whether an edge leads to the frontier."""
    return search.depth[indices[edge]] == level


def depth_below(v, edge, indices, level, search):  # type: ignore[no-untyped-def]
    """Return the depth of a vertex with an edge to the frontier."""
    return level + 1


def settle(v, depth, indices, level, search):  # type: ignore[no-untyped-def]
    """Store the depth of v; return its edges."""
    search.depth[v] = depth
    return np.int64(search.indptr[v + 1]) - np.int64(search.indptr[v])


look_for_parents = row_search(is_unreached, is_parent, depth_below, settle)


@task
def pull(worker, item, indptr, indices, search):  # type: ignore[no-untyped-def]
    """Have the vertices of a range look for a parent."""
    first, size = mixed_range_bounds(item, search.depth.size)
    level = np.uint32(search.state[_LEVEL])
    edges = worker.sum(look_for_parents(worker, first, first + size, search.alone, indptr, indices, level, search))
    if worker.rank == 0 and edges > 0:
        add_found(search, item, edges)


def open_level(worker, indptr, indices, search):  # type: ignore[no-untyped-def]
    """Choose the direction of the next level, if this one is over, and push the ranges of vertices."""
    state = search.state
    if worker.pending > 0 or state[_REST] != 0:
        return
    found = 0
    for k in worker.split(range(_SUMS, _SUMS + NUM_PARTIAL_SUMS)):
        found += state[k]
    found = worker.sum(found)
    edges = found - state[_FOUND]  # of the frontier
    level = state[_LEVEL] + 1
    pulls = edges * ALPHA > indices.size - found
    pushes_rest = not pulls and (state[_PULLED] != 0 or level == MAX_PUSHED_LEVELS)
    is_met = search.target >= 0 and search.depth[search.target] != UNREACHED
    ends = edges == 0 or level >= search.limit or is_met
    worker.sync()  # all have read the state
    if worker.rank == 0:
        state[_LEVEL] = level
        state[_FOUND] = found
        if pulls:
            state[_PULLED] = 1
        if pushes_rest:
            state[_REST] = 1
    if not ends:
        n = search.depth.size
        for k in worker.split((n + VERTICES_PER_MIXED_RANGE - 1) // VERTICES_PER_MIXED_RANGE):
            if pulls:
                worker.push(n + k, task=pull)
            else:
                worker.push(n + k)


def search_by_level(
    graph: Graph,
    sources: NDArray[Any],
    depth: Array,
    launches: LaunchSequence,
    target: int | None = None,
    limit: int = int(UNREACHED),
) -> None:
    """Find the depths of an undirected graph, level by level: up to a limit, or to the level in which a target is reached.

    After the last level that pulls the rest is searched to its end, whatever the target.
    """
    state = zeros(_SUMS + NUM_PARTIAL_SUMS, dtype=np.int64, device=graph.device)
    search = Search(depth, state, graph.indptr, SEARCHED_ALONE[graph.device.kind], limit, -1 if target is None else target)
    rounds: LaunchOptions = {"barrier": True, "each_round": open_level}
    launches.launch(sources, (expand, pull), graph.indptr, graph.indices, search, overrides=rounds)
