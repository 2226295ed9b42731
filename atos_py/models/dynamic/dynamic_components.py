"""Connected components of a graph whose edges change: union-find keeps them up to date with edges that are inserted."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...algorithms.launch_sequence import LaunchSequence
from ...arrays.array import Array, empty, zeros
from ...arrays.record import new_record
from ...compile.atomics import atomic_add
from ...compile.task import task
from ...errors import UnsupportedTypeError
from ...operators.connect import ALL_EDGES, AT, Notes, choose_largest, connecting, sampled_edges
from ...operators.ranges import VERTICES_PER_ITEM, split_range
from ...operators.row_map import row_queue
from ...operators.union_find import find_root, root_of, unite
from ...runtime.queue import Queue
from ...support.host_memory import host_memory_for
from .dynamic_graph import DynamicGraph

__all__ = ["DynamicComponents"]

_EDGES_PER_ITEM = 1024


@task
def keep_components(worker, item, sources, targets, label, roots):  # type: ignore[no-untyped-def]
    """Unite the trees of the ends of each edge of a range; in the next round label vertices by their roots, and count these."""
    if worker.round == 0:
        for k in split_range(worker, item, sources.size, _EDGES_PER_ITEM):
            unite(find_root(sources[k], label), targets[k], label)
        if worker.rank == 0:
            worker.push(item)
        return
    found = 0
    for v in split_range(worker, item, label.size, VERTICES_PER_ITEM):
        root = root_of(v, label)
        label[v] = root
        found += root == v
    found = worker.sum(found)
    if worker.rank == 0 and found > 0:
        atomic_add(roots, 0, found)


def row_bounds(v, rows):  # type: ignore[no-untyped-def]
    """Return the first edge of v and the end of its edges."""
    return rows.start[v], rows.start[v] + rows.degree[v]


connect_rows = connecting(row_bounds)


class DynamicComponents:
    """The connected components of a `DynamicGraph`, kept up to date: after each edit they are those of the graph.

    Edges that are inserted unite components, in time in proportion to them, and a pass over the vertices names these anew.
    After deletions the components are found from scratch, as by `connected_components`, over the rows as they are.

    Parameters
    ----------
    graph : DynamicGraph
        If it is directed, the components are its weak ones.

    Attributes
    ----------
    label : Array
        The smallest vertex of the component of each vertex, uint32; always the same array.
    num_components : int

    References
    ----------
    Hong, Dhulipala and Shun, "Exploring the design space of static and incremental graph connectivity algorithms on GPUs",
    PACT 2020.

    Examples
    --------
    >>> graph = atos.DynamicGraph(4)
    >>> components = atos.DynamicComponents(graph)
    >>> graph.insert_edges([3, 0], [1, 2])
    >>> print(components.label[:], components.num_components)
    [0 1 0 1] 2
    """

    @host_memory_for("atos.DynamicComponents")
    def __init__(self, graph: DynamicGraph) -> None:
        if not isinstance(graph, DynamicGraph):
            raise UnsupportedTypeError(
                f"graph must be an atos.DynamicGraph (got {type(graph).__name__}); make one with atos.DynamicGraph(graph)"
            )
        self._graph = graph
        self._queue = Queue(8192, device=graph.device)
        self._passes = row_queue(graph.num_vertices, graph.device)
        self.label: Array = empty(graph.num_vertices, dtype=np.uint32, device=graph.device)
        self.num_components = 0
        self._find()
        graph._follow(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Find the components again, of the graph or of the copy of it."""
        return DynamicComponents, (self._graph,)

    def _inserted(self, sources: Array, targets: Array) -> None:
        """Unite components that edges join."""
        roots = zeros(1, dtype=np.int64, device=self._graph.device)
        items = max(-(-sources.size // _EDGES_PER_ITEM), -(-self.label.size // VERTICES_PER_ITEM))
        self._queue.push(np.arange(items))
        self._queue.launch_cta(keep_components, sources, targets, self.label, roots, barrier=True)
        self.num_components = int(roots[0])

    def _deleted(self, sources: Array, targets: Array) -> None:
        """Find the components again."""
        self._find()

    def _find(self) -> None:
        n, device, graph = self._graph.num_vertices, self._graph.device, self._graph
        notes = new_record(Notes, device)
        launches = LaunchSequence("DynamicComponents", self._passes, {})
        sampled = sampled_edges(graph.num_edges, n) if graph.undirected else ALL_EDGES
        rows = graph.rows._replace(weights=None)
        launches.over_rows(connect_rows, n, sampled, rows, self.label, notes, each_round=choose_largest)
        self.num_components = int(notes[AT.num_components])
