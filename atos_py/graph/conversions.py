"""Graphs of networkx as edges, and sparse matrices of SciPy from and for the rows of a graph.

No library is imported here before it is needed: what comes in is told by what it has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidArgumentError, MissingPackageError, UnsupportedTypeError
from ..support.validation import as_host_array
from .csr import EdgeList, chunk_edges
from .graph_arrays import GraphArrays
from .graph_input import describe_kind, way_to_graph

if TYPE_CHECKING:
    import scipy.sparse

__all__ = ["as_scipy", "check_matrix", "read_networkx"]


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


def check_matrix(matrix: Any) -> int:
    """Return the number of rows of a sparse matrix, and raise unless it is one and square."""
    if not hasattr(matrix, "tocoo") or not hasattr(matrix, "format"):
        raise UnsupportedTypeError(f"a sparse matrix of SciPy is wanted (got {describe_kind(matrix)}); {way_to_graph(matrix)}")
    rows, columns = matrix.shape if len(matrix.shape) == 2 else (matrix.shape[0], None)
    if rows != columns:
        raise InvalidArgumentError(f"the matrix of a graph is square, but this one has shape {matrix.shape}")
    return rows


def as_scipy(graph: GraphArrays) -> scipy.sparse.csr_array:
    """Return a copy of a graph as its adjacency matrix, with the weights as entries, or True if there are none."""
    try:
        import scipy.sparse
    except ImportError as error:
        raise MissingPackageError("to_scipy needs SciPy: python -m pip install scipy") from error
    # Copies, since SciPy may sort them in place.
    indptr, indices = graph.indptr.to_numpy(), graph.indices.to_numpy()
    weights = np.ones(graph.num_edges, bool) if graph.weights is None else graph.weights.to_numpy()
    # SciPy wants signed indices; where the ids fit, the same memory will do.
    indices = indices.view(np.int32) if graph.num_vertices <= 2**31 else indices.astype(np.int64)
    return scipy.sparse.csr_array((weights, indices, indptr), shape=(graph.num_vertices, graph.num_vertices))
