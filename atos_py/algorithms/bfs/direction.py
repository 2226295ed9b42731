"""Direction-optimizing breadth-first search in one launch: a small frontier pushes, a large one is pulled from.

A vertex that pulls stops at its first neighbor in the frontier, whereas a frontier that pushes looks at all of its edges. The
frontier of a level is dense: the vertices of that depth. A level that pushes lists them first, or, in the last levels, finds
them in the queue. A level is a round, or two where vertices were listed; `open_level` is the function between rounds, which
chooses the direction.

Items that list vertices or pull take ranges of vertices from a counter (`operators.range_takers`).

Source: Beamer, Asanović and Patterson, "Direction-optimizing breadth-first search", SC 2012.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...arrays.array import Array
from ...arrays.record import places
from ...compile.atomics import atomic_add, atomic_min
from ...compile.cached_load import load_cached
from ...compile.task import task
from ...graph.graph import Graph
from ...operators.range_takers import ask_for_range, fit_takers, plan_takers
from ...operators.reductions import NUM_PARTIAL_SUMS
from ...operators.row_pull import SEARCHED_ALONE, row_search
from ...runtime.launch_options import LaunchOptions
from ..launch_sequence import LaunchSequence
from .tasks import UNREACHED

__all__ = [
    "ALPHA",
    "LEVEL_TASKS",
    "MAX_PUSHED_LEVELS",
    "Search",
    "expand",
    "list_level",
    "open_level",
    "pull",
    "search_by_level",
]

# Beamer's alpha: an edge of the frontier finds so many times as much as one at which an unreached vertex looks.
ALPHA = 15
MAX_PUSHED_LEVELS = 16  # after which a frontier that never had many edges will not have them any more


class LevelState(NamedTuple):
    """Words of the state of a search (`arrays.record`)."""

    level: int = 1
    found: int = 1  # edges found before the level
    pulled: int = 1  # whether a level pulled
    rest: int = 1  # whether none will
    taken: int = 1  # ranges of vertices that were taken
    size: int = 1  # vertices of a range
    sums: int = NUM_PARTIAL_SUMS  # the edges of what has been reached, a sum that is spread


AT = places(LevelState)


class Search(NamedTuple):
    """Arrays and limits of a direction-optimizing search, the last argument of its tasks."""

    depth: Array
    state: Array
    indptr: Array
    alone: int  # edges of a vertex at which one thread looks
    limit: int  # the largest depth
    target: int  # or -1
    takers: int  # items that take them, as planned


def add_found(search, place, edges):  # type: ignore[no-untyped-def]
    """Add up edges of vertices that were reached."""
    atomic_add(search.state, AT.sums + place % NUM_PARTIAL_SUMS, edges)


def out_edges(v, indptr, indices, search):  # type: ignore[no-untyped-def]
    """Return the number of neighbors of v, where they begin, and the depth that they get."""
    first = indptr[v]
    return indptr[v + 1] - first, first, search.depth[v] + 1


@task(workload=out_edges, max_registers={"cta": 40})  # with 12 bytes of spills rmat22 takes 0.33 ms instead of 0.35
def expand(worker, v, i, first, next_depth, indptr, indices, search):  # type: ignore[no-untyped-def]
    """Relax edge i of v; add up the edges of its target, or push it, if all levels to come are pushed."""
    u = indices[first + i]
    if atomic_min(search.depth, u, next_depth) > next_depth:
        if search.state[AT.rest] == 0:
            add_found(search, u, np.int64(search.indptr[u + 1]) - np.int64(search.indptr[u]))
        elif next_depth < search.limit:
            worker.push(u)


@task
def list_level(worker, k, indptr, indices, search):  # type: ignore[no-untyped-def]
    """Push the vertices of the level, of ranges."""
    level, size, n = search.state[AT.level], np.int64(np.uint32(search.state[AT.size])), search.depth.size
    while k * size < n:
        taken = ask_for_range(worker, search.state, AT.taken)  # the answer comes meanwhile
        for v in worker.split(range(k * size, min((k + 1) * size, n))):
            if search.depth[v] == level:
                worker.push(v, task=expand)
        k = worker.max(taken)


def is_unreached(v, indices, level, search):  # type: ignore[no-untyped-def]
    """Whether a vertex looks for a parent."""
    return search.depth[v] == UNREACHED


def is_parent(edge, indices, level, search):  # type: ignore[no-untyped-def]
    """Whether an edge leads to the frontier."""
    return load_cached(search.depth, indices[edge]) == level


def depth_below(v, edge, indices, level, search):  # type: ignore[no-untyped-def]
    """Return the depth of a vertex with an edge to the frontier."""
    return level + 1


def settle(v, depth, indices, level, search):  # type: ignore[no-untyped-def]
    """Store the depth of v; return its edges."""
    search.depth[v] = depth
    return np.int64(search.indptr[v + 1]) - np.int64(search.indptr[v])


look_for_parents = row_search(is_unreached, is_parent, depth_below, settle)


@task
def pull(worker, k, indptr, indices, search):  # type: ignore[no-untyped-def]
    """Have the vertices of ranges look for a parent."""
    level, size, n = np.uint32(search.state[AT.level]), np.int64(np.uint32(search.state[AT.size])), search.depth.size
    found = np.int64(0)
    while k * size < n:
        taken = ask_for_range(worker, search.state, AT.taken)  # the answer comes meanwhile
        end = min((k + 1) * size, n)
        found += look_for_parents(worker, k * size, end, search.alone, indptr, indices, level, search)
        k = worker.max(taken)
    edges = worker.sum(found)
    if worker.rank == 0 and edges > 0:
        add_found(search, k, edges)


def open_level(worker, indptr, indices, search):  # type: ignore[no-untyped-def]
    """Choose the direction of the next level, if this one is over, and push the items that take ranges of vertices."""
    state = search.state
    if worker.pending > 0 or state[AT.rest] != 0:
        return
    found = 0
    for k in worker.split(range(AT.sums, AT.sums + NUM_PARTIAL_SUMS)):
        found += state[k]
    found = worker.sum(found)
    edges = found - state[AT.found]  # of the frontier
    level = state[AT.level] + 1
    pulls = edges * ALPHA > indices.size - found
    pushes_rest = not pulls and (state[AT.pulled] != 0 or level == MAX_PUSHED_LEVELS)
    is_met = search.target >= 0 and search.depth[search.target] != UNREACHED
    ends = edges == 0 or level >= search.limit or is_met
    size, takers = fit_takers(worker, search.depth.size, search.takers)
    worker.sync()  # all have read the state
    if worker.rank == 0:
        state[AT.level] = level
        state[AT.found] = found
        state[AT.taken] = takers
        state[AT.size] = size
        if pulls:
            state[AT.pulled] = 1
        if pushes_rest:
            state[AT.rest] = 1
    if not ends:
        for k in worker.split(takers):
            if pulls:
                worker.push(k, task=pull)
            else:
                worker.push(k, task=list_level)


LEVEL_TASKS = expand, pull, list_level


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
    device = graph.device
    state = launches.record(LevelState)
    limits = SEARCHED_ALONE[device.kind], limit, -1 if target is None else target
    takers = plan_takers(graph.num_vertices, device, launches.worker).takers
    search = Search(depth, state, graph.indptr, *limits, takers)
    rounds: LaunchOptions = {"barrier": True, "each_round": open_level}
    launches.launch(sources, LEVEL_TASKS, graph.indptr, graph.indices, search, overrides=rounds)
