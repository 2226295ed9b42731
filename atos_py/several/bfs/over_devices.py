"""Breadth-first search over several devices: level by level, or by relaxed pushes, with the tasks of one device."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...algorithms.arguments import check_cutoff, check_no_each_round, check_sources, check_target, largest_whole
from ...algorithms.bfs.api import SCHEDULE, BFSResult, bfs, choose_direction, pushes_by_level
from ...algorithms.bfs.tasks import UNREACHED, pays_to_follow, visit_along, visit_within
from ...graph.graph import Graph
from ...graph.partition import Partition
from ...support.validation import check_bool
from ..forms import form
from ..over_devices import launches_over, number_of, zero_at
from .direction_over_devices import LEVEL_TASKS, search_over_devices
from .parents_over_devices import find_parents_over
from .pushed_levels_over_devices import search_by_pushed_levels_over

__all__ = ["bfs_over"]


@form(bfs, Partition)
def bfs_over(parts: Partition, given: Any, options: Any) -> BFSResult:
    """Return the depths of a search, its statistics, and the parents if they are wanted; see `bfs`."""
    parents = check_bool("parents", given.parents)
    rows = Graph._make((parts.indptr, parts.indices, None))
    chosen = given.worker is not None or not SCHEDULE.isdisjoint(options)
    direction = choose_direction(rows, given.direction, chosen)
    follows = given.direction is None and not chosen and pays_to_follow(rows)
    if direction == "auto" or parents:
        check_no_each_round("bfs", options)
    n = parts.num_vertices
    sources, end = check_sources(given.source, n).astype(np.uint32), number_of(parts, check_target(given.target, n))
    limit = largest_whole(check_cutoff(given.cutoff), int(UNREACHED))
    in_words = len(parts.devices) == 1 or parts.ownership.chunk % 32 == 0  # a word of bits is of one device
    switches = direction == "auto" and in_words and limit > 0
    by_level = not switches and pushes_by_level(rows, chosen, options) and in_words and end is None and limit > 0
    tasks = LEVEL_TASKS if switches else ()
    launches = launches_over("bfs", parts, np.uint32, given.capacity, given.worker, options, tasks)
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
    return BFSResult(depth, launches.total(), parent)  # type: ignore[arg-type]
