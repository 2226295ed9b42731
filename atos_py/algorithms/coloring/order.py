"""Orders of turns: a key for each vertex, and the vertices sorted by their keys, on their device."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...arrays.array import Array, empty, zeros
from ...arrays.primitives import sort
from ...graph.graph import Graph
from ...operators.vertex_map import append, vertex_map
from ..launch_sequence import LaunchSequence
from .tasks import hash32, unhash32

__all__ = ["ORDERS", "find_hubs", "sort_by_turn"]

ORDERS = ("natural", "random", "degree")


def key_of(v, indptr, order):  # type: ignore[no-untyped-def]
    """Return the key of v: its id, or its hash, above which lies the degree, the largest first, if that counts."""
    if order == 0:
        return np.uint64(v)
    key = np.uint64(hash32(v))
    if order == 2:
        key |= np.uint64(0xFFFFFFFF - min(indptr[v + 1] - indptr[v], 0xFFFFFFFF)) << np.uint64(32)
    return key


@vertex_map
def set_key(v, indptr, order, keys):  # type: ignore[no-untyped-def]
    """Write down the key of v."""
    keys[v] = key_of(v, indptr, order)


@vertex_map
def set_vertex(place, keys, vertices):  # type: ignore[no-untyped-def]
    """Write down which vertex has the key at a place, if keys are hashes."""
    vertices[place] = unhash32(np.int64(keys[place] & np.uint64(0xFFFFFFFF)))


@vertex_map
def list_hub(v, indptr, order, hub_degree, keys):  # type: ignore[no-untyped-def]
    """List the key of v if it has `hub_degree` neighbors or more."""
    if indptr[v + 1] - indptr[v] >= hub_degree:
        append(keys, key_of(v, indptr, order))


def sort_by_turn(graph: Graph, order: str, launches: LaunchSequence) -> Array | None:
    """Return all vertices in the order of their turns; None if that is the order of ids."""
    if order == "natural":
        return None
    n, device = graph.num_vertices, graph.device
    keys, vertices = empty(n, dtype=np.uint64, device=device), empty(n, dtype=np.uint32, device=device)
    launches.over_vertices(set_key, n, graph.indptr, ORDERS.index(order), keys)
    launches.over_vertices(set_vertex, n, sort(keys), vertices)
    return vertices


def find_hubs(graph: Graph, order: str, hub_degree: int, launches: LaunchSequence) -> NDArray[np.uint32]:
    """Return the vertices with `hub_degree` neighbors or more, in the order of their turns."""
    keys = zeros(2 + graph.num_edges // hub_degree, dtype=np.uint64, device=graph.device)
    launches.over_vertices(list_hub, graph.num_vertices, graph.indptr, ORDERS.index(order), hub_degree, keys)
    found = np.sort(keys[1 : 1 + int(keys[0])]) & 0xFFFFFFFF
    return (found if order == "natural" else unhash32(found)).astype(np.uint32)
