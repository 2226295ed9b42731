"""Growing ranges: ranges of consecutive elements, of which the first ones are small, for workers to take one after another.

They suit vertices in the order of degrees, of which the first ones have the most edges: ranges of equal size would either be
too large there, so that all wait for the worker that takes one, or too many elsewhere, each of which costs an atomic operation.
Where elements are alike, they cost no more than ranges of equal size.
"""

from __future__ import annotations

import math
from typing import NamedTuple

__all__ = ["GrowingRanges", "begin_of", "plan_growing_ranges"]

_ALL_OF_ONE = 62  # a growth by which no range has more than one element


class GrowingRanges(NamedTuple):
    """Ranges of which number k begins with the element k + k² / 2^growth."""

    how_many: int
    growth: int


def plan_growing_ranges(elements: int, most: int) -> GrowingRanges:
    """Return ranges that have all elements, and are about `most`, or as many as elements if these are fewer."""
    growth = max((most**2 // (elements - most)).bit_length() - 1, 0) if elements > most else _ALL_OF_ONE
    unit = 1 << growth
    return GrowingRanges((math.isqrt(unit**2 + 4 * unit * elements) - unit) // 2 + 1, growth)


def begin_of(k, ranges):  # type: ignore[no-untyped-def]
    """Return the first element of range k; for tasks."""
    return k + (k * k >> ranges.growth)
