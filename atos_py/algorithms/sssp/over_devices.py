"""Shortest paths over several devices: relaxed pushes in the order of arrival, with the task of one device."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...arrays.partitioned import PartitionedArray
from ...graph.partition import Partition
from ...runtime.stats import LaunchStats
from ..arguments import check_cutoff, check_sources, check_target
from ..over_devices import launches_over, number_of, zero_at
from .distances import distance_dtype, distance_limit, unreached_of
from .tasks import relax_by_arrival

__all__ = ["sssp_over"]


def sssp_over(
    parts: Partition, source: ArrayLike, target: Any, cutoff: Any, worker: Any, options: Any
) -> tuple[PartitionedArray, LaunchStats]:
    """Return distances in the order of arrival, and the statistics; see `sssp`."""
    n = parts.num_vertices
    sources, end = check_sources(source, n), number_of(parts, check_target(target, n))
    kind = distance_dtype(parts)
    step = np.dtype([("vertex", np.uint32), ("distance", kind)])
    launches = launches_over("sssp", parts, step, None, worker, options)
    distance = zero_at(sources, parts, unreached_of(kind))
    items = np.zeros(len(sources), step)
    items["vertex"] = sources
    launches.launch(items, relax_by_arrival, parts, distance, end, distance_limit(check_cutoff(cutoff), kind))
    return distance, launches.total()
