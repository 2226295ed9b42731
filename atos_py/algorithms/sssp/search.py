"""The search for distances along weights on one device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays.array import Array, empty
from ...graph.graph import Graph
from ...operators.ranges import mixed_item_dtype, range_items
from ..bfs.api import zero_at
from ..launch_sequence import LaunchSequence
from .distances import unreached_of
from .tasks import widen_distances
from .try_32bit_first import sources_with_distance, task_for, try_32bit_first

__all__ = ["find_distances"]


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
    """
    n = graph.num_vertices

    def relax_all(dtype: np.dtype[Any], limit: int | float | None, end: float | None) -> tuple[Array, LaunchSequence]:
        items = sources_with_distance(sources, dtype)
        launches = launches_on(items.dtype)
        launches.end = end or launches.end
        distance = zero_at(sources, n, unreached_of(dtype), graph.device)
        launches.launch(items, task_for(launches, dtype, follows), graph, distance, target, limit)
        return distance, launches

    def widen(narrow: Array, safe: int, end: float | None) -> tuple[bool, Array, LaunchSequence]:
        wide = empty(n, dtype=kind, device=graph.device)
        launches = launches_on(mixed_item_dtype(n), len(range_items(n)))
        launches.end, launches.options = end, {**launches.options, "each_round": None}  # which takes other arguments
        are_safe = not launches.sums(widen_distances, n, narrow, wide, unreached_of(kind), safe)[0]
        return are_safe, wide, launches

    return try_32bit_first(kind, graph.weights, cutoff, relax_all, widen)
