"""Signature of a graph: coarse facts of it, by which tuned settings are remembered."""

from __future__ import annotations

import math
from typing import NamedTuple

from ..support.remembered import Remembered
from .graph import Graph

__all__ = ["GraphSignature", "graph_signature"]


class GraphSignature(NamedTuple):
    """Coarse facts of a graph, all of them logarithms to base 2, rounded: graphs with the same want the same setting.

    Attributes
    ----------
    vertices : int
        How many there are.
    degree : int
        The mean of the out-degrees.
    skew : int
        The largest out-degree over the mean.
    """

    vertices: int
    degree: int
    skew: int


def graph_signature(graph: Graph) -> GraphSignature:
    """Return the signature of a graph. The degrees are looked at once, and the answer is kept as long as the graph."""
    found = _known.get(graph.indptr)
    if found is None:
        mean = graph.num_edges / max(graph.num_vertices, 1)
        skew = graph.max_degree / mean if mean else 1
        found = _known.set(graph.indptr, GraphSignature(_log2(graph.num_vertices), _log2(mean), _log2(skew)))
    return found


_known: Remembered[GraphSignature] = Remembered()


def _log2(value: float) -> int:
    return round(math.log2(value)) if value > 0 else 0
