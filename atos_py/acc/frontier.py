"""Running a program with a frontier: its memory, its launches, and the log of its rounds.

A launch goes on as long as its kernel has the task for what comes next (`fuse`). Otherwise the function between its rounds
stops it, and the host launches the kernel that has it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..algorithms.launch_sequence import LaunchSequence
from ..arrays.array import Array, asarray
from ..graph.graph import Graph
from ..operators.edge_map import THREAD_MAX_DEGREE
from ..operators.filters import make_filters
from ..operators.ranges import mixed_item_dtype
from ..operators.row_pull import SEARCHED_ALONE
from ..runtime.launch import LaunchOptions
from ..runtime.queue import Queue
from ..runtime.stats import LaunchStats
from .functions import Functions
from .tasks import AUTO, DONE, LIMITED, LOG, MODE, PULL, PUSH, ROUNDS, SCAN_BITS, SCAN_LIST, Run, make_tasks

__all__ = ["BUCKETS", "UNLIMITED", "Request", "run_in_rounds", "run_relaxed", "turned"]

BUCKETS = 64
UNLIMITED = 1 << 62
MOST_LOGGED = 1 << 16  # rounds
PULL_SHARE = 0.3  # of the edges, from which on vertices pull
_TASK_OF = {PUSH: "push", PULL: "pull", SCAN_LIST: "scan", SCAN_BITS: "scan"}
_PUSHING, _PULLING = ("push", "scan"), ("pull", "scan")


class Request(NamedTuple):
    """A checked call of `Program.run`."""

    program: Functions
    graph: Graph
    metadata: Array
    args: tuple[Any, ...]
    start: NDArray[Any] | None
    direction: int
    threshold: int
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
    graph, metadata, n = asked.graph, asked.metadata, asked.graph.num_vertices
    tasks, run = make_tasks(asked.program, metadata.dtype), Run(graph, None, metadata)
    items: Any = np.arange(n) if asked.start is None else asked.start
    task, dtype, priority, buckets = tasks.push, np.dtype(mixed_item_dtype(n)), None, {}
    if asked.delta is not None:
        task, buckets = tasks.push_ordered, {"buckets": BUCKETS, "delta": asked.delta}
        dtype, vertices = np.dtype([("vertex", np.uint32), ("value", metadata.dtype)]), items
        items = np.zeros(len(vertices), dtype)
        items["vertex"], items["value"] = vertices, metadata.to_numpy()[vertices]
        priority = items["value"].astype(np.float64) * (-1 if asked.program.combine.name == "MAX" else 1)
    queue = Queue(max(2 * n, 1), dtype=dtype, device=graph.device, **buckets)
    queue.push(items, priority)
    launches = LaunchSequence(asked.program.name, queue, asked.options, asked.worker)
    launches.launch(np.zeros(0, dtype), task, run, None, *asked.args)
    return launches.total()


def _choose_kernels(fuse: str, direction: int, is_filtered: bool) -> dict[int, tuple[str, ...]]:
    """Return the names of the tasks of the kernel for each mode."""
    if fuse == "none" or not is_filtered:
        return {mode: (name,) for mode, name in _TASK_OF.items()}
    if fuse == "all" and direction == AUTO:
        return dict.fromkeys(_TASK_OF, ("push", "scan", "pull"))
    return {PUSH: _PUSHING, SCAN_LIST: _PUSHING, PULL: _PULLING, SCAN_BITS: _PULLING}


def run_in_rounds(asked: Request) -> LaunchStats:
    """Run a program with barriers, by as few launches as `fuse` allows, and return its statistics with those of the rounds."""
    graph, metadata, direction, n = asked.graph, asked.metadata, asked.direction, asked.graph.num_vertices
    votes, by_all = asked.program.combine.votes, asked.program.combine.by_all
    tasks, device, is_filtered = (
        make_tasks(asked.program, metadata.dtype),
        graph.device,
        direction != PUSH or asked.threshold < UNLIMITED,
    )
    first = np.arange(n) if asked.start is None else asked.start
    mode = PULL if direction == PULL or (direction == AUTO and asked.start is None) else PUSH
    state = np.zeros(LOG + min(asked.rounds, MOST_LOGGED), np.int64)
    state[[MODE, ROUNDS, LOG]] = mode, 1, len(first) << 2 | (asked.start is None) << 1 | mode
    filters = make_filters(n, device, asked.threshold, None if direction == PUSH else first, direction == AUTO)
    run = Run(
        graph,
        None if direction == PUSH else turned(graph),
        metadata,
        metadata.copy() if is_filtered else None,
        asarray(state, device=device),
        filters,
        direction,
        int(PULL_SHARE * graph.num_edges),
        (SEARCHED_ALONE if votes else THREAD_MAX_DEGREE)[device.kind] if votes or by_all else UNLIMITED,
        asked.rounds,
    )
    kernels = _choose_kernels(asked.fuse, direction, is_filtered)
    launches: dict[tuple[str, ...], LaunchSequence] = {}
    runs: list[LaunchStats] = []

    def launches_of(mode: int) -> LaunchSequence:
        """Return the launches of a kernel, with a queue of its own: it tells its own tasks apart."""
        if kernels[mode] not in launches:
            room = 2 * n if "push" in kernels[mode] else 0
            queue = Queue(room + filters.ranges + 1, dtype=mixed_item_dtype(n), device=device)
            launches[kernels[mode]] = LaunchSequence(asked.program.name, queue, asked.options, asked.worker)
            launches[kernels[mode]].end = next(iter(launches.values())).end  # one time limit for all
        return launches[kernels[mode]]

    if mode == PUSH:
        launches_of(PUSH).queue.push(first)
    while mode != DONE:
        names, launch = kernels[mode], launches_of(mode)
        lists = launches_of(PUSH).queue if names == ("scan",) and direction != PULL else None
        if mode != PUSH:
            for other in launches.values():  # a scan finds again what the online filter has pushed
                other.queue.clear()
            task = getattr(tasks, _TASK_OF[mode])
            launch.queue.push(np.arange(filters.ranges), task=task if len(names) > 1 else None)
        stays = [other for other in kernels if asked.fuse != "none" and kernels[other] == names]
        launch.launch(
            np.arange(0),
            [getattr(tasks, name) for name in names],
            run._replace(stays=sum(1 << other for other in (*stays, DONE))),
            lists,
            *asked.args,
            overrides={"barrier": True, "each_round": tasks.between[names]},
        )
        runs.append(launch.runs[-1])
        mode = int(run.state[MODE])
    found = run.state.to_numpy()
    log = found[LOG : LOG + int(found[ROUNDS])]
    return replace(
        LaunchStats.total(runs, task=asked.program.name),
        stopped=bool(found[LIMITED]),
        filters=tuple("ballot" if entry & 2 else "online" for entry in log),
        directions=tuple("pull" if entry & 1 else "push" for entry in log),
        frontiers=tuple((log >> 2).tolist()),
    )
