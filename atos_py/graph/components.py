"""Weak components of a graph, for what is derived from it: the smallest vertex of each, by union-find (`operators.connect`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays.array import Array, zeros
from ..arrays.compute import compute
from ..arrays.record import new_record
from ..operators.connect import ALL_EDGES, Notes, choose_largest, connect
from ..operators.edge_map import THREAD_MAX_DEGREE
from ..operators.row_map import row_items, row_queue
from .graph_arrays import GraphArrays

__all__ = ["component_labels", "largest_component"]


def component_labels(graph: GraphArrays) -> Array:
    """Return the smallest vertex of the weak component of each vertex, as uint32."""
    n, device = graph.num_vertices, graph.device
    label, notes = zeros(n, dtype=np.uint32, device=device), new_record(Notes, device)
    items, size = row_items(n, device)
    queue = row_queue(n, device)
    queue.push(items)
    arguments = size, THREAD_MAX_DEGREE[device.kind], ALL_EDGES, graph._replace(weights=None), label, notes
    queue.launch_cta(connect, *arguments, barrier=True, each_round=choose_largest)
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
