"""Ranges of consecutive vertices as queue items: item k stands for the vertices from k * size on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["VERTICES_PER_ITEM", "range_items", "range_of"]

VERTICES_PER_ITEM = 4096  # of passes that do little for each vertex


def range_items(n: int, size: int = VERTICES_PER_ITEM) -> NDArray[Any]:
    """Return the items that cover n vertices."""
    return np.arange(-(-n // size))


def range_of(worker, item, n, size):  # type: ignore[no-untyped-def]
    """Return this thread's part of a range of n vertices, or of other things that are numbered from 0; for tasks."""
    first = item * size
    return worker.split(range(first, min(first + size, n)))
