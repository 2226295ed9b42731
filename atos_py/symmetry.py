"""Whether a graph has every edge in both directions, told in one pass on its device."""

from __future__ import annotations

import weakref

import numpy as np

from .array import Array, zeros
from .queue import Queue
from .task import atomic_add, task

__all__ = ["is_symmetric"]

SPAN = 128  # vertices of an item
LIGHT = {"cuda": 16, "cpu": 1 << 62}  # edges of a vertex at which one thread looks; the others are for all threads of a worker

#: What was found for targets of edges, together with these row offsets.
_known: weakref.WeakKeyDictionary[Array, tuple[weakref.ref[Array], bool]] = weakref.WeakKeyDictionary()


def hash_of(u, v):  # type: ignore[no-untyped-def]
    """Return a hash of an edge, of 64 bits."""
    z = (np.uint64(u) << np.uint64(32) | np.uint64(v)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ z >> np.uint64(29)) * np.uint64(0xBF58476D1CE4E5B9)
    return z ^ z >> np.uint64(32)


@task
def antisymmetry(worker, span, indptr, indices, light, total):  # type: ignore[no-untyped-def]
    """Sum up a hash of each edge of some vertices, less that of its reverse."""
    first = span * SPAN
    end = min(first + SPAN, indptr.size - 1)
    found = np.uint64(0)
    heavy = False
    for u in worker.split(range(first, end)):
        if indptr[u + 1] - indptr[u] > light:
            heavy = True
        else:
            for edge in range(indptr[u], indptr[u + 1]):
                found += hash_of(u, indices[edge]) - hash_of(indices[edge], u)
    if worker.any(heavy):
        for u in range(first, end):
            if indptr[u + 1] - indptr[u] > light:
                for edge in worker.split(range(indptr[u], indptr[u + 1])):
                    found += hash_of(u, indices[edge]) - hash_of(indices[edge], u)
    found = worker.sum(found)
    if worker.rank == 0:
        atomic_add(total, 0, found)


def is_symmetric(indptr: Array, indices: Array) -> bool:
    """Return whether every edge has its reverse; remembered for these arrays. See `Graph.is_symmetric`."""
    offsets, found = _known.get(indices, (None, False))
    if offsets is None or offsets() is not indptr:
        device = indices.device
        total = zeros(1, dtype=np.uint64, device=device)
        spans = np.arange(-(-(indptr.size - 1) // SPAN))
        queue = Queue(max(len(spans), 1), device=device)
        queue.push(spans)
        queue.launch_warp(antisymmetry, indptr, indices, LIGHT[device.kind], total)
        found = int(total[0]) == 0
        _known[indices] = weakref.ref(indptr), found
    return found
