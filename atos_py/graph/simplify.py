"""A graph without loops, with its parallel edges as one, symmetric or sorted, by a stable sort of the edges where they are.

On the CPU that is `build_csr`. On a GPU, keys of source and target are sorted, and tasks do the rest; the weights of a run of
parallel edges are combined in their order, so that both devices give the same graph.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays.array import Array, asarray, empty
from ..arrays.filled import full
from ..arrays.primitives import argsort, cumsum, sort
from ..arrays.primitives import max as most
from ..arrays.primitives import min as least
from ..errors import InvalidArgumentError
from ..operators.vertex_map import vertex_map
from ..support.validation import check_bool
from .csr import EdgeChunk, build_csr, csr_to_chunks
from .edge_passes import map_edges, offsets_of, source_of
from .graph_arrays import GraphArrays
from .weights import SUM, check_combine, combine_two, refuse_wrapped, sum_limits, summed_dtype

__all__ = ["simplify_array", "simplify_on_gpu", "simplify_rows"]

_0, _32, _LOW, _UNWANTED = np.uint64(0), np.uint64(32), np.uint64(0xFFFF_FFFF), np.uint64(2**64 - 1)


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
    if rule == SUM and weights is not None and weights.dtype.kind == "f" and weights.size:
        if np.isnan(least(weights)):
            raise InvalidArgumentError("weights of parallel edges are infinite with both signs, and so have no sum")
        if _is_infinite(weights) and not _is_infinite(graph.weights):
            raise InvalidArgumentError(f"weights of parallel edges have a sum that {weights.dtype} does not hold")
    return indptr, indices, weights  # type: ignore[return-value]


def simplify_array(
    graph: GraphArrays,
    name: str,
    array: Array,
    *,
    symmetrize: bool = False,
    remove_loops: bool = False,
    sort: bool = False,
    combine: str = "min",
) -> Array:
    """Return an array of numbers of the edges for a graph whose parallel edges become one, as if these were the weights."""
    rows = GraphArrays(graph.indptr, graph.indices, array)
    ways: dict[str, Any] = {"symmetrize": symmetrize, "remove_loops": remove_loops, "sort": sort, "combine": combine}
    try:
        made = simplify_rows(rows, **ways, deduplicate=True)[2]
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"edge array {name!r:.80}: {error}") from error
    return asarray(made, readonly=True)


def _is_infinite(weights: Any) -> bool:
    """Whether any weight is infinite."""
    return bool(np.isinf(least(weights)) or np.isinf(most(weights)))


def simplify_on_gpu(graph: GraphArrays, options: dict[str, bool], rule: int) -> tuple[Array, Array, Array | None]:
    """Return the arrays of a changed graph: by keys of both ends, which are sorted, and a pass over the runs of equal ones.

    A key stands for an edge or, where the graph becomes symmetric, for its reverse, which comes right after it. Unwanted ones
    are last. Parallel edges keep their order, of which only weights can tell.
    """
    device, weights = graph.device, graph.weights
    shift = int(options["symmetrize"])
    by_target = options["sort"] or options["deduplicate"]
    count = graph.num_edges << shift
    keys = empty(count, dtype=np.uint64, device=device)
    rows = graph.indptr, graph.indices
    map_edges(write_keys, graph.num_edges, device, *rows, shift, int(options["remove_loops"]), int(by_target), keys)
    order = None if by_target and weights is None else argsort(keys)
    keys = sort(keys) if order is None else keys
    begins = empty(count, dtype=np.int64, device=device)
    wanted = full(1, count, dtype=np.int64, device=device)
    map_edges(mark_runs, count, device, order, keys, int(options["deduplicate"]), begins, wanted)
    ends = cumsum(begins)
    found = int(ends[count - 1]) if count else 0
    sources, targets = (empty(found, dtype=np.uint32, device=device) for _ in range(2))
    starts = None if weights is None else full(found + 1, wanted[0], dtype=np.int64, device=device)
    map_edges(write_runs, count, device, order, keys, begins, ends, *rows, shift, int(by_target), sources, targets, starts)
    combined = None
    if weights is not None:
        adds = options["deduplicate"] and rule == SUM
        combined = empty(found, dtype=summed_dtype(weights.dtype) if adds else weights.dtype, device=device)
        limits = asarray(sum_limits(combined.dtype), device=device, readonly=True)
        wrong = full(1, -1, dtype=np.int64, device=device)
        map_edges(combine_run, found, device, rule, starts, order, shift, weights, limits, combined, wrong)
        if (edge := int(wrong[0])) >= 0:
            refuse_wrapped(int(sources[edge]), int(targets[edge]), combined.dtype)
    return offsets_of(sources, graph.num_vertices), targets, combined


@vertex_map
def write_keys(edge, indptr, indices, shift, remove_loops, by_target, keys):  # type: ignore[no-untyped-def]
    """Write the key of an edge, source and target or the source alone, and of its reverse if they are wanted."""
    u = np.uint64(source_of(edge, indptr))
    v = np.uint64(indices[edge])
    place = np.int64(edge) << shift
    keys[place] = _UNWANTED if remove_loops and u == v else u << _32 | (v if by_target else _0)
    if shift:
        keys[place + 1] = _UNWANTED if u == v else v << _32 | (u if by_target else _0)


def key_at(place, order, keys):  # type: ignore[no-untyped-def]
    """Return the key that comes at a place in their order."""
    return keys[place if order is None else order[place]]


@vertex_map
def mark_runs(place, order, keys, deduplicate, begins, wanted):  # type: ignore[no-untyped-def]
    """Mark the key at a place if it begins a run of equal ones, each its own unless they become one; count those wanted."""
    key = key_at(place, order, keys)
    before = _UNWANTED if place == 0 else key_at(place - 1, order, keys)
    begins[place] = key != _UNWANTED and (key != before or not deduplicate)
    if key == _UNWANTED and (place == 0 or before != _UNWANTED):
        wanted[0] = place


@vertex_map
def write_runs(place, order, keys, begins, ends, indptr, indices, shift, by_target, sources, targets, starts):  # type: ignore[no-untyped-def]
    """Write the edge of a run that begins at a place, and where that is."""
    if begins[place]:
        new = ends[place] - 1
        key = key_at(place, order, keys)
        sources[new] = key >> _32
        if by_target:
            targets[new] = key & _LOW
        elif order is not None:
            edge = order[place] >> shift
            targets[new] = source_of(edge, indptr) if order[place] & shift else indices[edge]
        if starts is not None:
            starts[new] = place


@vertex_map
def combine_run(place, rule, starts, order, shift, weights, limits, combined, wrong):  # type: ignore[no-untyped-def]
    """Combine the weights of a run of parallel edges, and note the place of a sum that does not fit."""
    total, wraps = combined.dtype.type(weights[order[starts[place]] >> shift]), 0
    for i in range(starts[place] + 1, starts[place + 1]):
        total, wrap = combine_two(rule, total, combined.dtype.type(weights[order[i] >> shift]), limits)
        wraps += wrap
    combined[place] = total
    if wraps != 0:
        wrong[0] = place
