"""What there is to measure: the ready-made algorithms on a graph, and the scheduler alone. Each can be run and verified."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..algorithms import bfs, coloring, pagerank
from ..compile.task import task
from ..core.devices import Device
from ..errors import VerificationError
from ..graph.graph import Graph
from ..runtime.queue import Queue
from ..runtime.stats import LaunchStats

__all__ = ["ALGORITHMS", "OPTIONS", "SCHEDULER", "TOLERANCE", "Workload", "on_graph", "scheduler"]

ALGORITHMS = ("bfs", "pagerank", "color")
SCHEDULER = ("tree", "chain")

#: Relative error to which PageRank is computed unless something else is asked for: that of the paper's peers.
TOLERANCE = 5e-4

#: What an algorithm takes beside the options of a launch.
OPTIONS = {"bfs": ("direction",), "pagerank": ("tolerance", "dtype", "find"), "color": ("order", "window", "patience")}


class Workload(NamedTuple):
    """Something to be measured.

    Attributes
    ----------
    run : callable
        ``run(**options)``, with the algorithm's and the launch's options; returns a `LaunchStats` or something that has
        one as `stats`.
    verify : callable
        ``verify(result, options)`` proves the result of `run` right, and returns what is worth saying about it.
    """

    run: Callable[..., Any]
    verify: Callable[[Any, dict[str, Any]], dict[str, Any]]


def on_graph(algorithm: str, graph: Graph, source: int | Sequence[int], host: Graph | None = None) -> Workload:
    """Return a ready-made algorithm on a graph; `source` is where BFS begins, `host` a copy on the host for verification."""
    checked = graph if host is None else host
    if algorithm == "bfs":

        def check_bfs(result: Any, _: dict[str, Any]) -> dict[str, Any]:
            bfs.verify_bfs(checked, source, result.depth, result.parent)
            return {"reached": result.num_reached, "levels": result.num_levels}

        return Workload(functools.partial(bfs.bfs, graph, source), check_bfs)
    if algorithm == "pagerank":

        def check_pagerank(result: Any, options: dict[str, Any]) -> dict[str, Any]:
            return {"error": pagerank.verify_pagerank(checked, result, options.get("tolerance", TOLERANCE))}

        return Workload(functools.partial(pagerank.pagerank, graph, tolerance=TOLERANCE), check_pagerank)

    def check_color(result: Any, _: dict[str, Any]) -> dict[str, Any]:
        coloring.verify_coloring(checked, result.colors)
        return {"colors": result.num_colors}

    return Workload(functools.partial(coloring.color, graph), check_color)


@task
def step(worker, left):  # type: ignore[no-untyped-def]
    """Push the next of `left` tasks."""
    if left > 0 and worker.rank == 0:
        worker.push(left - 1)


def two(size):  # type: ignore[no-untyped-def]
    """Return the number of subtrees."""
    return 2


@task(workload=two)
def fork(worker, size, i):  # type: ignore[no-untyped-def]
    """Run a tree of `size` tasks: this one and two halves of the rest, of which iteration i pushes one."""
    half = (size - i) // 2
    if half > 0:
        worker.push(half)


def scheduler(shape: str, size: int, device: Device | str | None = None) -> Workload:
    """Return empty tasks: a "tree" of `size`, each pushing two, or a "chain", each pushing the next."""
    which, first, capacity = (fork, size, size) if shape == "tree" else (step, size - 1, 1024)
    queue = Queue(capacity, device=device)

    def run(worker: str = "cta", **options: Any) -> LaunchStats:
        if len(queue):  # of a launch that could not be
            queue.clear()
        queue.push(np.uint32(first))
        return getattr(queue, f"launch_{worker}")(which, **options)  # type: ignore[no-any-return]

    def check(stats: LaunchStats, _: dict[str, Any]) -> dict[str, Any]:
        if stats.tasks_run != size:
            raise VerificationError(f"{stats.tasks_run} tasks ran, and not {size}")
        return {}

    return Workload(run, check)
