"""Loads and stores of four float32 beside each other, which a GPU moves in one instruction: for operators over features."""

from __future__ import annotations

from typing import Any

from ..errors import TaskCallError

__all__ = ["WIDTH", "load4", "store4"]

WIDTH = 4  # numbers of a vector, whose address is a multiple of its 16 bytes


def load4(array: Any, first: Any, /) -> Any:
    """Return, in a task, the element at an index and the three after it, as a tuple."""
    raise TaskCallError("load4 works inside tasks only")


def store4(array: Any, first: Any, x: Any, y: Any, z: Any, w: Any, /) -> None:
    """Store, in a task, the element at an index and the three after it."""
    raise TaskCallError("store4 works inside tasks only")
