"""Eccentricities and what follows from them, by networkx's names and parameters."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from ...algorithms.bfs import UNREACHED
from ...algorithms.eccentricity import diameter as largest_eccentricity
from ...algorithms.eccentricity import eccentricity as eccentricities
from .graphs import AtosGraph
from .searches import depths_from

__all__ = ["center", "diameter", "eccentricity", "periphery", "radius"]


def _check_connected(G: AtosGraph) -> None:  # noqa: N803
    """Raise as networkx unless all nodes reach each other."""
    graphs = (G.forward, G.backward) if G.is_directed() else (G.forward,)
    if len(G) and any((depths_from(graph, [0]) == UNREACHED).any() for graph in graphs):
        kind = "digraph is not strongly connected" if G.is_directed() else "graph is not connected"
        raise nx.NetworkXError(f"Found infinite path length because the {kind}")


def _eccentricities(G: AtosGraph) -> NDArray[Any]:  # noqa: N803
    _check_connected(G)
    return np.asarray(eccentricities(G.forward).eccentricity)


def eccentricity(G: AtosGraph, v: Any = None, sp: Any = None, weight: Any = None) -> dict[Any, int]:  # noqa: N803
    """Return the eccentricity of each node; only calls for all nodes, by edges, come here."""
    return dict(zip(G.nodes, _eccentricities(G).tolist(), strict=True))


def diameter(G: AtosGraph, e: Any = None, usebounds: bool = False, weight: Any = None) -> int:  # noqa: N803
    """Return the largest eccentricity."""
    _check_connected(G)
    return largest_eccentricity(G.forward).diameter


def radius(G: AtosGraph, e: Any = None, usebounds: bool = False, weight: Any = None) -> int:  # noqa: N803
    """Return the smallest eccentricity."""
    return int(_eccentricities(G).min())


def center(G: AtosGraph, e: Any = None, usebounds: bool = False, weight: Any = None) -> list[Any]:  # noqa: N803
    """Return the nodes of the smallest eccentricity, in the order of the graph."""
    found = _eccentricities(G)
    return [G.nodes[v] for v in np.flatnonzero(found == found.min()).tolist()]


def periphery(G: AtosGraph, e: Any = None, usebounds: bool = False, weight: Any = None) -> list[Any]:  # noqa: N803
    """Return the nodes of the largest eccentricity, in the order of the graph."""
    found = _eccentricities(G)
    return [G.nodes[v] for v in np.flatnonzero(found == found.max()).tolist()]
