"""Connected components by union-find, where most edges of the largest component are not looked at.

Every vertex is linked to its first neighbour if that is smaller, and then to its second one. That joins most of a component
already. The most frequent root of a sample then stands for the largest component, and only vertices outside of it link the rest
of their edges: if the graph is symmetric, an edge between inside and outside is seen from outside too. Otherwise, or where
few edges would be spared, all vertices link all of theirs. At last every vertex gets its root, the smallest of its component.

All of that is one launch: an item is a range of vertices, and each round does one step for all of them.

Sources: Sutton, Ben-Nun and Barak, "Optimizing parallel graph connectivity computation via subgraph sampling", IPDPS 2018
(Afforest); Jaiganesh and Burtscher, "A high-performance connected components implementation for GPUs", HPDC 2018 (ECL-CC).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.array import to_host, zeros
from ..arrays.array_library import as_library
from ..compile.atomics import atomic_add, atomic_max
from ..compile.host_kernels import compile_kernel, even_rows, parallel_map
from ..compile.task import task
from ..errors import VerificationError
from ..graph.graph import Graph
from ..graph.graph_arrays import check_graph
from ..operators.edge_map import THREAD_MAX_DEGREE
from ..operators.ranges import range_items
from ..operators.row_map import VERTICES_PER_ROW_ITEM, row_map
from ..operators.union_find import find_root, root_of, unite
from ..runtime.launch import LaunchOptions
from ..runtime.queue import Queue
from ..runtime.stats import LaunchStats
from ..support.host_memory import host_memory_for
from ..support.splitmix64 import splitmix64
from .arguments import check_options, check_rounds, check_worker, ends_of, per_vertex, rows_on_host
from .launch_sequence import LaunchSequence
from .registry import Algorithm, register

if TYPE_CHECKING:
    from typing_extensions import Unpack  # of typing from Python 3.11 on

__all__ = [
    "ComponentsResult",
    "check_labels",
    "connected_components",
    "describe_components",
    "verify_connected_components",
]

_MIN_DEGREE = 4  # mean degree from which on sparing edges is worth knowing whether the graph is symmetric
_SAMPLES = 128
# Places in `notes`: the root of the largest component, how many components there are, and the roots of the sample.
_LARGEST, _COUNT, _ROOTS = 0, 1, 2
_CHUNK_EDGES = 1 << 20
_ALL = 1 << 40  # edges of a vertex: more than any has


def link_edges(v, edge, last, skip, end, largest, indices, parent):  # type: ignore[no-untyped-def]
    """Unite v and its neighbours of places `skip` to `end` in its row, unless it is in the component of `largest`."""
    last = min(last, edge + end)
    edge += skip
    if edge < last:
        root = find_root(v, parent)
        if largest < 0 or root != find_root(largest, parent):
            while edge < last:
                root = unite(root, indices[edge], parent)
                edge += 1
    return 0


def link_edges_by_all(team, v, edge, last, skip, end, largest, indices, parent):  # type: ignore[no-untyped-def]
    """Do the same by all threads of a team."""
    last = min(last, edge + end)
    root = find_root(v, parent)
    if largest < 0 or root != find_root(largest, parent):
        for each in team.split(range(edge + skip, last)):
            root = unite(root, indices[each], parent)
    return 0


link_rows = row_map(link_edges, link_edges_by_all)


@task
def connect(worker, item, size, thread_max_degree, sampled, graph, parent, notes):  # type: ignore[no-untyped-def]
    """Do the step of the round for a range of vertices: the first link, links along `sampled` edges, along all, or labels."""
    n = parent.size
    first = item * size
    end = min(first + size, n)
    step = worker.round
    if step == 2 and sampled == _ALL:
        step = 3
    if step == 0:
        for v in worker.split(range(first, end)):
            low = v
            if graph.indptr[v] < graph.indptr[v + 1]:
                low = min(v, graph.indices[graph.indptr[v]])
            parent[v] = low
    elif step == 1:
        link_rows(worker, first, end, thread_max_degree, graph.indptr, 0, sampled, -1, graph.indices, parent)
    elif step == 2:
        chosen = notes[_LARGEST] & 0xFFFF_FFFF
        link_rows(worker, first, end, thread_max_degree, graph.indptr, sampled, _ALL, chosen, graph.indices, parent)
    else:
        roots = 0
        for v in worker.split(range(first, end)):
            root = root_of(v, parent)
            parent[v] = root
            roots += root == v
        roots = worker.sum(roots)
        if worker.rank == 0:
            atomic_add(notes, _COUNT, roots)
    if step < 3 and worker.rank == 0:
        worker.push(item)


def choose_largest(worker, size, thread_max_degree, sampled, graph, parent, notes):  # type: ignore[no-untyped-def]
    """Find the most frequent root of a sample of vertices, after the links that every vertex has."""
    if worker.round == 1 and sampled != _ALL:
        n = np.uint64(parent.size)
        for k in worker.split(_SAMPLES):
            notes[_ROOTS + k] = find_root(np.int64(splitmix64(np.uint64(k)) % n), parent)
        worker.sync()
        for k in worker.split(_SAMPLES):
            same = 0
            for other in range(_SAMPLES):
                same += notes[_ROOTS + other] == notes[_ROOTS + k]
            atomic_max(notes, _LARGEST, same << 32 | notes[_ROOTS + k])


@dataclass(frozen=True)
class ComponentsResult:
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

    label: Any
    num_components: int
    stats: LaunchStats


@host_memory_for("atos.connected_components")
def connected_components(
    graph: Graph, *, worker: str | None = None, **launch_options: Unpack[LaunchOptions]
) -> ComponentsResult:
    """Find which vertices are joined by paths, of edges taken in either direction.

    Parameters
    ----------
    graph : Graph
        If it is directed, the components are its weak ones.
    worker : {'thread', 'warp', 'cta'}, optional
        By default "cta".
    **launch_options : LaunchOptions
        As for `Queue.launch_cta`: `persistent`, `fetch_size`, `num_blocks`, `num_threads`, ... The launch always has rounds,
        so there is no `barrier=False`, and no `each_round`.

    Returns
    -------
    ComponentsResult

    Raises
    ------
    InvalidArgumentError
        If there is no such worker.
    LaunchConfigError
        If an option does not go with rounds.

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
    check_graph(graph)
    check_options(connected_components, launch_options)
    check_rounds("connected_components", launch_options)
    check_worker(worker)
    n, device = graph.num_vertices, graph.device
    label = zeros(n, dtype=np.uint32, device=device)
    notes = zeros(_ROOTS + _SAMPLES, dtype=np.int64, device=device)
    size = VERTICES_PER_ROW_ITEM[device.kind]
    items = range_items(n, size)
    launches = LaunchSequence("connected_components", Queue(max(2 * items.size, 1), device=device), launch_options, worker)
    sampled = 2 if graph.num_edges >= _MIN_DEGREE * n and graph.is_symmetric() else _ALL
    arguments = size, THREAD_MAX_DEGREE[device.kind], sampled, graph, label, notes
    launches.launch(items, connect, *arguments, overrides={"barrier": True, "each_round": choose_largest})
    return ComponentsResult(as_library(label, graph.library), int(notes[_COUNT]), launches.total())


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


@host_memory_for("atos.verify_connected_components")
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

    Raises
    ------
    VerificationError
        Something is wrong. The message names the first edge or vertex that is.

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
    kernel = compile_kernel(_edges_kernel)
    for edge in parallel_map(lambda piece: int(kernel(indptr, indices, found, *piece)), even_rows(indptr, _CHUNK_EDGES)):
        if edge >= 0:
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


def _verify(graph: Graph, result: ComponentsResult, _options: Mapping[str, Any]) -> dict[str, Any]:
    verify_connected_components(graph, result.label, result.num_components)
    return describe_components(result)


register(
    Algorithm(
        name="connected_components",
        run=connected_components,
        verify=_verify,
        describe=describe_components,
        arrays=lambda result: {"label": result.label},
        help="find which vertices are joined by paths",
        description="""\
Finds the connected components of a graph, the weak ones if it is directed, by a union-find of tasks (Afforest, ECL-CC). The
label of a vertex is the smallest vertex of its component. A serial search proves the labels right.""",
        examples=("rmat:16:16 --out label.npy", "road:1000:0.62 --worker warp"),
    )
)
