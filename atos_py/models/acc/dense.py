"""Running a program with `apply`: in each round every vertex gathers the updates of all its in-edges."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...algorithms.launch_sequence import LaunchSequence
from ...compile.task import Task
from ...graph.gather_ranges import find_ranges
from ...operators.edge_map import weight_of
from ...operators.gather_rounds import gather_rounds, make_gather_rounds, range_takers
from ...runtime.queue import Queue
from .runs import Request, turned
from .stats import ProgramStats, as_program_stats
from .tasks import suited_to

__all__ = ["make_dense_task", "run_dense"]


@functools.lru_cache(maxsize=256)
def make_dense_task(program: Any, dtype: np.dtype[Any], zero: Any) -> tuple[Task, Callable[..., Any]]:
    """Return the task of a program for metadata of a type, whose sums have the type of `zero`, and the one between rounds."""
    compute, active, apply, summed = program.compute, program.active, program.apply, np.dtype(type(zero)).type
    *_, wide = suited_to(program, dtype)

    def update_along(v, u, edge, source, weights, *args):  # type: ignore[no-untyped-def]
        return summed(compute(source[u], weight_of(weights, edge), source[v], *args))

    def settle(v, received, source, weights, *args):  # type: ignore[no-untyped-def]
        before = source[v]
        after = wide(apply(before, received, v, *args))
        return after, active(before, after, *args)

    return gather_rounds(update_along, settle, zero, compute)


def run_dense(asked: Request) -> ProgramStats:
    """Run a program with `apply`, in one launch, or in one for each round without fusion."""
    metadata, device, back = asked.metadata, asked.graph.device, turned(asked.graph)
    ranges, long_rows = find_ranges(back)
    zero = 0.0 if metadata.dtype.kind == "f" else np.uint64(0) if metadata.dtype == np.uint64 else 0
    numbers = asked.rounds, int(asked.fuse == "none")
    run = make_gather_rounds(back[:2], metadata, zero, ranges, long_rows, *numbers)
    task, end_round = make_dense_task(asked.program, metadata.dtype, zero)
    items = range_takers(ranges.order.size, device)
    queue, worker = Queue(4 * len(items), device=device), asked.worker or ranges.worker
    launches = LaunchSequence(asked.program.name, queue, asked.options, worker)
    rounds: Any = {"barrier": True, "each_round": end_round}
    while not run.is_done:
        launches.launch(items, task, run, back.weights, *asked.args, defaults={"fetch_size": 1}, overrides=rounds)
        items = items[:0]  # they have pushed themselves
    passed, is_limited = run.finish()
    logs = {"filters": ("ballot",) * passed, "directions": ("pull",) * passed, "frontiers": (metadata.size,) * passed}
    return as_program_stats(launches.total(), stopped=is_limited, **logs)
