"""Tasks of shortest paths: relaxing edges, and naming predecessors.

`relax_along` is for graphs with few edges to a vertex, for the reason that `bfs.tasks` gives.
"""

from __future__ import annotations

import numpy as np

from ...compile.atomics import atomic_min
from ...compile.packing import pack, unpack
from ...compile.task import task
from ...operators.edge_map import push
from ...operators.vertex_map import vertex_sums
from ..bfs.tasks import GROUP, UNREACHED

__all__ = [
    "assign_along_hops",
    "assign_predecessors",
    "count_orphans",
    "find_hops",
    "relax",
    "relax_along",
    "relax_by_arrival",
    "weight_of",
    "widen_distances",
]

_NONE = np.uint64(2**64 - 1)  # in place of a packed distance and vertex
_HOPS = 3  # vertices along a path whose edges a group of threads relaxes, one after the other


def weight_of(weights, edge, distance):  # type: ignore[no-untyped-def]
    """Return the weight of an edge, 1 without weights, in the type of distances: so a sum of two is rounded to it."""
    if weights is None:
        return distance.dtype.type(1)
    return distance.dtype.type(weights[edge])


def out_edges(item, graph, distance, target, cutoff):  # type: ignore[no-untyped-def]
    """Return how many edges to relax, the first one, and the distance of the vertex."""
    first = graph.indptr[item.vertex]
    skipped = item.distance > distance[item.vertex]
    if target is not None:
        skipped |= item.distance >= distance[target]
    return 0 if skipped else graph.indptr[item.vertex + 1] - first, first, item.distance


def shortens(neighbor, candidate, distance, target, cutoff):  # type: ignore[no-untyped-def]
    """Whether a distance is wanted and less than before; if so it takes that one's place."""
    if cutoff is not None and candidate > cutoff:
        return False
    if target is not None and candidate >= distance[target]:
        return False
    return atomic_min(distance, neighbor, candidate) > candidate


@task(workload=out_edges, max_registers={"cta": (64, None)})
def relax(worker, item, i, first, length, graph, distance, target, cutoff):  # type: ignore[no-untyped-def]
    """Relax an edge; push its end with the distance if that went down."""
    neighbor = graph.indices[first + i]
    candidate = length + weight_of(graph.weights, first + i, distance)
    if shortens(neighbor, candidate, distance, target, cutoff):
        worker.push((neighbor, candidate), candidate)


def push_packed(worker, word, distance):  # type: ignore[no-untyped-def]
    """Push a vertex with its distance, which are packed in a word."""
    length, vertex = unpack(word, distance.dtype)
    worker.push((vertex, length), length)


def parts_of_row(item, graph, distance, target, cutoff):  # type: ignore[no-untyped-def]
    """Return the number of parts of a row to relax, where it begins and ends, and the distance of the vertex."""
    count, first, length = out_edges(item, graph, distance, target, cutoff)
    return (count + GROUP - 1) // GROUP, first, first + count, length


