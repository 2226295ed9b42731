"""Core numbers by peeling, all levels in one launch: `operators.peeling` says how.

Sources: Kabir and Madduri, "Parallel k-core decomposition on multicore platforms", IPDPS Workshops 2017; for the verifier,
Batagelj and Zaversnik, "An O(m) algorithm for cores decomposition of networks", 2003.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.any_array import AnyArray
from ..arrays.array import empty, to_host
from ..compile.host_kernels import compile_kernel
from ..errors import VerificationError
from ..graph.graph import Graph
from ..graph.graph_arrays import check_graph
from ..operators.edge_map import THREAD_MAX_DEGREE
from ..operators.peeling import SCRATCH, Peeling, begin_peeling, list_ranges, open_next_level, peeling_arrays, remove_row, scan
from ..operators.ranges import range_items
from ..operators.vertex_map import vertex_map
from ..runtime.launch_options import LaunchOptions, Unpack
from ..runtime.queue import Queue
from ..runtime.stats import LaunchStats
from ..support.host_memory import host_memory_for
from ..support.shown import ShownFields
from .arguments import first_of, per_vertex, rows_on_host
from .frame import algorithm, verifier
from .kept_launches import take_queue
from .launch_sequence import LaunchSequence
from .registry import register
from .undirected import degrees_without_loops, undirected

__all__ = ["CoreResult", "core_number", "find_serial_cores", "verify_core_number"]


@vertex_map
def list_vertex(v, lists):  # type: ignore[no-untyped-def]
    """Write a vertex to the list."""
    lists[v] = v


@dataclass(frozen=True, eq=False)
class CoreResult(ShownFields):
    """Result of `core_number`.

    Attributes
    ----------
    core : Array, or an array of the library that the graph's arrays came from
        The core number of each vertex, uint32.
    stats : LaunchStats

    Examples
    --------
    >>> result = atos.core_number(atos.Graph.from_edges([0, 1, 2, 2], [1, 2, 0, 3], symmetrize=True))
    >>> print(result.core[:], result.max_core)
    [2 2 2 1] 2
    """

    core: AnyArray
    stats: LaunchStats

    @property
    @host_memory_for("CoreResult.max_core")
    def max_core(self) -> int:
        """The largest core number, the degeneracy of the graph; 0 if there are no vertices."""
        return int(np.asarray(to_host(self.core)).max(initial=0))


@algorithm(rounds=True)
def core_number(graph: Graph, *, worker: str | None = None, **launch_options: Unpack[LaunchOptions]) -> CoreResult:
    """Return the core number of each vertex: the largest k such that it is in the k-core.

    The k-core is the largest part of the graph in which each vertex has at least k edges to others of it.

    Parameters
    ----------
    graph : Graph
        If every edge has its reverse, it is undirected, and the degree of a vertex is the number of its edges; otherwise the
        degree is that of edges in and out, as in networkx, and a symmetric copy is made for that. Parallel edges count each.
        Loops do not count; networkx refuses them.
    {launch_options}

    See Also
    --------
    k_core : one core, without levels.

    References
    ----------
    Kabir and Madduri, "Parallel k-core decomposition on multicore platforms", IPDPS Workshops 2017.

    Examples
    --------
    >>> triangle_with_tail = atos.Graph.from_edges([0, 1, 2, 2], [1, 2, 0, 3], symmetrize=True)
    >>> atos.core_number(triangle_with_tail).core.to_numpy()
    array([2, 2, 2, 1], dtype=uint32)
    """
    rows = undirected(graph)._replace(weights=None)
    n, device, degrees = graph.num_vertices, graph.device, degrees_without_loops(rows)
    core, items = empty(n, dtype=np.uint32, device=device), list_ranges(n)
    tasks = scan, remove_row
    room, ranges = n + len(items) + 1, len(range_items(n)) or 1
    queue = take_queue(graph, lambda: Queue._of_kinds(tasks, room, device=device), launch_options, "core_number", worker)
    maps = take_queue(graph, lambda: Queue(ranges, device=device), launch_options, "maps", worker, "core_number")
    launches = LaunchSequence("core_number", queue, launch_options, worker, maps)
    degree, lists, state = launches.workspace(("peeling", degrees.dtype), lambda: peeling_arrays(degrees))
    p = Peeling(degree, core, lists, state, THREAD_MAX_DEGREE[device.kind])
    begin_peeling(degrees, p)
    scratch = SCRATCH[worker or "cta"]
    rounds: LaunchOptions = {"barrier": True, "each_round": open_next_level, "shared_memory": scratch}

    def launch_all(launches: LaunchSequence) -> None:
        launches.over_vertices(list_vertex, n, p.lists)
        launches.launch(items, tasks, rows, p, overrides=rounds)

    launches.launch_planned((rows.indptr.dtype, p.degree.dtype), launch_all)
    return CoreResult(core, launches.total(scan.name))  # type: ignore[arg-type]


def _order_kernel(
    indptr: Any, indices: Any, core: Any, order: Any, place: Any, begin: Any
) -> None:  # pragma: no cover - compiled
    """Turn degrees into core numbers: remove vertices in the order of their degrees, which stays sorted.

    `begin` has the place in `order` where the vertices of each degree begin.
    """
    for at in range(order.size):
        v = order[at]
        for edge in range(indptr[v], indptr[v + 1]):
            u = indices[edge]
            if core[u] > core[v]:
                first = begin[core[u]]
                w = order[first]
                order[place[u]], place[w] = w, place[u]
                order[first], place[u] = u, first
                begin[core[u]] += 1
                core[u] -= 1


def find_serial_cores(graph: Graph) -> NDArray[np.int64]:
    """Return core numbers by the algorithm of Batagelj and Zaversnik, one vertex after the other on the host."""
    check_graph(graph)
    undirected = graph if graph.is_symmetric() else graph.to("cpu").simplify(symmetrize=True)
    indptr, indices = rows_on_host(undirected)
    degree, n = np.diff(indptr), indptr.size - 1
    rows = np.repeat(np.arange(n, dtype=np.uint32), degree)
    core: NDArray[np.int64] = degree - np.bincount(rows[rows == indices], minlength=n)  # without loops
    order = np.argsort(core, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(n)
    begin = np.searchsorted(core[order], np.arange(core.max(initial=0) + 2))
    compile_kernel(_order_kernel)(indptr, indices, core, order, place, begin)
    return core


@verifier
def verify_core_number(graph: Graph, core: Any) -> None:
    """Prove that `core` has the core number of each vertex.

    The algorithm of Batagelj and Zaversnik computes them anew on the host, one vertex after the other: always the vertex of
    smallest degree among those left is removed next, and its core number is the largest degree with which any was removed so
    far. It shares nothing with the rounds of `core_number`, and core numbers are unique.

    Parameters
    ----------
    graph : Graph
        Directed or not, as for `core_number`.
    core : array
        The core numbers, of any integer type; one for each vertex.

    Examples
    --------
    >>> triangle = atos.Graph.from_edges([0, 1, 2], [1, 2, 0], symmetrize=True)
    >>> atos.verify_core_number(triangle, [2, 2, 2])
    >>> atos.verify_core_number(triangle, [2, 3, 2])
    Traceback (most recent call last):
    atos_py.errors.VerificationError: ...
    """
    expected = find_serial_cores(graph)
    found = per_vertex("core", core, expected.size)
    wrong = found != expected
    if (v := first_of(wrong)) >= 0:
        raise VerificationError(f"core[{v}] is {found[v]}, but the core number of vertex {v} is {expected[v]}")


register(
    run=core_number,
    verify=lambda graph, result, _: verify_core_number(graph, result.core),
    describe=lambda result: {"largest": result.max_core},
    arrays=lambda result: {"core": result.core},
    help="find the core number of each vertex",
    description="""\
Finds the core number of each vertex: the largest k such that it is in a part of the graph in which each vertex has at least k
edges to others of it. All levels are peeled in one launch with rounds (Kabir and Madduri 2017). A serial algorithm of another
kind checks them. The degree in a graph with edges in one direction only is that of edges in and out.""",
    examples=("rmat:16:16 --out core.npy", "road:1000:0.62 --worker warp"),
)
