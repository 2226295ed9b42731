"""Frontiers in rounds: vertices whose values have changed change those of their neighbors, pushing or pulling, in one launch.

Each vertex has a value. It is *active* if that has changed since it was last *taken*, that is, since its neighbors were sent
it. Three tasks share a launch, and the function between its rounds, `end_frontier_round`, chooses which comes next:

*Push*: a vertex of the frontier, an item of the queue, sends an update along each of its out-edges. What that makes active
goes through the online filter, which may have bins for so many vertices: those that find their bin full are not pushed. *Scan*:
the ballot filter, which finds them all again. What the online filter pushed in the round before is dropped.
*Pull*: each vertex that may change looks at its in-edges from vertices of the frontier, whose bits are set: by a scan, or, if
every change makes active, by the round before, whatever it did. Then scans read bits too, and no values are noted. There are
two arrays of bits: a round sets those of the next frontier in one, whose bits it finds cleared, or clears itself. Those of its
own frontier are cleared by the vertices that push, or, after a pull, by the next scan or pull.

*Topology-driven* rounds are pulls in which all bits are set, so that every vertex looks along all of its in-edges. The value
before such a round is noted in `taken`: so a scan after it finds the vertices that it made active. Where all rounds are such, a
`store_task` may take the place of the pull: every vertex stores into its out-neighbors, without atomics.

`gather_rounds` has rounds in which all vertices gather, without a frontier.

Source: Liu and Huang, "SIMD-X: Programming and processing of graph algorithms on GPUs", USENIX ATC 2019.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...arrays.array import Array, zeros
from ...arrays.record import first_words
from ...compile.atomics import atomic_add, atomic_exch
from ...compile.spec import SPILLS_WITH_ROUNDS
from ...compile.task import Task
from ...operators.edge_map import THREAD_MAX_DEGREE
from ...operators.filters import (
    ONE_VERTEX,
    Filters,
    Fold,
    ballot,
    count_active,
    count_range,
    in_frontier,
    make_filters,
    open_ranges,
    over_ranges,
    pull_from_bits,
    set_bit,
    take_sums,
)
from ...operators.row_map import row_map
from .frontier_state import AT, DONE, PULL, PUSH, SCAN_BITS, SCAN_LIST, FrontierState
from .stub import make_stub
from .unrolled import unrolled

__all__ = [
    "BINS",
    "DONE",
    "PULL",
    "PUSH",
    "UNLIMITED",
    "Frontier",
    "end_frontier_round",
    "frontier_tasks",
    "make_frontier",
    "store_task",
]

_MOST_LOGGED = 1 << 16  # rounds
UNLIMITED = 1 << 62
BINS = 1024  # of the online filter
_SCAN_STUB, _PULL_STUB = make_stub("(scan)"), make_stub("(pull)")  # unlike any function of a user


class Frontier(NamedTuple):
    """Arrays and numbers that the tasks share."""

    rows: Any  # of the graph
    back: Any  # of its transpose
    values: Any
    taken: Any  # the value of each vertex when it was last taken; None if nobody asks
    state: Any = None  # None without rounds
    filters: Filters = Filters(0)
    many_edges: int = 0  # of a frontier, above which vertices pull
    alpha: int = 0  # or so many times as many as are still to be explored (Beamer et al., 2012); 0 if edges may be so again
    many_active: int = -1  # vertices of a frontier, above which a round is topology-driven; -1 if none is
    most_listed: int = 0  # vertices for which the online filter has room; if negative, it lists none
    rounds: int = 0  # after which the launch ends
    stays: int = 0  # a bit for each mode that this kernel has tasks for
    following: Any = None  # bits of every second frontier, which pushes and pulls set; None if scans do
    bins: Any = None  # vertices for each bin of the online filter; None if it has room for all, or none
    claimed: Any = None  # the round in which each vertex was pushed last; None if it may be pushed more than once in a round

    @property
    def scans(self) -> bool:
        """Whether there may be scans and pulls."""
        return self.taken is not None or self.following is not None

    @property
    def mode(self) -> int:
        """The mode of the next round, or DONE."""
        return int(self.state[AT.mode])

    def log(self) -> dict[str, Any]:
        """Return fields of `ProgramStats`: of each round what listed its active vertices, their direction, and their number."""
        found = self.state[: AT.log]
        entries = self.state[AT.log : AT.log + int(found[AT.rounds])]
        sweeps = self.many_active >= 0
        return {
            "stopped": bool(found[AT.limited]),
            "filters": tuple("none" if sweeps and entry & 1 else "ballot" if entry & 2 else "online" for entry in entries),
            "directions": tuple("pull" if entry & 1 and self.back is not None else "push" for entry in entries),
            "frontiers": tuple((entries >> 2).tolist()),
        }


def make_frontier(
    rows: Any,
    back: Any,
    values: Array,
    start: NDArray[Any] | range,
    is_all: bool,
    mode: int,
    fold: Fold | None,
    *limits: int,
    unique: bool = False,
    any_change_counts: bool = False,
    worker: str | None = None,
) -> Frontier:
    """Return what a run with rounds shares, whose first frontier is `start`, or all, in the mode PUSH or PULL.

    Without `back` no vertex pulls; topology-driven rounds then have a `store_task`. `fold` is that of `frontier_tasks`, and
    `limits` are the fields `many_edges` to `rounds`. With `unique`, the online filter lists a vertex once in a round. Where
    any change counts, it makes a vertex active, so that a round knows the next frontier.
    """
    n, device = values.size, values.device
    _, _, many_active, most_listed, rounds = limits
    begin = first_words(FrontierState, mode=mode, rounds=1, log=len(start) << 2 | is_all << 1 | mode)
    state = zeros(AT.log + min(rounds, _MOST_LOGGED), dtype=np.int64, device=device)
    state[: begin.size] = begin  # not all of it goes to the device, nor comes back
    is_swept = many_active >= 0  # in some rounds
    filters = make_filters(n, device, range(n) if is_swept else None if back is None else start, fold, worker)
    if back is None:
        filters = filters._replace(alone=THREAD_MAX_DEGREE[device.kind])
    following = None
    if any_change_counts and filters.bits is not None and not is_swept:
        following = zeros(filters.bits.size, dtype=np.uint32, device=device)
    notes = is_swept or (following is None and (back is not None or most_listed < UNLIMITED))
    taken = values.copy() if notes else None
    claimed = zeros(n, dtype=np.int32, device=device) if unique and most_listed >= 0 else None
    bins = zeros(BINS, dtype=np.int64, device=device) if 0 <= most_listed < UNLIMITED else None
    run = Frontier(rows, back, values, taken, state, filters, *limits)
    return run._replace(following=following, claimed=claimed, bins=bins)


def is_taken(v, found, bits, following, taken, state):  # type: ignore[no-untyped-def]
    """Whether a vertex of the queue pushes, and leaves the frontier. Otherwise it has pushed it, or a scan is to find it."""
    if taken is None and following is None:
        return True
    goes = state[AT.mode] == PUSH
    if goes:
        note(v, found, taken)
        clear_word(v, bits, following, state)
    return goes


def note(v, value, taken):  # type: ignore[no-untyped-def]
    """Note the value that a vertex has sent, if anybody asks. Should it have changed since, the next scan finds it."""
    if taken is not None:
        taken[v] = value  # race: the next scan finds a value that is not the last one


def claims(u, claimed, state):  # type: ignore[no-untyped-def]
    """Whether nobody has claimed a vertex in this round: it is claimed now. Without claims everybody may push it."""
    if claimed is None:
        return True
    stamp = np.int32(state[AT.rounds])  # no claim of an earlier round, so that none has to be taken back
    return claimed[u] != stamp and atomic_exch(claimed, u, stamp) != stamp


def has_room(u, bins, most_listed, sums):  # type: ignore[no-untyped-def]
    """Whether the online filter has room for a vertex in its bin, of which this takes a place.

    A bin that is too full already is left alone, unless it is the only count of what became active.
    """
    if bins is None:
        return True
    if sums is not None and bins[u % BINS] > most_listed // BINS:
        return False
    return atomic_add(bins, u % BINS, 1) < most_listed // BINS  # race: who reads a count before adds to it as well


def empty_bins(worker, bins, most_listed):  # type: ignore[no-untyped-def]
    """Return the sum of the bins, and whether all vertices had room, and begin anew; collective."""
    count, is_complete = np.int64(0), True
    if bins is not None:
        for k in worker.split(BINS):
            count += bins[k]
            is_complete = is_complete and bins[k] <= most_listed // BINS
            bins[k] = 0
        count = worker.sum(count)
        is_complete = worker.all(is_complete)
    return count, is_complete


def frontier_bits(bits, following, state):  # type: ignore[no-untyped-def]
    """Return the bits of the frontier."""
    if following is None:
        return bits
    return bits if state[AT.flipped] == 0 else following


def bits_to_set(bits, following, state):  # type: ignore[no-untyped-def]
    """Return the bits that a round sets, if it does."""
    if following is None:
        return bits
    return following if state[AT.flipped] == 0 else bits


def clear_word(v, bits, following, state):  # type: ignore[no-untyped-def]
    """Clear the bits around that of a vertex which pushes: a round that pushes reads none."""
    if following is not None:
        frontier_bits(bits, following, state)[v >> 5] = 0


def is_marked(v, bits, following):  # type: ignore[no-untyped-def]
    """Whether all rounds set bits, and that of a vertex of the frontier."""
    if following is None:
        return False
    return in_frontier(v, bits)


def has_bits(following):  # type: ignore[no-untyped-def]
    """Whether all rounds set bits."""
    return following is not None


def next_mode(mode, count, edges, is_complete, run):  # type: ignore[no-untyped-def]
    """Return what comes next, given what a round did, the vertices and edges that it made active, and whether it listed all."""
    if count == 0 and (mode != PUSH or run.most_listed >= 0):
        return DONE
    if mode >= SCAN_LIST:
        return mode - SCAN_LIST  # PUSH or PULL
    if run.many_active >= 0:
        if count > run.many_active:
            return PULL
    elif edges > run.many_edges or (run.alpha > 0 and run.alpha * edges > run.rows.indices.size - run.state[AT.explored]):
        return PULL if has_bits(run.following) else SCAN_BITS
    return PUSH if mode == PUSH and is_complete and run.most_listed >= 0 else SCAN_LIST


def push_takers(worker, mode, takers, taken, following):  # type: ignore[no-untyped-def]
    """Push the items of a scan or a pull, which take ranges of vertices; only where the launch has these tasks."""
    if taken is not None or following is not None:
        for k in worker.split(takers if mode != PUSH else 0):
            if mode == PULL:
                worker.push(k, task=_PULL_STUB)
            else:
                worker.push(k, task=_SCAN_STUB)


def note_frontier(worker, mode, edges, sums, state):  # type: ignore[no-untyped-def]
    """Note how many edges are explored and which bits are those of the frontier, if rounds count; collective."""
    if sums is not None:
        if mode <= PULL and worker.rank == 0:
            state[AT.explored] += edges
            state[AT.flipped] ^= 1
        worker.sync()


def fit_ranges(worker, n, filters, taken, following):  # type: ignore[no-untyped-def]
    """Return the number of items that take ranges in the next round, if there may be some; collective."""
    if taken is None and following is None:
        return 0
    return open_ranges(worker, n, filters)


def end_frontier_round(worker, run, *args):  # type: ignore[no-untyped-def]
    """Choose what comes next, and note it."""
    mode, rounds = run.state[AT.mode], run.state[AT.rounds]
    worker.sync()  # all threads have read them
    count, edges = take_sums(worker, run.filters.sums)
    note_frontier(worker, mode, edges, run.filters.sums, run.state)
    listed, is_complete = empty_bins(worker, run.bins, run.most_listed)
    if run.bins is not None and run.filters.sums is None and mode == PUSH:
        count = listed
    following = next_mode(mode, count, edges, is_complete, run)
    is_limited = following <= PULL and rounds >= run.rounds
    takers = fit_ranges(worker, run.values.size, run.filters, run.taken, run.following)
    if worker.rank == 0:
        run.state[AT.mode] = DONE if is_limited else following
        run.state[AT.limited] = is_limited
        if following <= PULL and not is_limited:
            run.state[AT.rounds] = rounds + 1
            if AT.log + rounds < run.state.size:
                run.state[AT.log + rounds] = count << 2 | (mode != PUSH) << 1 | following
    if is_limited or not run.stays >> following & 1:
        worker.stop()
    elif following != DONE:
        push_takers(worker, following, takers, run.taken, run.following)


def _vertex_if(is_counted):  # type: ignore[no-untyped-def]
    """Return what a vertex without edges adds to the sums, if it is counted."""
    return np.int64(ONE_VERTEX) if is_counted else np.int64(0)


def frontier_tasks(
    name: str,
    relax: Callable[..., Any],
    term: Callable[..., Any],
    settle: Callable[..., Any],
    active: Callable[..., Any],
    wants: Callable[..., Any],
    fold: Fold | None,
    priority: Callable[..., Any] = lambda after: None,
    levels: int = 1,
    with_values: bool = False,
) -> tuple[list[Task], list[Task]]:
    """Return the tasks of a frontier, which are push, scan and pull, and those that do nothing in their places.

    Push calls ``relax(u, edge, sent, run, *args)`` for each edge to u of a vertex with the value `sent`, which returns whether
    u is active now, and its value; ``priority(value)`` is that of the push. It goes on by itself for so many `levels`
    (`unrolled`). Pull folds ``term(v, edge, run, *args)`` of the in-edges of v from the frontier, where
    ``wants(value, *args)``, and ``settle(found, number, *args)`` returns the same two things, `found` being the value of v.
    Without `fold` it takes one such edge. ``active(before, after, *args)`` says so of two values. The tasks are launched with
    arguments ``(run, *args)``, `run` being a `Frontier`.

    With values, for pushes without rounds where every change makes active, an item is a record of a vertex and its value. One
    whose vertex has changed since is skipped: who changed it has pushed it again. So only the last value is sent.
    """

    def out_edges(v, run, *args):  # type: ignore[no-untyped-def]
        first, found = run.rows.indptr[v], run.values[v]
        goes = is_taken(v, found, run.filters.bits, run.following, run.taken, run.state)
        length = run.rows.indptr[v + 1] - first if goes else 0
        return np.int64(length), first, found

    def out_edges_of_record(item, run, *args):  # type: ignore[no-untyped-def]
        v = item.vertex
        first = run.rows.indptr[v]
        length = run.rows.indptr[v + 1] - first if item.value == run.values[v] else 0
        return np.int64(length), first, item.value

    def list_vertex(worker, u, after, run, *args):  # type: ignore[no-untyped-def]
        if claims(u, run.claimed, run.state):
            if run.most_listed >= 0 and has_room(u, run.bins, run.most_listed, run.filters.sums):
                worker.push(u, priority(after))
            set_bit(u, bits_to_set(run.filters.bits, run.following, run.state), run.following)
            count_active(u, run.rows.indptr, run.filters.sums)

    def push_record(worker, u, after, run, *args):  # type: ignore[no-untyped-def]
        worker.push((u, after), priority(after))

    def take_followed(u, value, run, *args):  # type: ignore[no-untyped-def]
        note(u, value, run.taken)

    relax_on = unrolled(relax, take_followed, push_record if with_values else list_vertex, levels)

    def push(worker, v, i, first, found, run, *args):  # type: ignore[no-untyped-def]
        relax_on(worker, first + i, found, run.rows, run, *args)

    def is_changed(v, taken, values, *args):  # type: ignore[no-untyped-def]
        if taken is None:
            return False
        return active(taken[v], values[v], *args)

    def is_active(v, bits, run, *args):  # type: ignore[no-untyped-def]
        return is_marked(v, bits, run.following) or is_changed(v, run.taken, run.values, *args)

    def take(v, bits, run, *args):  # type: ignore[no-untyped-def]
        note(v, run.values[v], run.taken)

    scan_range = ballot(is_active, take)

    def scan(worker, item, run, *args):  # type: ignore[no-untyped-def]
        sets_bits, clears = run.state[AT.mode] == SCAN_BITS, run.following
        bits = frontier_bits(run.filters.bits, clears, run.state)
        stale = bits_to_set(run.filters.bits, clears, run.state)  # after a pull
        scan_range(worker, item, sets_bits, run.values.size, run.rows.indptr, run.filters, bits, stale, clears, run, *args)

    def may_change(v, run, *args):  # type: ignore[no-untyped-def]
        return wants(run.values[v], *args)

    def settle_vertex(v, number, run, *args):  # type: ignore[no-untyped-def]
        found = run.values[v]
        is_active_now, after = settle(found, number, *args)
        if run.many_active >= 0:
            note(v, found, run.taken)
        if after != found:
            run.values[v] = after  # race: who reads the value before hears of the new one as well
        return is_active_now

    pull_range = pull_from_bits(may_change, term, settle_vertex, fold)

    def pull(worker, item, run, *args):  # type: ignore[no-untyped-def]
        bits = frontier_bits(run.filters.bits, run.following, run.state)
        following = bits_to_set(run.filters.bits, run.following, run.state)
        pull_range(worker, item, run.back, run.rows.indptr, run.filters, bits, following, run.following, run, *args)

    push.__name__, scan.__name__, pull.__name__ = name, _SCAN_STUB.name, _PULL_STUB.name
    length_of = out_edges_of_record if with_values else out_edges
    tasks = [
        Task(push, length_of, spills=SPILLS_WITH_ROUNDS),
        *(Task(body, spills=SPILLS_WITH_ROUNDS) for body in (scan, pull)),
    ]
    return tasks, [make_stub(name), _SCAN_STUB, _PULL_STUB]


def store_task(relax: Callable[..., Any], levels: int = 1) -> Task:
    """Return the task by which all vertices change their out-neighbors, in the place of the pull of `frontier_tasks`.

    ``relax(u, edge, sent, run, *args)`` is as there, but stores. A store may undo a better one of the same round by another
    thread. That does no harm if values only ever get better, until none does, and every vertex sends again in the next round:
    so all rounds have to be topology-driven. A vertex is counted if it has changed a neighbor. With `levels`, a thread goes on
    by itself (`unrolled`), and leaves what is further to the next round.
    """

    def leave(*args):  # type: ignore[no-untyped-def]
        pass

    relax_on = unrolled(relax, leave, leave, levels)

    def send(worker, v, edge, last, step, run, *args):  # type: ignore[no-untyped-def]
        sent, has_changed = run.values[v], False
        while edge < last:
            has_changed |= relax_on(worker, edge, sent, run.rows, run, *args)
            edge += step
        return has_changed

    def send_row(v, edge, last, run, *args):  # type: ignore[no-untyped-def]
        return _vertex_if(send(None, v, np.int64(edge), last, 1, run, *args))

    def send_row_by_all(team, v, edge, last, run, *args):  # type: ignore[no-untyped-def]
        has_changed = team.any(send(None, v, np.int64(edge) + team.rank, last, team.size, run, *args))
        return _vertex_if(has_changed and team.rank == 0)

    send_all = over_ranges(row_map(send_row, send_row_by_all))

    def store(worker, item, run, *args):  # type: ignore[no-untyped-def]
        shares = send_all(worker, item, run.values.size, run.filters, run.filters.alone, run.rows.indptr, run, *args)
        count_range(worker, item, shares, run.filters.sums)

    store.__name__ = _PULL_STUB.name
    return Task(store, spills=SPILLS_WITH_ROUNDS)
