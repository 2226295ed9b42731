"""The one cache in memory of what launches need: checked options, programs and their code, by what they were made for."""

from __future__ import annotations

import contextlib
from collections.abc import Hashable
from typing import Any, TypeVar

__all__ = ["find", "forget", "keep"]

_MOST_KEPT = 4096
_Value = TypeVar("_Value")
_kept: dict[Hashable, Any] = {}
find = _kept.get


def keep(key: Hashable, value: _Value) -> _Value:
    """Keep a value, in place of the oldest one if there are too many, and return it."""
    _kept[key] = value
    if len(_kept) > _MOST_KEPT:
        with contextlib.suppress(RuntimeError):  # another thread is at it
            _kept.pop(next(iter(_kept)), None)
    return value


def forget() -> None:
    """Forget everything, as in a new process."""
    _kept.clear()
