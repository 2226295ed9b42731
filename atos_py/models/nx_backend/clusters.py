"""Triangles and clustering coefficients by networkx's names and parameters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

from ...algorithms.count_triangles import count_triangles
from .graphs import AtosGraph

__all__ = ["clustering", "triangles"]


def triangles(G: AtosGraph, nodes: Any = None) -> Any:  # noqa: N803
    """Return the triangles that each node is in, or each of `nodes`, or the one that this is."""
    return _of_nodes(G, nodes, count_triangles(G.forward).triangles)


def clustering(G: AtosGraph, nodes: Any = None, weight: None = None) -> Any:  # noqa: N803
    """Return the clustering coefficient of each node, or of each of `nodes`, or of the one that this is."""
    return _of_nodes(G, nodes, count_triangles(G.forward).clustering)


def _of_nodes(G: AtosGraph, nodes: Any, values: Any) -> Any:  # noqa: N803
    """Return the values of the nodes that networkx's `nbunch_iter` would give, or that of a single one."""
    found = np.asarray(values).tolist()
    if nodes is None:
        return dict(zip(G.nodes, found, strict=True))
    if nodes in G:
        return found[G.number[nodes]]
    return {node: found[G.number[node]] for node in _named(G, nodes)}


def _named(G: AtosGraph, nodes: Any) -> Iterator[Any]:  # noqa: N803
    try:
        named = iter(nodes)
    except TypeError as error:
        raise nx.NetworkXError(f"Node {nodes} is not in the graph.") from error
    for node in named:
        try:
            hash(node)
        except TypeError as error:
            raise nx.NetworkXError(f"Node {node} in sequence nbunch is not a valid node.") from error
        if node in G:
            yield node
