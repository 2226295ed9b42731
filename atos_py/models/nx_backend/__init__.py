"""The backend "atos" of networkx: ``nx.pagerank(G, backend="atos")``; see docs/networkx.md.

networkx finds here, by their names, the functions that it may call instead of its own, and four that tell it how: `can_run`,
`should_run`, `convert_from_nx` and `convert_to_nx`.
"""

from .centrality import betweenness_centrality, closeness_centrality, harmonic_centrality
from .choice import can_run, should_run
from .clusters import clustering, triangles
from .colors import greedy_color
from .components import (
    connected_components,
    is_strongly_connected,
    is_weakly_connected,
    number_connected_components,
    number_strongly_connected_components,
    number_weakly_connected_components,
    strongly_connected_components,
    weakly_connected_components,
)
from .cores import core_number, k_core
from .distances import center, diameter, eccentricity, periphery, radius
from .graphs import AtosGraph, convert_from_nx, convert_to_nx
from .independent_sets import maximal_independent_set
from .paths import (
    shortest_path_length,
    single_source_dijkstra,
    single_source_dijkstra_path,
    single_source_dijkstra_path_length,
)
from .ranks import pagerank
from .searches import (
    all_pairs_shortest_path_length,
    ancestors,
    descendants,
    descendants_at_distance,
    is_connected,
    node_connected_component,
    single_source_shortest_path_length,
    single_target_shortest_path_length,
)
from .spanning_trees import minimum_spanning_edges, minimum_spanning_tree
from .trees import bfs_edges, bfs_layers, bfs_predecessors, bfs_successors, bfs_tree

__all__ = [
    "AtosGraph",
    "all_pairs_shortest_path_length",
    "ancestors",
    "betweenness_centrality",
    "bfs_edges",
    "bfs_layers",
    "bfs_predecessors",
    "bfs_successors",
    "bfs_tree",
    "can_run",
    "center",
    "closeness_centrality",
    "clustering",
    "connected_components",
    "convert_from_nx",
    "convert_to_nx",
    "core_number",
    "descendants",
    "descendants_at_distance",
    "diameter",
    "eccentricity",
    "greedy_color",
    "harmonic_centrality",
    "is_connected",
    "is_strongly_connected",
    "is_weakly_connected",
    "k_core",
    "maximal_independent_set",
    "minimum_spanning_edges",
    "minimum_spanning_tree",
    "node_connected_component",
    "number_connected_components",
    "number_strongly_connected_components",
    "number_weakly_connected_components",
    "pagerank",
    "periphery",
    "radius",
    "shortest_path_length",
    "should_run",
    "single_source_dijkstra",
    "single_source_dijkstra_path",
    "single_source_dijkstra_path_length",
    "single_source_shortest_path_length",
    "single_target_shortest_path_length",
    "strongly_connected_components",
    "triangles",
    "weakly_connected_components",
]
