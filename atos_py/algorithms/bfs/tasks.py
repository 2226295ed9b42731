"""Tasks of a breadth-first search that need no levels: relaxing the edges of a vertex, and naming parents.

Where few edges leave a vertex, a search takes as many steps as the graph is wide, and each waits for memory several times, and
then for the other threads of its worker. So a group of threads there relaxes all edges of a vertex at once, and goes on with
those of one neighbor that it reached. The others are pushed.
"""

from __future__ import annotations

import numpy as np

from ...compile.atomics import atomic_min
from ...compile.task import task
from ...graph.graph import Graph
from ...graph.largest_degree import largest_degree
from ...operators.edge_map import push

__all__ = [
    "FOLLOWED_DEGREE",
    "GROUP",
    "UNREACHED",
    "assign_parents",
    "degree",
    "parts_of_row",
    "pays_to_follow",
    "visit",
    "visit_along",
    "visit_within",
]

UNREACHED = np.uint32(0xFFFF_FFFF)
NO_VERTEX = UNREACHED  # a graph has fewer vertices
#: Edges to a vertex from which on it does not pay to follow paths. On a CPU it never does: nobody waits for others.
FOLLOWED_DEGREE = {"cpu": 0, "cuda": 5}
_MOST_EDGES = 64  # of a vertex: where there are hubs, paths are short
GROUP = 4  # threads that relax as many edges at once
_HOPS = 2  # vertices along a path whose edges a group relaxes, one after the other


def pays_to_follow(graph: Graph) -> bool:
    """Whether a group of threads that reached a vertex is to go on with its edges: on meshes and road networks."""
    most = FOLLOWED_DEGREE[graph.device.kind]
    return most > 0 and graph.num_edges < most * graph.num_vertices and largest_degree(graph) <= _MOST_EDGES


def degree(v, graph, depth):  # type: ignore[no-untyped-def]
    """Return the number of neighbors, where they begin, and the depth that they get."""
    first = graph.indptr[v]
    return graph.indptr[v + 1] - first, first, depth[v] + 1


@task(workload=degree)
def visit(worker, v, i, first, next_depth, graph, depth):  # type: ignore[no-untyped-def]
    """Relax edge i of vertex v."""
    neighbor = graph.indices[first + i]
    if atomic_min(depth, neighbor, next_depth) > next_depth:
        worker.push(neighbor)


def parts_of_row(v, graph, depth):  # type: ignore[no-untyped-def]
    """Return the number of parts of a row, where it begins and ends, and the depth of the neighbors."""
    first, end = graph.indptr[v], graph.indptr[v + 1]
    return (end - first + GROUP - 1) // GROUP, first, end, depth[v] + 1


@task(workload=parts_of_row, group=GROUP)
def visit_along(worker, v, part, first, end, next_depth, graph, depth):  # type: ignore[no-untyped-def]
    """Relax the edges of a part, and those of one vertex that it reached, if there are no more; push what else is reached."""
    group = worker.group
    first += part * GROUP
    end = min(first + GROUP, end)
    for hop in range(_HOPS):
        reached = NO_VERTEX
        for step in range(GROUP // group.size):
            edge = first + group.rank + step
            if edge < end:
                neighbor = np.uint32(graph.indices[edge])
                if atomic_min(depth, neighbor, next_depth) > next_depth:
                    if reached != NO_VERTEX:
                        worker.push(reached)
                    reached = neighbor
        follows = group.min(reached)
        if follows == NO_VERTEX:
            return
        if reached != NO_VERTEX and reached != follows:
            worker.push(reached)
        if hop == _HOPS - 1:
            break
        first, end = graph.indptr[follows], graph.indptr[follows + 1]
        if end - first > GROUP:
            break
        next_depth += 1
    if group.rank == 0:
        worker.push(follows)


def degree_within(v, graph, depth, target, limit):  # type: ignore[no-untyped-def]
    """Return the same, but no neighbors where they would be deeper than the limit, or no less deep than the target."""
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
