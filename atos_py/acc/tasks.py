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
from typing import Any, NamedTuple

import numpy as np

from ..compile.codegen.introspect import reads_parameter
from ..compile.task import Task
from ..operators.filters import Filters, activate, add_to_bin, ballot, in_frontier, range_bounds, share_of_bin, take_bins
from ..operators.row_pull import row_fold, row_search
from .functions import Functions, functions_for

__all__ = [
    "AUTO",
    "DONE",
    "LIMITED",
    "LOG",
    "MODE",
    "PULL",
    "PUSH",
    "ROUNDS",
    "SCAN_BITS",
    "SCAN_LIST",
    "Run",
    "Tasks",
    "make_tasks",
]

PUSH, PULL, SCAN_LIST, SCAN_BITS, DONE = range(5)  # modes: what the tasks of a round do
AUTO = 2  # a direction, beside PUSH and PULL
MODE, ROUNDS, LIMITED, LOG = range(4)  # places in the state of a launch, which ends with an entry for each round


class Run(NamedTuple):
    """Arrays and numbers that the tasks share. Without rounds, those from `taken` on are not there."""

    rows: Any  # of the graph
    back: Any  # of its transpose
    metadata: Any
    taken: Any = None  # the metadata of each vertex when it was last in the frontier
    state: Any = None
    filters: Filters | None = None
    direction: int = PUSH
    many_edges: int = 0  # of a frontier from which on vertices pull, if there is a choice
    alone: int = 0  # in-edges that one thread looks at, of a vertex
    rounds: int = 0  # after which the launch ends
    stays: int = 0  # a bit for each mode that this kernel has tasks for


class Tasks(NamedTuple):
    """The tasks of a program, and the function between rounds for each set of them that one kernel has."""

    push: Task
    push_ordered: Task
    scan: Task
    pull: Task
    between: dict[tuple[str, ...], Callable[..., Any]]


def weight_of(weights, edge):  # type: ignore[no-untyped-def]
    """Return the weight of an edge, 1 without weights."""
    if weights is None:
        return 1
    return weights[edge]


def first_of(team, value):  # type: ignore[no-untyped-def]
    """Return what a team of one thread has."""
    return value


def is_pushing(state):  # type: ignore[no-untyped-def]
    """Whether vertices that are taken from the queue push, and are not dropped by a scan."""
    if state is None:
        return True
    return state[MODE] == PUSH


def remember(taken, v, found):  # type: ignore[no-untyped-def]
    """Note the metadata with which a vertex is taken."""
    if taken is not None:
        taken[v] = found


def next_mode(mode, most, count, edges, run):  # type: ignore[no-untyped-def]
    """Return what comes next, given what a round did, the fullest bin, and the vertices and edges of all bins."""
    if count == 0:
        return DONE
    if mode >= SCAN_LIST:
        return mode - SCAN_LIST  # PUSH or PULL
    if run.direction == PULL or (run.direction == AUTO and edges > run.many_edges):
        return SCAN_BITS
    return PUSH if mode == PUSH and most <= run.filters.threshold else SCAN_LIST


