"""Distances of 64 bits are looked for in 32 bits first, since items and distances are half as large then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays.array import Array
from ...compile.task import Task
from ...graph.weight_range import weight_range
from ..launch_sequence import LaunchSequence
from .distances import distance_limit, unreached_of
from .tasks import relax, relax_along, relax_by_arrival

__all__ = ["sources_with_distance", "task_for", "try_32bit_first"]

_NARROW = np.dtype(np.uint32)


def try_32bit_first(
    kind: np.dtype[Any],
    weights: Array | None,
    cutoff: int | float | None,
    relax_all: Callable[..., tuple[Any, LaunchSequence]],
    widen: Callable[..., tuple[bool, Any, LaunchSequence]],
) -> tuple[Any, list[LaunchSequence]]:
    """Return the distances, of the type `kind`, and the sequences of launches that found them.

    Distances of int64 are looked for as uint32 first, and what would be farther away is cut off. If all that were found are
    so small that an edge more fits as well, nothing was: a vertex that is cut off along a shortest path would have a
    predecessor whose distance is final, and too large for that. Otherwise they are looked for again.

    Parameters
    ----------
    kind : numpy.dtype
    weights : Array or None
        Of the edges.
    cutoff : number, optional
        The largest distance that is wanted.
    relax_all : callable
        Returns distances of a type, up to a limit, and the launches, which have until a time: ``relax_all(dtype, limit, end)``.
    widen : callable
        Returns whether all distances of 32 bits are `safe`, those of `kind`, and the launches: ``widen(narrow, safe, end)``.
    """
    limit = distance_limit(cutoff, kind)
    most = 0 if weights is None or kind != np.int64 else weight_range(weights).most
    if kind != np.int64 or most >= 2**31:
        distance, launches = relax_all(kind, limit, None)
        return distance, [launches]
    farthest = int(unreached_of(_NARROW)) - 1
    narrow, search = relax_all(_NARROW, farthest if limit is None else min(limit, farthest), None)
    safe = farthest if limit is not None and limit <= farthest else farthest - most
    are_safe, wide, copy = widen(narrow, safe, search.end)  # one time limit for all
    if are_safe:
        return wide, [search, copy]
    del narrow, wide
    distance, again = relax_all(kind, limit, search.end)
    return distance, [search, copy, again]


def sources_with_distance(sources: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the items with which a search begins: the sources, with distances of a type that are 0."""
    items = np.zeros(len(sources), [("vertex", np.uint32), ("distance", dtype)])
    items["vertex"] = sources
    return items


def task_for(launches: LaunchSequence, dtype: np.dtype[Any], follows: bool) -> Task:
    """Return the task of a search for distances of a type: by arrival if the queue has no buckets.

    If it `follows` paths, a group of threads that reached a vertex goes on with its edges.
    """
    if launches.queue.buckets is None:
        return relax_by_arrival
    return relax_along if follows and dtype.itemsize == _NARROW.itemsize else relax  # a distance and a vertex fit in a word
