"""Tasks of a program with a frontier: pushing, pulling, scanning, and the function between two rounds.

*Push*: a vertex of the frontier, an item of the queue, sends an update along each of its out-edges. What that makes active
goes through the online filter. *Scan*: the ballot filter. A vertex is active if that is what the program says of its metadata
when it was last taken (`taken`), and now. What the online filter pushed in the round before is dropped. *Pull*: each vertex
that may change looks at its in-edges from vertices of the frontier, whose bits are set.

`next_mode` is the just-in-time control: which of these comes next.

*Topology-driven* rounds are pulls in which all bits are set, so that every vertex looks along all of its in-edges. The metadata
before such a round is noted in `taken`: so a scan after it finds the vertices that it made active.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from ..compile.codegen.introspect import reads_parameter
from ..compile.task import Task
from ..operators.edge_map import weight_of
from ..operators.filters import Filters, Fold, ballot, count_active, pull_from_bits, take_sums
from ..operators.stub import make_stub

__all__ = ["DONE", "LIMITED", "LOG", "MODE", "PULL", "PUSH", "ROUNDS", "Run", "between", "make_tasks", "suited_to"]

PUSH, PULL, SCAN_LIST, SCAN_BITS, DONE = range(5)  # modes: what the tasks of a round do; a scan comes before what is 2 less
MODE, ROUNDS, LIMITED, LOG = range(4)  # places in the state of a launch, which ends with an entry for each round


class Run(NamedTuple):
    """Arrays and numbers that the tasks share."""

    rows: Any  # of the graph
    back: Any  # of its transpose
    metadata: Any
    taken: Any  # the metadata of each vertex when it was last taken; None if nobody asks
    state: Any = None  # None without rounds
    filters: Filters = Filters(0, 0)
    many_edges: int = 0  # of a frontier, above which vertices pull
    many_active: int = -1  # vertices of a frontier, above which a round is topology-driven; -1 if none is
    most_listed: int = 0  # vertices by the online filter, of which more are listed by a scan; if negative, none are
    rounds: int = 0  # after which the launch ends
    stays: int = 0  # a bit for each mode that this kernel has tasks for


SCAN_STUB, PULL_STUB = make_stub("(scan)"), make_stub("(pull)")  # unlike any function of a user


def is_taken(v, found, taken, state):  # type: ignore[no-untyped-def]
    """Whether a vertex of the queue pushes; its metadata is noted then. Otherwise it has pushed it, or a scan is to find it."""
    if taken is None:
        return True
    goes = taken[v] != found if state is None else state[MODE] == PUSH
    if goes:
        taken[v] = found
    return goes


def next_mode(mode, count, edges, run):  # type: ignore[no-untyped-def]
    """Return what comes next, given what a round did, and the vertices and edges that it made active."""
    if count == 0 and (mode != PUSH or run.most_listed >= 0):
        return DONE
    if mode >= SCAN_LIST:
        return mode - SCAN_LIST  # PUSH or PULL
    if run.many_active >= 0:
        if count > run.many_active:
            return PULL
    elif edges > run.many_edges:
        return SCAN_BITS
    return PUSH if mode == PUSH and count <= run.most_listed else SCAN_LIST


def push_ranges(worker, mode, ranges, taken):  # type: ignore[no-untyped-def]
    """Push the ranges of vertices that a scan or a pull takes; only where the launch has these tasks."""
    if taken is not None:
        for k in worker.split(ranges if mode != PUSH else 0):
            if mode == PULL:
                worker.push(k, task=PULL_STUB)
            else:
                worker.push(k, task=SCAN_STUB)


def between(worker, run, *args):  # type: ignore[no-untyped-def]
    """Choose what comes next, and note it."""
    mode, rounds = run.state[MODE], run.state[ROUNDS]
    worker.sync()  # all threads have read them
    count, edges = take_sums(worker, run.filters.sums)
    following = next_mode(mode, count, edges, run)
    is_limited = following <= PULL and rounds >= run.rounds
    if worker.rank == 0:
        run.state[MODE] = DONE if is_limited else following
        run.state[LIMITED] = is_limited
        if following <= PULL and not is_limited:
            run.state[ROUNDS] = rounds + 1
            if LOG + rounds < run.state.size:
                run.state[LOG + rounds] = count << 2 | (mode != PUSH) << 1 | following
    if is_limited or not run.stays >> following & 1:
        worker.stop()
    elif following != DONE:
        push_ranges(worker, following, run.filters.ranges, run.taken)


def suited_to(program: Any, dtype: np.dtype[Any]) -> tuple[Any, Any, Any]:
    """Return the function `wants` of a program, the neutral update and a wide type, for metadata of a type."""
    is_float, combine = dtype.kind == "f", program.combine
    wide: Any = dtype.type if is_float else np.uint64 if dtype == np.uint64 else np.int64
    least, most = (-np.inf, np.inf) if is_float else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    unset, kind = wide(most), float if is_float and not combine.idempotent else wide  # sums in float64
    wants = (lambda m_u, *args: m_u == unset) if combine.votes else (lambda m_u, *args: True)
    return program.wants or wants, kind(min(max(combine.neutral, least), most)), wide


@functools.lru_cache(maxsize=256)
def make_tasks(program: Any, dtype: np.dtype[Any], is_ordered: bool = False) -> tuple[list[Task], list[Task], Fold | None]:
    """Return the tasks of a program for metadata of a type, those that do nothing in their places, and how updates are folded.

    They are push, scan and pull. If `is_ordered`, vertices of low metadata go first.
    """
    compute, active, combine = program.compute, program.active, program.combine
    wants, neutral, wide = suited_to(program, dtype)
    onto, change, sign = combine.onto, combine.change, -1 if combine.name == "MAX" else 1
    priority = (lambda after: sign * after) if is_ordered else (lambda after: None)
    # What an update meets is read only if it matters. Where it does not, the neutral value loses to any update.
    reads_old = program.wants is not None or combine.by_all is None or reads_parameter(compute, 2)
    read_old = (lambda metadata, u: metadata[u]) if reads_old else (lambda metadata, u: neutral)

    def out_edges(v, run, *args):  # type: ignore[no-untyped-def]
        first, found = run.rows.indptr[v], run.metadata[v]
        length = run.rows.indptr[v + 1] - first if is_taken(v, found, run.taken, run.state) else 0
        return np.int64(length), first, found

    def push(worker, v, i, first, found, run, *args):  # type: ignore[no-untyped-def]
        u = run.rows.indices[first + i]
        old = read_old(run.metadata, u)
        if wants(old, *args):
            update = wide(compute(found, weight_of(run.rows.weights, first + i), old, *args))
            before = change(run.metadata, u, old, update)
            after = wide(onto(before, update))
            if after != before and active(before, after, *args):
                if run.most_listed >= 0:
                    worker.push(u, priority(after))
                count_active(u, run.rows.indptr, run.filters.sums)

    def is_active(v, run, *args):  # type: ignore[no-untyped-def]
        return active(run.taken[v], run.metadata[v], *args)

    def take(v, run, *args):  # type: ignore[no-untyped-def]
        run.taken[v] = run.metadata[v]

    scan_range = ballot(is_active, take)

    def scan(worker, item, run, *args):  # type: ignore[no-untyped-def]
        scan_range(worker, item, run.state[MODE] == SCAN_BITS, run.metadata.size, run.rows.indptr, run.filters, run, *args)

    def may_change(v, run, *args):  # type: ignore[no-untyped-def]
        return wants(run.metadata[v], *args)

    def update_along(v, edge, run, *args):  # type: ignore[no-untyped-def]
        m_v, m_u = run.metadata[run.back.indices[edge]], read_old(run.metadata, v)  # u is v here: the edge is turned round
        return wide(compute(m_v, weight_of(run.back.weights, edge), m_u, *args))

    def settle(v, update, run, *args):  # type: ignore[no-untyped-def]
        """Apply what a vertex has pulled; return whether that makes it active."""
        found = run.metadata[v]
        after = wide(onto(found, wide(update)))
        if run.many_active >= 0:
            run.taken[v] = found
        if after != found:
            run.metadata[v] = after
        return after != found and active(found, after, *args)

    fold = None if combine.votes else Fold(combine.merge, neutral, combine.by_all)
    pull_range = pull_from_bits(may_change, update_along, settle, fold)

    def pull(worker, item, run, *args):  # type: ignore[no-untyped-def]
        pull_range(worker, item, run.back, run.rows.indptr, run.filters, run, *args)

    push.__name__, scan.__name__, pull.__name__ = program.name, SCAN_STUB.name, PULL_STUB.name
    return [Task(push, out_edges), Task(scan), Task(pull)], [make_stub(program.name), SCAN_STUB, PULL_STUB], fold
