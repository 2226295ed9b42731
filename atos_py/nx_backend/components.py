"""Components by networkx's names and parameters; they come in the order of their first nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

from ..algorithms.connected_components import ComponentsResult
from ..algorithms.connected_components import connected_components as find_components
from .graphs import AtosGraph

__all__ = [
    "connected_components",
    "is_weakly_connected",
    "number_connected_components",
    "number_weakly_connected_components",
    "weakly_connected_components",
]


def _sets(G: AtosGraph, found: ComponentsResult) -> Iterator[set[Any]]:  # noqa: N803
    """Yield the nodes of each component."""
    label = np.asarray(found.label)
    order = np.argsort(label, kind="stable")
    for part in np.split(order, np.flatnonzero(np.diff(label[order])) + 1):
        if part.size:
            yield {G.nodes[v] for v in part.tolist()}


def connected_components(G: AtosGraph) -> Iterator[set[Any]]:  # noqa: N803
    """Yield the nodes of each component."""
    yield from _sets(G, find_components(G.forward))


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
