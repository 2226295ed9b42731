"""PageRank of undirected graphs by rounds in which every vertex gathers from its neighbours, with Chebyshev's acceleration.

The walk on an undirected graph has real eigenvalues between -1 and 1, so that damping bounds those of the iteration. Knowing
no more than that, the Chebyshev semi-iterative method makes the error fall by ``damping / (1 + sqrt(1 - damping**2))`` a round,
0.56 where plain rounds have 0.85. Each round reads the graph once, in order, and adds nothing atomically.

Source: Golub and Varga, "Chebyshev semi-iterative methods, successive overrelaxation iterative methods, and second order
Richardson iterative methods", Numerische Mathematik 3 (1961).
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

from ...array import Array
from ...task import atomic_add, task
from .passes import span_of

if TYPE_CHECKING:
    from .solver import Solver

__all__ = ["gather", "gather_ranks", "scale"]

_ROUNDS = 10  # in which the error of an undirected graph falls a hundredfold, and has to fall by half


@task
def scale(worker, span, graph, source, factor, divide, target):  # type: ignore[no-untyped-def]
    """Turn ranks, times a factor, into what each edge carries, or back."""
    number = target.dtype.type
    for v in span_of(worker, span, target.size):
        degree = number(max(graph.indptr[v + 1] - graph.indptr[v], 1))
        target[v] = factor * (source[v] / degree if divide else source[v] * degree)


@task
def gather(worker, span, graph, now, before, teleport, kept, damping, omega, totals):  # type: ignore[no-untyped-def]
    """Turn the values of the round before into those of the next; sum new ranks, the sizes of residues, and ranks now."""
    p = 0.0
    q = 0.0
    size = 0.0
    near = graph.indices
    none = damping * 0
    for v in span_of(worker, span, now.size):
        begin = graph.indptr[v]
        end = graph.indptr[v + 1]
        received = none
        edge = begin
        while edge < end:  # four at a time, since a GPU then has four loads under way at once
            a = now[near[edge]]
            b = now[near[edge + 1]] if edge + 1 < end else none
            c = now[near[edge + 2]] if edge + 2 < end else none
            d = now[near[edge + 3]] if edge + 3 < end else none
            received += a + b + (c + d)
            edge += 4
        degree = max(end - begin, 1)
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


def gather_ranks(solver: Solver, rank: Array, goal: float, any_scale: bool) -> bool:
    """Change ranks, which may be of any scale, until their error is at most `goal`; whether that came about."""
    number, damping = rank.dtype.type, solver.damping
    now, before = solver.zeros(rank.dtype), solver.zeros(rank.dtype)
    constants = solver.teleport, number(1 - damping), number(damping)
    solver.flat(scale, solver.graph, rank, number(1), True, now)
    if any_scale:  # edges carry damping * (ranks that have edges): this much and the jumps have to add up to all ranks
        total, _, given = solver.flat(gather, solver.graph, now, before, *constants, number(1), solver.totals)
        kept = given - total + 1 - damping
        if not (kept > 0 and given > 0):
            return False
        solver.flat(scale, solver.graph, rank, number((1 - damping) / kept), True, now)
    omega, last = 1.0, math.inf
    for count in itertools.count():
        total, size, _ = solver.flat(gather, solver.graph, now, before, *constants, number(omega), solver.totals)
        if damping * size <= goal * (1 - damping) * total:  # which is about `now`; what follows reaches further, and may miss
            break
        now, before = before, now
        if count % _ROUNDS == 0:
            if not size < last / 2:  # the graph is not undirected, or this is as far as rounding lets it fall
                return False
            last = size
        omega = 1 / (1 - damping**2 * (omega / 4 if count else 0.5))
    solver.flat(scale, solver.graph, now, number(1), False, rank)
    return True
