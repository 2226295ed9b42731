"""Breadth-first search of a graph whose edges change: edges that are inserted are relaxed, and those that they shorten."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...algorithms.arguments import check_sources
from ...algorithms.bfs.api import bfs
from ...algorithms.bfs.tasks import UNREACHED
from ...arrays.array import Array, asarray, empty, zeros
from ...compile.atomics import atomic_min
from ...compile.task import task
from ...errors import UnsupportedTypeError
from ...operators.ranges import VERTICES_PER_ITEM, range_items, split_range
from ...operators.vertex_map import vertex_sums
from ...runtime.queue import Queue
from ...support.host_memory import host_memory_for
from .dynamic_graph import DynamicGraph

__all__ = ["DynamicBFS"]


@task(workload=lambda v, count, sources, targets, both, rows, depth: (rows.degree[v], rows.start[v], depth[v] + 1))
def visit(worker, v, i, first, next_depth, count, sources, targets, both, rows, depth):  # type: ignore[no-untyped-def]
    """Relax an edge; push its end if its depth went down."""
    neighbor = rows.indices[first + i]
    if next_depth < depth[neighbor] and atomic_min(depth, neighbor, next_depth) > next_depth:
        worker.push(neighbor)


def relax(worker, u, v, depth):  # type: ignore[no-untyped-def]
    """Relax an edge; push its end if its depth went down."""
    before = depth[u]
    if before != UNREACHED and before + 1 < depth[v] and atomic_min(depth, v, before + 1) > before + 1:
        worker.push(v)


@task
def relax_inserted(worker, item, count, sources, targets, both, rows, depth):  # type: ignore[no-untyped-def]
    """Relax a range of edges that are new, if `both` in both directions."""
    for k in split_range(worker, item, count, VERTICES_PER_ITEM):
        relax(worker, sources[k], targets[k], depth)
        if both:
            relax(worker, targets[k], sources[k], depth)


def is_tight(k, sources, targets, both, depth):  # type: ignore[no-untyped-def]
    """Return 1 of an edge that may be on a shortest path, if `both` in some direction."""
    u, v = depth[sources[k]], depth[targets[k]]
    return (1.0 if (u != UNREACHED and u + 1 == v) or (both and v != UNREACHED and v + 1 == u) else 0.0,)


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

    def __reduce__(self) -> tuple[Any, ...]:
        """Search again from the same sources, in the graph or in the copy of it."""
        return DynamicBFS, (self._graph, self._sources)

    def _inserted(self, sources: Array, targets: Array) -> None:
        """Relax edges."""
        count = sources.size
        self._queue.push(range_items(count), task=relax_inserted)
        both, rows = int(self._graph.undirected), self._graph.rows
        self._queue.launch_cta((visit, relax_inserted), count, sources, targets, both, rows, self.depth)

    def _deleted(self, sources: Array, targets: Array) -> None:
        """Search again if a shortest path may be gone."""
        tight = zeros(1, dtype=np.float64, device=self._graph.device)
        self._queue.push(range_items(sources.size))
        both = int(self._graph.undirected)
        self._queue.launch_cta(count_tight, sources.size, tight, sources, targets, both, self.depth)
        if tight[0]:
            self._search()

    def _search(self) -> None:
        self.depth[:] = asarray(bfs(self._graph.to_graph(), self._sources).depth)  # which may be of another library
