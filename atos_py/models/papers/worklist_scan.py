"""Shortest paths by a worklist that is made without atomics: a variant of Figure 8 of Nasre et al. 2013.

Whoever shortens a distance marks the vertex. After a round each worker counts the marks of ranges of vertices, prefix sums of
the counts say where each range begins in the list, and each thread writes its vertices there (`operators.listing`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays.array import zeros
from ...arrays.compute import compute
from ...arrays.filled import full
from ...compile.atomics import atomic_min
from ...compile.task import task
from ...graph.graph import Graph
from ...operators.edge_map import weight_of
from ...operators.listing import listing
from ...operators.ranges import VERTICES_PER_ITEM, range_items
from ...operators.reductions import SCRATCH_BYTES
from ...runtime.queue import Queue
from ...runtime.stats import LaunchStats

__all__ = ["search_by_prefix_sums"]


def edges_of_listed(place, vertices, graph, distance, marks):  # type: ignore[no-untyped-def]
    """Return how many edges a listed vertex has, the first of them, and the distance of the vertex."""
    v = vertices[place]
    first = graph.indptr[v]
    return np.int64(graph.indptr[v + 1] - first), first, distance[v]


@task(workload=edges_of_listed)
def relax_listed(worker, place, i, first, length, vertices, graph, distance, marks):  # type: ignore[no-untyped-def]
    """Relax an edge; mark its end if that is nearer now."""
    u = graph.indices[first + i]
    value = distance.dtype.type(length + weight_of(graph.weights, first + i))
    if value < distance[u] and value < atomic_min(distance, u, value):
        marks[u] = 1


@task
def count_marks(worker, item, marks, counts):  # type: ignore[no-untyped-def]
    """Count the marks of a range of vertices."""
    count, first = 0, item * VERTICES_PER_ITEM
    for v in worker.split(range(first, min(first + VERTICES_PER_ITEM, marks.size))):
        count += marks[v]
    count = worker.sum(count)
    if worker.rank == 0:
        counts[item] = count


def is_marked(v, marks, vertices):  # type: ignore[no-untyped-def]
    """Return 1 for a marked vertex, 0 for others."""
    return marks[v]


def write_marked(v, place, marks, vertices):  # type: ignore[no-untyped-def]
    """Write a vertex to its place of the list, and take its mark back."""
    vertices[place] = v
    marks[v] = 0
    return 0, 0, 0


list_marked = listing(is_marked, write_marked, 0)


def _places(xp: Any, counts: Any) -> tuple[Any, Any]:
    """Return where each range begins in the list, and its length; for `compute`."""
    ends = xp.cumsum(counts)
    return ends - counts, ends[-1:]


def search_by_prefix_sums(graph: Graph, source: int) -> tuple[NDArray[Any], LaunchStats]:
    """Return distances from a vertex, infinite where there is no path, and the statistics of three launches for each round."""
    n, device, runs = graph.num_vertices, graph.device, []
    distance = full(n, np.inf, dtype=np.float32, device=device)
    marks, vertices = zeros(n, dtype=np.int32, device=device), zeros(n, dtype=np.uint32, device=device)
    items = range_items(n, VERTICES_PER_ITEM)
    counts, unused = (zeros(shape, dtype=np.int64, device=device) for shape in (len(items), (len(items), 3)))
    queue, count = Queue(n, device=device), 1
    distance[source], vertices[0] = 0, source
    while count:
        queue.push(np.arange(count, dtype=np.uint32))
        runs.append(queue.launch_cta(relax_listed, vertices, graph, distance, marks))
        queue.push(items)
        runs.append(queue.launch_cta(count_marks, marks, counts))
        places, total = compute(_places, counts)
        queue.push(items)
        scan = VERTICES_PER_ITEM, n, places, unused, marks, vertices
        runs.append(queue.launch_cta(list_marked, *scan, shared_memory=SCRATCH_BYTES["cta"]))
        count = int(total[0])
    return distance.to_numpy(), LaunchStats.total(runs)
