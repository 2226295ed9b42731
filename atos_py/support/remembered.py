"""Weak dictionary keyed by the identity of objects, not by their equality."""

from __future__ import annotations

import weakref
from typing import Any, Generic, TypeVar

__all__ = ["Remembered"]

_V = TypeVar("_V")


class Remembered(Generic[_V]):
    """A dictionary of objects by identity, which keeps none of them alive; for arrays, whose `==` compares elements.

    `weakref.WeakKeyDictionary` finds its keys by `==`.
    """

    def __init__(self) -> None:
        self._entries: dict[int, tuple[weakref.ref[Any], _V]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def values(self) -> list[_V]:
        """Return what is remembered of all objects that are still there."""
        return [value for _, value in list(self._entries.values())]

    def get(self, thing: object) -> _V | None:
        """Return what is remembered of an object, or None."""
        entry = self._entries.get(id(thing))
        return None if entry is None or entry[0]() is not thing else entry[1]

    def set(self, thing: object, value: _V) -> _V:
        """Remember a value of an object, in place of what there was; return the value."""
        entries, number = self._entries, id(thing)

        def forget(reference: weakref.ref[Any]) -> None:
            # Called before the object is gone, so that no other object has its number yet.
            if number in entries and entries[number][0] is reference:
                del entries[number]

        entries[number] = weakref.ref(thing, forget), value
        return value
