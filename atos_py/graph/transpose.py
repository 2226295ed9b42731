"""Transpose of a graph: the same edges turned round, with the number that each had, by one stable sort of the edges by target.

On the CPU that is the counting sort of `build_csr`, on a GPU a radix sort, and a task that puts edges in that order. Either
leaves the neighbors of a vertex in ascending order, and parallel edges in the order that they had.
"""

from __future__ import annotations

import numpy as np

from ..arrays.array import Array, asarray, empty
from ..arrays.primitives import argsort
from ..operators.vertex_map import vertex_map
from .csr import EdgeChunk, build_csr, csr_to_chunks, indptr_dtype
from .edge_passes import map_edges, offsets_of, source_of
from .graph_arrays import GraphArrays

__all__ = ["transpose_on_gpu", "transpose_rows"]


def transpose_rows(graph: GraphArrays, *, with_edges: bool) -> tuple[Array, Array, Array | None]:
    """Return the arrays of the transpose, or with the number that each edge has in `graph` in place of its weight."""
    if graph.device.kind != "cpu":
        return transpose_on_gpu(graph, with_edges=with_edges)
    csr = graph._on_host()
    if with_edges:
        csr = csr._replace(weights=np.arange(graph.num_edges, dtype=indptr_dtype(graph.num_edges)))
    made = build_csr([EdgeChunk(v, u, values) for u, v, values in csr_to_chunks(csr)], graph.num_vertices)
    return tuple(None if part is None else asarray(part, device=graph.device) for part in made)  # type: ignore[return-value]


def transpose_on_gpu(graph: GraphArrays, *, with_edges: bool) -> tuple[Array, Array, Array | None]:
    """Return the same, by a sort and two tasks."""
    m, device = graph.num_edges, graph.device
    carried = None if with_edges else graph.weights
    values = None
    if with_edges or carried is not None:
        values = empty(m, dtype=indptr_dtype(m) if carried is None else carried.dtype, device=device)
    sources, targets = (empty(m, dtype=np.uint32, device=device) for _ in range(2))
    order = argsort(graph.indices)
    map_edges(turn_round, m, device, order, graph.indptr, graph.indices, carried, sources, targets, values)
    return offsets_of(sources, graph.num_vertices), targets, values


@vertex_map
def turn_round(place, order, indptr, indices, weights, sources, targets, values):  # type: ignore[no-untyped-def]
    """Put the edge that comes at a place of the transpose there, turned round, with its weight or its number."""
    edge = order[place]
    sources[place] = indices[edge]
    targets[place] = source_of(edge, indptr)
    if values is not None:
        if weights is None:
            values[place] = edge
        else:  # not in one expression, which would be float64 for weights of uint64
            values[place] = weights[edge]
