"""PageRank by networkx's name and parameters."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from ...algorithms.pagerank import pagerank as solve
from .graphs import AtosGraph

__all__ = ["pagerank"]


def pagerank(
    G: AtosGraph,  # noqa: N803
    alpha: float = 0.85,
    personalization: dict[Any, float] | None = None,
    max_iter: int = 100,
    tol: float = 1.0e-6,
    nstart: dict[Any, float] | None = None,
    weight: str | None = "weight",
    dangling: dict[Any, float] | None = None,
) -> dict[Any, float]:
    """Return the rank of each node.

    networkx stops when two iterations differ by less than ``len(G) * tol``, and is then wrong by at most
    ``alpha / (1 - alpha)`` times that. Here the smaller of both is what the error is at most.
    """
    if not len(G):
        return {}
    if max_iter < 1:
        raise nx.PowerIterationFailedConvergence(max_iter)
    jumps = _values(G, personalization)
    if jumps is not None and jumps.sum() == 0:
        raise ZeroDivisionError("personalization names no node of the graph")
    tolerance = min(max(len(G) * tol * min(1.0, alpha / (1 - alpha)), 1e-11 / (1 - alpha)), 1.0)
    weights = None if weight is None else G.attribute(weight)
    weighted = weights is not None and bool(
        (weights != weights[:1]).any() or (weights[:1] == 0).any()
    )  # otherwise each edge is as likely
    found = solve(
        G.weighted(weight) if weighted else G.forward,
        alpha,
        tolerance,
        dtype=np.float64,
        personalization=jumps,
        weighted=weighted,
        dangling=_values(G, dangling),
        start=_values(G, nstart),
    )
    return dict(zip(G.nodes, np.asarray(found.rank).tolist(), strict=True))


def _values(G: AtosGraph, given: dict[Any, float] | None) -> NDArray[np.float64] | None:  # noqa: N803
    return None if given is None else np.array([given.get(node, 0) for node in G.nodes], np.float64)
