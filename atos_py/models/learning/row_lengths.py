"""Row lengths: what rows a graph has, by which a gather of features is planned."""

from __future__ import annotations

from ...graph.graph_arrays import GraphArrays
from ...graph.largest_degree import largest_degree
from .feature_gather import DENSE, LOW_DEGREE, Rows

__all__ = ["rows_of"]


def rows_of(graph: GraphArrays) -> Rows:
    """Return what rows a graph on a GPU has: many edges on average, short ones alone, or neither."""
    if graph.device.kind == "cpu":
        return "mixed"  # where it makes no difference
    if graph.num_edges >= DENSE * graph.num_vertices:
        return "dense"
    return "short" if largest_degree(graph) <= LOW_DEGREE else "mixed"
