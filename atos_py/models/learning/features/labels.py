"""Label propagation as in Onyx: probabilities of labels, which vertices mix with those of their neighbors.

Source: L. Vaz, "Onyx" (thesis, 2021), section 2.2.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ....arrays.array import Array, asarray
from ....graph.graph import Graph
from ....graph.graph_arrays import check_graph
from ...linalg.vectors import normalize
from .change_driven import FixedPoint, fixed_point
from .functions import check_share, together

__all__ = ["propagate_labels"]


class _Labels(NamedTuple):
    x: Array
    weights: Any
    alpha: float


def _weight_of(edge, weights):  # type: ignore[no-untyped-def]
    return 1.0 if weights is None else weights[edge]


def _weight(f, v, u, edge, s):  # type: ignore[no-untyped-def]
    return _weight_of(edge, s.weights)


@together
def _mix(team, v, new, s):  # type: ignore[no-untyped-def]
    k = s.x.shape[1]
    whole = normalize(team, new, k)
    for f in team.split(k):
        # Where no neighbor has a label, all stays as it is.
        new[f] = s.alpha * new[f] + (1 - s.alpha) * s.x[v, f] if whole != 0 else s.x[v, f]
    normalize(team, new, k)


def propagate_labels(
    graph: Graph, x: Any, *, alpha: float = 0.5, tolerance: float = 1e-3, max_iterations: int = 1000, **options: Any
) -> FixedPoint:
    """Propagate probabilities of labels: x = normalize(alpha normalize(W x) + (1 - alpha) x), up to small changes.

    Nothing holds vertices to the labels that they began with, so in the end those of a component may become alike. What spreads
    labels of some vertices over the others is `label_spreading`.

    Parameters
    ----------
    graph : Graph
        Vertex v looks at its edges (v, u), by their weights if there are any.
    x : array
        (n, k), float32 or float64, not negative; it is not changed.
    alpha : float
        Share of what comes from neighbors, from 0 to 1.
    tolerance : float
        Largest change of a number in another iteration. There is no bound of the error.
    max_iterations : int
    **options
        As for `fixed_point`: `change_driven`, `feature_aware`, options of launches.

    Returns
    -------
    FixedPoint

    Raises
    ------
    InvalidArgumentError
        If alpha is out of its range, or x of another shape.

    Examples
    --------
    >>> from atos_py import features
    >>> graph = atos.Graph.from_edges([0, 1, 2], [1, 0, 1])
    >>> found = features.propagate_labels(graph, np.array([[0.9, 0.1], [0.9, 0.1], [0.0, 0.0]]), tolerance=1e-6)
    >>> print(found.x.to_numpy().round(3).tolist())
    [[0.9, 0.1], [0.9, 0.1], [0.9, 0.1]]
    """
    check_graph(graph)
    start = asarray(x, device=graph.device, copy=True)
    data = _Labels(start, graph.weights, check_share("alpha", alpha))
    return fixed_point(graph, start, _weight, _mix, data, tolerance=tolerance, max_iterations=max_iterations, **options)
