"""PageRank of undirected graphs by rounds in which every vertex gathers from its neighbours, with Chebyshev's acceleration.

The walk on an undirected graph has real eigenvalues. If d times all of them lie between -a and a, the Chebyshev semi-iterative
method makes the error fall by ``a / (1 + sqrt(1 - a**2))`` a round. With a = d, the damping, that is never wrong, and 0.56 for
a damping of 0.85. But where a graph mixes fast, most of the error lies in directions of small eigenvalues, and the first round,
which is a plain one, makes it fall by much more, say to a part q: then a is the square root of q. What is outside falls too,
but slowly; where that comes to matter, a is d after all. Each round reads the graph once, and adds nothing atomically.

*The error.* A round computes f(y) = dP'y + (1 - d) v from y, as it is stored, in float64. With what vertices without out-edges
would hand on, which is such a multiple of v that the sum stays that of y, this is a contraction by d whose fixed point are the
ranks, so y / sum(y) is at most ``(|f(y) - y| + |sum(f(y)) - sum(y)|) / (1 - d) / sum(y)`` away from them in the 1-norm. This
is so if the neighbours that a vertex gathers from are those that hand on to it: on undirected graphs.

Source: Golub and Varga, "Chebyshev semi-iterative methods, successive overrelaxation iterative methods, and second order
Richardson iterative methods", Numerische Mathematik 3 (1961).
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...array import Array
from ...task import atomic_add, task
from ..spans import SPAN, span_of
from .tasks import LIGHT

if TYPE_CHECKING:
    from .solver import Solver

__all__ = ["gather", "gather_ranks", "scale"]

# Vertices of an item, by whether one thread is enough for each: from, to, and in between as many as give each multiprocessor so
# many items.
_SPANS = {True: (256, SPAN, 4), False: (32, 256, 64)}
_FEW = 512  # edges that a thread of a CTA gathers alone
_FETCH = 1  # such items that it takes at once, since some have far more edges than others
_ROUNDS = 10  # in which the error of an undirected graph falls a hundredfold, and has to fall by half
_WINDOW = 4  # rounds over which it is seen whether the error falls as it should
_FAST = 0.5  # a first round that leaves less of the error is one of a graph that mixes fast


@task
def scale(worker, span, graph, source, factor, divide, target):  # type: ignore[no-untyped-def]
    """Turn ranks, times a factor, into what each edge carries, or back; rounded once."""
    for v in span_of(worker, span, target.size):
        degree = np.float64(max(graph.indptr[v + 1] - graph.indptr[v], 1))
        target[v] = factor * (source[v] / degree if divide else source[v] * degree)


def carried(now, near, edge, end, step):  # type: ignore[no-untyped-def]
    """Sum up what every `step`-th edge carries: four at a time, since a GPU then has four loads under way at once."""
    total = 0.0
    none = now.dtype.type(0)
    while edge < end:
        a = now[near[edge]]
        b = now[near[edge + step]] if edge + step < end else none
        c = now[near[edge + 2 * step]] if edge + 2 * step < end else none
        d = now[near[edge + 3 * step]] if edge + 3 * step < end else none
        total += np.float64(a) + np.float64(b) + (np.float64(c) + np.float64(d))
        edge += 4 * step
    return total


@task
def gather(worker, span, length, light, graph, now, before, teleport, kept, damping, omega, totals):  # type: ignore[no-untyped-def]
    """Turn the values of the round before into those of the next; sum new ranks, how far they are from ranks now, and these.

    A vertex with more than `light` edges is for all threads of the worker. (One loop for both would take more registers.)
    """
    first = span * length
    last = min(first + length, now.size)
    p = 0.0
    q = 0.0
    size = 0.0
    heavy = False
    for v in worker.split(range(first, last)):
        begin = graph.indptr[v]
        end = graph.indptr[v + 1]
        if end - begin > light:
            heavy = True
        else:
            degree = np.float64(max(end - begin, 1))
            rank = damping * carried(now, graph.indices, begin, end, 1) + kept * teleport[min(v, teleport.size - 1)]
            p += rank
            q += now[v] * degree
            size += abs(rank - now[v] * degree)
            before[v] += omega * (rank / degree - before[v])
    if worker.any(heavy):
        for v in range(first, last):
            begin = graph.indptr[v]
            end = graph.indptr[v + 1]
            if end - begin > light:
                received = worker.sum(carried(now, graph.indices, begin + worker.rank, end, worker.size))
                if worker.rank == 0:
                    degree = np.float64(end - begin)
                    rank = damping * received + kept * teleport[min(v, teleport.size - 1)]
                    p += rank
                    q += now[v] * degree
                    size += abs(rank - now[v] * degree)
                    before[v] += omega * (rank / degree - before[v])
    p = worker.sum(p)
    q = worker.sum(q)
    size = worker.sum(size)
    if worker.rank == 0:
        atomic_add(totals, 0, p)
        atomic_add(totals, 1, size)
        atomic_add(totals, 2, q)


def gather_ranks(solver: Solver, rank: Array, goal: float, any_scale: bool) -> float | None:
    """Change ranks, which may be of any scale, until their error is at most `goal`, if that comes about.

    Returns
    -------
    float or None
        What the error is at most, if the graph is undirected; the ranks then sum to 1. Otherwise it proves nothing, and they
        have the scale in which residues are made from them.
    """
    if solver.n == 0:
        return 0.0
    damping = solver.damping
    now, before = solver.zeros(rank.dtype), solver.zeros(rank.dtype)
    least, most, items = _SPANS[solver.even]
    length = max(least, min(most, solver.n // (items * solver.device.processors)))
    light = max(LIGHT[solver.device.kind], _FEW if solver.even else 0)
    has_hub = np.zeros(-(-solver.n // length), np.bool_)
    has_hub[solver.hubs // length] = True
    spans = np.concatenate([np.flatnonzero(has_hub), np.flatnonzero(~has_hub)])  # what takes long is begun first
    by: dict[str, Any] = {"worker": "cta"} if solver.even else {"worker": "warp", "fetch_size": _FETCH}

    def round_with(omega: float) -> tuple[float, float, float]:
        solver.totals[:] = 0
        values = solver.graph, now, before, solver.teleport, 1 - damping, damping, omega, solver.totals
        solver.launch(spans, gather, length, light, *values, **by)
        total, size, given = map(float, solver.totals.to_numpy())
        return total, size, given

    solver.flat(scale, solver.graph, rank, 1.0, True, now)
    if any_scale:  # edges carry damping * (ranks that have edges): this much and the jumps have to add up to all ranks
        total, _, given = round_with(1.0)
        kept = given - total + 1 - damping
        if not (kept > 0 and given > 0):
            return None
        solver.flat(scale, solver.graph, rank, (1 - damping) / kept, True, now)
    errors = list[float]()
    bound, omega, rounds = damping, 1.0, 0  # of the eigenvalues; of this round; since omega began with 1
    safe = damping / (1 + math.sqrt(1 - damping**2))  # what a round leaves of the error if the bound is the damping
    for count in itertools.count(1):
        total, size, given = round_with(omega)
        errors.append((size + abs(total - given)) / (1 - damping) / given if given > 0 else math.inf)
        if errors[-1] <= goal:  # that of `now`; what follows reaches further, and may miss
            break
        now, before = before, now
        if count > _ROUNDS and not errors[-1] < errors[-1 - _ROUNDS] / 2:
            return None  # the graph is not undirected, or this is as far as rounding lets it fall
        rounds += 1
        if count == 2 and errors[1] < _FAST * errors[0]:
            bound = min(math.sqrt(errors[1] / errors[0]), damping)
        elif bound < damping and count > _WINDOW + 1 and errors[-1] > safe**_WINDOW * errors[-1 - _WINDOW]:
            bound, rounds = damping, 0
        omega = 1 / (1 - bound**2 * (omega / 4 if rounds > 1 else 0.5)) if rounds else 1.0
    solver.flat(scale, solver.graph, now, 1 / given if solver.undirected else 1.0, False, rank)
    return errors[-1]
