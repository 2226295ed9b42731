"""The k-core of a graph: vertices with fewer than k edges leave, each as soon as a worker is free, until all have k.

A vertex that leaves takes one from the degree of each neighbor. One of these whose degree comes down below k is pushed. At
first all vertices are looked at, and may be found while another worker lowers their degree and pushes them. An atomic exchange
of the degree says which of the two lets the vertex leave. So each leaves once.

Source: Batagelj and Zaversnik, "An O(m) algorithm for cores decomposition of networks", 2003.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays.array import empty
from ..compile.atomics import atomic_add, atomic_exch
from ..errors import VerificationError
from ..graph.graph import Graph
from ..operators.edge_map import THREAD_MAX_DEGREE, push
from ..operators.peeling import REMOVED
from ..operators.ranges import mixed_item_dtype, mixed_ranges
from ..operators.vertex_map import vertex_map
from ..runtime.launch_options import LaunchOptions, Unpack
from ..runtime.queue import Queue
from ..support.validation import check_int
from .arguments import first_of, per_vertex
from .core_number import find_serial_cores
from .frame import algorithm, verifier
from .kept_launches import take_queue
from .launch_sequence import LaunchSequence
from .registry import Option, register
from .undirected import degrees_without_loops, undirected
from .vertex_set import VertexSetResult, describe_set

__all__ = ["k_core", "verify_k_core"]


def is_low(v, row, k, degree):  # type: ignore[no-untyped-def]
    """Whether a vertex has too few edges, or has left."""
    return degree[v] < k


def begin_to_leave(v, row, k, degree):  # type: ignore[no-untyped-def]
    """Return whether a vertex leaves now, and a number that its edges do not need."""
    return degree[v] < k and atomic_exch(degree, v, REMOVED) >= 0, 0  # race: of all that read, one alone removes it


def take_edge(worker, v, u, nothing, k, degree):  # type: ignore[no-untyped-def]
    """Take one edge from a neighbor that is left."""
    if degree[u] >= k and atomic_add(degree, u, -1) == k:  # race: one thread alone takes the edge that is one too few
        worker.push(u)


leave = push(is_low, begin_to_leave, take_edge, low_degree_inline=True)


@vertex_map
def mark_rest(v, k, degree, members):  # type: ignore[no-untyped-def]
    """Mark what is left."""
    members[v] = degree[v] >= k


@algorithm()
def k_core(graph: Graph, k: int, *, worker: str | None = None, **launch_options: Unpack[LaunchOptions]) -> VertexSetResult:
    """Return the k-core: the largest part of the graph in which each vertex has at least k edges to others of it.

    Parameters
    ----------
    graph : Graph
        As for `core_number`: directed or not, parallel edges count each, and loops do not.
    k : int
        The degree, at least 0.
    {launch_options}

    Raises
    ------
    InvalidArgumentError
        If `k` is negative.

    See Also
    --------
    core_number : all cores at once.

    Examples
    --------
    >>> triangle_with_tail = atos.Graph.from_edges([0, 1, 2, 2], [1, 2, 0, 3], symmetrize=True)
    >>> atos.k_core(triangle_with_tail, 2).members.to_numpy()
    array([ True,  True,  True, False])
    """
    rows, n, device = undirected(graph)._replace(weights=None), graph.num_vertices, graph.device
    least, degree = check_int("k", k, 0, 2**62), degrees_without_loops(rows).copy()
    members, items = empty(n, dtype=np.bool_, device=device), mixed_ranges(n)
    room, dtype = n + len(items) or 1, mixed_item_dtype(n)
    queue = take_queue(graph, lambda: Queue(room, dtype=dtype, device=device), launch_options, "k_core", worker)
    launches = LaunchSequence("k_core", queue, launch_options, worker)

    def launch_all(launches: LaunchSequence) -> None:
        launches.launch(items, leave, rows.indptr, rows.indices, THREAD_MAX_DEGREE[device.kind], least, degree)
        launches.over_vertices(mark_rest, n, least, degree, members)

    launches.launch_planned((rows.indptr.dtype, degree.dtype), launch_all)
    return VertexSetResult(members, launches.total(leave.name))  # type: ignore[arg-type]


@verifier
def verify_k_core(graph: Graph, k: int, members: Any) -> None:
    """Prove that `members` marks the vertices of the k-core.

    Those are the vertices with a core number of at least k, and a serial algorithm finds the core numbers on the host, as for
    `verify_core_number`.

    Parameters
    ----------
    graph : Graph
        Directed or not, as for `core_number`.
    k : int
        The degree that `k_core` was given.
    members : array of bool
        One for each vertex.

    Examples
    --------
    >>> triangle_with_tail = atos.Graph.from_edges([0, 1, 2, 2], [1, 2, 0, 3], symmetrize=True)
    >>> atos.verify_k_core(triangle_with_tail, 2, [True, True, True, False])
    >>> atos.verify_k_core(triangle_with_tail, 2, [True, True, True, True])
    Traceback (most recent call last):
    atos_py.errors.VerificationError: ...
    """
    core = find_serial_cores(graph)
    found = per_vertex("members", members, core.size, "b")
    wrong = found != (core >= check_int("k", k, 0, 2**62))
    if (v := first_of(wrong)) >= 0:
        is_member = "is" if found[v] else "is not"
        raise VerificationError(f"vertex {v} {is_member} among the members of the {k}-core, but its core number is {core[v]}")


register(
    run=k_core,
    verify=lambda graph, result, options: verify_k_core(graph, options["k"], result.members),
    describe=describe_set,
    arrays=lambda result: {"members": result.members},
    help="find the k-core of a graph",
    description="""\
Finds the largest part of the graph in which each vertex has at least k edges to others of it, by peeling off what has fewer. A
serial algorithm checks it.""",
    examples=("rmat:16:16 --k 10 --out members.npy",),
    options={"k": Option("the degree within the core", int)},
    defaults={"k": 2},
)
