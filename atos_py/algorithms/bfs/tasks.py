"""What a breadth-first search runs on the device."""

from __future__ import annotations

import numpy as np

from ...task import atomic_min, task

__all__ = ["BLOCK", "UNREACHED", "adopt", "degree", "visit"]

UNREACHED = np.uint32(0xFFFF_FFFF)
BLOCK = 512  # vertices that an item stands for which is no vertex itself


def degree(v, graph, depth):  # type: ignore[no-untyped-def]
    """Return the number of neighbours, where they begin, and the depth that they get."""
    first = graph.indptr[v]
    return graph.indptr[v + 1] - first, first, depth[v] + 1


@task(workload=degree)
def visit(worker, v, i, first, next_depth, graph, depth):  # type: ignore[no-untyped-def]
    """Relax edge i of vertex v."""
    neighbor = graph.indices[first + i]
    if atomic_min(depth, neighbor, next_depth) > next_depth:
        worker.push(neighbor)


def edges_or_block(item, graph, depth):  # type: ignore[no-untyped-def]
    """Return the edges of a vertex, where they begin, and the depth of its children; or the vertices of a block."""
    if item >= depth.size:
        first = (item - depth.size) * BLOCK
        return min(BLOCK, depth.size - first), first, 0
    first = graph.indptr[item]
    return graph.indptr[item + 1] - first, first, depth[item] + 1


@task(workload=edges_or_block)
def adopt(worker, item, i, first, next_depth, graph, depth, parent):  # type: ignore[no-untyped-def]
    """Make a vertex the parent of neighbour i, if that is one deeper and has no smaller parent; or push vertex i of a block."""
    if item >= depth.size:
        v = first + i
        if depth[v] == 0:
            parent[v] = v
        if depth[v] != UNREACHED:
            worker.push(v)
    else:
        neighbor = graph.indices[first + i]
        if depth[neighbor] == next_depth:
            atomic_min(parent, neighbor, item)
