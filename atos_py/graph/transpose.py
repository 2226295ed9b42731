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

__all__ = ["row_offsets", "row_sources", "transpose_rows"]


def transpose_rows(graph: GraphArrays, *, with_edges: bool) -> tuple[Array, Array, Array | None]:
    """Return `indptr` and `indices` of the transpose, and if asked the number that each of its edges has in `graph`."""
    if graph.device.kind == "cpu":
        csr = graph._on_host()
        numbers = np.arange(graph.num_edges, dtype=indptr_dtype(graph.num_edges)) if with_edges else None
        chunks = [EdgeChunk(v, u, values) for u, v, values in csr_to_chunks(csr._replace(weights=numbers))]
        made = build_csr(chunks, graph.num_vertices)
        return tuple(None if part is None else asarray(part, device=graph.device) for part in made)  # type: ignore[return-value]
    indptr, indices, *edges = compute(turn_round if with_edges else _without_edges, graph.indptr, graph.indices)
    return indptr, indices, edges[0] if edges else None


def turn_round(xp: Any, indptr: Any, indices: Any) -> tuple[Any, Any, Any]:
    """Return the rows of the transpose, and the number that each edge had; for `compute`."""
    order = xp.argsort(indices, kind="stable")
    turned = row_sources(xp, indptr, indices.size)[order]
    return row_offsets(xp, indices[order], indptr.size - 1), turned, order.astype(indptr_dtype(indices.size), copy=False)


def _without_edges(xp: Any, indptr: Any, indices: Any) -> tuple[Any, Any]:
    return turn_round(xp, indptr, indices)[:2]


def row_sources(xp: Any, indptr: Any, num_edges: int) -> Any:
    """Return the source of each edge, as uint32; for `compute`."""
    if xp is np:
        return np.repeat(np.arange(indptr.size - 1, dtype=np.uint32), np.diff(indptr))
    # CuPy repeats all elements as often, so each edge looks its row up.
    edges = xp.arange(num_edges, dtype=indptr.dtype)
    return (xp.searchsorted(indptr, edges, side="right") - 1).astype(np.uint32)


def row_offsets(xp: Any, sources: Any, num_vertices: int) -> Any:
    """Return the `indptr` of edges whose sources, as uint32, are in ascending order; for `compute`."""
    indptr = xp.empty(num_vertices + 1, indptr_dtype(sources.size))
    indptr[:-1] = xp.searchsorted(sources, xp.arange(num_vertices, dtype=np.uint32), side="left")
    indptr[-1] = sources.size
    return indptr
