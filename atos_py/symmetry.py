"""Whether a graph has every edge in both directions, told in one pass that needs no memory."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from .array import Array
from .parallel import compiled, parallel_map, ranges

__all__ = ["is_symmetric"]

_PIECE = 1 << 14  # vertices that a thread takes at once

#: What was found for targets of edges, together with these row offsets.
_known: weakref.WeakKeyDictionary[Array, tuple[weakref.ref[Array], bool]] = weakref.WeakKeyDictionary()


def _antisymmetry_kernel(indptr: Any, indices: Any, first: int, end: int) -> Any:  # pragma: no cover - compiled
    """Sum up a hash of each edge minus the hash of its reverse."""
    total = np.uint64(0)
    for u in range(first, end):
        for edge in range(indptr[u], indptr[u + 1]):
            v = indices[edge]
            z = (np.uint64(u) << np.uint64(32) | np.uint64(v)) * np.uint64(0x9E3779B97F4A7C15)
            z = (z ^ z >> np.uint64(29)) * np.uint64(0xBF58476D1CE4E5B9)
            total += z ^ z >> np.uint64(32)
            z = (np.uint64(v) << np.uint64(32) | np.uint64(u)) * np.uint64(0x9E3779B97F4A7C15)
            z = (z ^ z >> np.uint64(29)) * np.uint64(0xBF58476D1CE4E5B9)
            total -= z ^ z >> np.uint64(32)
    return total


def is_symmetric(indptr: Array, indices: Array) -> bool:
    """Return whether every edge has its reverse; remembered for these arrays. See `Graph.is_symmetric`."""
    offsets, found = _known.get(indices, (None, False))
    if offsets is None or offsets() is not indptr:
        rows, targets = np.asarray(indptr), np.asarray(indices)
        kernel = compiled(_antisymmetry_kernel)
        sums = parallel_map(lambda piece: int(kernel(rows, targets, *piece)), ranges(indptr.size - 1, _PIECE))
        found = sum(sums) % 2**64 == 0
        _known[indices] = weakref.ref(indptr), found
    return found
