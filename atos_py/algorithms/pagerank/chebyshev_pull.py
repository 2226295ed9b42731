"""PageRank of undirected graphs: Chebyshev iteration, in whose rounds every vertex gathers from its neighbors (pull).

A plain round replaces y by f(y) = dP'y + (1 - d) v, where d is the damping, P a step along a random edge and v the teleport
distribution; it multiplies the error by dP'. The walk on an undirected graph is reversible, so the eigenvalues of dP' are real.
If they lie between -a and a, the Chebyshev semi-iterative method multiplies the error by ``a / (1 + sqrt(1 - a**2))`` a round,
its contraction factor. With a = d that always holds: the factor is 0.56 for a damping of 0.85, and 0.85 for plain rounds.

Where a graph mixes fast, so that a random walk comes close to its limit in a few steps, most of the error belongs to small
eigenvalues, and a smaller a is better. q is the contraction factor of the plain first round, which the second one measures.
Since q**2 is about the mean of the squared eigenvalues, weighted by the squares of the error's
components, eigenvalues beyond sqrt(q) have at most a part q of the weight, by Markov's inequality: so a = sqrt(q). Components
beyond a contract too, but slowly; where they come to matter, the method starts again with a = d.

What a vertex holds between rounds is its contribution, rank / degree, which each of its edges carries. A round computes f(y) in
float64, reads the graph once, has no atomic operation on a neighbor, and also measures a bound of the error of y, which holds
on undirected graphs (docs/algorithms/pagerank.md).

All rounds are one launch. Each of its items takes ranges of vertices from a counter, in the same order in each round, and
pushes itself for the next one; `end_round`, the function between rounds, measures the error, chooses the next step, and stops
the launch.

Source: Golub and Varga, "Chebyshev semi-iterative methods, successive overrelaxation iterative methods, and second order
Richardson iterative methods", Numerische Mathematik 3 (1961).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...arrays.array import Array, zeros
from ...arrays.record import first_words, places, read_record
from ...compile.cached_load import load_cached
from ...compile.task import task
from ...graph.gather_ranges import note_row
from ...graph.graph import Graph
from ...operators.edge_map import range_gather, row_sum
from ...operators.gather_rounds import GatherRanges, bounds_of, range_takers, take_range
from ...operators.long_rows import LongRows, gather_pieces
from ...operators.vertex_map import vertex_map, vertex_sums
from ...runtime.launch_options import LaunchOptions
from ..launch_sequence import LaunchSequence

__all__ = ["Iteration", "chebyshev_round", "end_round", "find_dangling", "solve"]

# Rounds in which the error has to fall by half; on undirected graphs it falls a hundredfold at a damping of 0.85.
_MAX_ROUNDS_PER_HALF = 10
_RATE_WINDOW = 4  # rounds over which the contraction factor is measured
_LEAST_GAIN = 0.99  # of the error, by a launch of rounds after which another one follows
_FAST_RATE = 0.5  # a first round of a smaller contraction factor is one of a graph that mixes fast

_NUM_ERRORS = 16


class IterationState(NamedTuple):
    """Words of the state of an iteration (`arrays.record`)."""

    omega: int = 1  # the step
    bound: int = 1  # a
    total: int = 1  # the sum of ranks in y
    next_total: int = 1  # and in f(y)
    error: int = 1  # of y
    is_met: int = 1  # whether the error is small enough
    errors: int = _NUM_ERRORS  # of some rounds


AT = places(IterationState)


class Iteration(NamedTuple):
    """Arrays and numbers of a Chebyshev iteration, the last argument of its task."""

    values: Any  # y in rounds of even number, and what comes after it in odd ones
    others: Any
    teleport: Array
    totals: Any  # of the round: the sum of f(y), its distance to y, and the sum of y
    state: Array
    teleport_weight: float
    damping: float
    tolerance: float
    is_stepped: int  # whether a launch is one round
    order: Any  # of the ranges of vertices and pieces
    taken: Any  # how many of them are, in this round
    long_rows: LongRows
    long_sums: Array  # what these have gathered in this round


def contribution(v, u, current, *rest):  # type: ignore[no-untyped-def]
    """Return what an edge carries."""
    return load_cached(current, u)


def no_contribution(current, *rest):  # type: ignore[no-untyped-def]
    """Return what no edge carries."""
    return current.dtype.type(0)


def extrapolate(previous, plain, omega):  # type: ignore[no-untyped-def]
    """Return the value of the next round, from that of the one before and that of a plain step."""
    return previous + omega * (plain - previous)


def next_value(v, degree, received, current, previous, teleport, teleport_weight, damping, omega):  # type: ignore[no-untyped-def]
    """Replace the previous contribution of v by the next one.

    Returns
    -------
    tuple
        The rank of v in f(y), its distance to the rank in y, and the rank in y.
    """
    rank = damping * received + teleport_weight * teleport[min(v, teleport.size - 1)]
    edges = np.float64(max(degree, 1))
    old_rank = current[v] * edges
    previous[v] = extrapolate(previous[v], rank / edges, omega)
    return rank, abs(rank - old_rank), old_rank


accumulate = row_sum(contribution, no_contribution)
gather_range = range_gather(accumulate, next_value, 0.0, count=3)
gather_piece, settle_long_rows = gather_pieces(accumulate, next_value, 0.0, count=3)


def sides_of_round(number, run):  # type: ignore[no-untyped-def]
    """Return the contributions of a round, and the array of those of the round before."""
    is_odd = number & 1 == 1
    return run.others if is_odd else run.values, run.values if is_odd else run.others


# With 48 registers rounds of road4900 take 4.5 ms instead of 5.2.
@task(max_registers={"cta": 48, "warp": (64, None)})
def chebyshev_round(worker, item, begins, thread_max_degree, indptr, indices, run):  # type: ignore[no-untyped-def]
    """Gather for ranges of vertices until all of this round are taken, and push the item again for the next round."""
    if worker.rank == 0:
        worker.push(item)
    sides = sides_of_round(worker.round, run)
    numbers = run.teleport, run.teleport_weight, run.damping, run.state[AT.omega]
    long_rows, totals = run.long_rows, run.totals
    while True:
        k = take_range(worker, run)
        if k < 0:
            break
        if k < long_rows.first_piece:
            bounds = bounds_of(begins, k)
            gather_range(worker, *bounds, thread_max_degree, long_rows.longest, indptr, indices, totals, *sides, *numbers)
        else:
            gather_piece(worker, k, long_rows, run.long_sums, indptr, indices, *sides, *numbers)


def end_round(worker, begins, thread_max_degree, indptr, indices, run):  # type: ignore[no-untyped-def]
    """Settle long rows, measure the error, choose the next step, and stop if the error is small enough or falls no more."""
    numbers = run.teleport, run.teleport_weight, run.damping, run.state[AT.omega]
    sides = sides_of_round(worker.round, run)
    choose_step(worker, run, settle_long_rows(worker, run.long_rows, run.long_sums, *sides, *numbers))


def choose_step(worker, run, own):  # type: ignore[no-untyped-def]
    """Measure the error and choose the next step; `own` are sums of this thread that `run.totals` lacks."""
    state, totals, count = run.state, run.totals, worker.round
    new_sum, change, old_sum = totals[0] + worker.sum(own[0]), totals[1] + worker.sum(own[1]), totals[2] + worker.sum(own[2])
    bound, omega = state[AT.bound], state[AT.omega]
    error = (change + abs(new_sum - old_sum)) / (1 - run.damping) / old_sum if old_sum > 0 else math.inf
    first = state[AT.errors]
    in_window = state[AT.errors + (count - _RATE_WINDOW) % _NUM_ERRORS]
    ten_before = state[AT.errors + (count - _MAX_ROUNDS_PER_HALF) % _NUM_ERRORS]
    # Measured of `current`, and so what is returned: the next y may be worse. Without the second condition the graph is not
    # undirected, the damping is almost 1, or rounding lets the error fall no further.
    ends = error <= run.tolerance
    stalls = not ends and count >= _MAX_ROUNDS_PER_HALF and not error < ten_before / 2
    starts_again = False
    if count == 1 and error < _FAST_RATE * first:
        bound = min(math.sqrt(error / first), run.damping)
    elif bound < run.damping and count > _RATE_WINDOW:
        # The contraction factor for a = d, in a window of rounds.
        safe = (run.damping / (1 + math.sqrt(1 - run.damping**2))) ** _RATE_WINDOW
        starts_again = error > safe * in_window
    worker.sync()  # all have read the state
    if worker.rank == 0:
        for k in range(3):
            totals[k] = 0.0
        run.taken[0] = 0
        state[AT.errors + count % _NUM_ERRORS] = error
        state[AT.total] = old_sum
        state[AT.next_total] = new_sum
        state[AT.error] = error
        state[AT.is_met] = 1.0 if ends else 0.0
        state[AT.bound] = run.damping if starts_again else bound
        state[AT.omega] = 1.0 if starts_again else 1 / (1 - bound**2 * (omega if omega != 1 else 2.0) / 4)
    if ends or stalls or run.is_stepped:
        worker.stop()


def first_state(damping: float) -> NDArray[np.float64]:
    """Return the state with which an iteration begins."""
    return first_words(IterationState, np.float64, omega=1.0, bound=damping)


def run_to_end(run_rounds: Callable[[int], tuple[IterationState, int]], goes_on: bool) -> tuple[IterationState, int]:
    """Run launches of rounds, one or (`goes_on`) as long as the error falls.

    A launch ends where the error falls slowly, as it does if the damping is almost 1, or if rounding lets it fall no further.

    Parameters
    ----------
    run_rounds : callable
        Runs rounds that begin with the contributions of a side, 0 or 1; returns their outcome, and how many there were. Sides
        change places after each round.

    Returns
    -------
    tuple
        The last outcome, and the side that it was measured of.
    """
    before, side = math.inf, 0
    while True:
        found, rounds = run_rounds(side)
        side = (side + rounds - 1) % 2
        if found.is_met or not (goes_on and found.error < _LEAST_GAIN * before):
            return found, side
        before = found.error


@partial(replace, max_registers={"cta": (48, 64, None)})
@vertex_map
def scale_by_degree(v, indptr, source, factor, target):  # type: ignore[no-untyped-def]
    """Turn a contribution into a rank, times a factor; rounded once."""
    target[v] = factor * (source[v] * np.float64(max(indptr[v + 1] - indptr[v], 1)))


def note_dangling(v, indptr, teleport, notes):  # type: ignore[no-untyped-def]
    """Note the row of v; return its part of the teleport distribution if it is dangling."""
    note_row(v, indptr, notes)
    return (teleport[min(v, teleport.size - 1)] if indptr[v] == indptr[v + 1] else 0.0,)


find_dangling = vertex_sums(note_dangling)


def solve(
    graph: Graph,
    launches: LaunchSequence,
    damping: float,
    teleport: Array,
    rank: Array,
    tolerance: float,
    *,
    plan: tuple[GatherRanges, LongRows],
    begin: Callable[[Array, float], None],
    any_scale: bool,
    undirected: bool,
) -> float | None:
    """Find ranks whose error is at most `tolerance`, if that comes about.

    Parameters
    ----------
    rank : Array
        The ranks that are found.
    plan : tuple
        What `plan_ranges` has returned.
    begin : callable
        ``begin(values, factor)`` sets the contributions of vertices to those to start from, times a factor: of ranks of sum
        about 1, or in any scale if `any_scale`.
    undirected : bool
        Whether the graph is. Otherwise the result is only a start for another method.

    Returns
    -------
    float or None
        None if the error stopped to fall. A bound of the error, if the graph is
        undirected; the ranks then sum to 1. Otherwise the number proves nothing, and the ranks have the scale of the fixed
        point of f, in which residuals are computed from ranks.
    """
    n, device = graph.num_vertices, graph.device
    if n == 0:
        return 0.0
    (begins, thread_max_degree, order, worker), long_rows = plan
    items = range_takers(order.size, device)
    how: dict[str, Any] = {"worker": "cta"} if worker == "cta" else {"worker": "warp", "defaults": {"fetch_size": 1}}

    def make_workspace() -> tuple[Array, ...]:
        sides = [zeros(n, dtype=rank.dtype, device=device) for _ in range(2)]
        taken = zeros(1, dtype=np.uint32, device=device)  # as also after each round
        return *sides, taken, zeros(long_rows.vertices.size, dtype=np.float64, device=device)  # as well

    *sides, taken, long_sums = launches.workspace(("chebyshev", rank.dtype), make_workspace)
    overrides: LaunchOptions = {"barrier": True, "each_round": end_round}

    def run_rounds(side: int, is_stepped: bool = False) -> tuple[IterationState, int]:
        """Run rounds, or one; return what they come to, and how many there were."""
        totals = launches.zeroed_totals()
        state = launches.record(IterationState, np.float64, omega=1.0, bound=damping)
        numbers = 1 - damping, damping, tolerance, int(is_stepped)
        both = sides[side], sides[1 - side]
        run = Iteration._make((*both, teleport, totals, state, *numbers, order, taken, long_rows, long_sums))
        arguments = begins, thread_max_degree, graph.indptr, graph.indices, run
        launches.launch(items, chebyshev_round, *arguments, overrides=overrides, **how)
        launches.queue.clear()
        return read_record(IterationState, state), launches.runs[-1].rounds

    begin(sides[0], 1.0)
    if any_scale:
        # Of the sum of y, f keeps what comes along edges; the rest has to be the teleport term of f, which is 1 - damping.
        found, _ = run_rounds(0, True)
        rest = found.total - found.next_total + 1 - damping
        if not (rest > 0 and found.total > 0):
            return None
        begin(sides[0], (1 - damping) / rest)
    found, last = run_to_end(run_rounds, goes_on=undirected)
    if not found.is_met:
        return None
    make_ranks(launches, graph, sides[last], 1 / (found.total or 1.0) if undirected else 1.0, rank)
    return found.error


def make_ranks(launches: LaunchSequence, graph: Graph, contributions: Array, factor: float, rank: Array) -> None:
    """Make ranks of contributions of vertices, times a factor."""
    launches.over_vertices(scale_by_degree, graph.num_vertices, graph.indptr, contributions, factor, rank)
