"""Shortest paths over several devices: the tasks of one device, on queues with buckets of which each device has one."""

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
from .distances import BUCKETS, distance_dtype, distance_limit, pays_to_order, suit_delta, unreached_of
from .tasks import relax, relax_by_arrival

__all__ = ["sssp_over"]


def sssp_over(
    parts: Partition, source: ArrayLike, target: Any, cutoff: Any, delta: Any, worker: Any, options: Any
) -> tuple[PartitionedArray, LaunchStats]:
    """Return distances, and the statistics; see `sssp`."""
    n = parts.num_vertices
    sources, end = check_sources(source, n), number_of(parts, check_target(target, n))
    kind = distance_dtype(parts)
    step = np.dtype([("vertex", np.uint32), ("distance", kind)])
    rows = Graph._make((parts.indptr, parts.indices, parts.weights))
    ordered = parts.weights is not None and pays_to_order(rows, delta)
    order: dict[str, Any] = {"buckets": BUCKETS, "delta": suit_delta(rows, delta)} if ordered else {}
    launches = launches_over("sssp", parts, step, None, worker, options, **order)
    distance = zero_at(sources, parts, unreached_of(kind), "min")
    items = np.zeros(len(sources), step)
    items["vertex"] = sources
    limit = distance_limit(check_cutoff(cutoff), kind)
    launches.launch(items, relax if ordered else relax_by_arrival, parts, distance, end, limit)
    return distance, launches.total()
