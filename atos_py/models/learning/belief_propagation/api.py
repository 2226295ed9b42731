"""Belief propagation: the marginals of a pairwise Markov random field, exact on trees, an approximation where there are loops.

Each vertex has one of k states. The probability of all states is proportional to the product of a potential for the state of
each vertex, and one for the states at both ends of each edge. A message along an edge says what the rest of the graph behind it
makes of the states of its target. All are computed in logarithms, since products of many numbers below 1 are 0 as floats.

Sources: Pearl, "Probabilistic reasoning in intelligent systems", 1988; Elidan, McGraw and Koller, "Residual belief propagation:
informed scheduling for asynchronous message passing", UAI 2006; Murphy, Weiss and Jordan, "Loopy belief propagation for
approximate inference: an empirical study", UAI 1999, for damping.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ....arrays.any_array import AnyArray
from ....arrays.array import Array, asarray, empty, to_host, zeros
from ....arrays.array_library import as_library
from ....errors import InvalidArgumentError, UnsupportedTypeError
from ....graph.graph import Graph
from ....graph.graph_arrays import check_graph
from ....operators.ranges import range_items
from ....runtime.launch_options import LaunchOptions, Unpack
from ....runtime.queue import Queue
from ....support.host_memory import host_memory_for
from ....support.shown import ShownFields
from ....support.validation import as_dtype, as_host_array, check_float, check_int
from ...linalg.vectors import softmax
from ..features.functions import check_features, together
from ..features.maps import Maps
from ..linear_certificate import unit_roundoff
from .tasks import PLACES, VERTICES_PER_ITEM, Problem, most_spread, residual_task, sweep_task

__all__ = ["BeliefResult", "belief_propagation", "read_potentials"]

_MOST_ROUNDS = 32  # between two looks at the residual
_MOST = 1e30  # so that no sum of logarithms is beyond float32
_SCHEDULES = ("synchronous", "residual")


@dataclass(frozen=True, eq=False)
class BeliefResult(ShownFields):
    """Result of `belief_propagation`.

    Attributes
    ----------
    marginals : Array, or an array of the library that the graph's arrays came from
        (n, k): the probabilities of the states of each vertex.
    messages : Array, or an array of that library
        (edges, k), logarithms: row `edge` is what comes to v along its edge (v, u).
    converged : bool
        Whether the residual is at most the tolerance.
    residual : float
        By how much the logarithm of a message changes at most in another sweep, rounding included.
    sweeps : int
        Messages computed, over the number of edges.
    runs : list of LaunchStats

    Examples
    --------
    >>> pair = atos.Graph.from_edges([0], [1], symmetrize=True)
    >>> result = atos.belief_propagation(pair, np.log([[3.0, 1.0], [1.0, 1.0]]), np.log([[2.0, 1.0], [1.0, 2.0]]))
    >>> print(result.converged, result.marginals.to_numpy().round(4)[1])
    True [0.5833 0.4167]
    """

    marginals: AnyArray
    messages: AnyArray
    converged: bool
    residual: float
    sweeps: float
    runs: list[Any]


def read_potentials(graph: Graph, unary: Any, pairwise: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the logarithms of the potentials of vertices and edges on the host, the latter of shape (1 or edges, k, k).

    The largest of a vertex, and of an edge, is 0: only differences count, which a number that all states share would round off.
    """
    given = [as_host_array(name, to_host(each)) for name, each in (("unary", unary), ("pairwise", pairwise))]
    for name, each in zip(("unary", "pairwise"), given, strict=True):
        if each.dtype.kind not in "fiu" or not (np.abs(each) <= _MOST).all():
            raise InvalidArgumentError(
                f"{name} must be finite numbers, logarithms of potentials from -{_MOST} to {_MOST}; for 0 give one such as -50"
            )
    of_vertices, of_edges = (each.astype(np.float64) for each in given)
    if of_vertices.ndim != 2 or of_vertices.shape[0] != graph.num_vertices:
        raise InvalidArgumentError(f"unary must have a row for each of {graph.num_vertices} vertices (got {of_vertices.shape})")
    k = check_features(of_vertices.shape[1])
    if of_edges.shape not in ((k, k), (graph.num_edges, k, k)):
        raise InvalidArgumentError(
            f"pairwise must be of shape {(k, k)}, for all edges, or {(graph.num_edges, k, k)} (got {of_edges.shape})"
        )
    reverse = np.asarray(graph.reverse_edges()) if of_edges.ndim == 3 else slice(None)
    other = of_edges[reverse].swapaxes(-1, -2) if of_edges.ndim == 3 else of_edges.T
    if not np.allclose(of_edges, other, rtol=1e-6, atol=1e-9):
        raise InvalidArgumentError("pairwise potentials of an edge and its reverse must be each other's transpose")
    of_edges = of_edges.reshape(-1, k, k)
    return of_vertices - of_vertices.max(axis=1, keepdims=True), of_edges - of_edges.max(axis=(1, 2), keepdims=True)


