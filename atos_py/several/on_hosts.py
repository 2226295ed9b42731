"""Algorithms called with a graph whose parts several hosts have: what each refuses, and its result."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..algorithms.bfs import api as of_bfs
from ..algorithms.connected_components import ComponentsResult
from ..algorithms.connected_components import connected_components as components_of_graph
from ..algorithms.pagerank import api as of_pagerank
from ..algorithms.sssp import api as of_sssp
from ..graph.host_partition import HostPartition
from .bfs.over_hosts import bfs_over_hosts
from .components_over_hosts import components_over_hosts
from .forms import over_hosts
from .over_hosts import refuse_over_hosts
from .pagerank.over_hosts import pagerank_over_hosts
from .sssp.over_hosts import sssp_over_hosts

__all__ = ["bfs", "connected_components", "pagerank", "sssp"]


@over_hosts(of_bfs.bfs)
def bfs(
    parts: HostPartition,
    source: ArrayLike,
    *,
    target: int | None = None,
    cutoff: float | None = None,
    direction: str | None = None,
    parents: bool = False,
    worker: str | None = None,
    capacity: int | None = None,
    **launch_options: Any,
) -> of_bfs.BFSResult:
    """Return the number of edges on the shortest path from a source to every vertex."""
    given = {"direction": direction not in (None, "push"), "parents": parents is not False, "target": target is not None}
    refuse_over_hosts("bfs", {**given, "cutoff": cutoff is not None, "capacity": capacity is not None})
    return of_bfs.BFSResult(*bfs_over_hosts(parts, source, worker, launch_options))  # type: ignore[arg-type]


@over_hosts(of_sssp.sssp)
def sssp(
    parts: HostPartition,
    source: ArrayLike,
    *,
    target: int | None = None,
    cutoff: float | None = None,
    predecessors: bool = False,
    delta: Any = "auto",
    worker: str | None = None,
    **launch_options: Any,
) -> of_sssp.SSSPResult:
    """Return the length of the shortest path from a source to every vertex."""
    wanted = {"predecessors": predecessors is not False, "delta": delta != "auto", "target": target is not None}
    refuse_over_hosts("sssp", {**wanted, "cutoff": cutoff is not None})
    found, stats = sssp_over_hosts(parts, source, worker, launch_options)
    return of_sssp.SSSPResult(found, None, stats)  # type: ignore[arg-type]


@over_hosts(components_of_graph)
def connected_components(parts: HostPartition, *, worker: str | None = None, **launch_options: Any) -> ComponentsResult:
    """Find which vertices are joined by paths."""
    return ComponentsResult(*components_over_hosts(parts, worker, launch_options))  # type: ignore[arg-type]


@over_hosts(of_pagerank.pagerank)
def pagerank(
    parts: HostPartition,
    damping: float = 0.85,
    tolerance: float = 1e-4,
    *,
    dtype: DTypeLike = np.float32,
    weighted: bool = False,
    find: str | None = None,
    worker: str | None = None,
    personalization: Any = None,
    dangling: Any = None,
    start: Any = None,
    capacity: int | None = None,
    **launch_options: Any,
) -> of_pagerank.PageRankResult:
    """Return the PageRank of every vertex."""
    numbers = of_pagerank.check_numbers(parts, damping, tolerance, dtype, weighted, dangling, find)
    given = {"personalization": personalization, "dangling": dangling, "start": start, "capacity": capacity}
    others = {"weighted": numbers.weighted, "find": find not in (None, "gather")}
    refuse_over_hosts("pagerank", {name: value is not None for name, value in given.items()} | others)
    damping, within, kind, rounding = numbers.damping, numbers.tolerance - numbers.rounding, numbers.kind, numbers.rounding
    found = pagerank_over_hosts(parts, damping, within, kind, worker, launch_options, rounding)
    return of_pagerank.PageRankResult(*found)  # type: ignore[arg-type]
