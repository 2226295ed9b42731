"""Truth value of the result of a user's function; a function that returns nothing counts as true."""

from __future__ import annotations

from typing import Any

from ..errors import TaskCallError

__all__ = ["counts_as_true"]


def counts_as_true(result: Any, /) -> bool:
    """Return, in a task, whether a function's result is true, or the function is one that never returns a value.

    Numba's type of the result tells such a function from one that returns None on some ways alone, which is not true there.
    """
    raise TaskCallError("counts_as_true works inside tasks only")
