"""Connected components by union-find in one launch: `operators.connect` says how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.any_array import AnyArray
from ..arrays.array import new_array, to_host
from ..compile.host_kernels import compile_kernel, first_found
from ..errors import VerificationError
from ..graph.graph import Graph
from ..graph.graph_arrays import check_graph
from ..operators.connect import ALL_EDGES, AT, Notes, choose_largest, connect, sampled_edges
from ..operators.row_map import row_queue
from ..runtime.launch_options import LaunchOptions, Unpack
from ..runtime.stats import LaunchStats
from ..support.shown import ShownFields
from .arguments import ends_of, per_vertex, rows_on_host
from .frame import algorithm, verifier
from .kept_launches import take_queue
from .launch_sequence import LaunchSequence
from .registry import register

if TYPE_CHECKING:
    from ..graph.host_partition import HostPartition
    from ..graph.partition import Partition

__all__ = [
    "ComponentsResult",
    "check_labels",
    "connected_components",
    "describe_components",
    "verify_connected_components",
]


@dataclass(frozen=True, eq=False)
class ComponentsResult(ShownFields):
    """Result of `connected_components` and `strongly_connected_components`.

    Attributes
    ----------
    label : Array, or an array of the library that the graph's arrays came from
        The smallest vertex of the component of each vertex, uint32.
    num_components : int
        How many components there are.
    stats : LaunchStats

    Examples
    --------
    >>> result = atos.connected_components(atos.Graph.from_edges([0, 3], [2, 4]))
    >>> print(result.label[:], result.num_components)
    [0 1 0 3 3] 3
    """

    label: AnyArray
    num_components: int
    stats: LaunchStats


@algorithm(rounds=True, in_parts=True)
def connected_components(
    graph: Graph | Partition | HostPartition, *, worker: str | None = None, **launch_options: Unpack[LaunchOptions]
) -> ComponentsResult:
    """Find which vertices are joined by paths, of edges taken in either direction.

    Parameters
    ----------
    graph : Graph, Partition or HostPartition
        If it is directed, the components are its weak ones. Over the parts of a graph the labels are a `PartitionedArray`.
    {launch_options}

    See Also
    --------
    strongly_connected_components : with paths in both directions.

    References
    ----------
    Sutton, Ben-Nun and Barak, "Optimizing parallel graph connectivity computation via subgraph sampling", IPDPS 2018.

    Examples
    --------
    >>> result = atos.connected_components(atos.generate.road(100, 0.5))
    >>> print(result.num_components, result.label[:3])
    1053 [0 0 0]
    """
    assert isinstance(graph, Graph)  # graphs in parts have gone to forms of their own
    n, device = graph.num_vertices, graph.device
    label = new_array((n,), np.dtype(np.uint32), device, cleared=False)
    queue = take_queue(graph, lambda: row_queue(n, device), launch_options, "connected_components", worker)
    launches = LaunchSequence("connected_components", queue, launch_options, worker)
    notes = launches.record(Notes)
    sampled = sampled_edges(graph.num_edges, n) if graph.is_symmetric() else ALL_EDGES
    launches.over_rows(connect, n, sampled, graph._replace(weights=None), label, notes, each_round=choose_largest)
    num_components = int(notes[AT.num_components])
    launches.finish()
    return ComponentsResult(label, num_components, launches.total())  # type: ignore[arg-type]


def _edges_kernel(indptr: Any, indices: Any, label: Any, first: int, end: int) -> int:  # pragma: no cover - compiled
    """Return the first edge that joins different labels, or -1."""
    for u in range(first, end):
        for edge in range(indptr[u], indptr[u + 1]):
            if label[indices[edge]] != label[u]:
                return edge
    return -1


def _smallest_kernel(indptr: Any, indices: Any, smallest: Any, stack: Any) -> None:  # pragma: no cover - compiled
    """Write down the smallest vertex that a path of a symmetric graph joins with each one, by serial searches."""
    n = smallest.size
    for start in range(n):
        if smallest[start] == n:
            smallest[start] = start
            stack[0] = start
            depth = 1
            while depth > 0:
                depth -= 1
                u = stack[depth]
                for edge in range(indptr[u], indptr[u + 1]):
                    v = indices[edge]
                    if smallest[v] == n:
                        smallest[v] = start
                        stack[depth] = v
                        depth += 1


@verifier
def verify_connected_components(graph: Graph, label: Any, num_components: int | None = None) -> None:
    """Prove that labels are the smallest vertex of each vertex's component.

    Two conditions are checked: every edge joins equal labels; and each label is the first vertex from which a serial
    depth-first search, along edges in both directions, reaches the vertex. By the first, a component has one label; the second
    says which, and that two components have different ones.

    Parameters
    ----------
    graph : Graph
        Directed or not.
    label : array
        The labels, of any integer type; one for each vertex.
    num_components : int, optional
        How many components there are said to be.

    Examples
    --------
    >>> graph = atos.Graph.from_edges([0, 3], [2, 4])
    >>> atos.verify_connected_components(graph, [0, 1, 0, 3, 3], 3)
    >>> atos.verify_connected_components(graph, [0, 0, 0, 3, 3])
    Traceback (most recent call last):
    atos_py.errors.VerificationError: ...
    """
    check_graph(graph)
    indptr, indices = rows_on_host(graph)
    n = indptr.size - 1
    found = per_vertex("label", label, n)
    if (edge := first_found(_edges_kernel, indptr, indices, found)) >= 0:
        u, v = ends_of(indptr, indices, edge)
        raise VerificationError(f"edge {u} -> {v} (number {edge}) joins label {found[u]} and label {found[v]}")
    rows = rows_on_host(graph.to_symmetric())
    smallest = np.full(n, n, np.int64)
    compile_kernel(_smallest_kernel)(*rows, smallest, np.empty(n, np.int64))
    check_labels(found, smallest, num_components, "component")


def check_labels(found: NDArray[Any], smallest: NDArray[Any], num_components: int | None, what: str) -> None:
    """Raise unless labels are those expected, and as many as was said."""
    if not np.array_equal(found, smallest):
        v = int(np.argmax(found != smallest))
        raise VerificationError(f"label[{v}] is {found[v]}, but the smallest vertex of its {what} is {smallest[v]}")
    count = int(np.count_nonzero(smallest == np.arange(smallest.size)))
    if num_components is not None and num_components != count:
        raise VerificationError(f"num_components is {num_components}, but there are {count}")


def describe_components(result: ComponentsResult) -> dict[str, Any]:
    """Return what a command prints of components."""
    sizes = np.bincount(np.asarray(to_host(result.label)).astype(np.int64))
    return {"components": result.num_components, "largest": int(sizes.max(initial=0))}


register(
    run=connected_components,
    verify=lambda graph, result, _: verify_connected_components(graph, result.label, result.num_components),
    describe=describe_components,
    arrays=lambda result: {"label": result.label},
    help="find which vertices are joined by paths",
    description="""\
Finds the connected components of a graph, the weak ones if it is directed, by a union-find of tasks (Afforest, ECL-CC). The
label of a vertex is the smallest vertex of its component. A serial search proves the labels right.""",
    examples=("rmat:16:16 --out label.npy", "road:1000:0.62 --worker warp"),
)
