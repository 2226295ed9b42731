"""Breadth-first search over several hosts: relaxed pushes on each, and rounds between them."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from ...algorithms.bfs.tasks import UNREACHED
from ...compile.task import task
from ...graph.host_partition import HostPartition
from ..over_hosts import Found, edges_with_value, search_over_hosts

__all__ = ["bfs_over_hosts", "lower_depth"]


@task(workload=edges_with_value)
def lower_depth(worker, v, i, first, depth, parts, depths):  # type: ignore[no-untyped-def]
    """Lower the depth of a neighbor to one more."""
    worker.push_min(depths, parts.indices[first + i], depth + 1)


def bfs_over_hosts(parts: HostPartition, source: ArrayLike, worker: Any, options: Any) -> Found:
    """Return the depths of a search, and its statistics; see `bfs`."""
    return search_over_hosts("bfs", parts, source, lower_depth, UNREACHED, worker, options)
