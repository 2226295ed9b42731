"""Shortest paths over several devices: in the order of distances, or of arrival with the task of one device."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...arrays.partitioned import PartitionedArray
from ...graph.graph import Graph
from ...graph.partition import Partition
from ...runtime.stats import LaunchStats
from ..arguments import check_cutoff, check_sources, check_target
from ..over_devices import launches_over, number_of, zero_at
from .distances import distance_dtype, distance_limit, pays_to_order, suit_delta, unreached_of
from .near_far_over_devices import find_near_and_far
from .tasks import relax_by_arrival

__all__ = ["sssp_over"]

_BUCKETS_AT_A_TIME = 4  # of those of one device, since each takes rounds


def sssp_over(
    parts: Partition, source: ArrayLike, target: Any, cutoff: Any, delta: Any, worker: Any, options: Any
) -> tuple[PartitionedArray, LaunchStats]:
    """Return distances, and the statistics; see `sssp`."""
    n = parts.num_vertices
    sources, end = check_sources(source, n), number_of(parts, check_target(target, n))
    kind = distance_dtype(parts)
    step = np.dtype([("vertex", np.uint32), ("distance", kind)])
    launches = launches_over("sssp", parts, step, None, worker, options)
    distance = zero_at(sources, parts, unreached_of(kind))
    items = np.zeros(len(sources), step)
    items["vertex"] = sources
    limit, rows = distance_limit(check_cutoff(cutoff), kind), Graph._make((parts.indptr, parts.indices, parts.weights))
    width = suit_delta(rows, delta)
    ordered = parts.weights is not None and width != "auto" and options.get("barrier", True) and pays_to_order(rows, delta)
    if ordered and options.get("each_round") is None:
        find_near_and_far(parts, items, distance, launches, float(width) * _BUCKETS_AT_A_TIME, end, limit)
    else:
        launches.launch(items, relax_by_arrival, parts, distance, end, limit)
    return distance, launches.total()
