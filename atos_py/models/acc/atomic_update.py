"""Atomic updates by any function, where there is no atomic of its own: read, compute, compare and swap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...compile.atomics import atomic_cas

__all__ = ["atomic_update"]


def atomic_update(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function ``update(array, k, seen, value)`` that replaces ``array[k]`` by ``function(array[k], value)``.

    It begins with `seen`, which is likely to be ``array[k]``, and returns what was there before the change. If there is none,
    nothing is written.
    """

    def update(array, k, seen, value):  # type: ignore[no-untyped-def]
        before = seen
        while True:
            after = array.dtype.type(function(before, value))
            if after == before:
                return before
            found = atomic_cas(array, k, before, after)
            if found == before or found != found:  # NaN, which equals nothing
                return before
            before = found

    return update
