"""Rows of a CSR as arrays of their edges, and back: sources, orders and offsets; functions for `compute`."""

from __future__ import annotations

from typing import Any

import numpy as np

from .csr import indptr_dtype

__all__ = ["row_edges", "row_offsets", "row_sources", "stable_order"]


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
