"""Connected components over several devices: one union-find over all of them, in three launches."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays.filled import full
from ..arrays.partitioned import PartitionedArray
from ..arrays.shared import common_zeros
from ..compile.atomics import atomic_add, atomic_min
from ..compile.task import task
from ..graph.partition import Partition
from ..operators.union_find import find_root, root_of, unite
from ..runtime.stats import LaunchStats
from .bfs.tasks import UNREACHED
from .over_devices import launches_over

__all__ = ["components_over"]


def row(v, parts, root, smallest, label, count):  # type: ignore[no-untyped-def]
    """Return how many edges a vertex has, and the first."""
    return parts.indptr[v + 1] - parts.indptr[v], parts.indptr[v]


@task(workload=row)
def unite_ends(worker, v, i, first, parts, root, smallest, label, count):  # type: ignore[no-untyped-def]
    """Unite the trees of the two ends of an edge."""
    unite(find_root(v, root), parts.indices[first + i], root)


@task
def find_smallest(worker, v, parts, root, smallest, label, count):  # type: ignore[no-untyped-def]
    """Find the smallest id of each tree: a root is the smallest number, which need not be that of the smallest id."""
    if worker.rank == 0:
        top = root_of(v, root)
        atomic_min(smallest, top, parts.original[v])
        if top == v:
            atomic_add(count, 0, 1)


@task
def name_by_smallest(worker, v, parts, root, smallest, label, count):  # type: ignore[no-untyped-def]
    """Label a vertex by the smallest id of its tree."""
    if worker.rank == 0:
        label[v] = smallest[root_of(v, root)]


def components_over(parts: Partition, worker: Any, options: Any) -> tuple[PartitionedArray, int, LaunchStats]:
    """Return the labels of components, how many there are, and the statistics; see `connected_components`."""
    n = parts.num_vertices
    launches = launches_over("connected_components", parts, np.uint32, None, worker, options)
    root, smallest, label = (full(n, UNREACHED, dtype=np.uint32, partition=parts) for _ in range(3))
    everyone = np.arange(n, dtype=np.uint32)
    root[:] = everyone if parts.ownership.numbers is None else parts.ownership.numbers  # each its own, by numbers
    count = common_zeros(1, np.int64, parts.ownership)
    for each in (unite_ends, find_smallest, name_by_smallest):
        launches.launch(everyone, each, parts, root, smallest, label, count)
    return label, int(count[0]), launches.total()
