"""Ranges of consecutive vertices as queue items, in two encodings; all items of a queue have the same.

*Range items*: every item is a range. Item k stands for the `size` vertices from k * size on (`range_items`, `split_range`).
They are for passes over all vertices, which choose the size: vertex maps and `gather`.

*Mixed items*: an item is a vertex or a range. Of n vertices, item v < n is vertex v, and item n + k stands for the
`VERTICES_PER_MIXED_RANGE` vertices from k * `VERTICES_PER_MIXED_RANGE` on (`mixed_ranges`, `mixed_range_bounds`). So a frontier
is either a list, the vertices in the queue, or dense: all ranges, and a predicate for the vertices in them. They are for
`push`, and for coloring.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

__all__ = [
    "VERTICES_PER_ITEM",
    "VERTICES_PER_MIXED_RANGE",
    "mixed_item_dtype",
    "mixed_range_bounds",
    "mixed_ranges",
    "range_items",
    "split_range",
]

VERTICES_PER_ITEM = 4096  # of passes that do little for each vertex
VERTICES_PER_MIXED_RANGE = 512


def range_items(n: int, size: int = VERTICES_PER_ITEM) -> range:
    """Return the range items that cover n vertices."""
    return range(-(-n // size))


def split_range(worker, item, n, size):  # type: ignore[no-untyped-def]
    """Return this thread's part of a range item of n vertices, or of other things that are numbered from 0; for tasks."""
    first = item * size
    return worker.split(range(first, min(first + size, n)))


def mixed_ranges(n: int) -> range:
    """Return the mixed items that are ranges, which cover all n vertices."""
    return range(n, n + -(-n // VERTICES_PER_MIXED_RANGE))


def mixed_item_dtype(n: int) -> DTypeLike:
    """Return the type of a queue's items that can be any of n vertices, or a range of them."""
    return np.uint32 if n + -(-n // VERTICES_PER_MIXED_RANGE) < 2**32 else np.int64


def mixed_range_bounds(item, n):  # type: ignore[no-untyped-def]
    """Return the first vertex of a mixed item that is a range, and how many there are; for tasks."""
    first = (item - n) * VERTICES_PER_MIXED_RANGE
    return first, min(VERTICES_PER_MIXED_RANGE, n - first)
