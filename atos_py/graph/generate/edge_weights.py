"""Random weights of the edges of a graph, the same in both directions, made where the graph is."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays.array import Array
from ...arrays.compute import compute
from ...errors import InvalidArgumentError
from ...support.host_memory import host_memory_for
from ...support.splitmix64 import splitmix64
from ...support.validation import check_float, check_int
from ..graph import Graph
from ..graph_arrays import check_graph
from ..row_arrays import row_sources
from .hashing import check_seed, hash_seeds, to_fraction

__all__ = ["random_weights"]

_32 = np.uint64(32)


@host_memory_for("generate.random_weights")
def random_weights(graph: Graph, low: float, high: float, seed: int = 0) -> Array:
    """Return a random weight for each edge, made on the device of the graph; an edge and its reverse have the same.

    Parameters
    ----------
    graph : Graph
        Its weights, if it has any, are not looked at. Parallel edges get the same weight.
    low, high : int or float
        The least and the greatest weight. If both are integers, weights are whole numbers from `low` to `high`, int32 or where
        they do not fit int64; otherwise they are float32, at least `low` and at most `high`.
    seed : int
        The same seed gives the same weights on every machine and device.

    Returns
    -------
    Array
        For `Graph.with_weights`.

    Raises
    ------
    InvalidArgumentError
        If `high` is less than `low`, or 2**32 or more above it.

    Examples
    --------
    >>> graph = atos.generate.road(100)
    >>> graph = graph.with_weights(atos.generate.random_weights(graph, 1, 255))
    >>> print(graph.weights.dtype, graph.weights[:].min(), graph.weights[:].max())
    int32 1 255
    """
    check_graph(graph)
    (start,) = hash_seeds(check_seed(seed), 1)
    whole = all(hasattr(bound, "__index__") for bound in (low, high))
    if whole:
        low, high = check_int("low", low, -(2**63), 2**63 - 1), check_int("high", high, -(2**63), 2**63 - 1)
    else:
        low, high = check_float("low", low), check_float("high", high)
    if not (low <= high and high - low < 2**32):
        raise InvalidArgumentError(f"high must be at least low, and less than 2**32 above it (got {low} and {high})")

    def draw(xp: Any, indptr: Any, indices: Any) -> tuple[Any]:
        sources = row_sources(xp, indptr, indices.size)
        ends = (xp.minimum(sources, indices).astype(np.uint64) << _32) | xp.maximum(sources, indices)
        number = splitmix64(splitmix64(ends ^ start))
        if not whole:
            return ((low + (high - low) * to_fraction(number)).astype(np.float32),)
        kind = np.int32 if low >= -(2**31) and high < 2**31 else np.int64
        drawn = ((number >> _32) * np.uint64(high - low + 1)) >> _32
        return ((drawn.astype(np.int64) + low).astype(kind),)

    return compute(draw, graph.indptr, graph.indices)[0]
