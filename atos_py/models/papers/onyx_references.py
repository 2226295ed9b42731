"""The five algorithms of the thesis on Onyx in NumPy and SciPy, an iteration at a time: the reference of table 7.4.

The programs that the thesis compares Onyx with, on Gunrock, Tigr and SIMD-X, were not published. These are independent of
atos_py. Each goes from one state to the next by the equation of the algorithm, so it also tells how far a state is from one
that no longer changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...graph.graph import Graph
from .onyx_algorithms import ALPHAS, RIDGE, UNLIKE, Inputs, K

__all__ = ["Reference", "references_on"]

_LABEL_SHARE, _RANK_SHARE = 0.5, 0.9  # the defaults of `propagate_labels` and `manifold_ranking`


class Reference(NamedTuple):
    """State in which an algorithm begins, and the function of an iteration, from one state to the next."""

    start: Any
    step: Callable[[Any], Any]

    def residual(self, state: Any) -> float:
        """Return the largest change of a number by one more iteration."""
        return float(np.abs(self.step(state) - state).max(initial=0.0))


def _normalized(x: Any) -> Any:
    total = x.sum(axis=1, keepdims=True)
    return np.divide(x, total, out=np.zeros_like(x), where=total != 0)


def _label_propagation(matrix: Any, features: Any) -> Reference:
    def step(x: Any) -> Any:
        received = matrix @ x
        mixed = _LABEL_SHARE * _normalized(received) + (1 - _LABEL_SHARE) * x
        return _normalized(np.where(received.sum(axis=1, keepdims=True) != 0, mixed, x))

    return Reference(features, step)


def _factors(matrix: Any, features: Any) -> Reference:
    def step(x: Any) -> Any:
        products = (x[:, :, None] * x[:, None, :]).reshape(-1, K * K)
        normal = (matrix @ products).reshape(-1, K, K) + RIDGE * np.eye(K)
        return np.linalg.solve(normal, (matrix @ x)[:, :, None])[:, :, 0]

    return Reference(features, step)


def _beliefs(matrix: Any, prior: Any, back: Any) -> Reference:
    import scipy.sparse

    m = matrix.indices.size
    sources = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    incoming = scipy.sparse.csr_array((np.ones(m), np.arange(m), matrix.indptr), shape=(matrix.shape[0], m))
    potential = np.where(np.eye(K, dtype=bool), 1.0, UNLIKE)

    def step(messages: Any) -> Any:  # those that the source of an edge has got from its target, as logarithms
        belief = prior + incoming @ messages
        others = belief[sources] - messages  # of a vertex with many edges, so small that there are no numbers for their powers
        sent = np.log(np.exp(others - others.max(axis=1, keepdims=True)) @ potential)
        sent -= np.log(np.exp(sent).sum(axis=1, keepdims=True))
        received = np.empty_like(sent)
        received[back] = sent
        return received

    return Reference(np.zeros((m, K)), step)


def _rows_of(matrix: Any, values: Any) -> Any:
    import scipy.sparse

    weighted = scipy.sparse.csr_array((values, matrix.indices, matrix.indptr), shape=matrix.shape)
    total = weighted.sum(axis=1)
    inverse = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
    return scipy.sparse.diags_array(inverse) @ weighted


def _manifold_ranking(matrix: Any, inputs: Inputs) -> Reference:
    means = [_rows_of(matrix, inputs.weights[:, f].astype(np.float64)) for f in range(K)]

    def step(x: Any) -> Any:
        return _RANK_SHARE * np.stack([means[f] @ x[:, f] for f in range(K)], axis=1) + (1 - _RANK_SHARE) * inputs.seeds

    return Reference(inputs.seeds.astype(np.float64), step)


def _multimodal(matrix: Any, inputs: Inputs) -> Reference:
    combined = sum(share * _rows_of(matrix, inputs.weights[:, j].astype(np.float64)) for j, share in enumerate(ALPHAS))

    def step(x: Any) -> Any:
        return combined @ x + (1 - sum(ALPHAS)) * inputs.seeds

    return Reference(inputs.seeds.astype(np.float64), step)


def references_on(graph: Graph, inputs: Inputs) -> dict[str, Callable[[], Reference]]:
    """Return the algorithms by name; each is made when it is called, since it needs memory.

    Raises
    ------
    MissingPackageError
        If SciPy is not installed.
    """
    weights = graph.to_scipy().astype(np.float64)
    ones = weights.copy()
    ones.data[:] = 1
    features = inputs.features.astype(np.float64)
    return {
        "LP": lambda: _label_propagation(weights, features),
        "ALS": lambda: _factors(ones, features),
        "BP": lambda: _beliefs(ones, features, graph.reverse_edges()),
        "MMR": lambda: _manifold_ranking(ones, inputs),
        "MML": lambda: _multimodal(ones, inputs),
    }
