"""Pairwise testing: of the cases of a test, a few in which every two values of its parameters come together.

Source: Cohen, Dalal, Fredman and Patton, "The AETG system: an approach to testing based on combinatorial design", IEEE
Transactions on Software Engineering 23 (1997).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

__all__ = ["each_value", "pairwise"]


def pairwise(cases: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the places of some cases that together have every two values which any of them has together.

    A case has the value of each parameter; values are the same if they are printed in the same way. The case with most pairs
    that no case before it has is next, and of several the first one.
    """
    return _cover([set(combinations(case, 2)) or set(case) for case in _named(cases)])


def each_value(cases: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the places of some cases that together have every value of each parameter, each value about as often."""
    return _cover([set(case) for case in _named(cases)])


def _named(cases: Sequence[Mapping[str, Any]]) -> list[list[tuple[str, str]]]:
    return [sorted((name, repr(value)) for name, value in case.items()) for case in cases]


def _cover(parts: Sequence[set[Any]]) -> list[int]:
    """Return the places of some sets with the same union as all; of sets with as much that is new, those of what is rare."""
    left: set[Any] = set().union(*parts)
    times: Counter[Any] = Counter()
    chosen = []
    while left:
        best = max(range(len(parts)), key=lambda place: (len(parts[place] & left), -sum(times[part] for part in parts[place])))
        chosen.append(best)
        left -= parts[best]
        times.update(parts[best])
    return sorted(chosen)
