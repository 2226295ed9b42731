"""Manifold ranking: how near vertices are to some of them, along edges of large weight, for several features or modalities.

Both rankings are fixed points of random walks: a vertex takes the mean of its neighbors, weighted, and a share of its start.
A mean does not lengthen the largest error, so the largest residual over the share of the start bounds it.

Sources: Zhou, Weston, Gretton, Bousquet and Schölkopf, "Ranking on data manifolds", NIPS 2003; L. Vaz, "Onyx" (thesis, 2021),
section 2.2, for the rankings of several features and modalities.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arrays.array import Array, asarray, empty, to_host, zeros
from ...compile.atomics import atomic_add
from ...errors import InvalidArgumentError
from ...graph.graph import Graph
from ...graph.graph_arrays import check_graph
from ...graph.strength import LEAST, MOST
from ...runtime.launch_options import LaunchOptions, Unpack
from ...support.host_memory import host_memory_for
from ...support.validation import as_host_array
from .features.change_driven import FixedPoint, fixed_point
from .features.functions import check_features
from .features.maps import Maps
from .label_spreading import check_alpha
from .linear_certificate import check_distance, host_features, row_sums, unit_roundoff
from .spmm import dense_rows

__all__ = ["manifold_ranking", "multimodal", "verify_manifold_ranking", "verify_multimodal"]


class Preparing(NamedTuple):
    """Arrays by which weights become shares of those of their vertex; in float64, in which none of them is lost."""

    weights: Array  # (edges, k) or (edges, modalities)
    inverse: Array  # of the sum of the weights of a vertex, or 0
    wrong: Array  # how many of these sums are neither 0 nor numbers that others can be divided by
    alphas: Array
    shares: Array  # (edges, k), or (edges, 1) of all modalities together


class Ranking(NamedTuple):
    """Arrays that the functions share."""

    shares: Array
    start: Array
    alpha: float


def weight_of_feature(f, v, u, edge, s):  # type: ignore[no-untyped-def]
    """Return the weight of an edge for a feature."""
    return s.weights[edge, f]


def keep_inverse(f, v, total, s):  # type: ignore[no-untyped-def]
    """Keep what makes a sum of weights a mean."""
    s.inverse[v, f] = 1.0 / total if total > 0 else 0.0
    if total > 0 and not LEAST <= total <= MOST:
        atomic_add(s.wrong, 0, 1)


def share_of_feature(f, u, v, edge, s):  # type: ignore[no-untyped-def]
    """Keep the share of an edge for a feature."""
    s.shares[edge, f] = s.shares.dtype.type(s.weights[edge, f] * s.inverse[u, f])


def combine(f, u, v, edge, s):  # type: ignore[no-untyped-def]
    """Keep the sum of the weights of the modalities, each as a share of those of its vertex."""
    total = 0.0
    for j in range(s.alphas.size):
        total += s.alphas[j] * s.weights[edge, j] * s.inverse[u, j]
    s.shares[edge, 0] = s.shares.dtype.type(total)


def feature_share(f, v, u, edge, s):  # type: ignore[no-untyped-def]
    """Return the share of an edge for a feature."""
    return s.shares[edge, f]


def combined_share(f, v, u, edge, s):  # type: ignore[no-untyped-def]
    """Return the share of an edge for all features."""
    return s.shares[edge, 0]


def rank_feature(f, v, total, s):  # type: ignore[no-untyped-def]
    """Return the new number of a vertex."""
    return s.alpha * total + (1 - s.alpha) * s.start[v, f]


def rank_modalities(f, v, total, s):  # type: ignore[no-untyped-def]
    """Return the new number of a vertex."""
    return total + (1 - s.alpha) * s.start[v, f]


def _check_weights(graph: Graph, weights: Any, count: int, of: str) -> NDArray[Any]:
    given = as_host_array("weights", to_host(weights))
    if given.shape != (graph.num_edges, count) or given.dtype.kind not in "fiu":
        raise InvalidArgumentError(
            f"weights must be of shape {(graph.num_edges, count)}, one of each edge for each {of} (got {given.shape})"
        )
    if given.size and not (given.min() >= 0 and np.isfinite(given).all()):
        raise InvalidArgumentError("weights are similarities: finite, and not negative")
    return given


def _check_alphas(alphas: Any) -> NDArray[Any]:
    given = np.atleast_1d(as_host_array("alpha", alphas))
    if given.ndim != 1 or given.dtype.kind not in "fiu" or not (given >= 0).all() or not 0 < given.sum() < 1:
        raise InvalidArgumentError(f"alpha must be numbers from 0, whose sum is less than 1 (got {alphas!r:.80})")
    return given.astype(np.float64)


def _rank(
    graph: Graph, weights: Any, start: Any, alphas: NDArray[Any], modalities: int, options: Any, launch_options: Any
) -> FixedPoint:
    """Find the ranks by several modalities, or, if there are 0, by weights for each feature."""
    first = dense_rows("start", start, graph)
    if first.ndim != 2:
        raise InvalidArgumentError(f"start must have two dimensions, vertices and features (got shape {first.shape})")
    kind, device, k = first.dtype, graph.device, check_features(first.shape[1])
    count = modalities or k
    checked = _check_weights(graph, weights, count, "modality" if modalities else "feature")
    shares = empty((graph.num_edges, 1 if modalities else k), dtype=kind, device=device)
    s = Preparing(
        asarray(checked.astype(np.float64), device=device, readonly=True),
        zeros((graph.num_vertices, count), dtype=np.float64, device=device),
        zeros(1, dtype=np.int64, device=device),
        asarray(alphas, device=device, readonly=True),
        shares,
    )
    Maps(graph, count, s, **launch_options).sum_map(weight_of_feature, keep_inverse, np.float64)
    if s.wrong[0]:
        raise InvalidArgumentError(
            f"the weights of the edges of {s.wrong[0]} vertices have a sum that is not from {LEAST} to {MOST}: only the"
            f" ratios of weights count, so divide them all by a number such as {checked.max()}"
        )
    Maps(graph, 1 if modalities else k, s, **launch_options).edge_map(combine if modalities else share_of_feature)
    ranking = Ranking(asarray(shares, readonly=True), first, float(alphas.sum()))
    functions = (combined_share, rank_modalities) if modalities else (feature_share, rank_feature)
    given: Any = {"contraction": ranking.alpha, "rounding": unit_roundoff(kind), **options, **launch_options}
    return fixed_point(graph, asarray(first, copy=True), *functions, ranking, **given)


@host_memory_for("atos.manifold_ranking")
def manifold_ranking(
    graph: Graph,
    weights: ArrayLike,
    start: ArrayLike,
    *,
    alpha: float = 0.9,
    tolerance: float = 1e-4,
    change_driven: bool = False,
    max_iterations: int = 10_000,
    **launch_options: Unpack[LaunchOptions],
) -> FixedPoint:
    """Rank vertices for several features at once: x_f = alpha W_f x_f + (1 - alpha) start_f, where rows of W_f have the sum 1.

    Parameters
    ----------
    graph : Graph
    weights : array
        (edges, k): similarities of the ends of each edge (v, u) in each feature, not negative.
    start : array
        (n, k), float32 or float64: what is looked for has 1, others 0.
    alpha : float
        Share of what comes from neighbors, between 0 and 1.
    tolerance : float
        Largest error of a number.
    change_driven : bool
        Whether only vertices that have changed send to others, which pays where few do. Otherwise all edges are summed up in
        each iteration, and the result is the same in every run.
    max_iterations : int
    **launch_options : LaunchOptions
        Of all launches.

    Returns
    -------
    FixedPoint

    Raises
    ------
    InvalidArgumentError
        If weights are negative, or those of a vertex have a sum beyond 1e-280 to 1e280, or something is of a wrong shape or out
        of its range.

    References
    ----------
    Zhou, Weston, Gretton, Bousquet and Schölkopf, "Ranking on data manifolds", NIPS 2003.

    Examples
    --------
    >>> graph = atos.Graph.from_edges([0, 1, 2, 1], [1, 0, 1, 2])
    >>> found = atos.manifold_ranking(graph, np.ones((4, 1)), [[1.0], [0.0], [0.0]], alpha=0.5)
    >>> print(found.x.to_numpy().ravel().round(3), found.converged)
    [0.583 0.167 0.083] True
    """
    check_graph(graph)
    options: Any = {"tolerance": tolerance, "change_driven": change_driven, "max_iterations": max_iterations}
    return _rank(graph, weights, start, np.array([check_alpha(alpha)]), 0, options, launch_options)


@host_memory_for("atos.multimodal")
def multimodal(
    graph: Graph,
    weights: ArrayLike,
    start: ArrayLike,
    *,
    alpha: ArrayLike,
    tolerance: float = 1e-4,
    change_driven: bool = False,
    max_iterations: int = 10_000,
    **launch_options: Unpack[LaunchOptions],
) -> FixedPoint:
    """Rank vertices by several modalities together: x = sum of alpha_j W_j x + (1 - sum of alpha_j) start.

    Parameters
    ----------
    graph : Graph
    weights : array
        (edges, modalities): similarities of the ends of each edge (v, u); rows of W_j are divided by their sums.
    start : array
        (n, k), float32 or float64.
    alpha : array
        The share of each modality, with a sum of less than 1.
    tolerance, change_driven, max_iterations, **launch_options
        As for `manifold_ranking`.

    Returns
    -------
    FixedPoint

    Raises
    ------
    InvalidArgumentError
        As from `manifold_ranking`.

    References
    ----------
    L. Vaz, "Onyx" (thesis, 2021), section 2.2.

    Examples
    --------
    >>> graph = atos.Graph.from_edges([0, 1, 2, 1], [1, 0, 1, 2])
    >>> weights = np.array([[1.0, 0], [1, 0], [0, 1], [0, 1]])  # the first edge is of one modality, the other of another
    >>> atos.multimodal(graph, weights, [[1.0], [0.0], [0.0]], alpha=[0.4, 0.1]).x.to_numpy().ravel().round(3)
    array([0.596, 0.241, 0.024])
    """
    check_graph(graph)
    alphas = _check_alphas(alpha)
    options: Any = {"tolerance": tolerance, "change_driven": change_driven, "max_iterations": max_iterations}
    return _rank(graph, weights, start, alphas, alphas.size, options, launch_options)


def _means(graph: Graph, weights: NDArray[Any]) -> NDArray[Any]:
    """Return weights as shares of those of their vertex."""
    rows, sums = row_sums(graph, weights)
    return weights / np.where(sums > 0, sums, 1)[rows]


@host_memory_for("atos.verify_manifold_ranking")
def verify_manifold_ranking(
    graph: Graph, weights: ArrayLike, start: ArrayLike, x: Any, *, alpha: float = 0.9, tolerance: float = 1e-4
) -> None:
    """Prove that numbers are near those of `manifold_ranking`, by their residual in float64.

    Parameters
    ----------
    graph, weights, start, alpha
        As for `manifold_ranking`.
    x : array
    tolerance : float
        Largest error of a number.

    Raises
    ------
    VerificationError
        The message has the bound.

    Examples
    --------
    >>> graph, start = atos.Graph.from_edges([0, 1], [1, 0]), [[1.0], [0.0]]
    >>> atos.verify_manifold_ranking(graph, np.ones((2, 1)), start, [[2 / 3], [1 / 3]], alpha=0.5)
    >>> atos.verify_manifold_ranking(graph, np.ones((2, 1)), start, start, alpha=0.5)
    Traceback (most recent call last):
    atos_py.errors.VerificationError: the features may be 1 from the fixed point, which is more than the tolerance of 0.0001
    """
    check_graph(graph)
    share = check_alpha(alpha)
    first = host_features("start", start, (graph.num_vertices, -1))
    found = host_features("x", x, first.shape)
    coefficients = share * _means(graph, _check_weights(graph, weights, first.shape[1], "feature").astype(np.float64))
    check_distance(graph, coefficients, found, (1 - share) * first, share, tolerance)


@host_memory_for("atos.verify_multimodal")
def verify_multimodal(
    graph: Graph, weights: ArrayLike, start: ArrayLike, x: Any, *, alpha: ArrayLike, tolerance: float = 1e-4
) -> None:
    """Prove that numbers are near those of `multimodal`, by their residual in float64; otherwise as `verify_manifold_ranking`.

    Examples
    --------
    >>> graph, start = atos.Graph.from_edges([0, 1], [1, 0]), [[1.0], [0.0]]
    >>> atos.verify_multimodal(graph, np.ones((2, 2)), start, [[2 / 3], [1 / 3]], alpha=[0.25, 0.25])
    """
    check_graph(graph)
    alphas = _check_alphas(alpha)
    first = host_features("start", start, (graph.num_vertices, -1))
    found = host_features("x", x, first.shape)
    means = _means(graph, _check_weights(graph, weights, alphas.size, "modality").astype(np.float64))
    share = float(alphas.sum())
    check_distance(graph, means @ alphas, found, (1 - share) * first, share, tolerance)
