"""Check that an edge and its reverse weigh the same: one pass over the edges, by a sum of hashes in which such edges cancel."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np

from ..arrays.array import Array, zeros
from ..operators.edge_map import gather
from ..support.splitmix64 import splitmix64
from .graph_arrays import GraphArrays
from .kept import kept
from .passes import run_gather
from .symmetry import hash_edge, no_edge, row_difference

__all__ = ["has_symmetric_weights"]


def weighted_difference(v, u, edge, bits, minus_zero):  # type: ignore[no-untyped-def]
    """Return the hash of an edge and its weight less that of its reverse with the same weight."""
    weight = np.uint64(bits[edge])
    if weight == minus_zero:
        weight = np.uint64(0)
    return splitmix64(hash_edge(v, u) + weight) - splitmix64(hash_edge(u, v) + weight)


weighted_antisymmetry = replace(
    gather(weighted_difference, row_difference, no_edge, zero=np.uint64(0), with_edge=True),
    max_registers={"warp": (48, 64, None)},
)


def has_symmetric_weights(graph: GraphArrays) -> bool:
    """Return whether every edge of a graph with weights has a reverse of the same weight, as often as it is there; remembered.

    A graph that is not so is taken for one that is with a probability of 2**-64.
    """
    found = kept(graph)
    if "symmetric weights" not in found:
        weights = cast(Array, graph.weights)
        kind = weights.dtype
        unsigned = np.dtype(f"u{kind.itemsize}")
        bits = Array(weights.pointer, weights.shape, unsigned, graph.device, readonly=True, owner=weights)
        minus_zero = np.uint64(1 << (8 * kind.itemsize - 1) if kind.kind == "f" else 0)  # equal to 0
        total = zeros(1, dtype=np.uint64, device=graph.device)
        run_gather(weighted_antisymmetry, graph.indptr, graph.indices, total, bits, minus_zero)
        found["symmetric weights"] = int(total[0]) == 0
    return cast(bool, found["symmetric weights"])