class _Last(NamedTuple):
    messages: Array
    unary: Array
    beliefs: Array  # logarithms, float64
    marginals: Array


def _message(f, v, u, edge, s):  # type: ignore[no-untyped-def]
    return s.messages[edge, f]


def _keep_belief(f, v, total, s):  # type: ignore[no-untyped-def]
    s.beliefs[v, f] = total + s.unary[v, f]


@functools.lru_cache(32)
def _probabilities(k: int) -> Any:
    def make(team, v, s):  # type: ignore[no-untyped-def]
        row = team.scratch(np.float64, k)
        for f in team.split(k):
            row[f] = s.beliefs[v, f]
        softmax(team, row, k)
        for f in team.split(k):
            s.marginals[v, f] = s.marginals.dtype.type(row[f])

    return together(make)


def _rounding(kind: np.dtype[Any], spread: float, k: int, largest_unary: float, degree: int) -> float:
    """Return by how much rounding changes the logarithm of a message.

    `spread` is how far the potentials of an edge are apart; a message is at least minus that and the logarithm of k. There is
    the rounding of the message itself, of its sum of k terms, and, in float64, of beliefs.
    """
    size = spread + math.log(k)
    of_belief = 2.0**-53 * (4 + math.sqrt(degree)) * (largest_unary + degree * size)
    return unit_roundoff(kind) * (size + 2 * math.sqrt(k) + 8) + of_belief


