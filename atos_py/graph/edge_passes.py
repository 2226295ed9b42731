"""Passes over the edges of a graph in any order: binary searches for the row of an edge, and for the first edge of a row."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays.array import Array, empty
from ..core.devices import Device
from ..operators.ranges import range_items
from ..operators.vertex_map import vertex_map
from ..runtime.queue import Queue
from .csr import indptr_dtype

__all__ = ["map_edges", "offsets_of", "source_of"]


def map_edges(task: Any, count: int, device: Device, *args: Any) -> None:
    """Launch a vertex map on so many edges, or other things that are numbered from 0."""
    items = range_items(count)
    queue = Queue(max(len(items), 1), device=device)
    queue.push(items)
    queue.launch_cta(task, count, *args)


def lower_bound(values, value):  # type: ignore[no-untyped-def]
    """Return the first place in ascending values of one that is at least `value`, by binary search; for tasks."""
    first = np.int64(0)
    end = np.int64(values.size)
    while first < end:
        middle = (first + end) >> 1
        if np.int64(values[middle]) < value:
            first = middle + 1
        else:
            end = middle
    return first


def source_of(edge, indptr):  # type: ignore[no-untyped-def]
    """Return the vertex whose row an edge is in; for tasks."""
    return lower_bound(indptr, np.int64(edge) + 1) - 1


@vertex_map
def write_offset(v, sources, indptr):  # type: ignore[no-untyped-def]
    """Write down where the edges of a vertex begin."""
    indptr[v] = lower_bound(sources, v)


def offsets_of(sources: Array, num_vertices: int) -> Array:
    """Return the `indptr` of edges whose sources are in ascending order."""
    indptr = empty(num_vertices + 1, dtype=indptr_dtype(sources.size), device=sources.device)
    map_edges(write_offset, num_vertices + 1, sources.device, sources, indptr)
    return indptr
