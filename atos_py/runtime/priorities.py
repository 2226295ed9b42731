"""Priorities of items: the buckets that a queue tells them apart by, and those of items that are pushed."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays.array import Array, asarray
from ..arrays.import_external import is_on_gpu
from ..errors import InvalidArgumentError, UnsupportedTypeError
from ..support.validation import as_host_array, check_float, check_int

__all__ = ["as_priorities", "check_buckets"]


def check_buckets(buckets: Any, delta: Any) -> tuple[int | None, float | Literal["auto"]]:
    """Check the number of buckets and their width, as `Queue` takes them."""
    width: float | Literal["auto"] = "auto"
    if not isinstance(delta, str):
        width = check_float("delta", delta)
    if (isinstance(delta, str) and delta != "auto") or (width != "auto" and not width > 0):
        raise InvalidArgumentError(f'delta must be a number above 0 or "auto" (got {delta!r:.80})')
    if buckets is None:
        if width != "auto":
            raise InvalidArgumentError("delta is the width of a bucket: pass buckets= as well")
        return None, width
    number = check_int("buckets", buckets, 2, 1 << 16)
    if number & (number - 1):
        raise InvalidArgumentError(f"buckets must be a power of two (got {number})")
    return number, width


def as_priorities(priority: ArrayLike | Array, count: int, buckets: int | None) -> NDArray[np.float64]:
    """Return one priority for each of `count` items, given as one number for all or one for each; a queue needs buckets."""
    if buckets is None:
        raise InvalidArgumentError("only a queue with buckets takes priorities: make it with atos.Queue(..., buckets=)")
    given = as_host_array("the priority of what is pushed", asarray(priority) if is_on_gpu(priority) else priority)
    if given.dtype.kind not in "iufb":
        raise UnsupportedTypeError(f"priorities are numbers (got dtype {given.dtype})")
    if given.ndim > 1 or (given.ndim == 1 and len(given) != count):
        raise InvalidArgumentError(f"pass one priority, or one for each of the {count} items (got shape {given.shape})")
    return np.ascontiguousarray(np.broadcast_to(given, (count,)), np.float64)
