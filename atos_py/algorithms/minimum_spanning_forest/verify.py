"""The proof that edges are a minimum spanning forest: it knows nothing of how they were found."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays.array import to_host
from ...compile.host_kernels import compile_kernel, even_rows, parallel_map
from ...errors import InvalidArgumentError, UnsupportedTypeError, VerificationError
from ...graph.graph import Graph
from ...graph.graph_arrays import check_graph
from ...support.validation import as_host_array
from ..arguments import ends_of, rows_on_host
from ..frame import verifier

__all__ = ["verify_minimum_spanning_forest"]

_CHUNK_EDGES = 1 << 20


def _join_kernel(ends: Any, order: Any, above: Any, when: Any, size: Any) -> int:  # pragma: no cover - compiled
    """Join trees by edges in an order; return the first edge whose ends are in one tree, or -1.

    The smaller tree comes under the larger one, so that ways up are short, and `when` keeps the place of the edge that did it.
    """
    for k in range(order.size):
        a, b = ends[order[k], 0], ends[order[k], 1]
        while above[a] != a:
            a = above[a]
        while above[b] != b:
            b = above[b]
        if a == b:
            return order[k]
        if size[a] > size[b]:
            a, b = b, a
        above[a] = b
        when[a] = k
        size[b] += size[a]
    return -1


def _edges_kernel(
    indptr: Any, indices: Any, weights: Any, forest: Any, above: Any, when: Any, first: int, end: int
) -> tuple[int, int]:  # pragma: no cover - compiled
    """Return the first edge that is wrong, or -1; and the place of the heaviest forest edge between its ends, or -1 if none.

    Up from both ends, the places of edges grow. Where the ways meet, the largest of them is that of the heaviest edge.
    """
    for u in range(first, end):
        for edge in range(indptr[u], indptr[u + 1]):
            a, b = u, np.int64(indices[edge])
            place = -1
            while a != b:
                if when[a] > when[b]:
                    a, b = b, a
                place = when[a]
                if above[a] == a:
                    return edge, -1
                a = above[a]
            if place >= 0 and weights.size and weights[edge] < forest[place]:
                return edge, place
    return -1, -1


@verifier
def verify_minimum_spanning_forest(graph: Graph, edges: Any, edge_ids: Any, weight: float | None = None) -> None:
    """Prove that edges are a minimum spanning forest.

    Four conditions are checked: the edges are those of the graph that are named; they close no cycle; they join the ends of
    every edge of the graph; and no edge of the graph is lighter than one between its ends in the forest. They suffice: by the
    first three it is a spanning forest. By the last it is a minimum one (the cycle property): take a minimum one that shares as
    many edges with it as any, and an edge that it has beyond. Some edge between its ends, here in the forest, is not in the
    minimum one and is no heavier, and can take its place: then more edges would be shared.

    The heaviest edge between two vertices is found by joining trees in the order of weights, the smaller under the larger one.

    Parameters
    ----------
    graph : Graph
        Undirected, as for `minimum_spanning_forest`; without weights each edge weighs 1.
    edges, edge_ids : array
        As `minimum_spanning_forest` returns them.
    weight : number, optional
        The sum of the weights: exact if they are integers, otherwise to a relative error of 1e-9.

    Examples
    --------
    >>> graph = atos.Graph.from_edges([0, 1, 2], [1, 2, 0], weights=[5, 1, 3], symmetrize=True)
    >>> result = atos.minimum_spanning_forest(graph)
    >>> atos.verify_minimum_spanning_forest(graph, result.edges, result.edge_ids, result.weight)
    >>> atos.verify_minimum_spanning_forest(graph, [[0, 1], [1, 2]], [0, 3])
    Traceback (most recent call last):
    atos_py.errors.VerificationError: ...
    """
    check_graph(graph)
    indptr, indices = rows_on_host(graph)
    weights = np.empty(0, np.int32) if graph.weights is None else np.asarray(graph.weights)
    ends, ids = _check_edges(indptr, indices, edges, edge_ids)
    chosen = weights[ids] if weights.size else weights
    order = np.argsort(chosen, kind="stable") if weights.size else np.arange(ids.size)
    n = indptr.size - 1
    above, when, size = np.arange(n), np.full(n, ids.size, np.int64), np.ones(n, np.int64)
    closing = int(compile_kernel(_join_kernel)(ends, order, above, when, size))
    if closing >= 0:
        u, v = ends[closing].tolist()
        raise VerificationError(f"edge {u} -> {v} (number {ids[closing]}) closes a cycle of edges that are no heavier")
    arguments = indptr, indices, weights, chosen[order] if weights.size else chosen, above, when
    kernel = compile_kernel(_edges_kernel)
    for edge, place in parallel_map(lambda piece: kernel(*arguments, *piece), even_rows(indptr, _CHUNK_EDGES)):
        if edge >= 0:
            u, v = ends_of(indptr, indices, edge)
            name = f"edge {u} -> {v} (number {edge})"
            if place < 0:
                raise VerificationError(f"{name} joins two trees")
            a, b = ends[order[place]].tolist()
            heavier = f"edge {a} -> {b} of weight {chosen[order[place]]}"
            raise VerificationError(f"{name} weighs {weights[edge]}, and could take the place of {heavier}")
    _check_weight(chosen if weights.size else np.ones(ids.size, np.int32), weight)


def _check_edges(
    indptr: NDArray[Any], indices: NDArray[Any], edges: Any, edge_ids: Any
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the ends and the numbers of edges on the host, if they are those of the graph."""
    ends, ids = _integers("edges", edges), _integers("edge_ids", edge_ids)
    if ids.ndim != 1 or ends.shape != (ids.size, 2):
        raise InvalidArgumentError(
            f"edges must have two ends for each of edge_ids, which has one dimension (got shapes {ends.shape} and {ids.shape})"
        )
    outside = (ids < 0) | (ids >= indices.size)
    if outside.any():
        raise VerificationError(f"edge number {ids[np.argmax(outside)]} is none of {indices.size}")
    places = ids.astype(np.int64)
    true = np.stack([np.searchsorted(indptr, places, side="right") - 1, indices[places]], axis=1).astype(np.int64)
    wrong = (true != ends).any(axis=1)
    if wrong.any():
        k = int(np.argmax(wrong))
        raise VerificationError(
            f"edge number {ids[k]} leads from {true[k, 0]} to {true[k, 1]}, not from {ends[k, 0]} to {ends[k, 1]}"
        )
    return true, places


def _integers(name: str, values: Any) -> NDArray[Any]:
    given = as_host_array(name, to_host(values))
    if given.size and given.dtype.kind not in "iu":
        raise UnsupportedTypeError(f"{name} must be an array of integers, not {given.dtype}")
    return given


def _check_weight(weights: NDArray[Any], weight: float | None) -> None:
    if weight is None:
        return
    total = math.fsum(weights.tolist()) if weights.dtype.kind == "f" else sum(weights.tolist())
    if weight != total and not (weights.dtype.kind == "f" and math.isclose(weight, total, rel_tol=1e-9)):
        raise VerificationError(f"weight is {weight}, but the edges weigh {total}")
