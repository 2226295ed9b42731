"""Fixed points of x = update(sum of terms times x): change-driven, or by computing all sums anew in each iteration.

*Change-driven*: the sum of each vertex stays where it is, and a vertex whose features have changed by more than epsilon adds
what is new to the sums of others. What a vertex has *sent* is kept apart from what it *has*, so that changes below epsilon are
not lost: they add up until they are sent. Where most edges would send, and now and then against drift, all sums are computed
anew.

*Accelerated*: where the iteration is linear with a symmetric matrix, what a vertex had before is known as well, since it was
sent; Chebyshev's steps go beyond each update by as much as is best for all matrices of the same norm.

*Certificate*: in the end all sums are computed anew, and the residual, how far the features are from their update, bounds the
error where the update contracts in a norm. Sums and updates are float64, whatever the type of the features: in that of the
features a residual may be rounded to 0 where the error is not. What rounding in float64 may hide is added. If the bound is
above the tolerance, epsilon is lowered and the iteration goes on.

Sources: L. Vaz, "Onyx" (thesis, 2021), section 4.2, whose bookkeeping loses what was not sent; Golub and Varga, "Chebyshev
semi-iterative methods", Numerische Mathematik 3, 1961.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np

from ....arrays.array import Array, asarray, zeros
from ....compile.atomics import atomic_add, atomic_max
from ....compile.short_traceback import ends_in_task
from ....errors import InvalidArgumentError, UnsupportedTypeError
from ....graph.graph import Graph
from ....graph.graph_arrays import check_graph
from ....operators.vertex_map import named
from ....runtime.launch_options import LaunchOptions, Unpack
from ....runtime.stats import LaunchStats
from ....support.validation import check_bool, check_float, check_int
from .active_set import is_active
from .functions import FeatureFunction, check_features, check_function, together
from .maps import Maps

__all__ = ["FixedPoint", "fixed_point"]

_PLACES = 1024  # that sums are spread over
_DENSE = 0.8  # share of the edges from which on all sums are computed anew, without atomics
_BETTER = 0.999
_PATIENCE = 3  # certificates that are not better than before, as where rounding is all that is left
_NORMS = ("max", "1", "2")
_NORM_OF_PLACES: dict[str, Callable[[Any], Any]] = {"max": np.max, "1": np.sum, "2": lambda places: np.sqrt(np.sum(places))}
_ROUNDING = 1e3 * 2.0**-53  # of sums in float64, relative to the features


class State(NamedTuple):
    """Arrays that the functions share."""

    x: Array  # what a vertex has
    sent: Array  # what it has sent
    total: Array  # the sum over its edges of what others have sent, float64
    sending: Array  # bits of the vertices that send before the next update
    sizes: Array  # of the residual and of the features: the largest, the sums, or the sums of squares
    norm: int  # which of these
    epsilon: float
    step: float  # from what was sent, over that to the update
    edges: Any  # the numbers in the graph of the edges of its transpose
    data: Any


class FixedPoint(NamedTuple):
    """Result of `fixed_point`.

    Attributes
    ----------
    x : Array
        The features.
    converged : bool
        Whether the bound is at most the tolerance.
    error_bound : float
        Of the distance to the fixed point, in the norm that was given; without a contraction of the residual.
    iterations : int
        Updates of all vertices.
    edge_operations : int
        Edges that something was sent along, or that were summed up, over all iterations.
    runs : list of LaunchStats

    Examples
    --------
    See `fixed_point`.

    >>> from atos_py import features
    >>> features.FixedPoint(None, True, 0.0, 1, 2, []).edge_operations
    2
    """

    x: Array
    converged: bool
    error_bound: float
    iterations: int
    edge_operations: int
    runs: list[LaunchStats]


def store(f, v, total, s):  # type: ignore[no-untyped-def]
    """Keep a sum."""
    s.total[v, f] = total


def settle(f, v, new, s):  # type: ignore[no-untyped-def]
    """Take an update, and return whether it has to be sent."""
    before = s.sent[v, f]
    if is_active(s.sending, v):
        s.sent[v, f] = s.x[v, f]
    if s.step != 1:
        new = before + s.step * (new - before)
    s.x[v, f] = s.x.dtype.type(new)
    return not abs(new - s.sent[v, f]) <= s.epsilon


def measure(f, v, new, s):  # type: ignore[no-untyped-def]
    """Add a residual and a feature to their norms; a NaN counts as infinite."""
    size = np.float64(abs(s.x[v, f]))
    residual = abs(new - s.x[v, f]) if new - s.x[v, f] == new - s.x[v, f] else math.inf
    if s.norm == 0:
        atomic_max(s.sizes, (0, v % _PLACES), residual)
        atomic_max(s.sizes, (1, v % _PLACES), size)
    else:
        atomic_add(s.sizes, (0, v % _PLACES), residual if s.norm == 1 else residual * residual)
        atomic_add(s.sizes, (1, v % _PLACES), size if s.norm == 1 else size * size)
    return False


@functools.lru_cache(64)
def _along_edges(term: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the functions of an edge that look at all of the other end's features, and that send changes of them."""

    def gather(f, v, u, edge, s):  # type: ignore[no-untyped-def]
        return np.float64(term(f, v, u, edge, s.data)) * s.x[u, f]

    def send(f, u, v, edge, s):  # type: ignore[no-untyped-def]
        change = np.float64(s.x[u, f]) - s.sent[u, f]
        atomic_add(s.total, (v, f), np.float64(term(f, v, u, s.edges[edge], s.data)) * change)

    return gather, send


