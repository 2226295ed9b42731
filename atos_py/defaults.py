"""Settings picked from cheap facts of a graph: what the ready-made algorithms do well with where nothing was tuned."""

from __future__ import annotations

import math
import weakref
from typing import Any, NamedTuple

from .array import Array
from .graph import Graph

__all__ = ["Shape", "defaults_for", "shape_of"]

_SKEWED = 4  # the logarithm to base 2 of the largest degree over the mean, from which on a graph counts as skewed

# By algorithm and by whether degrees are skewed: measured on one H100, see docs/performance.md. What is not said is the
# algorithm's or the launch's own choice; so is everything on a CPU.
_ON_A_GPU: dict[tuple[str, bool], dict[str, Any]] = {
    ("bfs", True): {"worker": "cta", "num_threads": 256, "fetch_size": 128},
    ("bfs", False): {"worker": "cta", "num_threads": 256, "fetch_size": 128},
    ("pagerank", True): {"worker": "cta", "num_threads": 256, "fetch_size": 128},
    ("pagerank", False): {"worker": "cta", "num_threads": 256, "fetch_size": 128},
}


class Shape(NamedTuple):
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


def shape_of(graph: Graph) -> Shape:
    """Return the shape of a graph. The degrees are looked at once, and the answer is kept as long as the graph."""
    if graph.indptr not in _shapes:
        mean = graph.num_edges / max(graph.num_vertices, 1)
        skew = graph.max_degree / mean if mean else 1
        _shapes[graph.indptr] = Shape(_log2(graph.num_vertices), _log2(mean), _log2(skew))
    return _shapes[graph.indptr]


_shapes: weakref.WeakKeyDictionary[Array, Shape] = weakref.WeakKeyDictionary()


def _log2(value: float) -> int:
    return round(math.log2(value)) if value > 0 else 0


def defaults_for(algorithm: str, graph: Graph) -> dict[str, Any]:
    """Return options for a ready-made algorithm that fit the size and the degrees of a graph, and its device.

    Parameters
    ----------
    algorithm : str
        "bfs", "pagerank" or "color".
    graph : Graph

    Returns
    -------
    dict
        Empty where the algorithm's own choice is as good.
    """
    if graph.device.kind == "cpu":
        return {}
    return dict(_ON_A_GPU.get((algorithm, shape_of(graph).skew >= _SKEWED), {}))
