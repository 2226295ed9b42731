"""Running a program with a frontier: its memory, its launches, and the log of its rounds.

A launch goes on as long as its kernel has the task for what comes next (`fuse`). Otherwise the function between its rounds
stops it, and the host launches the kernel that has it. All kernels have tasks of the same names, of which some do nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..algorithms.launch_sequence import LaunchSequence
from ..arrays.array import Array, asarray
from ..graph.graph import Graph
from ..operators.filters import make_filters
from ..operators.ranges import mixed_item_dtype
from ..runtime.launch import LaunchOptions
from ..runtime.queue import Queue
from ..runtime.stats import LaunchStats
from .tasks import DONE, LIMITED, LOG, MODE, PULL, PUSH, ROUNDS, Run, between, make_tasks, suited_to

__all__ = ["BUCKETS", "UNLIMITED", "Request", "run_in_rounds", "run_relaxed", "turned"]

BUCKETS = 64
UNLIMITED = 1 << 62
MOST_LOGGED = 1 << 16  # rounds
PULL_SHARE = 0.3  # of the edges, from which on vertices pull
# The tasks of the kernel for each mode: a bit for push, 2 for scan, 4 for pull.
_KERNELS = {"none": (1, 4, 2, 2), "direction": (3, 6, 3, 6), "all": (7, 7, 7, 7)}


class Request(NamedTuple):
    """A checked call of `Program.run`."""

    program: Any
    graph: Graph
    metadata: Array
    args: tuple[Any, ...]
    start: NDArray[Any]
    is_all: bool  # that are active first
    direction: str
    many_active: int
    most_listed: int
    fuse: str
    rounds: int
    delta: Any
    worker: str | None
    options: LaunchOptions


def turned(graph: Graph) -> Graph:
    """Return the in-edges of vertices: the graph itself if each edge has its reverse, and they have no weights."""
    return graph if graph.weights is None and graph.is_symmetric() else graph.transpose()


def run_relaxed(asked: Request) -> LaunchStats:
    """Push without rounds, every vertex as soon as a worker is free; with `delta`, in the order of their metadata."""
    graph, metadata, n, buckets = asked.graph, asked.metadata, asked.graph.num_vertices, {}
    priority = taken = None
    if asked.delta is not None:
        buckets, known = {"buckets": BUCKETS, "delta": asked.delta}, np.array(metadata.to_numpy())
        priority = known[asked.start].astype(np.float64) * (-1 if asked.program.combine.name == "MAX" else 1)
        known[asked.start] = suited_to(asked.program, metadata.dtype)[1]  # with that there is nothing to push
        taken = asarray(known, device=graph.device)
    queue = Queue(max(2 * n, 1), dtype=mixed_item_dtype(n), device=graph.device, **buckets)
    queue.push(asked.start, priority)
    launches = LaunchSequence(asked.program.name, queue, asked.options, asked.worker)
    tasks, _, _ = make_tasks(asked.program, metadata.dtype, asked.delta is not None)
    launches.launch(np.arange(0), tasks[0], Run(graph, None, metadata, taken), *asked.args)
    return launches.total()


def run_in_rounds(asked: Request) -> LaunchStats:
    """Run a program with barriers, by as few launches as `fuse` allows, and return its statistics with those of the rounds."""
    graph, metadata, direction, n = asked.graph, asked.metadata, asked.direction, asked.graph.num_vertices
    device, (tasks, stubs, fold) = graph.device, make_tasks(asked.program, metadata.dtype)
    is_filtered = direction != "push" or asked.most_listed < UNLIMITED
    mode = PULL if direction == "pull" or (direction == "auto" and asked.is_all) else PUSH
    state = np.zeros(LOG + min(asked.rounds, MOST_LOGGED), np.int64)
    state[[MODE, ROUNDS, LOG]] = mode, 1, len(asked.start) << 2 | asked.is_all << 1 | mode
    sweeps = asked.many_active >= 0  # over all vertices, in topology-driven rounds
    filters = make_filters(n, device, None if direction == "push" else np.arange(n) if sweeps else asked.start, fold)
    back, taken = None if direction == "push" else turned(graph), metadata.copy() if is_filtered else None
    many_edges = {"push": UNLIMITED, "pull": -1, "auto": int(PULL_SHARE * graph.num_edges)}[direction]
    limits = many_edges, asked.many_active, asked.most_listed, asked.rounds
    run = Run(graph, back, metadata, taken, asarray(state, device=device), filters, *limits)
    queue = Queue(2 * n + filters.ranges + 1, dtype=mixed_item_dtype(n), device=device)
    launches = LaunchSequence(asked.program.name, queue, asked.options, asked.worker)
    kernels = _KERNELS["direction" if asked.fuse == "all" and direction != "auto" else asked.fuse]
    queue.push(asked.start if mode == PUSH else np.arange(0))
    rounds: Any = {"barrier": True, "each_round": between}
    while mode != DONE:
        members = [task if kernels[mode] >> k & 1 else stubs[k] for k, task in enumerate(tasks)]
        if mode != PUSH:
            queue.clear()  # a scan finds again what the online filter has pushed
            queue.push(np.arange(filters.ranges), task=members[2 if mode == PULL else 1])
        same = [other for other, kernel in enumerate(kernels) if asked.fuse != "none" and kernel == kernels[mode]]
        here = run._replace(stays=sum(1 << other for other in (*same, DONE)))
        launches.launch(np.arange(0), members if is_filtered else tasks[0], here, *asked.args, overrides=rounds)
        mode = int(run.state[MODE])
    found = run.state.to_numpy()
    log = found[LOG : LOG + int(found[ROUNDS])]
    stats = launches.total(asked.program.name)
    return replace(
        stats,
        tasks_run_by={name: count for name, count in stats.tasks_run_by.items() if count},  # without those that were left out
        stopped=bool(found[LIMITED]),
        filters=tuple("none" if sweeps and entry & 1 else "ballot" if entry & 2 else "online" for entry in log),
        directions=tuple("pull" if entry & 1 else "push" for entry in log),
        frontiers=tuple((log >> 2).tolist()),
    )
