"""PageRank over several devices: power iteration along the edges of an undirected graph, in rounds of one launch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...arrays.filled import full
from ...arrays.partitioned import PartitionedArray
from ...arrays.shared import common_zeros
from ...compile.atomics import atomic_add
from ...compile.task import task
from ...errors import InvalidArgumentError
from ...graph.partition import Partition
from ...graph.symmetry import is_symmetric
from ...runtime.stats import LaunchStats
from ..over_devices import launches_over

__all__ = ["pagerank_over"]


@task
def gather_rank(worker, v, parts, rank, change, sinks, damping, small):  # type: ignore[no-untyped-def]
    """Gather the next rank of a vertex, in the column of the next round, unless all changes of the last round were small."""
    now = worker.round
    if now > 0 and change[now - 1] <= small:
        return
    n = parts.indptr.size - 1
    old, new = now & 1, (now + 1) & 1
    received = 0.0
    for edge in worker.split(range(parts.indptr[v], parts.indptr[v + 1])):
        u = parts.indices[edge]
        received += rank[u, old] / (parts.indptr[u + 1] - parts.indptr[u])
    received = worker.sum(received)
    if worker.rank == 0:
        # A vertex without edges gives its rank to all: what these had together is known from the round before.
        after = (1.0 - damping + damping * sinks[now]) / n + damping * received
        rank[v, new] = after
        if parts.indptr[v] == parts.indptr[v + 1]:
            atomic_add(sinks, now + 1, after)
        atomic_add(change, now, abs(after - rank[v, old]))
        if now + 2 < change.size:
            worker.push(v)


def pagerank_over(
    parts: Partition,
    damping: float,
    tolerance: float,
    dtype: np.dtype[Any],
    worker: Any,
    options: Any,
    rounding: float,
) -> tuple[PartitionedArray, LaunchStats, float]:
    """Return the ranks of an undirected graph, the statistics, and a bound of the error; see `pagerank`."""
    if not is_symmetric(parts.indptr, parts.indices):
        raise InvalidArgumentError(
            "pagerank over several devices is for graphs in which every edge has its reverse, and here some edge has none: "
            "partition graph.to_symmetric(), or use the graph on one device"
        )
    n = parts.num_vertices
    launches = launches_over("pagerank", parts, np.uint32, None, worker, options)
    kept = full(n, 0, dtype=dtype, partition=parts)
    # Power iteration contracts the error by `damping`, so the change of a round bounds it: times damping / (1 - damping).
    small = tolerance / 2 * (1 - damping) / max(damping, 1e-9)
    most = 3 + (0 if damping == 0 else math.ceil(math.log(max(small, 1e-300) / 2) / math.log(damping)))
    change, sinks = (common_zeros(max(most, 3), np.float64, parts.ownership) for _ in range(2))
    rank = full((n, 2), 1 / max(n, 1), dtype=np.float64, partition=parts)
    sinks[0] = float(np.count_nonzero(np.diff(np.asarray(parts.indptr)) == 0)) / max(n, 1)
    everyone = np.arange(n, dtype=np.uint32)
    rounds: Any = {"barrier": True}
    launches.launch(everyone, gather_rank, parts, rank, change, sinks, damping, small, overrides=rounds)
    changes = change[:]
    done = int(np.argmax(changes <= small)) if (changes <= small).any() else changes.size - 2
    kept[:] = rank.to_numpy()[:, (done + 1) & 1].astype(dtype)
    return kept, launches.total(), damping / (1 - damping) * float(changes[done]) + rounding
