"""What networkx asks of its backend "atos" when it is imported, without importing atos_py, which takes a moment."""

from __future__ import annotations

from typing import Any

__all__ = ["get_info"]

_SAME = "The same result as networkx's own."
_WEIGHTS = "Not with weights that are negative, infinite, functions, or no integers or floats."
_ALL = "Not with `v`, `sp`, `e` or `weight`."
_FUNCTIONS = {
    "all_pairs_shortest_path_length": _SAME,
    "ancestors": _SAME,
    "betweenness_centrality": f"{_SAME} Not from a sample of `k` nodes, along weights, or with `endpoints`.",
    "bfs_edges": f"{_SAME} Not with `sort_neighbors`, nor with `reverse` in a directed graph.",
    "bfs_layers": _SAME,
    "bfs_predecessors": f"{_SAME} Not with `sort_neighbors`.",
    "bfs_successors": f"{_SAME} Not with `sort_neighbors`.",
    "bfs_tree": f"{_SAME} Not with `sort_neighbors`, nor with `reverse` in a directed graph.",
    "center": f"{_SAME} {_ALL} Not of a tree, or with `usebounds`.",
    "closeness_centrality": f"{_SAME} Not of one node, nor with `distance`.",
    "connected_components": _SAME,
    "clustering": f"{_SAME} Not with `weight`, nor of a directed graph.",
    "core_number": _SAME,
    "descendants": _SAME,
    "descendants_at_distance": _SAME,
    "diameter": f"{_SAME} {_ALL}",
    "eccentricity": f"{_SAME} {_ALL}",
    "greedy_color": "A coloring with at most one color more than the largest degree. Only `strategy='random_sequential'`.",
    "harmonic_centrality": f"{_SAME} Not with `nbunch`, `sources` or `distance`.",
    "is_connected": _SAME,
    "is_strongly_connected": _SAME,
    "is_weakly_connected": _SAME,
    "k_core": _SAME,
    "minimum_spanning_edges": f"{_SAME} Only `algorithm='kruskal'`.",
    "minimum_spanning_tree": f"{_SAME} Only `algorithm='kruskal'`.",
    "maximal_independent_set": "Any such set, by preference of nodes with few neighbors. Not with `seed`.",
    "node_connected_component": _SAME,
    "number_connected_components": _SAME,
    "number_strongly_connected_components": _SAME,
    "number_weakly_connected_components": _SAME,
    "periphery": f"{_SAME} {_ALL} Not with `usebounds`.",
    "radius": f"{_SAME} {_ALL}",
    "pagerank": "Ranks with an error of at most `len(G) * tol`. Not with negative weights, or `alpha=1`. There "
    "are no iterations to be limited by `max_iter`, as long as that is at least 1.",
    "shortest_path_length": f"{_SAME} Not with weights and `method='bellman-ford'`. {_WEIGHTS}",
    "single_source_dijkstra": f"{_SAME} {_WEIGHTS}",
    "single_source_dijkstra_path": f"{_SAME} {_WEIGHTS}",
    "single_source_dijkstra_path_length": f"{_SAME} {_WEIGHTS}",
    "single_source_shortest_path_length": _SAME,
    "single_target_shortest_path_length": _SAME,
    "strongly_connected_components": _SAME,
    "weakly_connected_components": _SAME,
    "triangles": _SAME,
}


def get_info() -> dict[str, Any]:
    """Return what the entry point ``networkx.backend_info`` has to tell."""
    return {
        "backend_name": "atos",
        "project": "atos_py",
        "package": "atos_py",
        "short_summary": "Task-parallel graph algorithms on GPUs and CPU threads",
        "functions": {name: {"additional_docs": text} for name, text in _FUNCTIONS.items()},
    }
