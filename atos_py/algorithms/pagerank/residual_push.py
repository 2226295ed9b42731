"""PageRank by pushing residuals: every vertex passes on, in any order, what it has received and not passed on yet (push).

A vertex has a rank p and a residual r. A task moves the residual to the rank, and adds damping * r / degree to the residual of
every neighbor, so that at any time, in any order of tasks, r = (1 - d) t + d P'p - p, where d is the damping, P the transition
matrix of a random walk, P' its transpose, and t the teleport distribution. Where r is 0, the ranks are exact; otherwise
residuals tell how wrong they are (docs/algorithms/pagerank.md).

There are two methods. *sweep*: each launch checks every vertex, and passes on residuals above a limit that grows with the
degree. *push*: the atomic add that lifts a residual above a limit, the same for all vertices, pushes its vertex. A mark says
that the vertex is queued, so that it is queued once at most.

Source: Chen et al., "Atos: A Task-Parallel GPU Scheduler for Graph Analytics", ICPP 2022, Algorithm 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ...arrays.array import Array, zeros
from ...compile.atomics import atomic_add, atomic_exch
from ...compile.task import Task
from ...errors import InvalidArgumentError
from ...graph.graph import Graph
from ...operators.edge_map import THREAD_MAX_DEGREE, push
from ...operators.ranges import mixed_ranges
from ...operators.vertex_map import vertex_map, vertex_sums
from ..launch_sequence import LaunchSequence

__all__ = ["ResidualPush", "push_marked", "set_ranks", "sweep"]


class PushParams(NamedTuple):
    """Parameters that all tasks of a launch share; numbers are of the type of the residuals."""

    damping: Any
    limit: Any  # residuals below limit + limit_per_edge * degree stay where they are
    limit_per_edge: Any
    from_ranks: bool  # pass on the rank and not the residual: makes residuals from ranks


def residual_tasks(
    nothing: Callable[..., Any], share: Callable[..., Any], along: Callable[..., Any], comes_back: Callable[..., Any]
) -> tuple[Task, Task]:
    """Return the tasks `sweep` and `push_marked` for one kind of steps along edges.

    What a vertex v passes on is ``share(v, degree, amount, residual, *weighted)``, of the type of ``nothing(residual)``, of
    which an edge carries ``along(edge, value, residual, *weighted)``. If the only edge of v is a loop,
    ``comes_back(edge, *weighted)`` is whether it carries all.
    """

    def take_residual(v, degree, indptr, indices, rank, residual, marks, params, *weighted):  # type: ignore[no-untyped-def]
        """Move the residual of v, if it is worth it, to its rank; return whether, and what its edges share."""
        number = residual.dtype.type
        if params.from_ranks:
            return rank[v] != 0, share(v, degree, params.damping * number(rank[v]), residual, *weighted)
        if not is_above(v, degree, indptr, indices, rank, residual, marks, params):
            return False, nothing(residual)
        r = atomic_exch(residual, v, 0)
        taken = r
        if degree == 1 and indices[indptr[v]] == v and comes_back(indptr[v], *weighted):
            taken = r / (number(1) - params.damping)  # all of it would come back, again and again
            atomic_add(residual, v, r - taken)
        atomic_add(rank, v, taken)
        return taken != 0, share(v, degree, params.damping * taken, residual, *weighted)

    def add_residual(worker, v, u, edge, value, indptr, indices, rank, residual, marks, params, *weighted):  # type: ignore[no-untyped-def]
        """Add what v passes on to the residual of u."""
        atomic_add(residual, u, along(edge, value, residual, *weighted))

    def no_contribution(indptr, indices, rank, residual, marks, params, *weighted):  # type: ignore[no-untyped-def]
        """Return a contribution of nothing."""
        return nothing(residual)

    def take_marked(v, degree, indptr, indices, rank, residual, marks, params, *weighted):  # type: ignore[no-untyped-def]
        """Clear the mark of v and take its residual, in this order: an add that comes after the taking has to find no mark."""
        if atomic_exch(marks, v, 0) == 0:
            return False, nothing(residual)
        return take_residual(v, degree, indptr, indices, rank, residual, marks, params, *weighted)

    def add_and_push(worker, v, u, edge, value, indptr, indices, rank, residual, marks, params, *weighted):  # type: ignore[no-untyped-def]
        """Add what v passes on to the residual of u, and push u if that lifted it above the limit."""
        contribution = along(edge, value, residual, *weighted)
        old = atomic_add(residual, u, contribution)
        if abs(old) <= params.limit and abs(old + contribution) > params.limit and atomic_exch(marks, u, 1) == 0:
            worker.push(u)

    return (
        replace(
            push(is_above, take_residual, add_residual, no_contribution, low_degree_inline=True, with_edge=True),
            max_registers={"cta": (48, 64, None)},
        ),
        push(try_mark, take_marked, add_and_push, no_contribution, with_edge=True),
    )


def is_above(v, degree, indptr, indices, rank, residual, marks, params, *weighted):  # type: ignore[no-untyped-def]
    """Whether the residual of v is worth passing on."""
    return params.from_ranks or abs(residual[v]) > params.limit + params.limit_per_edge * residual.dtype.type(degree)


def try_mark(v, degree, indptr, indices, rank, residual, marks, params, *weighted):  # type: ignore[no-untyped-def]
    """Mark v if it has work and is not marked yet; return whether."""
    return abs(residual[v]) > params.limit and atomic_exch(marks, v, 1) == 0


def zero_of_residuals(residual):  # type: ignore[no-untyped-def]
    """Return 0 of the type of the residuals."""
    return residual.dtype.type(0)


def share_evenly(v, degree, amount, residual):  # type: ignore[no-untyped-def]
    """Return the part of each edge."""
    return amount / residual.dtype.type(max(degree, 1))


def all_of_it(edge, value, residual):  # type: ignore[no-untyped-def]
    """Return what every edge carries."""
    return value


def always(edge):  # type: ignore[no-untyped-def]
    """Whether an edge carries anything."""
    return True


sweep, push_marked = residual_tasks(zero_of_residuals, share_evenly, all_of_it, always)


def zero_share(residual):  # type: ignore[no-untyped-def]
    """Return 0 of float64, in which shares of weights are, since those may be of any size."""
    return np.float64(0)


def share_by_strength(v, degree, amount, residual, weights, strength):  # type: ignore[no-untyped-def]
    """Return the part for each unit of weight."""
    return np.float64(amount) / strength[v] if strength[v] > 0 else np.float64(0)


def by_weight(edge, value, residual, weights, strength):  # type: ignore[no-untyped-def]
    """Return what an edge carries by its weight."""
    return residual.dtype.type(value * np.float64(weights[edge]))


def has_weight(edge, weights, strength):  # type: ignore[no-untyped-def]
    """Whether an edge carries anything."""
    return weights[edge] > 0


weighted_sweep, weighted_push_marked = residual_tasks(zero_share, share_by_strength, by_weight, has_weight)


@vertex_map
def set_ranks(v, indptr, start, per_vertex, per_edge, divide, target):  # type: ignore[no-untyped-def]
    """Set a rank to ``per_vertex * start + per_edge * degree``, or (`divide`) the contribution of an edge to that / degree."""
    degree = indptr[v + 1] - indptr[v]
    rank = per_vertex * start[min(v, start.size - 1)] + per_edge * degree
    target[v] = rank / np.float64(max(degree, 1)) if divide else rank


@vertex_map
def teleport_residual(v, rank, residual, teleport, teleport_weight):  # type: ignore[no-untyped-def]
    """Set a residual to the part of it that comes along no edge."""
    residual[v] = teleport_weight * teleport[min(v, teleport.size - 1)] - rank[v]


@vertex_map
def normalize(v, rank, residual, teleport, shift, factor, result):  # type: ignore[no-untyped-def]
    """Add the residual, less `shift` times the teleport distribution, to the rank, and scale it."""
    result[v] = factor * (rank[v] + residual[v] - shift * teleport[min(v, teleport.size - 1)])


def shift_and_measure(v, rank, residual, teleport, shift):  # type: ignore[no-untyped-def]
    """Take `shift` times the teleport distribution from a residual; return the rank, the residual, and its magnitude."""
    if shift != 0:
        residual[v] -= shift * teleport[min(v, teleport.size - 1)]
    return rank[v], residual[v], abs(residual[v])


measure = vertex_sums(shift_and_measure, 3)


class ResidualPush:
    """The residuals of ranks on one graph, and the launches that push them."""

    def __init__(
        self,
        graph: Graph,
        launches: LaunchSequence,
        damping: float,
        teleport: Array,
        method: str,
        strength: Array | None = None,
    ) -> None:
        self.graph, self.launches, self.damping, self.teleport, self.method = graph, launches, damping, teleport, method
        self.n = graph.num_vertices
        self.weighted = () if strength is None else (graph.weights, strength)
        self.marks = self.zeros(np.int32) if method == "push" else None

    def solve(self, rank: Array, tolerance: float, *, check_first: bool) -> tuple[Array, float]:
        """Return ranks of sum 1 and a bound of their error, which is at most `tolerance`; `rank` is where they start.

        The error is measured in float64, whatever the type of the ranks, and what rounding left is done in float64 too. With
        `check_first` that is so from the beginning.
        """
        if not check_first:
            self.converge(rank, self.residuals(rank, rank.dtype), 0.95 * tolerance, self.method)
        dtype, last = rank.dtype, math.inf
        if dtype != np.float64:
            given, rank = rank, self.zeros(np.float64)
            self.launches.over_vertices(set_ranks, self.n, self.graph.indptr, given, 1.0, 0.0, False, rank)
        while True:
            residual = self.residuals(rank, np.float64)
            error, total, rest = self.measure_error(rank, residual)
            if error <= tolerance:
                break
            if error > last / 2:
                raise InvalidArgumentError(
                    f"the tolerance is too fine: rounding in float64 leaves an error of up to {error:.1e}, not {tolerance:.1e}"
                )
            last = error
            self.converge(rank, residual, 0.95 * tolerance, "sweep")  # whose code made the residuals: it is compiled by now
        result = self.zeros(dtype)
        factor = 1 / total if total else 0.0
        self.launches.over_vertices(normalize, self.n, rank, residual, self.teleport, rest, factor, result)
        return result, error

    def residuals(self, rank: Array, dtype: DTypeLike) -> Array:
        """Return the residuals that belong to ranks."""
        residual = self.zeros(dtype)
        self.launches.over_vertices(teleport_residual, self.n, rank, residual, self.teleport, 1 - self.damping)
        self.push_residuals("sweep", rank, residual, from_ranks=True)
        return residual

    def converge(self, rank: Array, residual: Array, tolerance: float, method: str) -> None:
        """Push residuals until they promise an error of at most `tolerance`."""
        error, total, _ = self.measure_error(rank, residual)
        slack = 4.0  # the sum of the residuals is often small enough while some are above the limit
        while error > tolerance:
            # If no residual were above its limit, their sum would be small enough.
            limit = 0.8 * tolerance * (1 - self.damping) / self.damping * total
            if method == "push":
                self.push_residuals("push", rank, residual, slack * limit / self.n)
            else:
                self.push_residuals("sweep", rank, residual, limit / 2 / self.n, limit / 2 / max(self.graph.num_edges, 1))
            error, total, _ = self.measure_error(rank, residual)
            slack *= min(0.5, 0.7 * tolerance / max(error, tolerance))

    def measure_error(self, rank: Array, residual: Array) -> tuple[float, float, float]:
        """Return a bound of the error of ranks plus residuals, the sum of the ranks, and that of the residuals."""
        arrays = rank, residual, self.teleport
        total, rest, size = self.launches.sums(measure, self.n, *arrays, 0.0)
        if abs(rest) > 0.1 * size:
            total, rest, size = self.launches.sums(measure, self.n, *arrays, rest)
        error = self.damping / (1 - self.damping) * (size + abs(rest)) / total if self.n and total > 0 else 0.0
        if self.n and not (total > 0 and error < math.inf):
            raise InvalidArgumentError(f"start must hold finite numbers with a positive sum (their sum became {total})")
        return error, total, rest

    def push_residuals(
        self, method: str, rank: Array, residual: Array, limit: float = 0.0, per_edge: float = 0.0, from_ranks: bool = False
    ) -> None:
        """Launch `sweep` or `push_marked` on all ranges of vertices, for residuals above ``limit + per_edge * degree``."""
        number = residual.dtype.type
        params = PushParams(number(self.damping), number(limit), number(per_edge), from_ranks)
        rows = self.graph.indptr, self.graph.indices
        sweeping, marking = (weighted_sweep, weighted_push_marked) if self.weighted else (sweep, push_marked)
        if method == "push":
            arguments = *rows, rank, residual, self.marks, params, *self.weighted
            self.launches.launch(mixed_ranges(self.n), marking, *rows, *arguments)
        else:
            arguments = *rows, rank, residual, None, params, *self.weighted
            self.launches.launch(mixed_ranges(self.n), sweeping, *rows, THREAD_MAX_DEGREE[self.graph.device.kind], *arguments)

    def zeros(self, dtype: DTypeLike) -> Array:
        """Return an array with a place for each vertex."""
        return zeros(self.n, dtype=dtype, device=self.graph.device)
