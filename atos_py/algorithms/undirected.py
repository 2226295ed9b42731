"""The undirected graph of a graph, and the degrees of its vertices without loops: made once, and kept with the graph."""

from __future__ import annotations

from typing import cast

import numpy as np

from ..arrays.array import Array, empty, zeros
from ..graph.graph import Graph
from ..graph.kept import kept
from ..graph.passes import run_gather
from ..operators.edge_map import gather
from ..operators.peeling import REMOVED

__all__ = ["degrees_without_loops", "undirected"]


def is_no_loop(v, u, degree):  # type: ignore[no-untyped-def]
    """Count an edge unless it is a loop."""
    return np.int64(u != v)


def keep_degree(v, row, received, degree):  # type: ignore[no-untyped-def]
    """Write down the degree of a vertex."""
    degree[v] = received
    return (np.int64(0),)


count_neighbors = gather(is_no_loop, keep_degree, lambda degree: np.int64(0), zero=np.int64(0))


def undirected(graph: Graph) -> Graph:
    """Return the graph if each edge has its reverse; otherwise one with an edge each way for every edge, loops aside."""
    if graph.is_symmetric():
        return graph
    found = kept(graph)
    if "undirected" not in found:
        found["undirected"] = graph.simplify(symmetrize=True, remove_loops=True)
    return cast(Graph, found["undirected"])


def degrees_without_loops(graph: Graph) -> Array:
    """Return how many edges of each vertex are no loops, for tasks that lower them to `REMOVED`; do not write them.

    They are int32 if that is far from all degrees, and otherwise int64.
    """
    found = kept(graph)
    if "degrees without loops" not in found:
        dtype = np.int32 if graph.num_edges < -REMOVED else np.int64
        degrees = empty(graph.num_vertices, dtype=dtype, device=graph.device)
        run_gather(count_neighbors, graph.indptr, graph.indices, zeros(1, dtype=np.int64, device=graph.device), degrees)
        found["degrees without loops"] = degrees
    return cast(Array, found["degrees without loops"])
