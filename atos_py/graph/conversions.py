"""Graphs of networkx as edges, and checks of sparse matrices of SciPy.

No library is imported here before it is needed: what comes in is told by what it has.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidArgumentError, UnsupportedTypeError
from ..support.validation import as_host_array
from .csr import EdgeList, chunk_edges
from .edge_arrays import check_names
from .graph_input import describe_kind, way_to_graph

__all__ = ["check_matrix", "read_attributes", "read_networkx"]


def read_networkx(graph: Any, weight: str | None) -> EdgeList:
    """Return the edges of a graph of networkx, whose nodes are numbered in iteration order.

    If any edge has the attribute `weight`, the edges have weights, and 1 stands in where it is missing.
    """
    if not hasattr(graph, "is_directed") or not hasattr(graph, "edges"):
        raise UnsupportedTypeError(f"a graph of NetworkX is wanted (got {describe_kind(graph)}); {way_to_graph(graph)}")
    if weight is not None and not isinstance(weight, str):
        raise UnsupportedTypeError(
            f"weight must be the name of an edge attribute, or None to leave weights out (got {weight!r:.80})"
        )
    number = {node: i for i, node in enumerate(graph)}
    ends = [(number[u], number[v]) for u, v in graph.edges()]
    sources, targets = np.array(ends, np.int64).reshape(-1, 2).T
    found = [] if weight is None else [data for _, _, data in graph.edges(data=weight)]
    weights: NDArray[Any] | None = None
    if any(value is not None for value in found):
        weights = as_host_array(f"edge attribute '{weight}'", [1 if value is None else value for value in found])
        if weights.dtype.kind not in "iuf":
            raise UnsupportedTypeError(
                f"edge attribute '{weight}' must be a number on every edge; as an array it is of dtype {weights.dtype}"
            )
    return chunk_edges(sources, targets, weights, len(number))


def read_attributes(graph: Any, names: Any) -> dict[str, NDArray[Any]]:
    """Return attributes of the edges of a graph of networkx by name, in the order of its edges; every edge has to have them."""
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise UnsupportedTypeError(f"edge_arrays is a list of names of edge attributes (got {names!r:.80})")
    found = {}
    for name in check_names(names):
        values = []
        for u, v, value in graph.edges(data=name):
            if value is None:
                raise InvalidArgumentError(f"the edge from {u!r:.80} to {v!r:.80} has no attribute {name!r:.80}; give it one")
            values.append(value)
        found[name] = as_host_array(f"edge attribute {name!r:.80}", values) if values else np.zeros(0, np.int32)
    return found


def check_matrix(matrix: Any) -> int:
    """Return the number of rows of a sparse matrix, and raise unless it is one and square."""
    if not hasattr(matrix, "tocoo") or not hasattr(matrix, "format"):
        raise UnsupportedTypeError(f"a sparse matrix of SciPy is wanted (got {describe_kind(matrix)}); {way_to_graph(matrix)}")
    rows, columns = matrix.shape if len(matrix.shape) == 2 else (matrix.shape[0], None)
    if rows != columns:
        raise InvalidArgumentError(f"the matrix of a graph is square, but this one has shape {matrix.shape}")
    return rows
