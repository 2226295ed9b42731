"""Centrality by networkx's names and parameters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...algorithms.betweenness import betweenness
from ...algorithms.closeness import closeness
from .graphs import AtosGraph

__all__ = ["betweenness_centrality", "closeness_centrality", "harmonic_centrality"]


def betweenness_centrality(
    G: AtosGraph,  # noqa: N803
    k: int | None = None,
    normalized: bool = True,
    weight: Any = None,
    endpoints: bool = False,
    seed: Any = None,
) -> dict[Any, float]:
    """Return the betweenness of each node; only calls for all sources, by edges and without endpoints come here."""
    found = np.asarray(betweenness(G.simple).centrality)
    if not normalized:  # of a directed graph each pair counts twice, also if every edge has its reverse
        found = found * ((len(G) - 1) * (len(G) - 2) / (1 if G.is_directed() else 2))
    return dict(zip(G.nodes, found.tolist(), strict=True))


def closeness_centrality(
    G: AtosGraph,  # noqa: N803
    u: Any = None,
    distance: Any = None,
    wf_improved: bool = True,
) -> dict[Any, float]:
    """Return the closeness of each node; only calls for all nodes, by edges, come here."""
    found = np.asarray(closeness(G.forward, wf_improved=bool(wf_improved)).centrality)
    return dict(zip(G.nodes, found.tolist(), strict=True))


def harmonic_centrality(
    G: AtosGraph,  # noqa: N803
    nbunch: Iterable[Any] | None = None,
    distance: Any = None,
    sources: Iterable[Any] | None = None,
) -> dict[Any, float]:
    """Return the harmonic centrality of each node; only calls for all nodes, from all, and by edges come here."""
    found = np.asarray(closeness(G.forward, harmonic=True).centrality)
    return dict(zip(G.nodes, found.tolist(), strict=True))
