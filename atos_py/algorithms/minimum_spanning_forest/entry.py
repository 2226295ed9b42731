"""Entry of minimum spanning forests in the registry."""

from __future__ import annotations

from ..registry import register
from .api import minimum_spanning_forest
from .verify import verify_minimum_spanning_forest

register(
    run=minimum_spanning_forest,
    verify=lambda graph, result, _: verify_minimum_spanning_forest(graph, result.edges, result.edge_ids, result.weight),
    describe=lambda result: {"edges": result.num_edges, "weight": result.weight},
    arrays=lambda result: {"edge_ids": result.edge_ids, "edges": result.edges},
    help="find the lightest edges that join a graph",
    description="""\
Finds a spanning forest of the least total weight of an undirected graph, by Boruvka's algorithm. Ties are broken by one order
of all edges, so that the result is the same on every device. The cycle property, for every edge, proves it.""",
    examples=("road:1000:0.62 --out forest.npz", "roads.gr.gz --worker warp"),
    weighted=True,
)