@functools.lru_cache(64)
def _with_update(finish: Callable[..., Any], update: Any, k: int) -> Any:
    """Return the function of a vertex that gives the updates of its features to `finish`."""

    def of_feature(f, v, s):  # type: ignore[no-untyped-def]
        return finish(f, v, np.float64(update(f, v, s.total[v, f], s.data)), s)

    def of_team(team, v, s):  # type: ignore[no-untyped-def]
        new, moved = team.scratch(np.float64, k), False
        for f in team.split(k):
            new[f] = s.total[v, f]
        team.sync()
        function(team, v, new, s.data)
        team.sync()
        for f in team.split(k):
            if finish(f, v, new[f], s):
                moved = True
        return moved

    if isinstance(update, FeatureFunction):
        function = update.function
        return together(named(of_team, finish))
    return named(of_feature, finish)


@ends_in_task
def fixed_point(
    graph: Graph,
    x: Array,
    term: Callable[..., Any],
    update: Any,
    data: Any = 0,
    *,
    tolerance: float = 1e-4,
    contraction: float | None = None,
    norm: str = "max",
    symmetric: bool = False,
    change_driven: bool = True,
    feature_aware: bool = True,
    rounding: float = 0.0,
    recompute_every: int = 64,
    max_iterations: int = 10_000,
    **launch_options: Unpack[LaunchOptions],
) -> FixedPoint:
    """Find features that are the update of a weighted sum of those of the neighbors.

    Parameters
    ----------
    graph : Graph
        Vertex v takes a sum over its edges (v, u); for edges that lead to it, give the transpose.
    x : Array
        Features to begin with, (n, k) of float32 or float64, on the graph's device. They are changed in place, so what `data`
        has of the same memory changes, too.
    term : callable
        ``term(f, v, u, edge, data)``: by how much x[u, f] counts in the sum of v.
    update : callable
        ``update(f, v, total, data)`` returns the new x[v, f]. Or `together` of ``update(team, v, new, data)``, which finds the
        sums in the vector `new`, and leaves the features there. Sums are float64.
    data : Array, number or named tuple of those
    tolerance : float
        Largest error: a bound if there is a contraction, otherwise of the residual. What the type of the features cannot hold
        is not reached.
    contraction : float, optional
        Factor below 1 by which an iteration of all vertices shortens distances in the norm.
    norm : {'max', '1', '2'}
        Over all vertices and features.
    symmetric : bool
        Whether the update is linear, with a symmetric matrix whose eigenvalues are within the contraction. Then iterations of
        all edges are accelerated: at a contraction of 0.8 a third of them is enough.
    change_driven : bool
        Whether vertices send changes; otherwise each iteration sums up all edges.
    feature_aware : bool
        As for `Maps`.
    rounding : float
        By how much terms are rounded already, relative to their size, as weights that were made float32 by 2**-24; the bound
        then holds for terms that are not.
    recompute_every : int
        Iterations after which all sums are computed anew, against the drift of sums of floats, and the bound is looked at.
    max_iterations : int
    **launch_options : LaunchOptions
        Of all launches.

    Returns
    -------
    FixedPoint

    Raises
    ------
    InvalidArgumentError
        If the features have another shape, or the memory of a read-only array of `data`, or a number is out of its range.
    UnsupportedTypeError
        If they are no floats.

    Examples
    --------
    >>> from atos_py import features
    >>> graph = atos.Graph.from_edges([0, 1], [1, 2], symmetrize=True)
    >>> def half(f, v, u, edge, seeds):
    ...     return 0.25
    >>> def add_seed(f, v, total, seeds):
    ...     return seeds[v, f] + total
    >>> seeds = atos.asarray(np.array([[1, 0], [0, 0], [0, 1.0]]), readonly=True)
    >>> found = features.fixed_point(graph, seeds.copy(), half, add_seed, seeds, tolerance=1e-6, contraction=0.5)
    >>> print(found.x.to_numpy().round(4).tolist(), found.converged)
    [[1.0714, 0.0714], [0.2857, 0.2857], [0.0714, 1.0714]] True
    """
    check_graph(graph)
    for function in (term, update.function if isinstance(update, FeatureFunction) else update):
        check_function("fixed_point", function)
    if not isinstance(x, Array) or x.ndim != 2 or x.shape[0] != graph.num_vertices or x.device != graph.device or x.readonly:
        raise InvalidArgumentError(
            f"x must be an Array on {graph.device} that tasks may write, with a row for each of {graph.num_vertices} vertices"
            f" (got {x!r:.80})"
        )
    if x.dtype.kind != "f":
        raise UnsupportedTypeError(f"x must be of float32 or float64, not {x.dtype}")
    parts = data if isinstance(data, tuple) else (data,)
    if any(isinstance(part, Array) and part.readonly and part._overlaps(x) for part in parts):
        raise InvalidArgumentError("x is changed in place, so no read-only array of data may have its memory: pass a copy as x")
    if not isinstance(norm, str) or norm not in _NORMS:
        raise InvalidArgumentError(f"norm must be one of {', '.join(_NORMS)} (got {norm!r:.80})")
    limit, k = check_float("tolerance", tolerance), check_features(x.shape[1])
    factor = 0.0 if contraction is None else check_float("contraction", contraction)
    if not limit > 0 or not 0 <= factor < 1:
        raise InvalidArgumentError(
            f"tolerance must be positive, and contraction from 0 to less than 1 (got {tolerance} and {contraction})"
        )
    accelerated = (check_bool("symmetric", symmetric), check_bool("change_driven", change_driven)) == (True, False)
    every, most = check_int("recompute_every", recompute_every, 1, 2**31), check_int("max_iterations", max_iterations, 0, 2**31)
    rounded = check_float("rounding", rounding) + _ROUNDING
    gather, send = _along_edges(term)
    settled, measured = (_with_update(finish, update, k) for finish in (settle, measure))
    sent, total = (zeros(x.shape, dtype=dtype, device=x.device) for dtype in (x.dtype, np.float64))
    sizes = zeros((2, _PLACES), dtype=np.float64, device=x.device)
    maps = Maps(graph, k, 0, feature_aware=feature_aware, **launch_options)
    # Vertices send to those whose edges lead to them, and the sets of active vertices count those edges.
    turned, edges = graph.transpose(return_edges=True) if change_driven else (graph, 0)
    sender = Maps(turned, k, 0, feature_aware=feature_aware, **launch_options)
    maps.runs = sender.runs
    everything = sender.all()
    number = _NORMS.index(norm)
    state = State(x, sent, total, everything.bits, sizes, number, limit * (1 - factor) / 2, 1.0, edges, data)
    view = asarray(x, readonly=True)  # of the same memory: what adds up does not write it
    seen = [view if part is x else part for part in parts]
    iterations = operations = 0
    bound, best, stalled, step = math.inf, math.inf, 0, 2.0

    def recompute() -> None:
        nonlocal state, operations
        maps.data = state._replace(x=view, data=cast(Any, data)._make(seen) if isinstance(data, tuple) else seen[0])
        maps.sum_map(gather, store, np.float64)
        state = state._replace(sending=everything.bits)
        operations += graph.num_edges

    recompute()
    while iterations < most and stalled < _PATIENCE:
        count = 1
        for _ in range(min(every, most - iterations)):
            sender.data = state
            active = sender.vertex_map(settled)
            iterations += 1
            count, work = active.totals()
            if count == 0:
                break
            if accelerated:
                step = 1 / (1 - factor**2 * step / 4)
                state = state._replace(step=step)
            if not change_driven or work > _DENSE * graph.num_edges:
                recompute()
            else:
                sender.edge_map(send, active=active)
                state = state._replace(sending=active.bits)
                operations += work
        if count == 0 or change_driven:
            recompute()  # otherwise the last iteration did
        sizes[:] = 0
        sender.data = state
        sender.vertex_map(measured)
        residual, size = (_NORM_OF_PLACES[norm](places) for places in sizes.to_numpy())
        bound = float(residual + rounded * size) / (1 - factor)
        if bound <= limit:
            break
        stalled = 0 if bound < _BETTER * best else stalled + 1
        best = min(best, bound)
        if count == 0:
            state = state._replace(epsilon=state.epsilon * min(0.5, max(limit / bound / 2, 1 / 64)))
    return FixedPoint(x, bound <= limit, bound, iterations, operations, maps.runs)
