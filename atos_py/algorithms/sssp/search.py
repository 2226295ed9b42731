"""The search for distances along weights: in 32 bits as long as they fit, since items and distances are half as large then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays.array import Array, empty
from ...graph.graph import Graph
from ...graph.weight_range import weight_range
from ...operators.ranges import mixed_item_dtype, range_items
from ..bfs.api import zero_at
from ..launch_sequence import LaunchSequence
from .distances import distance_limit, unreached_of
from .tasks import relax, relax_along, relax_by_arrival, widen_distances

__all__ = ["find_distances"]

_NARROW = np.dtype(np.uint32)


def find_distances(
    graph: Graph,
    sources: NDArray[Any],
    kind: np.dtype[Any],
    target: int | None,
    cutoff: int | float | None,
    launches_on: Callable[..., LaunchSequence],
    follows: bool,
) -> tuple[Array, list[LaunchSequence]]:
    """Return the distances, of the type `kind`, and the sequences of launches that found them.

    If it `follows` paths, a group of threads that reached a vertex goes on with its edges.

    Distances of int64 are looked for as uint32 first, and what would be farther away is cut off. If all that were found are
    so small that an edge more fits as well, nothing was: a vertex that is cut off along a shortest path would have a
    predecessor whose distance is final, and too large for that. Otherwise they are looked for again.
    """

    def relax_all(dtype: np.dtype[Any], limit: int | float | None, end: float | None = None) -> tuple[Array, LaunchSequence]:
        step = np.dtype([("vertex", np.uint32), ("distance", dtype)])
        launches = launches_on(step)
        launches.end = end or launches.end
        distance = zero_at(sources, graph.num_vertices, unreached_of(dtype), graph.device)
        items = np.zeros(len(sources), step)
        items["vertex"] = sources
        along = follows and np.dtype(dtype).itemsize == _NARROW.itemsize  # a distance and a vertex fit in a word
        task = relax_by_arrival if launches.queue.buckets is None else relax_along if along else relax
        launches.launch(items, task, graph, distance, target, limit)
        return distance, launches

    limit = distance_limit(cutoff, kind)
    most = 0 if graph.weights is None or kind != np.int64 else weight_range(graph.weights).most
    if kind != np.int64 or most >= 2**31:
        distance, launches = relax_all(kind, limit)
        return distance, [launches]
    farthest = int(unreached_of(_NARROW)) - 1
    narrow, search = relax_all(_NARROW, farthest if limit is None else min(limit, farthest))
    safe = farthest if limit is not None and limit <= farthest else farthest - most
    wide = empty(graph.num_vertices, dtype=kind, device=graph.device)
    copy = launches_on(mixed_item_dtype(graph.num_vertices), len(range_items(graph.num_vertices)))
    copy.end = search.end  # one time limit for all
    if not copy.sums(widen_distances, graph.num_vertices, narrow, wide, unreached_of(kind), safe)[0]:
        return wide, [search, copy]
    distance, again = relax_all(kind, limit, search.end)
    return distance, [search, copy, again]
