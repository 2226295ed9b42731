"""Strongly connected components on the host by Tarjan's algorithm, one step after the other: for proofs, and for its order.

Source: Tarjan, "Depth-first search and linear graph algorithms", SIAM Journal on Computing 1 (1972).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compile.host_kernels import compile_kernel

__all__ = ["number_components"]


def _tarjan_kernel(
    indptr: Any, indices: Any, next_edge: Any, order: Any, low: Any, path: Any, open_vertices: Any, component: Any
) -> None:  # pragma: no cover - compiled
    """Give the components numbers in the order in which they are found.

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


def number_components(indptr: NDArray[Any], indices: NDArray[Any]) -> NDArray[np.int64]:
    """Return the number of each vertex's component: after the numbers of those that it reaches."""
    n = indptr.size - 1
    component = np.full(n, -1, np.int64)
    next_edge, order, low, path, open_vertices = (np.zeros(n, np.int64) for _ in range(5))
    compile_kernel(_tarjan_kernel)(indptr, indices, next_edge, order, low, path, open_vertices, component)
    return component
