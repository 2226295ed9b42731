"""Pairwise testing: of the cases of a test, a few in which every two values of its parameters come together.

Source: Cohen, Dalal, Fredman and Patton, "The AETG system: an approach to testing based on combinatorial design", IEEE
Transactions on Software Engineering 23 (1997).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

__all__ = ["pairwise"]


def pairwise(cases: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the places of some cases that together have every two values which any of them has together.

    A case has the value of each parameter; values are the same if they are printed in the same way. The case with most pairs
    that no case before it has is next, and of several the first one.
    """
    named = [sorted((name, repr(value)) for name, value in case.items()) for case in cases]
    pairs = [set(combinations(case, 2)) or set(case) for case in named]
    left = set().union(*pairs)
    chosen = []
    while left:
        best = max(range(len(pairs)), key=lambda place: len(pairs[place] & left))
        chosen.append(best)
        left -= pairs[best]
    return sorted(chosen)
