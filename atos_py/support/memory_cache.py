"""The one cache in memory of what launches need: checked options, programs and their code, by what they were made for."""

from __future__ import annotations

import contextlib
from collections.abc import Hashable
from typing import Any, TypeVar

__all__ = ["drop_oldest", "find", "forget", "keep"]

_MOST_KEPT = 4096
_Value = TypeVar("_Value")
_kept: dict[Hashable, Any] = {}
find = _kept.get


def keep(key: Hashable, value: _Value) -> _Value:
    """Keep a value, in place of the oldest one if there are too many, and return it."""
    _kept[key] = value
    drop_oldest(_kept, _MOST_KEPT)
    return value


def drop_oldest(values: dict[Any, Any], most: int) -> None:
    """Drop the oldest of some values if there are more than `most`."""
    if len(values) > most:
        with contextlib.suppress(RuntimeError):  # another thread is at it
            values.pop(next(iter(values)), None)


def forget() -> None:
    """Forget everything, as in a new process."""
    _kept.clear()
