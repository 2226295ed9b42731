"""Tasks of a program with a frontier: pushing, pulling, scanning, and the function between two rounds.

*Push*: a vertex of the frontier, an item of the queue, sends an update along each of its out-edges. What that makes active
goes through the online filter. *Scan*: the ballot filter. A vertex is active if that is what the program says of its metadata
when it was last taken (`taken`), and now. What the online filter pushed in the round before is dropped. *Pull*: each vertex
that may change looks at its in-edges from vertices of the frontier, whose bits are set.

`next_mode` is the just-in-time control: which of these comes next.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..compile.codegen.introspect import reads_parameter
from ..compile.task import Task
from ..operators.filters import Filters, ballot, count_active, count_range, in_frontier, range_bounds, share, take_sums
from ..operators.row_pull import row_fold, row_search

if TYPE_CHECKING:
    from .program import Program

__all__ = ["AUTO", "DONE", "LIMITED", "LOG", "MODE", "PULL", "PUSH", "ROUNDS", "SCANS", "Run", "Tasks", "make_tasks"]

PUSH, PULL, SCAN_LIST, SCAN_BITS, DONE = range(5)  # modes: what the tasks of a round do
SCANS = 2  # a scan for pushing or pulling is so much more than that
AUTO = 2  # a direction, beside PUSH and PULL
MODE, ROUNDS, LIMITED, LOG = range(4)  # places in the state of a launch, which ends with an entry for each round


class Run(NamedTuple):
    """Arrays and numbers that the tasks share. Without rounds, the first three do."""

    rows: Any  # of the graph
    back: Any  # of its transpose
    metadata: Any
    state: Any = None
    taken: Any = None  # the metadata of each vertex when it was last in the frontier; None if there are no scans
    filters: Filters = Filters(0, 0)
    direction: int = PUSH
    many_edges: int = 0  # of a frontier from which on vertices pull, if there is a choice
    most_listed: int = 0  # vertices by the online filter, of which more are listed by a scan; if negative, none are
    alone: int = 0  # in-edges that one thread looks at, of a vertex
    rounds: int = 0  # after which the launch ends
    stays: int = 0  # a bit for each mode that this kernel has tasks for


class Tasks(NamedTuple):
    """The tasks of a program, those that do nothing in their places, and the function between rounds."""

    push: Task
    push_ordered: Task
    scan: Task
    pull: Task
    stubs: tuple[Task, ...]
    between: Callable[..., Any]


def weight_of(weights, edge):  # type: ignore[no-untyped-def]
    """Return the weight of an edge, 1 without weights."""
    if weights is None:
        return 1
    return weights[edge]


def is_dropped(state, taken):  # type: ignore[no-untyped-def]
    """Whether vertices that are taken from the queue do not push, since a scan finds them again."""
    if taken is None:
        return False
    return state[MODE] != PUSH


def remember(taken, v, found):  # type: ignore[no-untyped-def]
    """Note the metadata with which a vertex is taken."""
    if taken is not None:
        taken[v] = found


def next_mode(mode, count, edges, run):  # type: ignore[no-untyped-def]
    """Return what comes next, given what a round did, and the vertices and edges that it made active."""
    if count == 0 and (mode != PUSH or run.most_listed >= 0):
        return DONE
    if mode >= SCAN_LIST:
        return mode - SCANS
    if run.direction == PULL or (run.direction == AUTO and edges > run.many_edges):
        return SCAN_BITS
    return PUSH if mode == PUSH and count <= run.most_listed else SCAN_LIST


def functions_for(program: Program, dtype: np.dtype[Any]) -> tuple[Any, ...]:
    """Return the function `wants`, the neutral update and a wide type, for metadata of a type."""
    if dtype.kind == "f":
        wide, least, most = dtype.type, -np.inf, np.inf
    else:
        wide, least, most = np.uint64 if dtype == np.uint64 else np.int64, np.iinfo(dtype).min, np.iinfo(dtype).max
    unset, neutral = wide(most), program.combine.neutral
    if neutral is None:
        neutral = wide(least if program.combine.name == "MAX" else most)
    else:
        neutral = float(neutral) if dtype.kind == "f" else wide(neutral)  # sums in float64
    wants = program.wants or ((lambda m_u, *args: m_u == unset) if program.combine.votes else (lambda m_u, *args: True))
    return wants, neutral, wide


@functools.lru_cache(maxsize=256)
def make_tasks(program: Program, dtype: np.dtype[Any]) -> Tasks:
    """Return the tasks of a program for metadata of a type."""
    (wants, neutral, wide), combine = functions_for(program, dtype), program.combine
    compute, active, onto, change = program.compute, program.active, combine.onto, combine.change
    sign = -1 if combine.name == "MAX" else 1
    # What an update meets is read only if it matters. Where it does not, the neutral value loses to any update.
    reads_old = program.wants is not None or combine.by_all is None or reads_parameter(compute, 2)
    read_old = (lambda metadata, u: metadata[u]) if reads_old else (lambda metadata, u: neutral)

    def out_edges(v, run, *args):  # type: ignore[no-untyped-def]
        first, found = run.rows.indptr[v], run.metadata[v]
        if is_dropped(run.state, run.taken):
            return np.int64(0), first, found
        remember(run.taken, v, found)
        return np.int64(run.rows.indptr[v + 1] - first), first, found

    def relax(run, u, edge, found, *args):  # type: ignore[no-untyped-def]
        """Send an update along an edge; return whether it makes its end active, and the metadata there."""
        old = read_old(run.metadata, u)
        if not wants(old, *args):
            return False, wide(old)
        update = wide(compute(found, weight_of(run.rows.weights, edge), old, *args))
        before = change(run.metadata, u, old, update)
        after = wide(onto(before, update))
        return wants(before, *args) and active(before, after, *args), after

    def push(worker, v, i, first, found, run, *args):  # type: ignore[no-untyped-def]
        u = run.rows.indices[first + i]
        is_active, _ = relax(run, u, first + i, found, *args)
        if is_active:
            if run.most_listed >= 0:
                worker.push(u)
            count_active(u, run.rows.indptr, run.filters.sums)

    def out_edges_if_current(item, run, *args):  # type: ignore[no-untyped-def]
        first = run.rows.indptr[item.vertex]
        is_current = run.metadata[item.vertex] == item.value  # what changed it since has pushed an item of its own
        return run.rows.indptr[item.vertex + 1] - first if is_current else 0, first, item.value

    def push_ordered(worker, item, i, first, found, run, *args):  # type: ignore[no-untyped-def]
        is_active, after = relax(run, run.rows.indices[first + i], first + i, found, *args)
        if is_active:
            worker.push((run.rows.indices[first + i], after), sign * after)

    def is_active(v, run, *args):  # type: ignore[no-untyped-def]
        return active(run.taken[v], run.metadata[v], *args)

    def take(v, run, *args):  # type: ignore[no-untyped-def]
        run.taken[v] = run.metadata[v]

    scan_range = ballot(is_active, take)

    def scan(worker, item, run, *args):  # type: ignore[no-untyped-def]
        scan_range(worker, item, run.state[MODE] == SCAN_BITS, run.metadata.size, run.rows.indptr, run.filters, run, *args)

    def may_change(v, run, *args):  # type: ignore[no-untyped-def]
        return wants(run.metadata[v], *args)

    def is_sent(edge, run, *args):  # type: ignore[no-untyped-def]
        return in_frontier(run.back.indices[edge], run.filters.bits)

    def update_along(v, edge, run, *args):  # type: ignore[no-untyped-def]
        m_v, m_u = run.metadata[run.back.indices[edge]], read_old(run.metadata, v)  # u is v here: the edge is turned round
        return wide(compute(m_v, weight_of(run.back.weights, edge), m_u, *args))

    def update_if_sent(v, edge, run, *args):  # type: ignore[no-untyped-def]
        return update_along(v, edge, run, *args) if is_sent(edge, run) else neutral

    def settle(v, update, run, *args):  # type: ignore[no-untyped-def]
        """Apply what a vertex has pulled; return what it adds to the sums."""
        found = run.metadata[v]
        after = wide(onto(found, wide(update)))
        if after == found:
            return 0
        run.metadata[v] = after
        return share(v, run.rows.indptr) if active(found, after, *args) else 0

    def settle_vote(v, edge, run, *args):  # type: ignore[no-untyped-def]
        return settle(v, update_along(v, edge, run, *args), run, *args)

    if combine.votes:
        pull_rows = row_search(may_change, is_sent, settle_vote)
    else:
        by_all = combine.by_all or (lambda team, value: value)  # of one thread
        pull_rows = row_fold(may_change, update_if_sent, combine.merge, neutral, by_all, settle)

    def pull(worker, item, run, *args):  # type: ignore[no-untyped-def]
        first, end = range_bounds(item, run.metadata.size, run.filters)
        shares = pull_rows(worker, first, end, run.alone, run.back.indptr, run, *args)
        count_range(worker, item, shares, run.filters.sums)

    def push_ranges(worker, mode, ranges, taken):  # type: ignore[no-untyped-def]
        if taken is not None:
            for k in worker.split(ranges if PULL <= mode <= SCAN_BITS else 0):
                if mode == PULL:
                    worker.push(k, task=pull_task)
                else:
                    worker.push(k, task=scan_task)

    def between(worker, run, *args):  # type: ignore[no-untyped-def]
        """Choose what comes next, and note it."""
        mode, rounds = run.state[MODE], run.state[ROUNDS]
        worker.sync()  # all threads have read them
        count, edges = take_sums(worker, run.filters.sums)
        following = next_mode(mode, count, edges, run)
        is_limited = following <= PULL and rounds >= run.rounds
        if is_limited:
            following = DONE
        if worker.rank == 0:
            run.state[MODE], run.state[LIMITED] = following, is_limited
            if following <= PULL:
                if LOG + rounds < run.state.size:
                    run.state[LOG + rounds] = count << 2 | (mode != PUSH) << 1 | following
                run.state[ROUNDS] = rounds + 1
        if is_limited or not run.stays >> following & 1:
            worker.stop()
        else:
            push_ranges(worker, following, run.filters.ranges, run.taken)

    scan_task, pull_task = Task(scan), Task(pull)
    push.__name__ = push_ordered.__name__ = program.name
    stubs = tuple(make_stub(name) for name in (program.name, "scan", "pull"))
    return Tasks(Task(push, out_edges), Task(push_ordered, out_edges_if_current), scan_task, pull_task, stubs, between)


def make_stub(name: str) -> Task:
    """Return a task that does nothing, for a kernel that lacks the one of that name."""

    def stub(worker, item, *args):  # type: ignore[no-untyped-def]
        pass

    stub.__name__ = name
    return Task(stub)
