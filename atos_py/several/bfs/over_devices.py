"""Breadth-first search over several devices: level by level, or by relaxed pushes, with the tasks of one device."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...algorithms.arguments import check_cutoff, check_sources, check_target, largest_whole
from ...algorithms.bfs.tasks import UNREACHED, visit_along, visit_within
from ...arrays.partitioned import PartitionedArray
from ...graph.partition import Partition
from ...runtime.stats import LaunchStats
from ..over_devices import launches_over, number_of, zero_at
from .direction_over_devices import LEVEL_TASKS, search_over_devices
from .parents_over_devices import find_parents_over
from .pushed_levels_over_devices import search_by_pushed_levels_over

__all__ = ["bfs_over"]


def bfs_over(
    parts: Partition,
    source: ArrayLike,
    ways: tuple[str, bool, bool],
    target: Any,
    cutoff: Any,
    parents: bool,
    capacity: Any,
    worker: Any,
    options: Any,
) -> tuple[PartitionedArray, LaunchStats, PartitionedArray | None]:
    """Return the depths of a search, its statistics, and the parents if they are wanted; see `bfs`.

    Its `ways` are the direction, and whether it pushes by level, and follows paths, if it may.
    """
    n, (direction, pushes_by_level, follows) = parts.num_vertices, ways
    sources, end = check_sources(source, n).astype(np.uint32), number_of(parts, check_target(target, n))
    limit = largest_whole(check_cutoff(cutoff), int(UNREACHED))
    in_words = len(parts.devices) == 1 or parts.ownership.chunk % 32 == 0  # a word of bits is of one device
    switches = direction == "auto" and in_words and limit > 0
    by_level = not switches and pushes_by_level and in_words and end is None and limit > 0
    launches = launches_over("bfs", parts, np.uint32, capacity, worker, options, LEVEL_TASKS if switches else ())
    depth = zero_at(sources, parts, UNREACHED, None if switches or by_level else "min")
    if switches:
        search_over_devices(parts, sources, depth, launches, end, limit)
    elif by_level:
        search_by_pushed_levels_over(parts, depth, launches, limit)
    elif follows and end is None and limit == UNREACHED:
        launches.launch(sources, visit_along, parts, depth)
    else:
        launches.launch(sources, visit_within, parts, depth, end, limit)
    parent = find_parents_over(parts, depth, launches) if parents else None
    return depth, launches.total(), parent
