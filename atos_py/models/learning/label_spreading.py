"""Label spreading: labels of a few vertices spread over a graph, as far as edges of large weight join them.

Each vertex has a number for each class. The fixed point is F = alpha S F + (1 - alpha) Y, where S is the adjacency matrix
normalized to D^(-1/2) W D^(-1/2), and Y has a 1 for the class of each vertex that is labeled. S does not lengthen vectors, so
the residual over 1 - alpha bounds the distance to it.

Source: Zhou, Bousquet, Lal, Weston and Schölkopf, "Learning with local and global consistency", NIPS 2003.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ...arrays.any_array import AnyArray
from ...arrays.array import Array, asarray, empty, to_host, zeros
from ...arrays.array_library import as_library
from ...errors import InvalidArgumentError, UnsupportedTypeError
from ...graph.graph import Graph
from ...graph.graph_arrays import check_graph
from ...graph.strength import out_strength
from ...graph.symmetric_weights import has_symmetric_weights
from ...runtime.launch_options import LaunchOptions, Unpack
from ...support.host_memory import host_memory_for
from ...support.shown import ShownFields
from ...support.validation import as_dtype, as_host_array, check_float
from ..linalg.vectors import normalize
from .feature_gather import MOST_FEATURES
from .features.change_driven import fixed_point
from .features.functions import together
from .features.maps import Maps
from .linear_certificate import check_distance, host_features, row_sums, unit_roundoff

__all__ = ["LabelSpreadingResult", "check_alpha", "label_spreading", "verify_label_spreading"]


class Spreading(NamedTuple):
    """Arrays that the functions share."""

    weights: Any  # of the edges, or None
    scale: Array  # of a vertex: its degree, and then its inverse square root
    scaled: Array  # the coefficients of the edges
    seeds: Array
    alpha: float


def weight_of(v, u, edge, weights):  # type: ignore[no-untyped-def]
    """Return the weight of an edge, 0 of a loop."""
    if v == u:
        return np.float64(0)
    return np.float64(1) if weights is None else np.float64(weights[edge])


def degree_part(f, v, u, edge, s):  # type: ignore[no-untyped-def]
    """Return what an edge adds to the degree of a vertex."""
    return weight_of(v, u, edge, s.weights)


def keep_scale(f, v, total, s):  # type: ignore[no-untyped-def]
    """Keep the inverse square root of a degree; 0 of a vertex without edges."""
    s.scale[v, f] = total**-0.5 if total > 0 else 0.0


def scale_weight(f, u, v, edge, s):  # type: ignore[no-untyped-def]
    """Keep the coefficient of an edge."""
    s.scaled[edge] = s.scaled.dtype.type(s.alpha * weight_of(u, v, edge, s.weights) * s.scale[u, 0] * s.scale[v, 0])


def coefficient(f, v, u, edge, s):  # type: ignore[no-untyped-def]
    """Return by how much the features of a neighbor count."""
    return s.scaled[edge]


def add_seed(f, v, total, s):  # type: ignore[no-untyped-def]
    """Return the new feature of a vertex."""
    return total + s.seeds[v, f]


@dataclass(frozen=True, eq=False)
class LabelSpreadingResult(ShownFields):
    """Result of `label_spreading`.

    Attributes
    ----------
    label : Array, or an array of the library that the graph's arrays came from
        The class of each vertex: the one of the largest number. Vertices that no label reaches have -1.
    distribution : Array, or an array of that library
        (n, classes), a row for each vertex, of sum 1 or 0.
    spread : Array, or an array of that library
        F, before it was made a distribution.
    classes : numpy.ndarray
        The labels of the columns.
    converged : bool
        Whether the bound is at most the tolerance; it is not where `dtype` is too coarse.
    error_bound : float
        Of the Euclidean distance of `spread` to the closed form, rounding included.
    iterations : int
    edge_operations : int
        Edges that something was sent along, or that were summed up.

    Examples
    --------
    >>> graph = atos.Graph.from_edges([0, 1, 3], [1, 2, 4], symmetrize=True)
    >>> atos.label_spreading(graph, [7, -1, -1, 9, -1]).classes
    array([7, 9])
    """

    label: AnyArray
    distribution: AnyArray
    spread: AnyArray
    classes: NDArray[Any]
    converged: bool
    error_bound: float
    iterations: int
    edge_operations: int


def check_alpha(alpha: Any) -> float:
    """Return the share of what comes from neighbors."""
    given = check_float("alpha", alpha)
    if not 0 < given < 1:
        raise InvalidArgumentError(f"alpha must be between 0 and 1 (got {alpha})")
    return given


def _one_hot(labels: Any, n: int, dtype: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    given = as_host_array("labels", to_host(labels))
    if given.shape != (n,) or given.dtype.kind not in "iu":
        raise InvalidArgumentError(
            f"labels must be {n} integers, one for each vertex, and -1 without a label"
            f" (got {given.dtype} of shape {given.shape})"
        )
    classes = np.unique(given[given != -1])
    if not 1 <= classes.size <= MOST_FEATURES:
        raise InvalidArgumentError(f"labels must name 1 to {MOST_FEATURES} classes beside -1 (got {classes.size})")
    seeds = np.zeros((n, classes.size), dtype)
    labeled = np.flatnonzero(given != -1)
    seeds[labeled, np.searchsorted(classes, given[labeled])] = 1
    return classes, seeds


class _Found(NamedTuple):
    spread: Array
    distribution: Array
    label: Array
    classes: Array


@functools.lru_cache(64)
def _decide(k: int, dtype: Any) -> Any:
    def decide_label(team, v, s):  # type: ignore[no-untyped-def]
        row = team.scratch(dtype, k)
        for f in team.split(k):
            row[f] = s.spread[v, f]
        team.sync()
        if team.rank == 0:
            best = 0
            for f in range(1, k):
                if row[f] > row[best]:
                    best = f
            s.label[v] = s.classes[best] if row[best] > 0 else -1
        normalize(team, row, k)
        for f in team.split(k):
            s.distribution[v, f] = row[f]

    return together(decide_label)


@host_memory_for("atos.label_spreading")
def label_spreading(
    graph: Graph,
    labels: ArrayLike,
    *,
    alpha: float = 0.2,
    tolerance: float = 1e-3,
    dtype: DTypeLike = np.float32,
    change_driven: bool = False,
    max_iterations: int = 10_000,
    **launch_options: Unpack[LaunchOptions],
) -> LabelSpreadingResult:
    """Spread the labels of some vertices over a graph: F = (1 - alpha) (I - alpha S)^-1 Y, as scikit-learn's LabelSpreading.

    Parameters
    ----------
    graph : Graph
        Taken as undirected, as `Graph.to_symmetric` makes it. Weights, if there are any, are similarities: not negative, and
        the same both ways. Loops are ignored.
    labels : array of int
        The class of each vertex, -1 for none; up to 128 classes.
    alpha : float
        Share of what comes from neighbors, between 0 and 1; the rest comes from the vertex' own label.
    tolerance : float
        Largest Euclidean distance of `spread` to the closed form.
    dtype : {np.float32, np.float64}
    change_driven : bool
        Whether only vertices that have changed send to others, which pays where few do. Otherwise all edges are summed up in
        each iteration, and the result is the same in every run.
    max_iterations : int
    **launch_options : LaunchOptions
        Of all launches.

    Returns
    -------
    LabelSpreadingResult

    Raises
    ------
    InvalidArgumentError
        If there are no labels or too many classes, weights are negative or not symmetric, or a number is out of its range.

    References
    ----------
    Zhou, Bousquet, Lal, Weston and Schölkopf, "Learning with local and global consistency", NIPS 2003.

    Examples
    --------
    >>> graph = atos.Graph.from_edges([0, 1, 3], [1, 2, 4], symmetrize=True)
    >>> result = atos.label_spreading(graph, [7, -1, -1, 9, -1])
    >>> print(result.label[:], result.converged)
    [7 7 7 9 9] True
    """
    check_graph(graph)
    share, kind = check_alpha(alpha), as_dtype(dtype)
    if kind not in (np.float32, np.float64):
        raise UnsupportedTypeError(f"dtype must be float32 or float64, not {kind}")
    library, n, device = graph.library, graph.num_vertices, graph.device
    classes, seeds = _one_hot(labels, n, kind)
    graph = graph.to_symmetric()
    if graph.weights is not None:
        out_strength(graph)  # refuses negative ones
        if not has_symmetric_weights(graph):
            raise InvalidArgumentError("weights must be the same both ways, as those of graph.simplify(symmetrize=True) are")
    start = asarray((1 - share) * seeds, device=device, dtype=kind)
    scale, scaled = zeros((n, 1), dtype=np.float64, device=device), empty(graph.num_edges, dtype=kind, device=device)
    given = Spreading(graph.weights, scale, scaled, asarray(start, readonly=True), share)
    preparing = Maps(graph, 1, given, **launch_options)
    preparing.sum_map(degree_part, keep_scale, np.float64)
    preparing.edge_map(scale_weight)
    given = given._replace(weights=None, scaled=asarray(scaled, readonly=True))
    options: Any = {"tolerance": tolerance, "change_driven": change_driven, "max_iterations": max_iterations, **launch_options}
    # That of coefficients and seeds: those of a vertex are at most (1 + alpha) times as large as what it has.
    norm: Any = {"contraction": share, "norm": "2", "symmetric": True, "rounding": 3 * unit_roundoff(kind)}
    found = fixed_point(graph, start.copy(), coefficient, add_seed, given, **norm, **options)
    distribution, label = empty(found.x.shape, dtype=kind, device=device), empty(n, dtype=np.int64, device=device)
    last = _Found(found.x, distribution, label, asarray(classes.astype(np.int64), device=device))
    Maps(graph, classes.size, last, **launch_options).vertex_map(_decide(classes.size, cast(Any, kind.type)))
    arrays = (as_library(each, library) for each in (label, distribution, found.x))
    fields: list[Any] = [*arrays, classes, *found[1:5]]
    return LabelSpreadingResult(*fields)


@host_memory_for("atos.verify_label_spreading")
def verify_label_spreading(
    graph: Graph, labels: ArrayLike, spread: Any, *, alpha: float = 0.2, tolerance: float = 1e-3
) -> None:
    """Prove that features are near the closed form of label spreading, by their residual in float64.

    Parameters
    ----------
    graph, labels, alpha
        As for `label_spreading`.
    spread : array
        (n, classes), before it is made a distribution.
    tolerance : float
        Largest Euclidean distance.

    Raises
    ------
    VerificationError
        The message has the bound.

    Examples
    --------
    >>> graph, labels = atos.Graph.from_edges([0, 1], [1, 2], symmetrize=True), [0, -1, -1]
    >>> result = atos.label_spreading(graph, labels, tolerance=1e-4)
    >>> atos.verify_label_spreading(graph, labels, result.spread, tolerance=2e-4)
    >>> atos.verify_label_spreading(graph, labels, np.ones((3, 1)))
    Traceback (most recent call last):
    atos_py.errors.VerificationError: ...
    """
    check_graph(graph)
    graph = graph.to_symmetric()
    n = graph.num_vertices
    classes, seeds = _one_hot(labels, n, np.float64)
    found = host_features("spread", spread, (n, classes.size))
    csr = graph._on_host()
    weights = np.ones(graph.num_edges) if csr.weights is None else csr.weights.astype(np.float64)
    targets = np.asarray(csr.indices)
    rows = np.repeat(np.arange(n), np.asarray(graph.degrees()))
    weights = np.where(rows == targets, 0, weights)
    _, degrees = row_sums(graph, weights)
    scale = np.where(degrees > 0, degrees, 1) ** -0.5
    share = check_alpha(alpha)
    check_distance(graph, share * weights * scale[rows] * scale[targets], found, (1 - share) * seeds, share, tolerance, "2")
