"""Components by networkx's names and parameters, in networkx's order.

Strongly connected components come as a depth-first search finds them, one step after the other, so that each comes after those
that it reaches. Where the order shows, that search is all there is, in compiled code on the host.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from ...algorithms.connected_components import connected_components as find_components
from ...algorithms.strongly_connected_components import strongly_connected_components as find_strong_components
from ...graph.strong_components import number_components
from .graphs import AtosGraph

__all__ = [
    "connected_components",
    "is_strongly_connected",
    "is_weakly_connected",
    "number_connected_components",
    "number_strongly_connected_components",
    "number_weakly_connected_components",
    "strongly_connected_components",
    "weakly_connected_components",
]


def _sets(G: AtosGraph, label: NDArray[Any]) -> Iterator[set[Any]]:  # noqa: N803
    """Yield the nodes of each component, by label."""
    order = np.argsort(label, kind="stable")
    for part in np.split(order, np.flatnonzero(np.diff(label[order])) + 1):
        if part.size:
            yield {G.nodes[v] for v in part.tolist()}


def connected_components(G: AtosGraph) -> Iterator[set[Any]]:  # noqa: N803
    """Yield the nodes of each component."""
    yield from _sets(G, np.asarray(find_components(G.forward).label))


def number_connected_components(G: AtosGraph) -> int:  # noqa: N803
    """Return how many components there are."""
    return find_components(G.forward).num_components


weakly_connected_components = connected_components
number_weakly_connected_components = number_connected_components


def is_weakly_connected(G: AtosGraph) -> bool:  # noqa: N803
    """Return whether edges, in either direction, join all nodes."""
    if not len(G):
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    return number_weakly_connected_components(G) == 1


def strongly_connected_components(G: AtosGraph) -> Iterator[set[Any]]:  # noqa: N803
    """Yield the nodes of each strongly connected component."""
    yield from _sets(G, number_components(G.indptr, G.indices))


def number_strongly_connected_components(G: AtosGraph) -> int:  # noqa: N803
    """Return how many strongly connected components there are."""
    return find_strong_components(G.forward).num_components


def is_strongly_connected(G: AtosGraph) -> bool:  # noqa: N803
    """Return whether every node reaches all others."""
    if not len(G):
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    return number_strongly_connected_components(G) == 1
