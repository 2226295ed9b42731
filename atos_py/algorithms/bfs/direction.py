"""Direction-optimizing breadth-first search: level by level, pushing from a small frontier and pulling from a large one.

A vertex that pulls stops at its first neighbour in the frontier, whereas a frontier that pushes looks at all of its edges. The
frontier of a level is dense: the vertices of that depth. A level that pushes finds them in the ranges of vertices, or, where
the last levels follow each other without a barrier, in the queue.

Source: Beamer, Asanović and Patterson, "Direction-optimizing breadth-first search", SC 2012.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays.array import Array, zeros
from ...compile.atomics import atomic_add, atomic_min
from ...graph.graph import Graph
from ...operators.edge_map import NUM_PARTIAL_SUMS, push, search
from ...operators.ranges import mixed_ranges
from ..launch_sequence import LaunchSequence
from .tasks import UNREACHED

__all__ = ["PREFIX", "expand", "pull", "search_by_level"]

# Beamer's alpha: an edge of the frontier finds so many times as much as one at which an unreached vertex looks.
ALPHA = 15
PREFIX = 64  # edges at which one thread looks; the others are for all threads of a worker
MAX_PUSHED_LEVELS = 16  # after which a frontier that never had many edges will not have them any more


def is_in_level(v, degree, indptr, depth, level, last, found):  # type: ignore[no-untyped-def]
    """Whether a vertex is in the frontier."""
    return depth[v] == level


def child_depth(v, degree, indptr, depth, level, last, found):  # type: ignore[no-untyped-def]
    """Return the depth that the neighbours of v get."""
    return True, depth[v] + 1


def expand_edge(worker, v, u, next_depth, indptr, depth, level, last, found):  # type: ignore[no-untyped-def]
    """Relax an edge; push its target if it is less deep than `last`, otherwise add up its edges."""
    if atomic_min(depth, u, next_depth) > next_depth:
        if next_depth < last:
            worker.push(u)
        else:
            atomic_add(found, u % NUM_PARTIAL_SUMS, indptr[u + 1] - indptr[u])


def is_unreached(v, depth, level):  # type: ignore[no-untyped-def]
    """Whether a vertex looks for a parent."""
    return depth[v] == UNREACHED


def is_parent(v, u, depth, level):  # type: ignore[no-untyped-def]
    """Whether u is in the frontier."""
    return depth[u] == level


def adopt_parent(v, degree, depth, level):  # type: ignore[no-untyped-def]
    """Put v one level below the frontier; return its edges."""
    depth[v] = level + 1
    return degree


expand = push(is_in_level, child_depth, expand_edge)
pull = search(is_unreached, is_parent, adopt_parent, PREFIX)


def search_by_level(
    graph: Graph,
    sources: NDArray[Any],
    depth: Array,
    launches: LaunchSequence,
    target: int | None = None,
    limit: int = int(UNREACHED),
) -> None:
    """Find the depths of an undirected graph, level by level: up to a limit, or to the level in which a target is reached.

    After the last level that switches direction the rest is searched to its end, whatever the target.
    """
    ranges = mixed_ranges(graph.num_vertices)
    found = zeros(NUM_PARTIAL_SUMS, dtype=np.uint64, device=graph.device)  # edges of what has been reached
    rows = graph.indptr, graph.indices
    explored, pulled = 0, False

    def push_level(items: NDArray[Any], level: int, last: int) -> None:
        launches.launch(items, expand, *rows, graph.indptr, depth, np.uint32(level), np.uint32(last), found)

    def pull_level(level: int) -> None:
        launches.launch(ranges, pull, *rows, found, depth, np.uint32(level))

    def plan() -> None:
        push_level(sources, 0, 1)
        pull_level(1)

    launches.compile_ahead(graph.indptr.dtype, plan)
    push_level(sources, 0, 1)
    for level in itertools.count(1):
        if level >= limit or (target is not None and depth[target] != UNREACHED):
            break
        before, explored = explored, int(found.to_numpy().sum())
        edges = explored - before
        if not edges:
            break
        if edges * ALPHA > graph.num_edges - explored:
            pull_level(level)
            pulled = True
        elif pulled or level == MAX_PUSHED_LEVELS:  # the frontier stays small: the rest needs no levels
            push_level(ranges, level, min(limit, int(UNREACHED)))
            break
        else:
            push_level(ranges, level, level + 1)
    if not pulled:  # as from a source on an island, which another source need not be on
        launches.prepare(pull, *rows, found, depth, np.uint32(0))
