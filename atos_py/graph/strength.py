"""Strength of each vertex: the sum of the weights of its edges, where none is negative; one pass on the graph's device."""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from ..arrays.array import Array, zeros
from ..errors import InvalidArgumentError
from ..operators.edge_map import gather
from .graph_arrays import GraphArrays
from .kept import kept
from .passes import run_gather

__all__ = ["LEAST", "MOST", "out_strength"]

#: Sums of weights beyond which the quotient of a number and the sum may lose digits, as what is near the ends of float64.
LEAST, MOST = 1e-280, 1e280


def weight(v, u, edge, weights, strength):  # type: ignore[no-untyped-def]
    """Return the weight of an edge, or NaN if it is no weight that an edge can be chosen by."""
    found = np.float64(weights[edge])
    return found if found >= 0 else np.float64(np.nan)


def no_weight(weights, strength):  # type: ignore[no-untyped-def]
    """Return the weight of no edge."""
    return np.float64(0)


def keep_strength(v, degree, received, weights, strength):  # type: ignore[no-untyped-def]
    """Write down a strength; return whether it is no number that others can be divided by."""
    strength[v] = received
    return (0.0 if received == 0 or LEAST <= received <= MOST else 1.0,)


sum_weights = gather(weight, keep_strength, no_weight, with_edge=True)


def out_strength(graph: GraphArrays) -> Array:
    """Return the sum of the weights of the edges that leave each vertex, in float64; found once for a graph, and kept.

    Raises
    ------
    InvalidArgumentError
        If a weight is negative or infinite, or a sum is neither 0 nor from `LEAST` to `MOST`.
    """
    found = kept(graph)
    if "strength" not in found:
        strength, wrong = (zeros(size, dtype=np.float64, device=graph.device) for size in (graph.num_vertices, 1))
        run_gather(sum_weights, graph.indptr, graph.indices, wrong, graph.weights, strength)
        if wrong[0]:
            _refuse(graph, strength.to_numpy())
        found["strength"] = strength
    return cast(Array, found["strength"])


def _refuse(graph: GraphArrays, strength: NDArray[np.float64]) -> None:
    """Raise with the first vertex whose weights have a sum that is no strength, and why."""
    v = int(np.argmax(~((strength == 0) | ((strength >= LEAST) & (strength <= MOST)))))
    begin, end = (int(each) for each in graph.indptr[v : v + 2])
    weights = np.asarray(graph.weights)[begin:end].astype(np.float64)
    if (wrong := np.flatnonzero(~((weights >= 0) & (weights < np.inf)))).size:
        u, found = int(graph.indices[begin + int(wrong[0])]), weights[wrong[0]]
        raise InvalidArgumentError(f"weights must be finite and not negative, and that of the edge from {v} to {u} is {found}")
    raise InvalidArgumentError(
        f"the weights of the edges of vertex {v} have the sum {strength[v]}, which is not from {LEAST} to {MOST}: only the"
        f" ratios of weights count, so divide them all by a number such as {weights.max()}"
    )
