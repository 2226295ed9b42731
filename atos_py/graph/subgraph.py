"""Induced subgraph: some vertices of a graph, in a new order, and the edges between them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.array import Array, asarray
from ..arrays.compute import compute
from ..compile.host_kernels import compile_kernel, parallel_map, ranges
from ..errors import InvalidArgumentError, UnsupportedTypeError
from .csr import CSR, indptr_dtype
from .graph_arrays import GraphArrays
from .row_arrays import row_edges, row_offsets

__all__ = ["choose_vertices", "induce_rows"]

_NONE = np.uint32(2**32 - 1)  # the number of no vertex
_CHUNK_VERTICES = 1 << 14


def choose_vertices(graph: GraphArrays, vertices: Any) -> Array:
    """Return vertices as an array of uint32 on the device of the graph, from their ids or from a bool for each vertex."""
    if isinstance(vertices, (list, tuple)) and not vertices:
        vertices = np.zeros(0, np.uint32)  # an empty list says nothing of its type
    given = asarray(vertices, device=graph.device)
    n = graph.num_vertices
    if given.ndim != 1:
        raise InvalidArgumentError(f"vertices must be one-dimensional (got shape {given.shape})")
    if given.dtype == bool:
        if given.size != n:
            raise InvalidArgumentError(f"a mask of vertices must have one bool for each of {n} vertices (got {given.size})")
        return compute(lambda xp, mask: (xp.flatnonzero(mask).astype(np.uint32),), given)[0]
    if given.dtype.kind not in "iu":
        raise UnsupportedTypeError(f"vertices must be integers, or a bool for each vertex (got {given.dtype})")
    return compute(lambda xp, ids: (_check_ids(ids, n),), given)[0]


def _check_ids(ids: Any, n: int) -> Any:
    if ids.size:
        for at in (int(ids.argmin()), int(ids.argmax())):
            if not 0 <= int(ids[at]) < n:
                raise InvalidArgumentError(f"vertices[{at}] is {int(ids[at])}, but the graph has vertices 0 to {n - 1}")
    return ids.astype(np.uint32)


def induce_rows(graph: GraphArrays, vertices: Array) -> tuple[Array, Array, Array | None]:
    """Return the arrays of the subgraph of some vertices."""
    if graph.device.kind == "cpu":
        csr = _induce_on_host(graph._on_host(), np.asarray(vertices))
        return tuple(None if part is None else asarray(part, device=graph.device) for part in csr)  # type: ignore[return-value]
    given = graph.indptr, graph.indices, vertices, *([] if graph.weights is None else [graph.weights])
    indptr, indices, *weights = compute(induce, *given)
    return indptr, indices, weights[0] if weights else None


def _number_vertices(xp: Any, count: int, vertices: Any) -> Any:
    """Return the number that each vertex gets, or `_NONE`."""
    number = xp.full(count, _NONE)
    places = xp.arange(vertices.size, dtype=np.uint32)
    number[vertices] = places
    twice = number[vertices] != places
    if twice.any():
        raise InvalidArgumentError(f"vertex {int(vertices[int(twice.argmax())])} is there twice; give each vertex once")
    return number


def induce(xp: Any, indptr: Any, indices: Any, vertices: Any, *weights: Any) -> tuple[Any, ...]:
    """Return the rows of the subgraph, and the weights of its edges if there are any; for `compute`."""
    number = _number_vertices(xp, indptr.size - 1, vertices)
    edges, rows = row_edges(xp, indptr, vertices)
    targets = number[indices[edges]]
    inside = targets != _NONE
    chosen = [each[edges[inside]] for each in weights]
    return row_offsets(xp, rows[inside], vertices.size), targets[inside], *chosen


def _induce_kernel(
    csr: Any, vertices: Any, number: Any, first: int, end: int, indptr: Any, indices: Any, weights: Any
) -> None:  # pragma: no cover - compiled
    """Go through some rows: without `indices`, leave their lengths at ``indptr[row + 1]``, else fill them in."""
    for row in range(first, end):
        place = np.int64(0) if indices is None else np.int64(indptr[row])
        for edge in range(csr.indptr[vertices[row]], csr.indptr[vertices[row] + 1]):
            target = number[csr.indices[edge]]
            if target != _NONE:
                if indices is not None:
                    indices[place] = target
                if weights is not None:
                    weights[place] = csr.weights[edge]
                place += 1
        if indices is None:
            indptr[row + 1] = place


def _induce_on_host(csr: CSR, vertices: NDArray[np.uint32]) -> CSR:
    """Return the subgraph: once to count, once to write."""
    number = _number_vertices(np, csr.indptr.size - 1, vertices)
    pieces = ranges(vertices.size, _CHUNK_VERTICES)

    def go_through(*made: Any) -> None:
        parallel_map(lambda rows: compile_kernel(_induce_kernel)(csr, vertices, number, *rows, *made), pieces)

    indptr = np.zeros(vertices.size + 1, csr.indptr.dtype)
    go_through(indptr, None, None)
    np.cumsum(indptr, out=indptr)
    indptr = indptr.astype(indptr_dtype(int(indptr[-1])), copy=False)
    indices = np.empty(int(indptr[-1]), np.uint32)
    weights = None if csr.weights is None else np.empty(indices.size, csr.weights.dtype)
    go_through(indptr, indices, weights)
    return CSR(indptr, indices, weights)
