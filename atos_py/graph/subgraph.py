"""Induced subgraph: some vertices of a graph, in a new order, and the edges between them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays.array import Array, asarray
from ..arrays.compute import compute
from ..errors import InvalidArgumentError, UnsupportedTypeError
from .graph_arrays import GraphArrays
from .transpose import row_offsets, row_sources

__all__ = ["choose_vertices", "induce_rows"]

_NONE = np.uint32(2**32 - 1)  # the number of no vertex


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


def induce_rows(graph: GraphArrays, vertices: Array) -> tuple[Array, Array, Array]:
    """Return `indptr` and `indices` of the subgraph of some vertices, and the number that each of its edges has in `graph`."""
    return tuple(compute(_induce, graph.indptr, graph.indices, vertices))  # type: ignore[return-value]


def _induce(xp: Any, indptr: Any, indices: Any, vertices: Any) -> tuple[Any, Any, Any]:
    count = vertices.size
    number = xp.full(indptr.size - 1, _NONE)
    number[vertices] = xp.arange(count, dtype=np.uint32)
    twice = number[vertices] != xp.arange(count, dtype=np.uint32)
    if twice.any():
        raise InvalidArgumentError(f"vertex {int(vertices[int(twice.argmax())])} is there twice; give each vertex once")
    begin = indptr[vertices]
    places = xp.zeros(count + 1, indptr.dtype)  # of all edges of these vertices
    places[1:] = xp.cumsum(indptr[1:][vertices] - begin)
    rows = row_sources(xp, places, int(places[-1]))
    edges = xp.arange(rows.size, dtype=indptr.dtype) + (begin - places[:-1])[rows]
    targets = number[indices[edges]]
    inside = targets != _NONE
    return row_offsets(xp, rows[inside], count), targets[inside], edges[inside]
