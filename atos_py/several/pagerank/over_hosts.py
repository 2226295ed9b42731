"""PageRank over several hosts: power iteration, in whose rounds each host gathers from the contributions that all send."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...algorithms.launch_sequence import LaunchSequence
from ...algorithms.pagerank.api import PageRankResult, pagerank
from ...arrays.array import zeros
from ...arrays.filled import full
from ...errors import InvalidArgumentError
from ...graph.host_partition import HostPartition
from ...operators.edge_map import THREAD_MAX_DEGREE, gather
from ...operators.ranges import VERTICES_PER_MIXED_RANGE, range_items
from ...runtime.queue import Queue
from ..forms import form
from ..over_hosts import check_undirected
from .over_devices import numbers_of

__all__ = ["pagerank_over_hosts"]


def contribution(v, u, start, stop, current, *rest):  # type: ignore[no-untyped-def]
    """Return what an edge carries."""
    return current[u]


def next_contribution(v, degree, received, start, stop, current, following, base, damping):  # type: ignore[no-untyped-def]
    """Set the next contribution of a vertex of this host; return how far its rank moves, and the rank if it is dangling."""
    if v < start or v >= stop:
        return 0.0, 0.0
    edges = np.float64(max(degree, 1))
    rank = base + damping * received
    following[v] = rank / edges
    return abs(rank - current[v] * edges), rank if degree == 0 else 0.0


gather_contributions = gather(contribution, next_contribution, lambda *args: 0.0, count=2)


@form(pagerank, HostPartition)
def pagerank_over_hosts(parts: HostPartition, given: Any, options: Any) -> PageRankResult:
    """Return the ranks of an undirected graph, the statistics, and a bound of the error; see `pagerank`.

    Power iteration: in each round a host gathers for its vertices, and all hosts send their new contributions to all.
    """
    damping, tolerance, _, dtype, rounding = numbers_of(parts, given, "hosts")
    check_undirected("pagerank", parts)
    n, places = parts.num_vertices, parts.places
    hosts, own, device = places.hosts, places.own, places.device
    degrees = np.diff(parts.indptr[own.start : own.stop + 1].astype(np.int64))
    launches = LaunchSequence("pagerank", Queue(max(n, 64), device=device), options, given.worker)
    items = range_items(n, VERTICES_PER_MIXED_RANGE)
    items = items[own.start // VERTICES_PER_MIXED_RANGE : -(-own.stop // VERTICES_PER_MIXED_RANGE)]
    current, following = (zeros(n, dtype=np.float64, device=device) for _ in range(2))
    current[:] = hosts.messages.gather(np.full(degrees.size, 1 / max(n, 1)) / np.maximum(degrees, 1))
    dangling = float(hosts.messages.total(np.array([np.count_nonzero(degrees == 0) / max(n, 1)]))[0])
    # A round contracts the error by `damping`, so how far ranks move bounds it: times damping / (1 - damping).
    small = tolerance * (1 - damping) / max(damping, 1e-9)
    moved: float = math.inf
    rows = VERTICES_PER_MIXED_RANGE, THREAD_MAX_DEGREE[device.kind], parts.indptr, parts.indices
    while moved > small:
        before = moved
        sums, base = zeros(2, dtype=np.float64, device=device), ((1 - damping) + damping * dangling) / max(n, 1)
        numbers = current, following, base, damping
        launches.launch(items, gather_contributions, *rows, sums, own.start, own.stop, *numbers, worker="warp")
        moved, dangling = map(float, hosts.messages.total(sums.to_numpy()))
        following[:] = hosts.messages.gather(following[own])
        current, following = following, current
        if small < moved >= before:  # which is rounding, since otherwise each round moves them by less
            error = damping / (1 - damping) * moved
            raise InvalidArgumentError(
                f"the tolerance is too fine: rounding in float64 leaves an error of up to {error:.1e}, not {tolerance:.1e}"
            )
    rank = full(n, 0, dtype=dtype, partition=parts, combine="sum")
    with rank._on_host() as values:
        values[own] = current[own] * np.maximum(degrees, 1)
    error = (damping / (1 - damping) * moved if n else 0.0) + rounding
    return PageRankResult(rank, launches.total(task="gather"), error)  # type: ignore[arg-type]
