"""Check that an edge and its reverse weigh the same: one pass over the edges, by a sum of hashes in which such edges cancel."""

from __future__ import annotations

import weakref

import numpy as np

from ..arrays.array import Array, zeros
from ..compile.atomics import atomic_add
from ..compile.task import task
from ..operators.edge_map import THREAD_MAX_DEGREE
from ..operators.ranges import range_items
from ..operators.row_map import row_map
from ..runtime.queue import Queue
from ..support.splitmix64 import splitmix64
from .graph_arrays import GraphArrays
from .symmetry import hash_edge

__all__ = ["has_symmetric_weights"]

_VERTICES_PER_ITEM = 128

#: Result for the weights of edges, together with these rows.
_known: weakref.WeakKeyDictionary[Array, tuple[weakref.ref[Array], weakref.ref[Array], bool]] = weakref.WeakKeyDictionary()


def sum_differences(v, edge, last, step, indices, bits, minus_zero):  # type: ignore[no-untyped-def]
    """Return the sum over edges of v of their hashes less those of their reverses, modulo 2**64."""
    total = np.uint64(0)
    while edge < last:
        u = indices[edge]
        weight = np.uint64(bits[edge])
        if weight == minus_zero:
            weight = np.uint64(0)
        total += splitmix64(hash_edge(v, u) + weight) - splitmix64(hash_edge(u, v) + weight)
        edge += step
    return np.int64(total)


def sum_row(v, edge, last, indices, bits, minus_zero):  # type: ignore[no-untyped-def]
    """Return the sum of a row."""
    return sum_differences(v, np.int64(edge), last, 1, indices, bits, minus_zero)


def sum_row_by_all(team, v, edge, last, indices, bits, minus_zero):  # type: ignore[no-untyped-def]
    """Return the part of this thread in the sum of a row."""
    return sum_differences(v, edge + team.rank, last, team.size, indices, bits, minus_zero)


sum_rows = row_map(sum_row, sum_row_by_all)


@task
def add_differences(worker, item, thread_max_degree, indptr, indices, bits, minus_zero, total):  # type: ignore[no-untyped-def]
    """Add up the differences of a range of vertices: 0 over all vertices, if the weights are symmetric."""
    first = item * _VERTICES_PER_ITEM
    end = min(first + _VERTICES_PER_ITEM, indptr.size - 1)
    found = worker.sum(sum_rows(worker, first, end, thread_max_degree, indptr, indices, bits, minus_zero))
    if worker.rank == 0:
        atomic_add(total, 0, found)


def has_symmetric_weights(graph: GraphArrays) -> bool:
    """Return whether every edge of a graph with weights has a reverse of the same weight, as often as it is there; remembered.

    A graph that is not so is taken for one that is with a probability of 2**-64.
    """
    indptr, indices, weights = graph
    assert weights is not None
    known = _known.get(weights)
    if known is None or known[0]() is not indptr or known[1]() is not indices:
        device, kind = graph.device, weights.dtype
        unsigned = np.dtype(f"u{kind.itemsize}")
        bits = Array(weights.pointer, weights.shape, unsigned, device, readonly=True, owner=weights)
        minus_zero = np.uint64(1 << (8 * kind.itemsize - 1) if kind.kind == "f" else 0)  # equal to 0
        total = zeros(1, dtype=np.int64, device=device)
        items = range_items(graph.num_vertices, _VERTICES_PER_ITEM)
        queue = Queue(max(len(items), 1), device=device)
        queue.push(items)
        queue.launch_warp(add_differences, THREAD_MAX_DEGREE[device.kind], indptr, indices, bits, minus_zero, total)
        known = _known[weights] = weakref.ref(indptr), weakref.ref(indices), int(total[0]) == 0
    return known[2]
