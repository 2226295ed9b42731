"""Transpose of a graph: the same edges turned round, with the number that each had, by one stable sort of the edges by target.

On the CPU that is the counting sort of `build_csr`, on a GPU CuPy's radix sort. Either leaves the neighbours of a vertex in
ascending order, and parallel edges in the order that they had.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays.array import Array, asarray
from ..arrays.compute import compute
from .csr import EdgeChunk, build_csr, csr_to_chunks, indptr_dtype
from .graph_arrays import GraphArrays

__all__ = ["row_edges", "row_offsets", "row_sources", "stable_order", "transpose_rows"]


def transpose_rows(graph: GraphArrays, *, with_edges: bool) -> tuple[Array, Array, Array | None]:
    """Return the arrays of the transpose, or with the number that each edge has in `graph` in place of its weight."""
    if graph.device.kind == "cpu":
        csr = graph._on_host()
        if with_edges:
            csr = csr._replace(weights=np.arange(graph.num_edges, dtype=indptr_dtype(graph.num_edges)))
        made = build_csr([EdgeChunk(v, u, values) for u, v, values in csr_to_chunks(csr)], graph.num_vertices)
        return tuple(None if part is None else asarray(part, device=graph.device) for part in made)  # type: ignore[return-value]
    if with_edges or graph.weights is None:
        indptr, indices, edges = compute(turn_round, graph.indptr, graph.indices)
        return indptr, indices, edges if with_edges else None
    return tuple(compute(turn_round, graph.indptr, graph.indices, graph.weights))  # type: ignore[return-value]


def turn_round(xp: Any, indptr: Any, indices: Any, weights: Any = None) -> tuple[Any, Any, Any]:
    """Return the rows of the transpose, and its weights, or if there are none the number that each edge had; for `compute`."""
    order = stable_order(xp, indices)
    turned = row_sources(xp, indptr, indices.size)[order]
    values = order.astype(indptr_dtype(indices.size), copy=False) if weights is None else weights[order]
    return row_offsets(xp, indices[order], indptr.size - 1), turned, values


def stable_order(xp: Any, keys: Any) -> Any:
    """Return the places of keys in ascending order, of equal ones the first first; for `compute`."""
    return xp.argsort(keys, kind="stable") if keys.size else xp.zeros(0, np.int64)  # nothing is not sorted by CuPy


def row_sources(xp: Any, indptr: Any, num_edges: int) -> Any:
    """Return the source of each edge, as uint32; for `compute`."""
    if xp is np:
        return np.repeat(np.arange(indptr.size - 1, dtype=np.uint32), np.diff(indptr))
    # CuPy repeats all elements as often, so each edge looks its row up.
    edges = xp.arange(num_edges, dtype=indptr.dtype)
    return (xp.searchsorted(indptr, edges, side="right") - 1).astype(np.uint32)


def row_edges(xp: Any, indptr: Any, vertices: Any) -> tuple[Any, Any]:
    """Return the edges of some vertices, row by row, and which of the vertices each edge leaves, as uint32; for `compute`."""
    begin = indptr[vertices]
    places = xp.zeros(vertices.size + 1, indptr.dtype)  # of the rows, put together
    if vertices.size:
        places[1:] = xp.cumsum(indptr[1:][vertices] - begin)
    rows = row_sources(xp, places, int(places[-1]))
    return xp.arange(rows.size, dtype=indptr.dtype) + (begin - places[:-1])[rows], rows


def row_offsets(xp: Any, sources: Any, num_vertices: int) -> Any:
    """Return the `indptr` of edges whose sources, as uint32, are in ascending order; for `compute`."""
    indptr = xp.empty(num_vertices + 1, indptr_dtype(sources.size))
    indptr[:-1] = xp.searchsorted(sources, xp.arange(num_vertices, dtype=np.uint32), side="left")
    indptr[-1] = sources.size
    return indptr
