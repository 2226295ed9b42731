"""Breadth-first search that switches direction: where the frontier has many edges, vertices that are not reached look for it.

A vertex that looks (pulls) stops at its first neighbour in the frontier, whereas the frontier (pushing) looks at all its edges.

Source: Beamer, Asanović and Patterson, "Direction-optimizing breadth-first search", SC 2012.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...array import Array, zeros
from ...graph import Graph
from ...task import atomic_add, atomic_min, task
from .tasks import BLOCK, UNREACHED, edges_or_block

__all__ = ["pull", "search", "spread"]

FEW = 64  # neighbours at which one thread looks; the others are for all threads of a worker
PLACES = 1024  # of the sum of degrees, since one address would be in the way of thousands of threads
# Beamer's alpha: an edge of the frontier finds so many times as much as one at which an unreached vertex looks.
ALPHA = 15
PATIENCE = 16  # levels after which a frontier that never had many edges will not have them any more


@task(workload=edges_or_block)
def spread(worker, item, i, first, next_depth, graph, depth, level, last, found):  # type: ignore[no-untyped-def]
    """Push vertex i of a block if it is of a level; or relax edge i of a vertex, as `visit` does, down to the depth `last`."""
    if item >= depth.size:
        if depth[first + i] == level:
            worker.push(first + i)
    else:
        neighbor = graph.indices[first + i]
        if atomic_min(depth, neighbor, next_depth) > next_depth:
            if next_depth < last:
                worker.push(neighbor)
            else:
                atomic_add(found, neighbor % PLACES, graph.indptr[neighbor + 1] - graph.indptr[neighbor])


@task
def pull(worker, item, graph, depth, level, found):  # type: ignore[no-untyped-def]
    """Let each unreached vertex of a block look for a neighbour of a level; or one that has many, with all threads."""
    near = graph.indices
    edges = 0
    if item < depth.size:
        begin = graph.indptr[item]
        end = graph.indptr[item + 1]
        met = False
        for edge in worker.split(range(begin + FEW, end)):  # those before were looked at when it was pushed
            met |= depth[near[edge]] == level
        if worker.any(met) and worker.rank == 0:
            depth[item] = level + 1
            edges = end - begin
    else:
        first = (item - depth.size) * BLOCK
        for v in worker.split(range(first, min(first + BLOCK, depth.size))):
            if depth[v] == UNREACHED:
                begin = graph.indptr[v]
                end = graph.indptr[v + 1]
                edge = begin
                while edge < min(end, begin + FEW) and depth[near[edge]] != level:
                    edge += 1
                if edge < min(end, begin + FEW):
                    depth[v] = level + 1
                    edges += end - begin
                elif edge < end:
                    worker.push(v)
    edges = worker.sum(edges)
    if worker.rank == 0 and edges > 0:
        atomic_add(found, item % PLACES, edges)


def search(
    graph: Graph, sources: NDArray[Any], depth: Array, launch: Callable[..., None], prepare: Callable[..., None]
) -> None:
    """Find the depths of an undirected graph.

    ``launch(items, task, *args)`` runs a task on items; ``prepare(task, *args)`` has it compiled without running it.
    """
    n = graph.num_vertices
    blocks = n + np.arange(-(-n // BLOCK))
    found = zeros(PLACES, dtype=np.uint64, device=graph.device)  # edges of what has been reached
    explored, pulled = 0, False
    launch(sources, spread, graph, depth, np.uint32(0), np.uint32(1), found)
    for level in itertools.count(1):
        before, explored = explored, int(found.to_numpy().sum())
        edges = explored - before
        if not edges:
            break
        if edges * ALPHA > graph.num_edges - explored:
            launch(blocks, pull, graph, depth, np.uint32(level), found)
            pulled = True
        elif pulled or level == PATIENCE:
            launch(blocks, spread, graph, depth, np.uint32(level), UNREACHED, found)
            break
        else:
            launch(blocks, spread, graph, depth, np.uint32(level), np.uint32(level + 1), found)
    if not pulled:  # as from a source on an island, which another source need not be on
        prepare(pull, graph, depth, np.uint32(0), found)
