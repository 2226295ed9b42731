"""Rules by which networkx may use this backend for a call (`can_run`), and by which it should (`should_run`)."""

from __future__ import annotations

import inspect
import sys
from typing import Any

import numpy as np

from ...graph.strength import LEAST
from .graphs import AtosGraph
from .independent_sets import has_no_seed

__all__ = ["can_run", "should_run"]

_SMALL = 10_000  # nodes and edges, below which converting and launching take longer than networkx itself


def _arguments(name: str, args: Any, kwargs: Any) -> dict[str, Any]:
    function = getattr(sys.modules[__package__], name)
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.arguments


def can_run(name: str, args: Any, kwargs: Any) -> bool | str:
    """Return True, or why a call has to be left to networkx."""
    given = _arguments(name, args, kwargs)
    if given.get("sort_neighbors") is not None:
        return "neighbors are taken in the order in which the graph has them"
    if given.get("reverse") and given["G"].is_directed():
        return "the order of predecessors is not kept"
    if name == "greedy_color" and (given["strategy"] != "random_sequential" or given["interchange"]):
        return "vertices are colored in no certain order, and without interchange"
    if name.startswith("minimum_spanning") and given["G"].is_directed():
        return "spanning trees are those of undirected graphs"
    if name.startswith("minimum_spanning") and given["algorithm"] != "kruskal":
        return "edges are those of Kruskal's algorithm, in its order"
    if name == "clustering" and (given["weight"] is not None or given["G"].is_directed()):
        return "clustering coefficients are those of undirected graphs without weights"
    one_by_one = name == "clustering" or (name == "triangles" and given["nodes"] is not None)
    if one_by_one and given["G"].is_multigraph():
        return "networkx has none of single nodes of multigraphs"
    if name == "maximal_independent_set" and not has_no_seed(given["seed"]):
        return "the set that networkx finds for a seed is one of its own"
    if name == "betweenness_centrality":
        sampled = given["k"] is not None and given["k"] != len(given["G"])
        special = sampled or given["weight"] is not None or given["endpoints"]
        return "paths are counted by edges, between all nodes, and without their ends" if special else True
    if name in ("closeness_centrality", "harmonic_centrality"):
        some = any(given.get(which) is not None for which in ("u", "nbunch", "sources"))
        return "distances are those between all nodes, by edges" if some or given["distance"] is not None else True
    if name in ("eccentricity", "diameter", "radius", "center", "periphery"):
        if any(given.get(which) is not None for which in ("v", "sp", "e", "weight")):
            return "eccentricities are those of all nodes, by edges"
        # networkx has an error of its own where there are no nodes, and the center of a tree in another order
        special = not len(given["G"]) or (name in ("center", "periphery") and _is_ordered_otherwise(name, **given))
        return "networkx has an order of its own for trees and with bounds, and an error without nodes" if special else True
    if name == "pagerank":
        return _can_rank(**given)
    if name.startswith(("shortest_path", "single_source_dijkstra")):
        return _can_measure(**given)
    return True


def _can_measure(G: Any, weight: Any = None, method: str = "dijkstra", cutoff: Any = None, **_: Any) -> bool | str:  # noqa: N803
    if method not in ("dijkstra", "bellman-ford") or (method != "dijkstra" and weight is not None):
        return "weights are for Dijkstra's algorithm"
    if cutoff is not None and not (isinstance(cutoff, (int, float)) and cutoff == cutoff):
        return "the cutoff has to be a number"
    if weight is None:
        return True
    if callable(weight):
        return "weights have to be an attribute of edges"
    weights = _weights(G, weight)
    most = 2**53 // (len(G) + 1)  # of integers, so that no sum of them is rounded, whatever is beside them
    if not all(isinstance(w, (int, float)) and 0 <= w <= (most if isinstance(w, int) else 1e290) for w in weights):
        return "weights have to be integers or floats of at least 0, and not too large"
    return True


def _is_ordered_otherwise(name: str, G: Any, usebounds: bool, **_: Any) -> bool:  # noqa: N803
    """Whether networkx lists the center or the periphery in another order than that of the nodes."""
    if G.is_directed():
        return False
    return bool(usebounds) or (name == "center" and G.number_of_edges() == len(G) - 1)


def _can_rank(
    G: Any,  # noqa: N803 - networkx's name
    alpha: float,
    personalization: dict[Any, float] | None,
    tol: float,
    nstart: dict[Any, float] | None,
    weight: str | None,
    dangling: dict[Any, float] | None,
    **_: Any,
) -> bool | str:
    if not len(G):
        return True  # whatever the numbers are: there are no ranks
    if not 0 <= alpha < 1:
        return "alpha has to be less than 1"
    for values in (personalization, nstart, dangling):
        if values is not None and not all(0 <= value < float("inf") for value in values.values()):
            return "personalization, nstart and dangling may not be negative"
    if dangling is not None and not any(dangling.get(node, 0) for node in G):
        return "dangling has to have a positive sum"
    if nstart is not None and not any(nstart.get(node, 0) for node in G):
        return "nstart has to have a positive sum"
    if len(G) * tol < 1e-9 / (1 - alpha):
        return "the tolerance is near the rounding of float64"
    if weight is not None and not all(map(_is_weight, _weights(G, weight))):
        return f"weights have to be 0 or from {LEAST} to 2**63"
    return True


def _weights(G: Any, name: str) -> list[Any]:  # noqa: N803
    if not isinstance(G, AtosGraph):
        return [weight for *_, weight in G.edges(data=name, default=1)]
    values = G.attribute(name)
    return [None] if values is None else values.tolist()


def _is_weight(weight: Any) -> bool:
    return isinstance(weight, (int, float, np.integer, np.floating)) and bool(weight == 0 or LEAST <= weight < 2**63)


def should_run(name: str, args: Any, kwargs: Any) -> bool | str:
    """Return True, or why networkx itself will be faster."""
    graph = _arguments(name, args, kwargs)["G"]
    if isinstance(graph, AtosGraph) or len(graph) + graph.number_of_edges() >= _SMALL:
        return True
    return f"the graph has fewer than {_SMALL} nodes and edges"
