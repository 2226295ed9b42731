"""Strength of each vertex: the sum of the weights of its edges, where none is negative; one pass on the graph's device."""

from __future__ import annotations

from typing import cast

import numpy as np

from ..arrays.array import Array, zeros
from ..errors import InvalidArgumentError
from ..operators.edge_map import gather
from .graph_arrays import GraphArrays
from .kept import kept
from .passes import run_gather

__all__ = ["out_strength"]


def weight(v, u, edge, weights, strength):  # type: ignore[no-untyped-def]
    """Return the weight of an edge, or NaN if it is no weight that an edge can be chosen by."""
    found = np.float64(weights[edge])
    return found if found >= 0 else np.float64(np.nan)


def no_weight(weights, strength):  # type: ignore[no-untyped-def]
    """Return the weight of no edge."""
    return np.float64(0)


def keep_strength(v, degree, received, weights, strength):  # type: ignore[no-untyped-def]
    """Write down a strength; return whether it is no finite number."""
    strength[v] = received
    return (0.0 if received < np.inf else 1.0,)


sum_weights = gather(weight, keep_strength, no_weight, with_edge=True)


def out_strength(graph: GraphArrays) -> Array:
    """Return the sum of the weights of the edges that leave each vertex, in float64; found once for a graph, and kept.

    Raises
    ------
    InvalidArgumentError
        If a weight is negative, or a sum is not finite.
    """
    found = kept(graph)
    if "strength" not in found:
        strength, wrong = (zeros(size, dtype=np.float64, device=graph.device) for size in (graph.num_vertices, 1))
        run_gather(sum_weights, graph.indptr, graph.indices, wrong, graph.weights, strength)
        if wrong[0]:
            v = int(np.argmax(~(strength.to_numpy() < np.inf)))
            raise InvalidArgumentError(f"weights must be finite and not negative, which those of vertex {v} are not")
        found["strength"] = strength
    return cast(Array, found["strength"])
