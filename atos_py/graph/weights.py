"""Weights of edges: their dtypes, checks and conversions, and how those of parallel edges become one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..errors import InvalidArgumentError, UnsupportedTypeError
from ..support.validation import as_dtype, as_host_array

__all__ = [
    "SUM",
    "check_combine",
    "check_weights",
    "combine_two",
    "convert_weights",
    "find_rounded",
    "refuse_wrapped",
    "sum_limits",
    "summed_dtype",
    "weight_dtype",
]

_WEIGHT_DTYPES = {
    "b1": "i4", "i1": "i4", "i2": "i4", "i4": "i4", "i8": "i8",
    "u1": "u4", "u2": "u4", "u4": "u4", "u8": "u8",
    "f2": "f4", "f4": "f4", "f8": "f8",
}  # fmt: skip

#: Rules by which the weights of parallel edges become one, by their numbers in compiled code.
COMBINE = ("min", "max", "sum", "first")
SUM = COMBINE.index("sum")


def weight_dtype(dtype: DTypeLike, name: str = "weights") -> np.dtype[Any]:
    """Return the dtype in which weights of `dtype` are kept: integers and floats of 32 and 64 bits stay as they are."""
    given = as_dtype(dtype)
    kept = _WEIGHT_DTYPES.get(given.str[1:])
    if kept is None:
        raise UnsupportedTypeError(f"{name} must be integers or floats of at most 64 bits, not {given}")
    return np.dtype(kept)


def check_weights(weights: ArrayLike, num_edges: int, name: str = "weights") -> NDArray[Any]:
    """Return weights on the host as compiled code takes them, contiguous and aligned; raise if there are too few or NaN."""
    given = as_host_array(name, weights)
    if given.ndim != 1 or given.size != num_edges:
        raise InvalidArgumentError(
            f"{name} must be one-dimensional with one entry for each of the {num_edges} edges (got shape {given.shape})"
        )
    if not given.size and given.dtype == np.float64 and not isinstance(weights, np.ndarray):
        given = given.astype(np.int32)  # an empty list says nothing of its type, and NumPy calls it float64
    checked = np.require(given, weight_dtype(given.dtype, name), ["C_CONTIGUOUS", "ALIGNED"])
    # The minimum of an array with a NaN is NaN, and needs no array of flags beside it.
    if checked.dtype.kind == "f" and checked.size and np.isnan(checked.min()):
        raise InvalidArgumentError(f"{name}[{int(np.argmax(np.isnan(checked)))}] is NaN; give every edge a number")
    return checked


def convert_weights(weights: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Convert weights to `dtype`; integers of it are the same numbers, or the weights are refused."""
    if dtype.kind in "iu":
        if weights.dtype.kind == "f" and weights.size and not (np.floor(weights) == weights).all():
            raise InvalidArgumentError(f"weights are not whole numbers, so they cannot be made {dtype}")
        if weights.size:
            low, high = weights.min(), weights.max()
            limits = np.iinfo(dtype)
            if int(low) < limits.min or int(high) > limits.max:
                raise InvalidArgumentError(f"weights from {low} to {high} do not fit {dtype}")
    with np.errstate(over="ignore"):
        converted = weights.astype(dtype, copy=False)
    if dtype.kind == "f" and weights.size and not np.isinf(weights).any() and np.isinf(converted).any():
        raise InvalidArgumentError(f"weights as large as {np.abs(weights).max()} do not fit {dtype}")
    return converted


def find_rounded(parts: list[NDArray[Any]]) -> int | None:
    """Return a whole number that the type which weights have in common would round, or None."""
    if {part.dtype.kind for part in parts} > {"f"}:
        for part in parts:
            if part.dtype.kind in "iu":
                large = part[(part > 2**53) | (part < -(2**53))] if part.dtype.itemsize == 8 else part[:0]
                for number in map(int, large):
                    if int(float(number)) != number:
                        return number
    return None


def check_combine(rule: Any) -> int:
    """Return the number of a rule for parallel edges, as `combine_two` takes it."""
    if not isinstance(rule, str) or rule not in COMBINE:
        raise InvalidArgumentError(f"combine must be one of {', '.join(COMBINE)} (got {rule!r:.80})")
    return COMBINE.index(rule)


def combine_two(rule: int, one: Any, other: Any, limits: Any) -> tuple[Any, int]:
    """Return what two weights of parallel edges become; for compiled code.

    `limits` are those of `sum_limits`. The second result is by how many times its range a sum is too small: over a row of
    additions these add up to 0 if the last sum is right, whatever wrapped in between.
    """
    number = limits.dtype.type  # in which integers of 32 bits would get 64
    if rule == 0:
        return number(min(one, other)), 0
    if rule == 1:
        return number(max(one, other)), 0
    if rule == 3:
        return one, 0
    # By steps of which none wraps, since compilers take it that signed sums do not.
    if other >= 0:
        if one > limits[1] - other:
            return number(one - (limits[1] - other) - limits[2] + limits[0]), 1
    elif one < limits[0] - other:
        return number(one - (limits[0] - other) + limits[2] + limits[1]), -1
    return number(one + other), 0


def sum_limits(dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the least and the greatest number of a dtype, and 1, as `combine_two` takes them."""
    if dtype.kind == "f":
        return np.array([-np.inf, np.inf, 1], dtype)
    return np.array([np.iinfo(dtype).min, np.iinfo(dtype).max, 1], dtype)


def refuse_wrapped(source: int, target: int, dtype: Any) -> None:
    """Raise since the weights of the edges from one vertex to another have a sum that its dtype does not hold."""
    raise InvalidArgumentError(
        f"the weights of the edges from {source} to {target} have a sum that {dtype} does not hold;"
        " give the graph float64 weights, or another combine="
    )


def summed_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of sums of weights: integers get 64 bits."""
    return np.dtype(dtype.kind + "8") if dtype.kind in "iu" else dtype
