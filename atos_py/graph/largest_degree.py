"""The largest degree of a graph, by one pass over its row offsets on the graph's device."""

from __future__ import annotations

from typing import cast

import numpy as np

from ..arrays.array import zeros
from ..operators.ranges import range_items
from ..operators.vertex_map import vertex_max
from ..runtime.queue import Queue
from .graph_arrays import GraphArrays
from .kept import kept

__all__ = ["largest_degree"]


@vertex_max
def out_degree(v, indptr):  # type: ignore[no-untyped-def]
    """Return the number of edges that leave a vertex."""
    return np.int64(indptr[v + 1]) - np.int64(indptr[v])


def largest_degree(graph: GraphArrays) -> int:
    """Return the largest number of edges that leave a vertex, found once for a graph; 0 if there are no vertices."""
    found = kept(graph)
    if "max degree" not in found:
        most = zeros(1, dtype=np.int64, device=graph.device)
        items = range_items(graph.num_vertices)
        queue = Queue(max(len(items), 1), device=graph.device)
        queue.push(items)
        queue.launch_cta(out_degree, graph.num_vertices, most, graph.indptr)
        found["max degree"] = int(most[0])
    return cast(int, found["max degree"])
