"""Types, limits and bucket widths of distances along weighted edges."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ...errors import InvalidArgumentError
from ...graph.graph import Graph
from ...graph.partition import Partition
from ...graph.weight_range import check_not_negative
from ..arguments import largest_whole

__all__ = ["BUCKETS", "distance_dtype", "distance_limit", "pays_to_order", "suit_capacity", "suit_delta", "unreached_of"]

BUCKETS = 64
#: Width of a bucket, in mean weights, where few edges leave a vertex: a GPU has more workers to keep busy.
_SPARSE_WIDTH = {"cpu": 1.0, "cuda": 24.0}
_DENSE = 8  # edges to a vertex, from which on a bucket is as much narrower
#: Edges to a vertex from which on arrival is nearly in the order of distances, since a few hops reach all.
_UNORDERED_DEGREE = {"cpu": 1 << 62, "cuda": _DENSE}


def distance_dtype(graph: Graph | Partition) -> np.dtype[Any]:
    """Return the type of distances along the weights of a graph, which must not be negative, or 1 an edge without any.

    Raises
    ------
    InvalidArgumentError
        If a weight is negative or NaN, or a path may be longer than an int64 can tell.
    """
    if graph.weights is None:
        return np.dtype(np.uint32)
    rows = (graph.indptr, graph.indices) if isinstance(graph, Graph) else None  # ids of vertices
    return dtype_of_lengths(graph.weights.dtype, check_not_negative(graph.weights, rows).most, graph.num_vertices)


def dtype_of_lengths(weights: np.dtype[Any], most: Any, num_vertices: int) -> np.dtype[Any]:
    """Return the type of the lengths of paths, along weights of a type and of `most` at most."""
    if weights.kind == "f":
        return weights
    if most * (num_vertices - 1) < 2**32 - 1:
        return np.dtype(np.uint32)
    if most * num_vertices >= 2**63:
        raise InvalidArgumentError(
            f"a path along {num_vertices - 1} edges of weights up to {most} may be longer than an int64 can tell: "
            "pass weights as float64"
        )
    return np.dtype(np.int64)


def unreached_of(dtype: np.dtype[Any]) -> Any:
    """Return the distance that says that there is no path: infinity, or the largest value of an integer type."""
    return dtype.type(np.inf if dtype.kind == "f" else np.iinfo(dtype).max)


def distance_limit(cutoff: int | float | None, dtype: np.dtype[Any]) -> int | float | None:
    """Return a cutoff as tasks compare distances with it."""
    if cutoff is None or cutoff == np.inf:
        return None
    if dtype.kind == "f":
        return float(max(min(cutoff, 1.7e308), -1))
    return largest_whole(cutoff, int(np.iinfo(dtype).max) - 1)


def pays_to_order(graph: Graph, delta: float | Literal["auto"]) -> bool:
    """Return whether priorities save more tasks than they cost time: not on a GPU where many edges leave a vertex."""
    return delta != "auto" or graph.num_edges < _UNORDERED_DEGREE[graph.device.kind] * graph.num_vertices


def suit_capacity(graph: Graph) -> int:
    """Return a capacity of the queue that it need hardly ever exceed: a vertex of many edges waits at several distances.

    A call on an H200 takes 0.7 ms longer for 24 million more items.
    """
    return graph.num_vertices * (4 if graph.num_edges >= _DENSE * graph.num_vertices else 1)


def suit_delta(graph: Graph, delta: float | Literal["auto"]) -> float | Literal["auto"]:
    """Return the width of a bucket: as it was given, or one that suits the weights and the number of edges to a vertex.

    A bucket that is narrower than the least weight orders nothing more. Where the weights say nothing, the queue adapts.
    """
    if delta != "auto" or graph.weights is None:
        return 1.0 if delta == "auto" else delta
    if not graph.num_edges:
        return delta
    weights, degree = check_not_negative(graph.weights), graph.num_edges / graph.num_vertices
    width = weights.mean * (1 / degree if degree >= _DENSE else _SPARSE_WIDTH[graph.device.kind])
    width = max(width, float(weights.least))
    return width if 0 < width < np.inf else "auto"
