"""Connected components of a graph whose edges change: union-find keeps them up to date with edges that are inserted."""

from __future__ import annotations

import numpy as np

from ..arrays.array import Array, empty, zeros
from ..errors import UnsupportedTypeError
from ..graph.dynamic_graph import DynamicGraph
from ..operators.connect import ALL_EDGES, COUNT, NOTES, choose_largest, connecting, sampled_edges
from ..operators.ranges import range_items
from ..operators.row_map import row_queue
from ..operators.union_find import find_root, root_of, unite
from ..operators.vertex_map import vertex_map, vertex_sums
from ..runtime.queue import Queue
from ..support.host_memory import host_memory_for
from .launch_sequence import LaunchSequence

__all__ = ["DynamicComponents"]


@vertex_map
def unite_ends(k, sources, targets, label):  # type: ignore[no-untyped-def]
    """Unite the trees of the two ends of an edge."""
    unite(find_root(sources[k], label), targets[k], label)


def name_by_root(v, label):  # type: ignore[no-untyped-def]
    """Label v by the root of its tree; return 1 if it is one."""
    root = root_of(v, label)
    label[v] = root
    return (1.0 if root == v else 0.0,)


name_by_roots = vertex_sums(name_by_root)


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
        self._items = range_items(graph.num_vertices)
        self._queue = Queue(max(len(self._items), 1), device=graph.device)
        self._passes = row_queue(graph.num_vertices, graph.device)
        self.label: Array = empty(graph.num_vertices, dtype=np.uint32, device=graph.device)
        self.num_components = 0
        self._find()
        graph._follow(self)

    def _inserted(self, sources: Array, targets: Array) -> None:
        """Unite components that edges join."""
        count = sources.size
        self._queue.push(range_items(count))
        self._queue.launch_cta(unite_ends, count, sources, targets, self.label)
        roots = zeros(1, dtype=np.float64, device=self._graph.device)
        self._queue.push(self._items)
        self._queue.launch_cta(name_by_roots, self._graph.num_vertices, roots, self.label)
        self.num_components = int(roots[0])

    def _deleted(self, sources: Array, targets: Array) -> None:
        """Find the components again."""
        self._find()

    def _find(self) -> None:
        n, device, graph = self._graph.num_vertices, self._graph.device, self._graph
        notes = zeros(NOTES, dtype=np.int64, device=device)
        launches = LaunchSequence("DynamicComponents", self._passes, {})
        sampled = sampled_edges(graph.num_edges, n) if graph.undirected else ALL_EDGES
        rows = graph.rows._replace(weights=None)
        launches.over_rows(connect_rows, n, sampled, rows, self.label, notes, each_round=choose_largest)
        self.num_components = int(notes[COUNT])
