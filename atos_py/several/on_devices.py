"""Algorithms called with the parts of a graph on several devices: what each refuses, its choices, and its result."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..algorithms.arguments import check_no_each_round
from ..algorithms.bfs import api as of_bfs
from ..algorithms.bfs.tasks import pays_to_follow
from ..algorithms.connected_components import ComponentsResult
from ..algorithms.connected_components import connected_components as components_of_graph
from ..algorithms.pagerank import api as of_pagerank
from ..algorithms.sssp import api as of_sssp
from ..algorithms.sssp.distances import BUCKETS
from ..graph.graph import Graph
from ..graph.partition import Partition
from ..runtime.buckets import check_buckets
from ..runtime.launch_options import LaunchOptions, Unpack
from ..support.validation import check_bool
from .bfs.over_devices import bfs_over
from .components_over_devices import components_over
from .forms import over_devices
from .over_devices import refuse_over
from .pagerank.over_devices import pagerank_over
from .sssp.over_devices import sssp_over

__all__ = ["bfs", "connected_components", "pagerank", "sssp"]


@over_devices(of_bfs.bfs)
def bfs(
    parts: Partition,
    source: ArrayLike,
    *,
    target: int | None = None,
    cutoff: float | None = None,
    direction: str | None = None,
    parents: bool = False,
    worker: str | None = None,
    capacity: int | None = None,
    **launch_options: Unpack[LaunchOptions],
) -> of_bfs.BFSResult:
    """Return the number of edges on the shortest path from a source to every vertex."""
    parents = check_bool("parents", parents)
    rows = Graph._make((parts.indptr, parts.indices, None))
    chosen = worker is not None or not of_bfs.SCHEDULE.isdisjoint(launch_options)
    way = of_bfs.choose_direction(rows, direction, chosen)
    ways = way, of_bfs.pushes_by_level(rows, chosen, launch_options), direction is None and not chosen and pays_to_follow(rows)
    if way == "auto" or parents:
        check_no_each_round("bfs", launch_options)
    found = bfs_over(parts, source, ways, target, cutoff, parents, capacity, worker, launch_options)
    return of_bfs.BFSResult(*found)  # type: ignore[arg-type]


@over_devices(of_sssp.sssp)
def sssp(
    parts: Partition,
    source: ArrayLike,
    *,
    target: int | None = None,
    cutoff: float | None = None,
    predecessors: bool = False,
    delta: Any = "auto",
    worker: str | None = None,
    **launch_options: Unpack[LaunchOptions],
) -> of_sssp.SSSPResult:
    """Return the length of the shortest path from a source to every vertex."""
    refuse_over("sssp", {"predecessors": predecessors is not False})
    _, width = check_buckets(BUCKETS, delta)
    chosen = worker is not None or not of_bfs.SCHEDULE.isdisjoint(launch_options)
    found, stats = sssp_over(parts, source, target, cutoff, width, chosen, worker, launch_options)
    return of_sssp.SSSPResult(found, None, stats)  # type: ignore[arg-type]


@over_devices(components_of_graph, rounds=True)
def connected_components(
    parts: Partition, *, worker: str | None = None, **launch_options: Unpack[LaunchOptions]
) -> ComponentsResult:
    """Find which vertices are joined by paths."""
    return ComponentsResult(*components_over(parts, worker, launch_options))  # type: ignore[arg-type]


@over_devices(of_pagerank.pagerank)
def pagerank(
    parts: Partition,
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
    **launch_options: Unpack[LaunchOptions],
) -> of_pagerank.PageRankResult:
    """Return the PageRank of every vertex."""
    numbers = of_pagerank.check_numbers(parts, damping, tolerance, dtype, weighted, dangling, find)
    given = {"personalization": personalization, "dangling": dangling, "start": start, "capacity": capacity}
    others = {"weighted": numbers.weighted, "find": find not in (None, "gather")}
    refused = {name: value is not None for name, value in given.items()} | others
    refuse_over("pagerank", {**refused, "barrier=False": not launch_options.get("barrier", True)})
    damping, within, kind, rounding = numbers.damping, numbers.tolerance - numbers.rounding, numbers.kind, numbers.rounding
    found = pagerank_over(parts, damping, within, kind, worker, launch_options, rounding)
    return of_pagerank.PageRankResult(*found)  # type: ignore[arg-type]
