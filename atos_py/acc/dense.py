"""Running a program with `apply`: in each round every vertex gathers the updates of all its in-edges."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np

from ..algorithms.launch_sequence import LaunchSequence
from ..algorithms.pagerank.chebyshev_pull import HUB_DEGREE, plan_ranges
from ..compile.codegen.introspect import reads_parameter
from ..compile.task import Task
from ..operators.edge_map import weight_of
from ..operators.gather_rounds import end_round, gather_rounds, make_gather_rounds
from ..operators.vertex_map import named
from ..runtime.queue import Queue
from ..runtime.stats import LaunchStats
from .frontier import Request, turned
from .functions import Functions

__all__ = ["make_dense_task", "run_dense"]

_ITEMS = 64  # a multiprocessor


@functools.lru_cache(maxsize=256)
def make_dense_task(program: Functions, dtype: np.dtype[Any], zero: Any) -> Task:
    """Return the task of a program for metadata of a type, whose sums have the type of `zero`."""
    compute, active, apply = program.compute, program.active, program.apply
    *_, wide = program.suited_to(dtype)
    unread, summed = wide(0), np.dtype(type(zero)).type
    m_u = (lambda v, source: source[v]) if reads_parameter(compute, 2) else (lambda v, source: unread)

    def update_along(v, u, edge, source, weights, *args):  # type: ignore[no-untyped-def]
        return summed(compute(source[u], weight_of(weights, edge), m_u(v, source), *args))

    def settle(v, received, source, weights, *args):  # type: ignore[no-untyped-def]
        before = source[v]
        after = wide(apply(before, received, v, *args))
        return after, active(before, after, *args)

    task = gather_rounds(update_along, settle, zero)
    named(task.body, compute)
    return task


def run_dense(asked: Request) -> LaunchStats:
    """Run a program with `apply`, in one launch, or in one for each round without fusion."""
    metadata, device, back = asked.metadata, asked.graph.device, turned(asked.graph)
    size, alone, order, worker = plan_ranges(back, np.flatnonzero(back.degrees() > HUB_DEGREE))
    zero = 0.0 if metadata.dtype.kind == "f" else np.uint64(0) if metadata.dtype == np.uint64 else 0
    numbers = size, alone, asked.rounds, int(asked.fuse == "none")
    run = make_gather_rounds((back.indptr, back.indices), metadata, zero, order, *numbers)
    task = make_dense_task(asked.program, metadata.dtype, zero)
    items = np.arange(min(_ITEMS * device.processors, max(len(order), 1)))
    queue = Queue(4 * len(items), device=device)
    launches = LaunchSequence(asked.program.name, queue, asked.options, asked.worker or worker)
    rounds: Any = {"barrier": True, "each_round": end_round}
    while not run.is_done:
        launches.launch(items, task, run, back.weights, *asked.args, defaults={"fetch_size": 1}, overrides=rounds)
        items = items[:0]  # they have pushed themselves
    passed, is_limited = run.finish()
    logs = {"filters": ("ballot",) * passed, "directions": ("pull",) * passed, "frontiers": (metadata.size,) * passed}
    return replace(launches.total(), stopped=is_limited, **logs)  # type: ignore[arg-type]
