"""Shortest paths by networkx's names and parameters.

The search is a parallel one and gives distances. Which of several shortest paths networkx takes, and the order of its results,
depend on the order in which Dijkstra's algorithm comes to nodes; that is found by one pass along the edges on the host.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from ...algorithms.bfs import UNREACHED, bfs
from ...algorithms.sssp import sssp
from ...algorithms.sssp.distances import unreached_of
from ...compile.host_kernels import compile_kernel
from .graphs import AtosGraph
from .searches import single_source_shortest_path_length, single_target_shortest_path_length

__all__ = [
    "shortest_path_length",
    "single_source_dijkstra",
    "single_source_dijkstra_path",
    "single_source_dijkstra_path_length",
]


def _order_kernel(
    indptr: Any, indices: Any, weights: Any, distance: Any, group: Any, place: Any, order: Any, before: Any
) -> None:  # pragma: no cover - compiled
    """Put nodes in the order in which Dijkstra's algorithm comes to them, and say from where it first came.

    Nodes of one distance are a group, and have consecutive places in the order; in a group, those found first come first.
    `place` is the next one of each group. At first the source is in its place; the order ends where a node was not found.
    """
    for at in range(order.size):
        u = order[at]
        if u < 0:
            break
        for edge in range(indptr[u], indptr[u + 1]):
            v = indices[edge]
            if before[v] == -1 and distance[u] + weights[edge] == distance[v]:
                before[v] = u
                order[place[group[v]]] = v
                place[group[v]] += 1


def _search(G: AtosGraph, source: Any, weight: Any, cutoff: Any, target: Any = None) -> tuple[NDArray[Any], ...]:  # noqa: N803
    """Return the nodes that are reached in networkx's order, the node before each on its path, and all distances."""
    if source not in G:
        raise nx.NodeNotFound(f"Node {source} not found in graph")
    graph, start = G.weighted(weight), G.number[source]
    end = G.number[target] if target is not None and target in G else None
    distance = np.asarray(sssp(graph, start, cutoff=cutoff, target=end).distance)
    top = unreached_of(distance.dtype)
    if end is not None and distance[end] != top:
        # Which nodes are as far as the target is not known yet, and they may be before it, along edges of weight 0.
        distance = np.asarray(sssp(graph, start, cutoff=distance[end]).distance)
    reached = np.flatnonzero(distance != top)
    _, groups, sizes = np.unique(distance[reached], return_inverse=True, return_counts=True)
    group, place = np.zeros(len(G), np.int64), np.cumsum(sizes) - sizes
    group[reached] = groups
    order, before = np.full(len(reached), -1), np.full(len(G), -1)
    order[0], before[start] = start, start
    place[0] += 1
    weights = np.broadcast_to(np.int64(1), G.indices.size) if graph.weights is None else np.asarray(graph.weights)
    wide = distance if distance.dtype.kind == "f" else distance.astype(np.int64)
    compile_kernel(_order_kernel)(G.indptr, G.indices, weights, wide, group, place, order, before)
    return order, before, distance


def _paths(G: AtosGraph, order: NDArray[Any], before: NDArray[Any]) -> dict[Any, list[Any]]:  # noqa: N803
    nodes = G.nodes
    first, *others = order.tolist()
    paths = {nodes[first]: [nodes[first]]}
    for v, u in zip(others, before[others].tolist(), strict=True):
        paths[nodes[v]] = [*paths[nodes[u]], nodes[v]]
    return paths


def _lengths(G: AtosGraph, order: NDArray[Any], distance: NDArray[Any]) -> dict[Any, Any]:  # noqa: N803
    return {G.nodes[v]: d for v, d in zip(order.tolist(), distance[order].tolist(), strict=True)}


def single_source_dijkstra(
    G: AtosGraph,  # noqa: N803
    source: Any,
    target: Any = None,
    cutoff: float | None = None,
    weight: str | None = "weight",
) -> tuple[Any, Any]:
    """Return the distance of each node that can be reached and a path to it, by distance; or those of the target."""
    if source in G and target == source:
        return 0, [target]
    order, before, distance = _search(G, source, weight, cutoff, target)
    if target is None:
        return _lengths(G, order, distance), _paths(G, order, before)
    v = G.number[target] if target in G else -1
    if v < 0 or before[v] < 0:
        raise nx.NetworkXNoPath(f"No path to {target}.")
    length, path = distance[v].item(), [v]
    while before[path[-1]] != path[-1]:
        path.append(int(before[path[-1]]))
    return length, [G.nodes[u] for u in reversed(path)]


def single_source_dijkstra_path(
    G: AtosGraph,  # noqa: N803
    source: Any,
    cutoff: float | None = None,
    weight: str | None = "weight",
) -> dict[Any, list[Any]]:
    """Return a shortest path to each node that can be reached, by distance."""
    order, before, _ = _search(G, source, weight, cutoff)
    return _paths(G, order, before)


def single_source_dijkstra_path_length(
    G: AtosGraph,  # noqa: N803
    source: Any,
    cutoff: float | None = None,
    weight: str | None = "weight",
) -> dict[Any, Any]:
    """Return the distance of each node that can be reached, by distance."""
    order, _, distance = _search(G, source, weight, cutoff)
    return _lengths(G, order, distance)


def _one_length(G: AtosGraph, source: Any, target: Any, weight: str | None) -> Any:  # noqa: N803
    if weight is None:
        for name, node in (("Source", source), ("Target", target)):
            if node not in G:
                raise nx.NodeNotFound(f"{name} {node} is not in G")
        depth = int(bfs(G.forward, G.number[source], target=G.number[target]).depth[G.number[target]])
        if depth == UNREACHED:
            raise nx.NetworkXNoPath(f"No path between {source} and {target}.")
        return depth
    if source not in G:
        raise nx.NodeNotFound(f"Node {source} not found in graph")
    if source == target:
        return 0
    if target in G:
        distance = sssp(G.weighted(weight), G.number[source], target=G.number[target]).distance
        if distance[G.number[target]] != unreached_of(distance.dtype):
            return distance[G.number[target]].item()
    raise nx.NetworkXNoPath(f"Node {target} not reachable from {source}")


def _all_lengths(G: AtosGraph, weight: str | None) -> Iterator[tuple[Any, dict[Any, Any]]]:  # noqa: N803
    for node in G.nodes:
        if weight is None:
            yield node, single_source_shortest_path_length(G, node)
        else:
            yield node, single_source_dijkstra_path_length(G, node, weight=weight)


def shortest_path_length(
    G: AtosGraph,  # noqa: N803
    source: Any = None,
    target: Any = None,
    weight: str | None = None,
    method: str = "dijkstra",
) -> Any:
    """Return the distance from a node to another, or those from or to one by node, or all pairs one node after the other."""
    if source is not None and target is not None:
        return _one_length(G, source, target, weight)
    if source is not None:
        if weight is None:
            return single_source_shortest_path_length(G, source)
        return single_source_dijkstra_path_length(G, source, weight=weight)
    if target is None:
        return _all_lengths(G, weight)
    if weight is None:
        if target not in G:
            raise nx.NodeNotFound(f"Source {target} is not in G")  # as networkx says, which turns the graph round
        return single_target_shortest_path_length(G, target)
    return single_source_dijkstra_path_length(G.reversed(weight), target, weight=weight)
