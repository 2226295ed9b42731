"""Running a program with a frontier, in rounds or without, by launches on one queue.

A launch goes on as long as its kernel has the task for what comes next (`fuse`). Otherwise the function between its rounds
stops it, and the host launches the kernel that has it. All kernels have tasks of the same names, of which some do nothing.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...algorithms.bfs.direction import ALPHA
from ...algorithms.launch_sequence import LaunchSequence
from ...algorithms.sssp.distances import suit_capacity
from ...arrays.array import Array
from ...compile.codegen.introspect import reads_parameter
from ...graph.graph import Graph
from ...operators.ranges import mixed_item_dtype
from ...runtime.launch_options import LaunchOptions
from ...runtime.queue import Queue
from .frontier import DONE, PULL, PUSH, UNLIMITED, Frontier, end_frontier_round, make_frontier
from .stats import ProgramStats, as_program_stats
from .tasks import make_tasks

__all__ = ["BUCKETS", "Request", "run_in_rounds", "run_relaxed", "turned"]

BUCKETS = 64
_WIDE: LaunchOptions = {"fetch_size": 192}  # in order of priority a twentieth faster than 128 on a road network
PULL_SHARE = 0.3  # of the edges, from which on vertices pull, if they look at all of their edges
# The tasks of the kernel for each mode: a bit for push, 2 for scan, 4 for pull.
_KERNELS = {"none": (1, 4, 2, 2), "direction": (3, 6, 3, 6), "all": (7, 7, 7, 7)}


class Request(NamedTuple):
    """A checked call of `Program.run`."""

    program: Any
    graph: Graph
    metadata: Array
    args: tuple[Any, ...]
    start: NDArray[Any] | range
    is_all: bool  # that are active first
    direction: str
    many_active: int
    most_listed: int
    fuse: str
    unique: bool
    unroll: int
    stores: bool
    rounds: int
    delta: Any
    worker: str | None
    options: LaunchOptions


def turned(graph: Graph) -> Graph:
    """Return the in-edges of vertices: the graph itself if each edge has its reverse, and they have no weights."""
    return graph if graph.weights is None and graph.is_symmetric() else graph.transpose()


def run_relaxed(asked: Request) -> ProgramStats:
    """Push without rounds, every vertex as soon as a worker is free; with `delta`, in the order of their metadata."""
    graph, metadata, n, combine = asked.graph, asked.metadata, asked.graph.num_vertices, asked.program.combine
    # Only the last value of a vertex is sent, by items that have it. In a search from a few vertices by number of edges most
    # values do not change again, so that items without it, of half the size, are faster.
    weighs = graph.weights is not None and reads_parameter(asked.program.compute, 1)
    with_values = (weighs or asked.is_all) and combine.idempotent and asked.program.any_change_counts
    buckets, priority, items = {}, None, np.asarray(np.arange(n) if asked.is_all else asked.start, mixed_item_dtype(n))
    values = np.array([metadata[v] for v in items], metadata.dtype) if items.size < 64 else metadata.to_numpy()[items]
    if with_values:
        items = np.rec.fromarrays([items, values], np.dtype([("vertex", items.dtype), ("value", values.dtype)]))
    if asked.delta is not None:
        buckets = {"buckets": BUCKETS, "delta": asked.delta}
        priority = values.astype(np.float64) * (-1 if combine.name == "MAX" else 1)
    widens = buckets and graph.device.kind == "cuda" and asked.worker in (None, "cta")
    queue = Queue(max(suit_capacity(graph), 1), dtype=items.dtype, device=graph.device, **buckets)
    queue.push(items, priority)
    launches = LaunchSequence(asked.program.name, queue, asked.options, asked.worker)
    tasks, _, _ = make_tasks(asked.program, metadata.dtype, asked.unroll, False, asked.delta is not None, with_values)
    launches.launch(items[:0], tasks[0], Frontier(graph, None, metadata, None), *asked.args, defaults=_WIDE if widens else {})
    return as_program_stats(launches.total())


def run_in_rounds(asked: Request) -> ProgramStats:
    """Run a program with barriers, by as few launches as `fuse` allows, and return its statistics with those of the rounds."""
    graph, metadata, direction, n = asked.graph, asked.metadata, asked.direction, asked.graph.num_vertices
    tasks, stubs, fold = make_tasks(asked.program, metadata.dtype, asked.unroll, asked.stores)
    mode = PULL if direction == "pull" or (direction == "auto" and asked.is_all) else PUSH
    back = None if direction == "push" or asked.stores else turned(graph)
    votes, any_change = asked.program.combine.votes, asked.program.any_change_counts
    many_edges = {"push": UNLIMITED, "pull": -1, "auto": int(PULL_SHARE * graph.num_edges)}[direction]
    limits = many_edges, ALPHA if direction == "auto" and votes else 0, asked.many_active, asked.most_listed, asked.rounds
    first = graph, back, metadata, asked.start, asked.is_all, mode, fold
    run = make_frontier(*first, *limits, unique=asked.unique, any_change_counts=any_change, worker=asked.worker)
    # Where a launch has one task, items do not say whose they are, and are half as large.
    make: Any = partial(Queue._of_kinds, tasks) if run.scans else Queue
    queue = make(2 * n + run.filters.takers + 1, dtype=mixed_item_dtype(n), device=graph.device)
    launches = LaunchSequence(asked.program.name, queue, asked.options, asked.worker)
    kernels = _KERNELS["direction" if asked.fuse == "all" and direction != "auto" else asked.fuse]
    queue.push(asked.start if mode == PUSH else range(0))
    rounds: Any = {"barrier": True, "each_round": end_frontier_round}
    while mode != DONE:
        members = [task if kernels[mode] >> k & 1 else stubs[k] for k, task in enumerate(tasks)]
        if mode != PUSH:
            queue.clear()  # a scan finds again what the online filter has pushed
            queue.push(range(run.filters.opened), task=members[2 if mode == PULL else 1])
        same = [other for other, kernel in enumerate(kernels) if asked.fuse != "none" and kernel == kernels[mode]]
        here = run._replace(stays=sum(1 << other for other in (*same, DONE)))
        launches.launch(range(0), members if run.scans else tasks[0], here, *asked.args, overrides=rounds)
        mode = run.mode
    stats = launches.total(asked.program.name)
    counts = {name: count for name, count in stats.tasks_run_by.items() if count}  # without those that were left out
    return as_program_stats(stats, tasks_run_by=counts, **run.log())
