"""Breadth-first search over several hosts: relaxed pushes on each, and rounds between them."""

from __future__ import annotations

from typing import Any

from ...algorithms.bfs.api import BFSResult, bfs
from ...algorithms.bfs.tasks import UNREACHED
from ...compile.task import task
from ...graph.host_partition import HostPartition
from ..forms import form
from ..over_hosts import edges_with_value, refuse_over_hosts, search_over_hosts

__all__ = ["bfs_over_hosts", "lower_depth"]


@task(workload=edges_with_value)
def lower_depth(worker, v, i, first, depth, parts, depths):  # type: ignore[no-untyped-def]
    """Lower the depth of a neighbor to one more."""
    worker.push_min(depths, parts.indices[first + i], depth + 1)


@form(bfs, HostPartition)
def bfs_over_hosts(parts: HostPartition, given: Any, options: Any) -> BFSResult:
    """Return the depths of a search, and its statistics; see `bfs`."""
    wanted = {name: getattr(given, name) is not None for name in ("target", "cutoff", "capacity")}
    others = {"direction": given.direction not in (None, "push"), "parents": given.parents is not False}
    refuse_over_hosts("bfs", {**others, **wanted})
    found = search_over_hosts("bfs", parts, given.source, lower_depth, UNREACHED, given.worker, options)
    return BFSResult(*found)  # type: ignore[arg-type]
