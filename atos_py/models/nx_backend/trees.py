"""Breadth-first trees, with edges in networkx's order: that of a sequential search. Names and parameters are networkx's.

The search itself is a parallel one and gives depths. Who is a node's parent, and who comes first, depends on who came first
before, so that is found by one pass along the edges on the host, in compiled code.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from ...algorithms.bfs import UNREACHED
from ...compile.host_kernels import compile_kernel
from .graphs import AtosGraph
from .searches import depths_from

__all__ = ["bfs_edges", "bfs_layers", "bfs_predecessors", "bfs_successors", "bfs_tree"]


def _order_kernel(
    indptr: Any, indices: Any, depth: Any, limit: Any, unreached: Any, parent: Any, order: Any, count: int
) -> int:  # pragma: no cover - compiled
    """Append to the first `count` of `order` what follows from them, set parents, and return how many there are."""
    at = 0
    while at < count and depth[order[at]] < limit:
        v = order[at]
        at += 1
        for edge in range(indptr[v], indptr[v + 1]):
            w = indices[edge]
            if depth[w] > depth[v] and parent[w] == unreached:
                parent[w] = v
                order[count] = w
                count += 1
    return count


def _ordered(G: AtosGraph, sources: list[int], limit: float | None) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:  # noqa: N803
    """Return vertices in the order of a search up to a depth, the parents of all vertices, and their depths."""
    depth = depths_from(G.forward, sources)
    parent = np.full(len(G), UNREACHED)
    order = np.empty(len(G), np.uint32)
    order[: len(sources)] = sources
    most = float(len(G) if limit is None else limit)
    rows = G.indptr, G.indices
    count = compile_kernel(_order_kernel)(*rows, depth, most, UNREACHED, parent, order, len(sources))
    return order[:count], parent, depth


def bfs_edges(
    G: AtosGraph,  # noqa: N803
    source: Any,
    reverse: bool = False,
    depth_limit: float | None = None,
    sort_neighbors: Any = None,
) -> Iterator[tuple[Any, Any]]:
    """Yield the edges of the tree; `reverse` is for undirected graphs here, where it changes nothing."""
    if source not in G:
        raise nx.NetworkXError(f"The node {source} is not in the graph.")
    order, parent, _ = _ordered(G, [G.number[source]], depth_limit)
    children = order[1:]
    for u, v in zip(parent[children].tolist(), children.tolist(), strict=True):
        yield G.nodes[u], G.nodes[v]


def bfs_tree(
    G: AtosGraph,  # noqa: N803
    source: Any,
    reverse: bool = False,
    depth_limit: float | None = None,
    sort_neighbors: Any = None,
) -> nx.DiGraph[Any]:
    """Return the tree."""
    tree: nx.DiGraph[Any] = nx.DiGraph()
    tree.add_node(source)
    tree.add_edges_from(bfs_edges(G, source, reverse, depth_limit))
    return tree


def bfs_predecessors(
    G: AtosGraph,  # noqa: N803
    source: Any,
    depth_limit: float | None = None,
    sort_neighbors: Any = None,
) -> Iterator[tuple[Any, Any]]:
    """Yield each node but the source, and its parent."""
    for parent, child in bfs_edges(G, source, depth_limit=depth_limit):
        yield child, parent


def bfs_successors(
    G: AtosGraph,  # noqa: N803
    source: Any,
    depth_limit: float | None = None,
    sort_neighbors: Any = None,
) -> Iterator[tuple[Any, list[Any]]]:
    """Yield each node that has children, and those; the source in any case."""
    node, children = source, list[Any]()
    for parent, child in bfs_edges(G, source, depth_limit=depth_limit):
        if parent != node:
            yield node, children
            node, children = parent, []
        children.append(child)
    yield node, children


def bfs_layers(G: AtosGraph, sources: Any) -> Iterator[list[Any]]:  # noqa: N803
    """Yield the nodes at each distance from the nearest source."""
    starts = [sources] if sources in G else list(set(sources))
    for node in starts:
        if node not in G:
            raise nx.NetworkXError(f"The node {node} is not in the graph.")
    if not starts:
        return
    order, _, depth = _ordered(G, [G.number[node] for node in starts], None)
    ends = np.flatnonzero(np.diff(depth[order])) + 1
    for layer in np.split(order, ends):
        yield [G.nodes[v] for v in layer.tolist()]
