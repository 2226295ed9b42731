"""Minimum spanning trees by networkx's names and parameters, with the edges of Kruskal's algorithm, in its order.

That sorts the edges by weight, equal ones in the order of the graph. So the weights here are places in that order: no two of
them are equal, and weights of any type do that Python can compare.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...algorithms.minimum_spanning_forest import minimum_spanning_forest
from ...graph.graph import Graph
from .graphs import AtosGraph

__all__ = ["minimum_spanning_edges", "minimum_spanning_tree"]


def minimum_spanning_edges(
    G: AtosGraph,  # noqa: N803
    algorithm: str = "kruskal",
    weight: str = "weight",
    keys: bool = True,
    data: bool = True,
    ignore_nan: bool = False,
) -> Iterator[tuple[Any, ...]]:
    """Yield the edges of a minimum spanning forest, lightest first; only the algorithm "kruskal" comes here."""
    graph = G.to_networkx()
    edges = list(graph.edges(keys=True, data=True) if graph.is_multigraph() else graph.edges(data=True))
    weights = [edge[-1].get(weight, 1) for edge in edges]
    nans = [math.isnan(value) for value in weights]
    if any(nans) and not ignore_nan:
        raise ValueError(f"NaN found as an edge weight. Edge {edges[nans.index(True)]}")
    order = np.array(sorted((k for k, nan in enumerate(nans) if not nan), key=weights.__getitem__), np.int64)
    ends = np.array([(G.number[edge[0]], G.number[edge[1]]) for edge in edges], np.int64).reshape(-1, 2)[order]
    places = np.arange(order.size)
    ours = Graph.from_edges(ends[:, 0], ends[:, 1], places, num_vertices=len(G), symmetrize=True)
    found = np.asarray(ours.weights)[np.asarray(minimum_spanning_forest(ours).edge_ids)]
    for k in order[np.sort(found)].tolist():
        edge = edges[k][:-1] if keys else edges[k][:2]
        yield (*edge, edges[k][-1]) if data else edge


def minimum_spanning_tree(
    G: AtosGraph,  # noqa: N803
    weight: str = "weight",
    algorithm: str = "kruskal",
    ignore_nan: bool = False,
) -> Any:
    """Return a minimum spanning forest with the attributes of nodes and edges, as a graph of networkx."""
    graph = G.to_networkx()
    tree = graph.__class__()
    tree.graph.update(graph.graph)
    tree.add_nodes_from(graph.nodes.items())
    tree.add_edges_from(minimum_spanning_edges(G, algorithm, weight, ignore_nan=ignore_nan))
    return tree
