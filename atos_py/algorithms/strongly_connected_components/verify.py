"""The proof that labels are those of the strongly connected components: Tarjan's algorithm, one step after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...compile.host_kernels import compile_kernel
from ...graph.graph import Graph
from ...graph.graph_arrays import check_graph
from ...support.host_memory import host_memory_for
from ..arguments import per_vertex, rows_on_host
from ..connected_components import check_labels

__all__ = ["number_components", "verify_strongly_connected_components"]


def _tarjan_kernel(
    indptr: Any, indices: Any, next_edge: Any, order: Any, low: Any, path: Any, open_vertices: Any, component: Any
) -> int:  # pragma: no cover - compiled
    """Give the components numbers in the order in which they are found; return how many there are.

    A vertex is visited where `order` is not 0, and its component is known where that is not -1. `path` leads from the vertex
    where a search began to the current one.
    """
    visited = 0
    num_open = 0
    count = 0
    for start in range(component.size):
        if order[start]:
            continue
        path[0] = start
        length = 1
        while length:
            u = path[length - 1]
            if not order[u]:
                visited += 1
                order[u] = visited
                low[u] = visited
                next_edge[u] = indptr[u]
                open_vertices[num_open] = u
                num_open += 1
            if next_edge[u] < indptr[u + 1]:
                v = indices[next_edge[u]]
                if not order[v]:
                    path[length] = v
                    length += 1
                    continue  # and back at this edge when v is done
                if component[v] < 0:
                    low[u] = min(low[u], low[v])
                next_edge[u] += 1
                continue
            length -= 1
            if low[u] == order[u]:
                while component[u] < 0:
                    num_open -= 1
                    component[open_vertices[num_open]] = count
                count += 1
    return count


def number_components(indptr: NDArray[Any], indices: NDArray[Any]) -> tuple[NDArray[np.int64], int]:
    """Return the number of each vertex's component, and how many there are. A component comes after those that it reaches."""
    n = indptr.size - 1
    component = np.full(n, -1, np.int64)
    next_edge, order, low, path, open_vertices = (np.zeros(n, np.int64) for _ in range(5))
    count = compile_kernel(_tarjan_kernel)(indptr, indices, next_edge, order, low, path, open_vertices, component)
    return component, int(count)


@host_memory_for("atos.verify_strongly_connected_components")
def verify_strongly_connected_components(graph: Graph, label: Any, num_components: int | None = None) -> None:
    """Prove that labels are the smallest vertex of each vertex's strongly connected component.

    They are compared with those that Tarjan's algorithm finds, a serial depth-first search that has nothing in common with how
    they were found.

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
        Something is wrong. The message names the first vertex that is.

    References
    ----------
    Tarjan, "Depth-first search and linear graph algorithms", SIAM Journal on Computing 1 (1972).

    Examples
    --------
    >>> graph = atos.Graph.from_edges([0, 1, 2, 2], [1, 2, 1, 3])
    >>> atos.verify_strongly_connected_components(graph, [0, 1, 1, 3], 3)
    >>> atos.verify_strongly_connected_components(graph, [0, 0, 0, 3])
    Traceback (most recent call last):
    atos_py.errors.VerificationError: ...
    """
    check_graph(graph)
    indptr, indices = rows_on_host(graph)
    n = indptr.size - 1
    found = per_vertex("label", label, n)
    component, count = number_components(indptr, indices)
    first = np.empty(count, np.int64)
    first[component[::-1]] = np.arange(n)[::-1]  # of several vertices, the last one that is written stays
    smallest = first[component]
    check_labels(found, smallest, num_components, "strongly connected component")
