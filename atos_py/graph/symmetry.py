"""Symmetry check: one pass over the edges on the graph's device, by a sum of hashes in which an edge and its reverse cancel."""

from __future__ import annotations

import weakref
from dataclasses import replace

import numpy as np

from ..arrays.array import Array, zeros
from ..operators.edge_map import gather
from ..support.remembered import Remembered
from ..support.splitmix64 import splitmix64
from .passes import run_gather

__all__ = ["hash_edge", "is_symmetric", "no_edge", "remember_symmetric", "row_difference"]

#: Result for the targets of edges, together with these row offsets.
_known: Remembered[tuple[weakref.ref[Array], bool]] = Remembered()


def hash_edge(u, v):  # type: ignore[no-untyped-def]
    """Return a hash of an edge, of 64 bits."""
    return splitmix64(np.uint64(u) << np.uint64(32) | np.uint64(v))


def reverse_difference(v, u):  # type: ignore[no-untyped-def]
    """Return the hash of an edge less that of its reverse."""
    return hash_edge(v, u) - hash_edge(u, v)


def no_edge(*args):  # type: ignore[no-untyped-def]
    """Return the difference of no edge."""
    return np.uint64(0)


def row_difference(v, degree, received, *args):  # type: ignore[no-untyped-def]
    """Return what the edges of a vertex add to the sum: 0, modulo 2**64, over all edges if each has its reverse."""
    return (received,)


antisymmetry = replace(
    gather(reverse_difference, row_difference, no_edge, zero=np.uint64(0)), max_registers={"warp": (48, 64, None)}
)


def is_symmetric(indptr: Array, indices: Array) -> bool:
    """Return whether every edge has its reverse; remembered for these arrays. See `Graph.is_symmetric`."""
    offsets, found = _known.get(indices) or (None, False)
    if offsets is None or offsets() is not indptr:
        total = zeros(1, dtype=np.uint64, device=indices.device)
        run_gather(antisymmetry, indptr, indices, total)
        found = int(total[0]) == 0
        _known.set(indices, (weakref.ref(indptr), found))
    return found


def remember_symmetric(indptr: Array, indices: Array) -> None:
    """Spare the pass over edges that were made so that each has its reverse."""
    _known.set(indices, (weakref.ref(indptr), True))