@functools.lru_cache(maxsize=256)
def make_tasks(functions: Functions, dtype: np.dtype[Any]) -> Tasks:
    """Return the tasks of a program for metadata of a type."""
    compute, active, wants, neutral, wide = functions_for(functions, dtype)
    combine = functions.combine
    merge, onto, change, by_all = combine.merge, combine.onto, combine.change, combine.by_all or first_of
    sign = -1 if combine.name == "MAX" else 1
    # What an update meets is read only if it matters. Where it does not, the neutral value loses to any update.
    reads_old = functions.wants is not None or combine.by_all is None or reads_parameter(compute, 2)
    read_old = (lambda metadata, u: metadata[u]) if reads_old else (lambda metadata, u: neutral)

    def out_edges(v, run, lists, *args):  # type: ignore[no-untyped-def]
        first = run.rows.indptr[v]
        found = run.metadata[v]
        if not is_pushing(run.state):
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

    def push(worker, v, i, first, found, run, lists, *args):  # type: ignore[no-untyped-def]
        u = run.rows.indices[first + i]
        is_active, _ = relax(run, u, first + i, found, *args)
        if is_active:
            activate(worker, u, run.rows.indptr, run.filters)

    def out_edges_if_current(item, run, lists, *args):  # type: ignore[no-untyped-def]
        first = run.rows.indptr[item.vertex]
        is_current = run.metadata[item.vertex] == item.value  # what changed it since has pushed an item of its own
        return run.rows.indptr[item.vertex + 1] - first if is_current else 0, first, item.value

    def push_ordered(worker, item, i, first, found, run, lists, *args):  # type: ignore[no-untyped-def]
        u = run.rows.indices[first + i]
        is_active, after = relax(run, u, first + i, found, *args)
        if is_active:
            worker.push((u, after), sign * after)

    def is_active(v, run, *args):  # type: ignore[no-untyped-def]
        return active(run.taken[v], run.metadata[v], *args)

    def take(v, run, *args):  # type: ignore[no-untyped-def]
        run.taken[v] = run.metadata[v]

    scan_range = ballot(is_active, take)

    def scan(worker, item, run, lists, *args):  # type: ignore[no-untyped-def]
        sets_bits = run.state[MODE] == SCAN_BITS
        scan_range(worker, item, sets_bits, run.metadata.size, run.rows.indptr, run.filters, lists, run, *args)

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
        """Apply what a vertex has pulled; return what it adds to a bin."""
        found = run.metadata[v]
        after = wide(onto(found, wide(update)))
        if after == found:
            return 0
        run.metadata[v] = after
        return share_of_bin(v, run.rows.indptr, run.filters.edges) if active(found, after, *args) else 0

    def settle_vote(v, edge, run, *args):  # type: ignore[no-untyped-def]
        return settle(v, update_along(v, edge, run, *args), run, *args)

    if combine.votes:
        pull_rows = row_search(may_change, is_sent, settle_vote)
    else:
        pull_rows = row_fold(may_change, update_if_sent, merge, neutral, by_all, settle)

    def pull(worker, item, run, lists, *args):  # type: ignore[no-untyped-def]
        first, end = range_bounds(item, run.metadata.size, run.filters)
        share = pull_rows(worker, first, end, run.alone, run.back.indptr, run, *args)
        add_to_bin(worker, item, share, run.filters)

    push.__name__ = push_ordered.__name__ = functions.name
    tasks = {"push": Task(push, out_edges), "scan": Task(scan), "pull": Task(pull)}
    kernels = [("push",), ("scan",), ("pull",), ("push", "scan"), ("pull", "scan"), ("push", "scan", "pull")]
    between = {kernel: make_between(tasks, kernel) for kernel in kernels}
    return Tasks(push_ordered=Task(push_ordered, out_edges_if_current), between=between, **tasks)


def make_between(tasks: dict[str, Task], kernel: tuple[str, ...]) -> Callable[..., Any]:
    """Return the function between rounds of a kernel that has some of the tasks, for which it pushes ranges."""
    scan, pull = tasks["scan"], tasks["pull"]

    def push_scans(worker, mode, ranges):  # type: ignore[no-untyped-def]
        if SCAN_LIST <= mode <= SCAN_BITS:
            for k in worker.split(ranges):
                worker.push(k, task=scan)

    def push_scans_and_pulls(worker, mode, ranges):  # type: ignore[no-untyped-def]
        push_scans(worker, mode, ranges)
        if mode == PULL:
            for k in worker.split(ranges):
                worker.push(k, task=pull)

    def push_nothing(worker, mode, ranges):  # type: ignore[no-untyped-def]
        pass

    push_ranges = push_nothing if len(kernel) == 1 else push_scans_and_pulls if "pull" in kernel else push_scans

    def between(worker, run, lists, *args):  # type: ignore[no-untyped-def]
        """Choose what comes next, and note it."""
        mode, rounds = run.state[MODE], run.state[ROUNDS]
        most, count, edges = take_bins(worker, run.filters)
        following = next_mode(mode, most, count, edges, run)
        is_limited = following != DONE and mode <= PULL and rounds >= run.rounds
        if is_limited:
            following = DONE
        if worker.rank == 0:
            run.state[MODE] = following
            if is_limited:
                run.state[LIMITED] = 1
            if following <= PULL:
                if LOG + rounds < run.state.size:
                    run.state[LOG + rounds] = count << 2 | (mode != PUSH) << 1 | following
                run.state[ROUNDS] = rounds + 1
        if is_limited or not run.stays >> following & 1:
            worker.stop()
        else:
            push_ranges(worker, following, run.filters.ranges)

    return between
