"""A graph without loops, with its parallel edges as one, symmetric or sorted, by a stable sort of the edges where they are.

On the CPU that is `build_csr`. On a GPU, CuPy sorts the edges by source and target, and a task combines the weights of each run
of parallel ones, in their order, so that both devices give the same graph.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays.array import Array, asarray, zeros
from ..arrays.compute import compute
from ..arrays.primitives import min as least
from ..errors import InvalidArgumentError
from ..operators.ranges import range_items
from ..operators.vertex_map import vertex_map
from ..runtime.queue import Queue
from ..support.validation import check_bool
from .csr import EdgeChunk, build_csr, csr_to_chunks, indptr_dtype
from .graph_arrays import GraphArrays
from .transpose import row_offsets, row_sources, stable_order
from .weights import SUM, check_combine, combine_two, summed_dtype

__all__ = ["simplify_rows"]


def simplify_rows(
    graph: GraphArrays, *, symmetrize: bool, deduplicate: bool, remove_loops: bool, sort: bool, combine: str
) -> tuple[Array, Array, Array | None]:
    """Return the arrays of a graph changed as the options say; see `Graph.simplify`."""
    options = {"symmetrize": symmetrize, "deduplicate": deduplicate, "remove_loops": remove_loops, "sort": sort}
    options = {name: check_bool(name, value) for name, value in options.items()}
    rule = check_combine(combine)
    if graph.device.kind == "cpu":
        chunks = list(map(EdgeChunk._make, csr_to_chunks(graph._on_host())))
        csr = build_csr(chunks, graph.num_vertices, **options, combine=combine)
        indptr, indices, weights = (None if part is None else asarray(part, device=graph.device) for part in csr)
    else:
        indptr, indices, weights = simplify_on_gpu(graph, options, rule)
    if rule == SUM and weights is not None and weights.dtype.kind == "f" and weights.size and np.isnan(least(weights)):
        raise InvalidArgumentError("weights of parallel edges are infinite with both signs, and so have no sum")
    return indptr, indices, weights  # type: ignore[return-value]


def simplify_on_gpu(graph: GraphArrays, options: dict[str, bool], rule: int) -> tuple[Array, Array, Array | None]:
    """Return the arrays of a changed graph by CuPy and a task."""
    indptr, indices, edges, starts = compute(
        lambda xp, indptr, indices: rearrange(xp, indptr, indices, **options), graph.indptr, graph.indices
    )
    if graph.weights is None:
        return indptr, indices, None
    combined = options["deduplicate"]
    kind = summed_dtype(graph.weights.dtype) if combined and rule == SUM else graph.weights.dtype
    weights = zeros(indices.size, dtype=kind, device=graph.device)
    items = range_items(indices.size)
    queue = Queue(max(len(items), 1), device=graph.device)
    queue.push(items)
    queue.launch_cta(combine_run, indices.size, rule, starts, edges, graph.weights, weights)
    return indptr, indices, weights


@vertex_map
def combine_run(place, rule, starts, edges, weights, combined):  # type: ignore[no-untyped-def]
    """Combine the weights of a run of parallel edges."""
    total = combined.dtype.type(weights[edges[starts[place]]])
    for i in range(starts[place] + 1, starts[place + 1]):
        total = combined.dtype.type(combine_two(rule, total, combined.dtype.type(weights[edges[i]])))
    combined[place] = total


def rearrange(
    xp: Any, indptr: Any, indices: Any, *, symmetrize: bool, deduplicate: bool, remove_loops: bool, sort: bool
) -> tuple[Any, Any, Any, Any]:
    """Return the rows of the changed graph, numbers of old edges, and where those of each new edge begin; for `compute`."""
    sources, targets = row_sources(xp, indptr, indices.size), indices
    edges = xp.arange(indices.size, dtype=indptr_dtype(indices.size))
    loops = sources == targets
    if symmetrize:
        # Each edge before its reverse, so that parallel edges have one order in both directions.
        sources, targets = xp.stack([sources, targets], 1).ravel(), xp.stack([targets, sources], 1).ravel()
        edges = xp.stack([edges, edges], 1).ravel()
        wanted = xp.stack([~loops if remove_loops else xp.ones_like(loops), ~loops], 1).ravel()
    else:
        wanted = ~loops
    if symmetrize or remove_loops:
        sources, targets, edges = sources[wanted], targets[wanted], edges[wanted]
    if sort or deduplicate:
        order = stable_order(xp, (sources.astype(np.uint64) << np.uint64(32)) | targets)
        sources, targets, edges = sources[order], targets[order], edges[order]
    elif symmetrize:
        order = stable_order(xp, sources)
        sources, targets, edges = sources[order], targets[order], edges[order]
    first = xp.ones(sources.size, bool)
    if deduplicate:
        first[1:] = (sources[1:] != sources[:-1]) | (targets[1:] != targets[:-1])
        sources, targets = sources[first], targets[first]
    starts = xp.empty(sources.size + 1, np.int64)
    starts[:-1] = xp.flatnonzero(first)
    starts[-1] = edges.size
    return row_offsets(xp, sources, indptr.size - 1), targets, edges, starts
