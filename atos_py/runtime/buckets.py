"""The order of a queue, such as buckets for priorities: checks of what is asked for."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays.array import Array, asarray
from ..arrays.import_external import is_on_gpu
from ..errors import InvalidArgumentError, UnsupportedTypeError
from ..support.validation import as_host_array, check_choice, check_float, check_int

__all__ = ["as_priorities", "check_buckets", "check_take"]


def check_buckets(buckets: Any, delta: Any) -> tuple[int | None, float | Literal["auto"]]:
    """Return the number of buckets, which may be None, and their width."""
    number = None if buckets is None else check_int("buckets", buckets, 2, 1 << 10)
    if number is not None and number & (number - 1):
        raise InvalidArgumentError(f"buckets must be a power of two (got {number})")
    if isinstance(delta, str):
        if delta != "auto":
            raise InvalidArgumentError(f'delta must be a number above 0 or "auto" (got {delta!r:.80})')
        return number, "auto"
    width = check_float("delta", delta)
    if not width > 0:
        raise InvalidArgumentError(f'delta must be a number above 0 or "auto" (got {delta})')
    if number is None:
        raise InvalidArgumentError("delta is the width of a bucket: pass buckets= as well")
    return number, width


def check_take(take: Any, buckets: Any, several: bool) -> Literal["oldest", "newest"]:
    """Return which items workers take first; `several`: whether the queue is over several devices."""
    if check_choice("take", take, ("oldest", "newest")) == "oldest":
        return "oldest"
    if buckets is not None or several:
        what = f"buckets={buckets}" if buckets is not None else "several devices"
        raise InvalidArgumentError(f'take="newest" is for a queue on one device without buckets (got {what})')
    return "newest"


def as_priorities(priority: ArrayLike | Array, count: int, buckets: int | None) -> NDArray[np.float64]:
    """Return one priority for each of `count` items, given as one number for all or one for each."""
    if buckets is None:
        raise InvalidArgumentError("only a queue with buckets takes priorities: make it with atos.Queue(..., buckets=)")
    given = as_host_array("the priority of what is pushed", asarray(priority) if is_on_gpu(priority) else priority)
    if given.dtype.kind not in "iufb":
        raise UnsupportedTypeError(f"priorities are numbers (got dtype {given.dtype})")
    if given.ndim > 1 or (given.ndim == 1 and len(given) != count):
        raise InvalidArgumentError(f"pass one priority, or one for each of the {count} items (got shape {given.shape})")
    return np.ascontiguousarray(np.broadcast_to(given, (count,)), np.float64)