@host_memory_for("atos.belief_propagation")
def belief_propagation(
    graph: Graph,
    unary: ArrayLike,
    pairwise: ArrayLike,
    *,
    schedule: str = "synchronous",
    damping: float = 0.0,
    tolerance: float = 1e-5,
    max_sweeps: int = 1000,
    dtype: DTypeLike = np.float32,
    **launch_options: Unpack[LaunchOptions],
) -> BeliefResult:
    """Compute the marginals of a Markov random field with potentials of vertices and of edges.

    Parameters
    ----------
    graph : Graph
        Undirected: every edge has its reverse, and none is there twice.
    unary : array
        (n, k): logarithms of the potentials of each vertex, for up to 128 states; from -1e30 to 1e30.
    pairwise : array
        (k, k), for all edges, or (edges, k, k): logarithms for the states of the source and the target of an edge. The matrix
        of the reverse edge is the transpose.
    schedule : {'synchronous', 'residual'}
        All messages at once, from those before; or, asynchronously, those of vertices first whose own messages have changed
        most. On trees and in difficult fields the latter needs fewer messages.
    damping : float
        Share of the old message, from 0 to less than 1. Where messages oscillate, 0.5 often makes them converge.
    tolerance : float
        Largest change of the logarithm of a message at the end. On a graph with loops it says nothing of the error of the
        marginals, for which there is no bound. Where `dtype` rounds by more, nothing converges: with float32, by 6e-8 times how
        far the potentials of an edge are apart.
    max_sweeps : int
    dtype : {np.float32, np.float64}
        Of the messages and the marginals. Potentials are taken in float64.
    **launch_options : LaunchOptions
        Of all launches.

    Returns
    -------
    BeliefResult
        On a tree the marginals are exact.

    Raises
    ------
    InvalidArgumentError
        If the graph is not symmetric, or potentials or numbers are out of their range.

    References
    ----------
    Pearl, "Probabilistic reasoning in intelligent systems", Morgan Kaufmann 1988. Elidan, McGraw and Koller, "Residual belief
    propagation: informed scheduling for asynchronous message passing", UAI 2006.

    Examples
    --------
    >>> path = atos.Graph.from_edges([0, 1], [1, 2], symmetrize=True)
    >>> unary = np.log([[0.9, 0.1], [0.5, 0.5], [0.5, 0.5]])
    >>> alike = np.log([[0.8, 0.2], [0.2, 0.8]])
    >>> atos.belief_propagation(path, unary, alike).marginals.to_numpy().round(3)
    array([[0.9  , 0.1  ],
           [0.74 , 0.26 ],
           [0.644, 0.356]], dtype=float32)
    """
    check_graph(graph)
    kind, factor, limit = as_dtype(dtype), check_float("damping", damping), check_float("tolerance", tolerance)
    most = check_int("max_sweeps", max_sweeps, 0, 2**31)
    if kind not in (np.float32, np.float64):
        raise UnsupportedTypeError(f"dtype must be float32 or float64, not {kind}")
    if not isinstance(schedule, str) or schedule not in _SCHEDULES:
        raise InvalidArgumentError(f"schedule must be one of {', '.join(_SCHEDULES)} (got {schedule!r:.80})")
    if not 0 <= factor < 1 or not limit > 0:
        raise InvalidArgumentError(
            f"damping must be from 0 to less than 1, and tolerance positive (got {damping}, {tolerance})"
        )
    of_vertices, of_edges = read_potentials(graph, unary, pairwise)
    n, m, device, (_, k) = graph.num_vertices, graph.num_edges, graph.device, of_vertices.shape
    spread = -float(of_edges.min(initial=0))
    rounding = _rounding(kind, spread, k, -float(of_vertices.min(initial=0)), graph.max_degree) / (1 - factor)
    goal = max(limit, 2 * rounding)  # what is left at the end is rounding, which more sweeps do not change
    in_logarithms = spread > most_spread(kind)
    pairs = of_edges if in_logarithms else np.exp(of_edges).astype(kind)
    problem = Problem(
        graph.indptr,
        graph.indices,
        asarray(graph.reverse_edges(), readonly=True),
        asarray(of_vertices, device=device, readonly=True),
        asarray(pairs, device=device, readonly=True),
        zeros((2, m, k), dtype=kind, device=device),
        0,
        zeros(PLACES, dtype=kind, device=device),
        kind.type(factor),
        2,
        kind.type((goal - rounding) * (1 - factor)),
        zeros(n, dtype=np.int32, device=device),
        zeros(1, dtype=np.int64, device=device),
        most * max(n, 1),
    )
    problem.messages[:] = -math.log(k)
    items, runs = range_items(n, VERTICES_PER_ITEM), []
    sweeping = Queue(2 * len(items) + 1, device=device)
    by_change = Queue(n + 1, device=device, buckets=64, delta=4.0) if schedule == "residual" else None
    which = k, cast(Any, kind.type), in_logarithms
    sweep, change = sweep_task(*which), residual_task(*which)
    in_rounds: Any = {"fetch_size": 2, **launch_options, "barrier": True}
    residual, sweeps, rounds, measured = math.inf, 0.0, 2, 0
    while residual > goal and sweeps < most and m:
        if by_change is not None:
            problem.waiting[:] = 1
            by_change.push(np.arange(n), priority=-1000.0)
            runs.append(by_change.launch_warp(change, problem, **launch_options))
            by_change.clear()  # what it was stopped with
            sweeps += runs[-1].tasks_run / n
        problem.residuals[:] = 0
        sweeping.push(items)
        runs.append(sweeping.launch_cta(sweep, problem._replace(rounds=rounds), **in_rounds))
        sweeps += rounds
        # The last round measures the messages that it reads, and these are the result; those that it writes may change by more.
        residual = float(problem.residuals.to_numpy().max()) / (1 - factor) + rounding
        measured = problem.side + rounds - 1 & 1
        problem = problem._replace(side=1 - measured)
        if by_change is None:
            rounds = min(2 * rounds, _MOST_ROUNDS, max(2, int(most - sweeps) // 2 * 2))
    marginals, beliefs = empty((n, k), dtype=kind, device=device), empty((n, k), dtype=np.float64, device=device)
    place = problem.messages.pointer + measured * m * k * kind.itemsize
    row = Array(place, (m, k), kind, device, readonly=False, owner=problem.messages)
    maps = Maps(graph, k, _Last(row, problem.unary, beliefs, marginals), **launch_options)
    maps.sum_map(_message, _keep_belief, np.float64)
    maps.vertex_map(_probabilities(k))
    arrays = as_library(marginals, graph.library), as_library(row, graph.library)
    return BeliefResult(*arrays, residual <= limit or not m, residual if m else 0.0, sweeps, [*runs, *maps.runs])
