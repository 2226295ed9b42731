"""Functions of networkx that need the depths of a breadth-first search alone. Names and parameters are networkx's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from ...algorithms.bfs import UNREACHED, bfs
from ...graph.graph import Graph
from .graphs import AtosGraph

__all__ = [
    "all_pairs_shortest_path_length",
    "ancestors",
    "depths_from",
    "descendants",
    "descendants_at_distance",
    "is_connected",
    "node_connected_component",
    "single_source_shortest_path_length",
    "single_target_shortest_path_length",
]


def depths_from(graph: Graph, vertices: list[int]) -> NDArray[np.uint32]:
    """Return the depth of each vertex, on the host."""
    return np.asarray(bfs(graph, vertices).depth)


def _nodes(G: AtosGraph, chosen: NDArray[np.bool_]) -> set[Any]:  # noqa: N803
    return {G.nodes[v] for v in np.flatnonzero(chosen).tolist()}


def _lengths(G: AtosGraph, graph: Graph, node: Any, cutoff: float | None) -> dict[Any, int]:  # noqa: N803
    depth = depths_from(graph, [G.number[node]])
    found = np.flatnonzero(depth != UNREACHED)
    if cutoff is not None:
        found = found[(depth[found] == 0) | (depth[found] < cutoff + 1)]
    found = found[np.argsort(depth[found], kind="stable")]
    return {G.nodes[v]: d for v, d in zip(found.tolist(), depth[found].tolist(), strict=True)}


def single_source_shortest_path_length(G: AtosGraph, source: Any, cutoff: float | None = None) -> dict[Any, int]:  # noqa: N803
    """Return the distance of each node that can be reached, by distance."""
    if source not in G:
        raise nx.NodeNotFound(f"Source {source} is not in G")
    return _lengths(G, G.forward, source, cutoff)


def single_target_shortest_path_length(G: AtosGraph, target: Any, cutoff: float | None = None) -> dict[Any, int]:  # noqa: N803
    """Return the distance to a node from each one that reaches it, by distance."""
    if target not in G:
        raise nx.NodeNotFound(f"Target {target} is not in G")
    return _lengths(G, G.backward, target, cutoff)


def all_pairs_shortest_path_length(
    G: AtosGraph,  # noqa: N803
    cutoff: float | None = None,
) -> Iterator[tuple[Any, dict[Any, int]]]:
    """Yield each node and the distances from it."""
    for node in G.nodes:
        yield node, _lengths(G, G.forward, node, cutoff)


def descendants_at_distance(G: AtosGraph, source: Any, distance: int) -> set[Any]:  # noqa: N803
    """Return the nodes at a distance."""
    if source not in G:
        raise nx.NetworkXError(f"The node {source} is not in the graph.")
    depth = depths_from(G.forward, [G.number[source]])
    return _nodes(G, (depth == distance) & (depth != UNREACHED))


def _others(G: AtosGraph, graph: Graph, source: Any) -> set[Any]:  # noqa: N803
    if source not in G:
        raise nx.NetworkXError(f"The node {source} is not in the graph.")
    depth = depths_from(graph, [G.number[source]])
    return _nodes(G, (depth != UNREACHED) & (depth > 0))


def descendants(G: AtosGraph, source: Any) -> set[Any]:  # noqa: N803
    """Return the nodes that can be reached, without the source."""
    return _others(G, G.forward, source)


def ancestors(G: AtosGraph, source: Any) -> set[Any]:  # noqa: N803
    """Return the nodes that reach the source, without itself."""
    return _others(G, G.backward, source)


def node_connected_component(G: AtosGraph, n: Any) -> set[Any]:  # noqa: N803
    """Return the nodes of the component of a node."""
    return _nodes(G, depths_from(G.forward, [G.number[n]]) != UNREACHED)


def is_connected(G: AtosGraph) -> bool:  # noqa: N803
    """Return whether there is a path between any two nodes."""
    if not len(G):
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    return bool((depths_from(G.forward, [0]) != UNREACHED).all())
