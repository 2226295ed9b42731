"""Values of one dtype as those of another, where each of them fits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidArgumentError, UnsupportedTypeError

__all__ = ["cast_values"]


def cast_values(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return values as an array of `dtype`; those that it cannot hold are refused, and not wrapped around."""
    if values.dtype == dtype:
        return values
    if values.dtype.kind not in "iufb":
        raise UnsupportedTypeError(f"values of dtype {values.dtype} cannot become {dtype}")
    if dtype.kind in "iu" and values.size:
        ends = (values.min(), values.max()) if values.ndim else (values, values)
        low, high = (end.item() for end in ends)  # Python compares integers and floats exactly
        limits = np.iinfo(dtype)
        if not (int(limits.min) <= low and high <= int(limits.max)):
            raise InvalidArgumentError(f"values from {low} to {high} do not fit {dtype} ({limits.min} to {limits.max})")
        if values.dtype.kind == "f" and not np.array_equal(values, np.trunc(values)):
            raise InvalidArgumentError(f"values with fractions cannot become {dtype}; round them first")
    if dtype.kind != "f" or values.dtype.kind != "f":  # no integer is too large for float32
        return values.astype(dtype)
    with np.errstate(over="ignore"):
        result = values.astype(dtype)
    if not np.array_equal(np.isinf(result), np.isinf(values)):
        raise InvalidArgumentError(f"values as large as {np.abs(values).max()} do not fit {dtype}")
    return result
