"""Breadth-first search of a graph whose edges change: edges that are inserted are relaxed, and those that they shorten."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..arrays.array import Array, asarray, empty, zeros
from ..compile.atomics import atomic_min
from ..compile.task import task
from ..errors import UnsupportedTypeError
from ..graph.dynamic_graph import DynamicGraph
from ..operators.ranges import VERTICES_PER_ITEM, range_items, split_range
from ..operators.vertex_map import vertex_sums
from ..runtime.queue import Queue
from ..support.host_memory import host_memory_for
from .arguments import check_sources
from .bfs.api import bfs
from .bfs.tasks import UNREACHED

__all__ = ["DynamicBFS"]


@task(workload=lambda v, count, sources, targets, rows, depth: (rows.degree[v], rows.start[v], depth[v] + 1))
def visit(worker, v, i, first, next_depth, count, sources, targets, rows, depth):  # type: ignore[no-untyped-def]
    """Relax an edge; push its end if its depth went down."""
    neighbor = rows.indices[first + i]
    if next_depth < depth[neighbor] and atomic_min(depth, neighbor, next_depth) > next_depth:
        worker.push(neighbor)


@task
def relax_inserted(worker, item, count, sources, targets, rows, depth):  # type: ignore[no-untyped-def]
    """Relax a range of edges that are new; push the ends whose depth went down."""
    for k in split_range(worker, item, count, VERTICES_PER_ITEM):
        before = depth[sources[k]]
        end = targets[k]
        if before != UNREACHED and before + 1 < depth[end] and atomic_min(depth, end, before + 1) > before + 1:
            worker.push(end)


def is_tight(k, sources, targets, depth):  # type: ignore[no-untyped-def]
    """Return 1 of an edge that may be on a shortest path."""
    before = depth[sources[k]]
    return (1.0 if before != UNREACHED and before + 1 == depth[targets[k]] else 0.0,)


count_tight = vertex_sums(is_tight)


class DynamicBFS:
    """The depth of every vertex of a `DynamicGraph`, kept up to date: after each edit it is that of the graph.

    Edges that are inserted are relaxed, and then those of vertices whose depth goes down, in one launch. Deletions change
    nothing if no edge of them led from a depth to the next; otherwise `bfs` searches again.

    Parameters
    ----------
    graph : DynamicGraph
        Its out-edges are followed.
    source : int or array of int
        The vertex to start from, or several, each at depth 0.

    Attributes
    ----------
    depth : Array
        The number of edges on a shortest path from the nearest source, uint32; `UNREACHED` where there is no path. Always the
        same array.

    Examples
    --------
    >>> graph = atos.DynamicGraph(4)
    >>> search = atos.DynamicBFS(graph, 0)
    >>> graph.insert_edges([0, 1, 2], [1, 2, 3])
    >>> graph.insert_edges([0], [2])
    >>> print(search.depth[:])
    [0 1 1 2]
    """

    @host_memory_for("atos.DynamicBFS")
    def __init__(self, graph: DynamicGraph, source: ArrayLike) -> None:
        if not isinstance(graph, DynamicGraph):
            raise UnsupportedTypeError(
                f"graph must be an atos.DynamicGraph (got {type(graph).__name__}); make one with atos.DynamicGraph(graph)"
            )
        self._graph = graph
        self._sources = check_sources(source, graph.num_vertices)
        self._queue = Queue(max(graph.num_vertices, 1024), device=graph.device)
        self.depth: Array = empty(graph.num_vertices, dtype=np.uint32, device=graph.device)
        self._search()
        graph._follow(self)

    def _inserted(self, sources: Array, targets: Array) -> None:
        """Relax edges."""
        count = sources.size
        self._queue.push(range_items(count), task=relax_inserted)
        self._queue.launch_cta((visit, relax_inserted), count, sources, targets, self._graph.rows, self.depth)

    def _deleted(self, sources: Array, targets: Array) -> None:
        """Search again if a shortest path may be gone."""
        tight = zeros(1, dtype=np.float64, device=self._graph.device)
        self._queue.push(range_items(sources.size))
        self._queue.launch_cta(count_tight, sources.size, tight, sources, targets, self.depth)
        if tight[0]:
            self._search()

    def _search(self) -> None:
        self.depth[:] = asarray(bfs(self._graph.to_graph(), self._sources).depth)  # which may be of another library
