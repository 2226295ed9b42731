"""Tasks of a breadth-first search that need no levels: relaxing the edges of a vertex, and naming parents."""

from __future__ import annotations

import numpy as np

from ...compile.atomics import atomic_min
from ...compile.task import task
from ...operators.edge_map import push

__all__ = ["UNREACHED", "assign_parents", "degree", "visit", "visit_within"]

UNREACHED = np.uint32(0xFFFF_FFFF)


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


def degree_within(v, graph, depth, target, limit):  # type: ignore[no-untyped-def]
    """Return the same, but no neighbours where they would be deeper than the limit, or no less deep than the target."""
    first = graph.indptr[v]
    next_depth = depth[v] + 1
    ends = next_depth > limit
    if target is not None:
        ends |= next_depth >= depth[target]
    return 0 if ends else graph.indptr[v + 1] - first, first, next_depth


@task(workload=degree_within)
def visit_within(worker, v, i, first, next_depth, graph, depth, target, limit):  # type: ignore[no-untyped-def]
    """Relax edge i of vertex v, in a search that may end early."""
    neighbor = graph.indices[first + i]
    if atomic_min(depth, neighbor, next_depth) > next_depth:
        worker.push(neighbor)


def set_own_parent(v, degree, depth, parent):  # type: ignore[no-untyped-def]
    """Make a source its own parent; return whether v is reached, and so may be the parent of others."""
    if depth[v] == 0:
        parent[v] = v
    return depth[v] != UNREACHED


def child_depth(v, degree, depth, parent):  # type: ignore[no-untyped-def]
    """Return the depth of the children of v."""
    return True, depth[v] + 1


def offer_parent(worker, v, u, next_depth, depth, parent):  # type: ignore[no-untyped-def]
    """Make v the parent of u, if u is one deeper and has no smaller parent."""
    if depth[u] == next_depth:
        atomic_min(parent, u, v)


assign_parents = push(set_own_parent, child_depth, offer_parent)
