"""Weak components of a graph, for what is derived from it: the smallest vertex of each, by union-find over all edges."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays.array import Array, asarray, zeros
from ..arrays.compute import compute
from ..operators.edge_map import THREAD_MAX_DEGREE, gather
from ..operators.ranges import range_items
from ..operators.union_find import find_root, unite
from ..operators.vertex_map import vertex_map
from ..runtime.queue import Queue
from .graph_arrays import GraphArrays

__all__ = ["component_labels", "largest_component"]

_VERTICES_PER_ITEM = 128


def unite_ends(v, u, parent):  # type: ignore[no-untyped-def]
    """Unite the trees of both ends of an edge."""
    unite(find_root(v, parent), u, parent)
    return 0


def nothing(v, degree, received, parent):  # type: ignore[no-untyped-def]
    """Return what a vertex adds to the sum: nothing."""
    return (0,)


unite_edges = gather(unite_ends, nothing, zero=0)


@vertex_map
def label_by_root(v, parent, label):  # type: ignore[no-untyped-def]
    """Write down the root of v, which is the smallest vertex of its component."""
    label[v] = find_root(v, parent)


def component_labels(graph: GraphArrays) -> Array:
    """Return the smallest vertex of the weak component of each vertex, as uint32."""
    n, device = graph.num_vertices, graph.device
    parent = asarray(np.arange(n, dtype=np.uint32), device=device)
    label, total = zeros(n, dtype=np.uint32, device=device), zeros(1, dtype=np.int64, device=device)
    items = range_items(n, _VERTICES_PER_ITEM)
    queue = Queue(max(len(items), 1), device=device)
    queue.push(items)
    sizes = _VERTICES_PER_ITEM, THREAD_MAX_DEGREE[device.kind]
    queue.launch_warp(unite_edges, *sizes, graph.indptr, graph.indices, total, parent)
    queue.push(range_items(n))
    queue.launch_cta(label_by_root, n, parent, label)
    return label


def largest_component(graph: GraphArrays) -> Array:
    """Return the vertices of the largest weak component, of several the one with the smallest vertex; ascending, as uint32."""
    return compute(_most_frequent, component_labels(graph))[0]


def _most_frequent(xp: Any, label: Any) -> tuple[Any]:
    if not label.size:
        return (label,)
    ordered = xp.sort(label)
    first = xp.ones(ordered.size, bool)
    first[1:] = ordered[1:] != ordered[:-1]
    starts = xp.flatnonzero(first)
    sizes = xp.empty_like(starts)
    sizes[:-1] = starts[1:] - starts[:-1]
    sizes[-1] = ordered.size - starts[-1]
    return (xp.flatnonzero(label == ordered[starts[sizes.argmax()]]).astype(np.uint32),)