@task(workload=parts_of_row, group=GROUP, max_registers={"cta": (64, None)})
def relax_along(worker, item, part, first, end, length, graph, distance, target, cutoff):  # type: ignore[no-untyped-def]
    """Relax the edges of a part, then those of the nearest vertex that it reached, if these are no more; push the others."""
    group = worker.group
    first += part * GROUP
    end = min(first + GROUP, end)
    for hop in range(_HOPS):
        nearest = _NONE
        for step in range(GROUP // group.size):
            edge = first + group.rank + step
            if edge < end:
                neighbor = graph.indices[edge]
                candidate = length + weight_of(graph.weights, edge, distance)
                if shortens(neighbor, candidate, distance, target, cutoff):
                    if nearest != _NONE:
                        push_packed(worker, nearest, distance)
                    nearest = pack(candidate, neighbor, distance.dtype)
        follows = group.min(nearest)
        if follows == _NONE:
            return
        if nearest != _NONE and nearest != follows:
            push_packed(worker, nearest, distance)
        length, vertex = unpack(follows, distance.dtype)
        if hop == _HOPS - 1:
            break
        first, end = graph.indptr[vertex], graph.indptr[vertex + 1]
        if end - first > GROUP:
            break
    if group.rank == 0:
        worker.push((vertex, length), length)


@task(workload=out_edges)
def relax_by_arrival(worker, item, i, first, length, graph, distance, target, cutoff):  # type: ignore[no-untyped-def]
    """Relax an edge; push its end without a priority if the distance went down."""
    neighbor = graph.indices[first + i]
    candidate = length + weight_of(graph.weights, first + i, distance)
    if shortens(neighbor, candidate, distance, target, cutoff):
        worker.push((neighbor, candidate))


def widen_distance(v, narrow, wide, unreached, safe):  # type: ignore[no-untyped-def]
    """Copy a distance of 32 bits to one of 64; return 1 if it is larger than `safe`."""
    found = narrow[v]
    wide[v] = unreached if found == UNREACHED else found
    return (1 if safe < found and found != UNREACHED else 0,)


def is_reached(v, degree, weights, distance, unreached, predecessor):  # type: ignore[no-untyped-def]
    """Whether there is a path to a vertex."""
    return distance[v] != unreached


def own_distance(v, degree, weights, distance, unreached, predecessor):  # type: ignore[no-untyped-def]
    """Return the distance of a vertex, whose edges are to be looked at."""
    return True, distance[v]


def no_distance(weights, distance, unreached, predecessor):  # type: ignore[no-untyped-def]
    """Return a value of the type of distances: a float32 would become a float64 beside another."""
    return distance[0]


def offer_predecessor(worker, v, u, edge, length, weights, distance, unreached, predecessor):  # type: ignore[no-untyped-def]
    """Make v the predecessor of u if the edge is tight, u is farther away, and has no smaller predecessor."""
    found = distance[u]
    if length < found and found != unreached and length + weight_of(weights, edge, distance) == found:
        atomic_min(predecessor, u, v)


def has_none(v, predecessor):  # type: ignore[no-untyped-def]
    """Whether a vertex has no predecessor yet."""
    return predecessor[v] >= predecessor.size


def is_orphan(v, distance, unreached, predecessor):  # type: ignore[no-untyped-def]
    """Return 1 of a vertex with a path and no predecessor."""
    return (1 if distance[v] != unreached and has_none(v, predecessor) else 0,)


def is_rooted(v, degree, weights, distance, predecessor, hops):  # type: ignore[no-untyped-def]
    """Whether a vertex is a source or has a predecessor at a smaller distance."""
    return not has_none(v, predecessor) or hops[v] == 0


def next_hops(v, hops):  # type: ignore[no-untyped-def]
    """Return the hops of what a vertex leads to by an edge between equal distances; those that are rooted have none."""
    return 1 if hops[v] == UNREACHED else hops[v] + 1


def count_hops(v, degree, weights, distance, predecessor, hops):  # type: ignore[no-untyped-def]
    """Return the hops that the neighbors of a vertex get."""
    return True, next_hops(v, hops)


def is_flat(v, u, edge, weights, distance):  # type: ignore[no-untyped-def]
    """Whether an edge is tight and joins equal distances."""
    return distance[v] == distance[u] and distance[v] + weight_of(weights, edge, distance) == distance[u]


def hop(worker, v, u, edge, count, weights, distance, predecessor, hops):  # type: ignore[no-untyped-def]
    """Relax the hops of an orphan."""
    if is_flat(v, u, edge, weights, distance) and has_none(u, predecessor) and atomic_min(hops, u, count) > count:
        worker.push(u)


def offer_along_hops(worker, v, u, edge, count, weights, distance, predecessor, hops):  # type: ignore[no-untyped-def]
    """Make v the predecessor of an orphan that is one hop farther, unless that has a smaller one."""
    if hops[u] == count and is_flat(v, u, edge, weights, distance):
        atomic_min(predecessor, u, v)


def is_before(v, degree, weights, distance, predecessor, hops):  # type: ignore[no-untyped-def]
    """Whether a vertex may be the predecessor of an orphan."""
    return True


widen_distances = vertex_sums(widen_distance)
assign_predecessors = push(is_reached, own_distance, offer_predecessor, no_distance, with_edge=True)
count_orphans = vertex_sums(is_orphan)
find_hops = push(is_rooted, count_hops, hop, with_edge=True)
assign_along_hops = push(is_before, count_hops, offer_along_hops, with_edge=True)
