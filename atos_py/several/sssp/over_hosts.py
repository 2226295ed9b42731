"""Shortest paths over several hosts: in the order of arrival on each, and rounds between them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...algorithms.sssp.api import SSSPResult, sssp
from ...algorithms.sssp.distances import dtype_of_lengths, unreached_of
from ...compile.task import task
from ...errors import InvalidArgumentError
from ...graph.host_partition import HostPartition
from ..bfs.over_hosts import lower_depth
from ..forms import form
from ..over_hosts import edges_with_value, refuse_over_hosts, search_over_hosts

__all__ = ["sssp_over_hosts"]


@task(workload=edges_with_value)
def lower_distance(worker, v, i, first, distance, parts, distances):  # type: ignore[no-untyped-def]
    """Lower the distance of a neighbor to that along an edge."""
    worker.push_min(distances, parts.indices[first + i], distance + parts.weights[first + i])


@form(sssp, HostPartition)
def sssp_over_hosts(parts: HostPartition, given: Any, options: Any) -> SSSPResult:
    """Return distances, and the statistics; see `sssp`."""
    wanted = {"predecessors": given.predecessors is not False, "delta": given.delta != "auto"}
    refuse_over_hosts("sssp", {**wanted, "target": given.target is not None, "cutoff": given.cutoff is not None})
    ends, lower, kind = parts.whole.weights, lower_depth, np.dtype(np.uint32)
    if ends is not None and parts.weights is not None:
        if not (ends.least >= 0 and ends.mean >= 0):
            raise InvalidArgumentError(f"weights must not be negative or NaN (the least is {ends.least})")
        lower, kind = lower_distance, dtype_of_lengths(parts.weights.dtype, ends.most, parts.num_vertices)
    found, stats = search_over_hosts("sssp", parts, given.source, lower, unreached_of(kind), given.worker, options)
    return SSSPResult(found, None, stats)  # type: ignore[arg-type]
