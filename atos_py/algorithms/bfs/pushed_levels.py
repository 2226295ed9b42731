"""Breadth-first search that only pushes, level by level: the first edge to a vertex that is tried reaches it.

A level is a round, in which all that is reached gets the same depth. So depths are not compared: a *tried* bit for each vertex
says whether it was reached, and who sets it stores the depth. Without rounds each edge takes an atomic minimum of a depth, and
vertices that were reached by a longer path push again. The bits also fit in the cache of a GPU where the depths do not.

After `MOST_LEVELS` rounds the search goes on without rounds: a graph with so many levels has little to do in each of them, and
a barrier takes longer than an edge.

Source: Agarwal, Petrini, Pasetto and Bader, "Scalable graph exploration on multicore processors", SC 2010, for the bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays.array import Array
from ...compile.atomics import atomic_or_
from ...compile.cached_load import load_cached
from ...compile.task import task
from ...graph.graph_arrays import GraphArrays
from ...operators.filters import bits_of
from ...runtime.experiment import Experiment
from ...runtime.launch_options import LaunchOptions
from ..launch_sequence import LaunchSequence
from .tasks import visit_within

__all__ = ["MOST_LEVELS", "ROOM", "is_first_try", "search_by_pushed_levels", "try_first"]

MOST_LEVELS = 64
# A step of a worker pushes many items in the first large level, and what finds no room is stored at once, which takes longer.
ROOM: LaunchOptions = {"experiment": Experiment(push_buffer=4096)}


def is_first_try(tried, v):  # type: ignore[no-untyped-def]
    """Set a bit; return whether that was not done before."""
    bit = np.uint32(1 << (v & 31))
    return load_cached(tried, v >> 5) & bit == 0 and atomic_or_(tried, v >> 5, bit) & bit == 0


def out_edges(v, graph, depth, tried, limit):  # type: ignore[no-untyped-def]
    """Return the number of neighbors of v, where they begin, and the depth that they get."""
    first = graph.indptr[v]
    return graph.indptr[v + 1] - first, first, depth[v] + 1


@task(workload=out_edges)
def try_first(worker, v, i, first, next_depth, graph, depth, tried, limit):  # type: ignore[no-untyped-def]
    """Reach the end of edge i of v, if no other edge to it was tried."""
    u = np.int64(graph.indices[first + i])
    if is_first_try(tried, u):
        depth[u] = next_depth
        if next_depth < limit:
            worker.push(u)


def end_level(worker, graph, depth, tried, limit):  # type: ignore[no-untyped-def]
    """Leave the rest, if there is some after so many rounds, to a launch without rounds."""
    if worker.round == MOST_LEVELS - 1 and worker.pending > 0:
        worker.stop()


def search_by_pushed_levels(
    graph: GraphArrays, sources: NDArray[Any], depth: Array, launches: LaunchSequence, limit: int
) -> None:
    """Find the depths up to a limit, of at least 1; `depth` is 0 at the sources."""
    rounds: LaunchOptions = {"barrier": True, "each_round": end_level}
    tried = bits_of(np.unique(sources), depth.size, launches.queue.device)
    launches.launch(sources, try_first, graph, depth, tried, limit, defaults=ROOM, overrides=rounds)
    if launches.runs[-1].stopped:  # but the search goes on
        launches.runs[-1].stopped = False
        launches.launch(sources[:0], visit_within, graph, depth, None, limit)
