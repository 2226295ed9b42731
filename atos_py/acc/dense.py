"""Running a program with `apply`: in each round every vertex gathers the updates of all its in-edges.

They are read from one array and applied into another, which change places after the round. A launch has a few items, each of
which takes ranges of vertices from a counter until there are none, and pushes itself for the next round. The function between
rounds tests whether any vertex is active.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..algorithms.launch_sequence import LaunchSequence
from ..algorithms.pagerank.chebyshev_pull import HUB_DEGREE, plan_ranges
from ..arrays.array import asarray, empty, zeros
from ..compile.atomics import atomic_add
from ..compile.codegen.introspect import reads_parameter
from ..compile.task import Task
from ..operators.edge_map import gather
from ..runtime.queue import Queue
from ..runtime.stats import LaunchStats
from .frontier import Request, turned
from .functions import Functions, functions_for
from .tasks import weight_of

__all__ = ["run_dense"]

_ROUNDS, _LIMITED, _DONE = range(3)  # places in the state
_ITEMS = 64  # a multiprocessor


class _Run(NamedTuple):
    """Arrays and numbers that the tasks share."""

    back: Any  # the in-edges
    metadata: Any
    other: Any  # the metadata of every second round
    order: Any  # of the ranges
    taken: Any  # how many of them are
    num_active: Any  # vertices, in this round
    state: Any
    size: int  # vertices of a range
    alone: int  # in-edges of a vertex that one thread looks at
    rounds: int  # after which the launch ends
    is_stepped: int  # whether each round is a launch of its own


def take_range(worker, run):  # type: ignore[no-untyped-def]
    """Return a range that no other worker takes in this round, or -1; collective."""
    k = np.int64(-1)
    if worker.rank == 0:
        k = np.int64(atomic_add(run.taken, 0, 1))
    k = worker.max(k)
    return np.int64(run.order[k]) if k < run.order.size else np.int64(-1)


def between(worker, run, *args):  # type: ignore[no-untyped-def]
    """Stop if no vertex is active, or the rounds are over."""
    rounds, num_active = run.state[_ROUNDS], run.num_active[0]
    worker.sync()  # all threads have read them
    is_done = num_active == 0 or rounds >= run.rounds
    if worker.rank == 0:
        run.taken[0] = 0
        run.num_active[0] = 0
        run.state[_ROUNDS] = rounds + 1
        run.state[_LIMITED] = num_active != 0
        run.state[_DONE] = is_done
    if is_done or run.is_stepped:
        worker.stop()


@functools.lru_cache(maxsize=256)
def make_dense_task(functions: Functions, dtype: np.dtype[Any], zero: Any) -> Task:
    """Return the task of a program for metadata of a type, whose sums have the type of `zero`."""
    compute, active, _, _, wide = functions_for(functions, dtype)
    apply, one, unread, summed = functions.apply, type(zero)(1), wide(0), np.dtype(type(zero)).type
    m_u = (lambda v, source: source[v]) if reads_parameter(compute, 2) else (lambda v, source: unread)

    def update_along(v, u, edge, weights, source, target, *args):  # type: ignore[no-untyped-def]
        return summed(compute(source[u], weight_of(weights, edge), m_u(v, source), *args))

    def no_update(weights, source, target, *args):  # type: ignore[no-untyped-def]
        return zero

    def settle(v, degree, received, weights, source, target, *args):  # type: ignore[no-untyped-def]
        before = source[v]
        after = wide(apply(before, received, v, *args))  # type: ignore[misc]
        target[v] = after
        return (one if active(before, after, *args) else zero,)

    gather_range = gather(update_along, settle, no_update, zero, with_edge=True).body

    def pull(worker, item, run, *args):  # type: ignore[no-untyped-def]
        if worker.rank == 0:
            worker.push(item)
        is_odd = run.state[_ROUNDS] & 1 == 1
        source = run.metadata if is_odd else run.other
        target = run.other if is_odd else run.metadata
        rows = run.size, run.alone, run.back.indptr, run.back.indices, run.num_active, run.back.weights
        k = take_range(worker, run)
        while k >= 0:
            gather_range(worker, k, *rows, source, target, *args)
            k = take_range(worker, run)

    pull.__name__ = functions.name
    return Task(pull)


def run_dense(asked: Request) -> LaunchStats:
    """Run a program with `apply`, in one launch, or in one for each round without fusion."""
    graph, metadata, device = asked.graph, asked.metadata, asked.graph.device
    back = turned(graph)
    size, alone, order, suits = plan_ranges(back, np.flatnonzero(back.degrees() > HUB_DEGREE))
    zero = 0.0 if metadata.dtype.kind == "f" else np.uint64(0) if metadata.dtype == np.uint64 else 0
    run = _Run(
        back,
        metadata,
        empty(metadata.size, dtype=metadata.dtype, device=device),
        asarray(order.astype(np.uint32), device=device),
        zeros(1, dtype=np.int64, device=device),
        zeros(1, dtype=np.dtype(type(zero)), device=device),
        asarray(np.array([1, 0, 0]), device=device),
        size,
        alone,
        asked.rounds,
        int(asked.fuse == "none"),
    )
    task, items = (
        make_dense_task(asked.program, metadata.dtype, zero),
        np.arange(min(_ITEMS * device.processors, max(len(order), 1))),
    )
    launches = LaunchSequence(asked.program.name, Queue(4 * len(items), device=device), asked.options, asked.worker or suits)
    while not run.state[_DONE]:
        options: Any = {"barrier": True, "each_round": between}
        launches.launch(items, task, run, *asked.args, defaults={"fetch_size": 1}, overrides=options)
        items = items[:0]  # they have pushed themselves
    passed, is_limited = int(run.state[_ROUNDS]) - 1, bool(run.state[_LIMITED])
    if passed % 2:
        metadata[...] = run.other
    logs = {"filters": ("ballot",) * passed, "directions": ("pull",) * passed, "frontiers": (graph.num_vertices,) * passed}
    return replace(launches.total(), stopped=is_limited, **logs)  # type: ignore[arg-type]
