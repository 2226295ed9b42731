"""Shortest paths over several devices: the tasks of one device, on queues with buckets of which each device has one."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...algorithms.arguments import check_cutoff, check_sources, check_target
from ...algorithms.bfs.api import SCHEDULE
from ...algorithms.bfs.tasks import pays_to_follow
from ...algorithms.launch_sequence import LaunchSequence
from ...algorithms.sssp.api import SSSPResult, sssp
from ...algorithms.sssp.distances import BUCKETS, distance_dtype, pays_to_order, suit_delta, unreached_of
from ...algorithms.sssp.tasks import widen_distances
from ...algorithms.sssp.try_32bit_first import sources_with_distance, task_for, try_32bit_first
from ...arrays.partitioned import PartitionedArray
from ...arrays.shared import common_zeros
from ...graph.graph import Graph
from ...graph.partition import Partition
from ...runtime.buckets import check_buckets
from ...runtime.stats import LaunchStats
from ..forms import form
from ..over_devices import by_owner, first_of_ranges, launches_over, number_of, refuse_over, zero_at

__all__ = ["sssp_over"]

_widen = by_owner(widen_distances)


@form(sssp, Partition)
def sssp_over(parts: Partition, given: Any, options: Any) -> SSSPResult:
    """Return distances, and the statistics; see `sssp`."""
    refuse_over("sssp", {"predecessors": given.predecessors is not False})
    _, delta = check_buckets(BUCKETS, given.delta)
    n, ownership, worker = parts.num_vertices, parts.ownership, given.worker
    chosen = worker is not None or not SCHEDULE.isdisjoint(options)
    sources, target = check_sources(given.source, n), number_of(parts, check_target(given.target, n))
    kind = distance_dtype(parts)
    rows = Graph._make((parts.indptr, parts.indices, parts.weights))
    ordered = parts.weights is not None and pays_to_order(rows, delta)
    order: dict[str, Any] = {"buckets": BUCKETS, "delta": suit_delta(rows, delta)} if ordered else {}
    follows = not chosen and pays_to_follow(rows)

    def relax_all(dtype: np.dtype[Any], limit: int | float | None, end: float | None) -> tuple[Any, LaunchSequence]:
        items = sources_with_distance(sources, dtype)
        launches = launches_over("sssp", parts, items.dtype, None, worker, options, **order)
        launches.end = end or launches.end
        distance = zero_at(sources, parts, unreached_of(dtype), "min")
        launches.launch(items, task_for(launches, dtype, follows), parts, distance, target, limit)
        return distance, launches

    def widen(narrow: Any, safe: int, end: float | None) -> tuple[bool, PartitionedArray, LaunchSequence]:
        wide = PartitionedArray(n, kind, ownership)
        items = first_of_ranges(parts)
        launches = launches_over("sssp", parts, np.uint32, max(len(items), 1), worker, {**options, "each_round": None})
        launches.end = end
        unsafe = common_zeros(1, np.float64, ownership)
        launches.launch(items, _widen, n, unsafe, narrow, wide, unreached_of(kind), safe)
        return not unsafe[0], wide, launches

    distance, searches = try_32bit_first(kind, parts.weights, check_cutoff(given.cutoff), relax_all, widen)
    first = searches[0].total()
    stats = LaunchStats.total([run for each in searches for run in each.runs], task=first.task, like=first)
    return SSSPResult(distance, None, stats)  # type: ignore[arg-type]
