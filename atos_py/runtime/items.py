"""Items of a queue: which dtypes they may have, and what is pushed in the form that the core takes."""

from __future__ import annotations

import keyword
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays.array import Array, asarray
from ..arrays.casting import cast_values
from ..arrays.import_external import is_on_gpu
from ..compile.codegen import ITEM_BYTES
from ..core.devices import Device
from ..errors import InvalidArgumentError, UnsupportedTypeError
from ..support.validation import as_host_array

__all__ = ["as_items", "check_item_dtype", "items_made_there"]


def check_item_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return a dtype that items may have."""
    advice = "items are integers of 32 or 64 bits, or records of numbers and vectors of at most 32 bytes"
    if dtype.names is None:
        if dtype.kind not in "iu" or dtype.itemsize < 4 or not dtype.isnative:
            raise UnsupportedTypeError(f"{advice} (got {dtype})")
        return dtype
    for name in dtype.names:
        field = dtype.fields[name][0]  # type: ignore[index]
        if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
            raise UnsupportedTypeError(f"field {name!r} has a name that a task could not write as item.NAME; rename it")
        number = field.base  # of a vector, the numbers that it has
        wrong = number.kind not in "iufb" or number.itemsize > 8 or number == np.float16 or not number.isnative
        if wrong or len(field.shape) > 1 or 0 in field.shape:
            raise UnsupportedTypeError(f"{advice}; field {name!r} is {field}")
    if not dtype.names or dtype.itemsize > ITEM_BYTES[-1]:
        raise UnsupportedTypeError(f"{advice} (got {dtype.itemsize} bytes)")
    return dtype


def as_items(items: ArrayLike | Array, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return what is pushed to a queue of `dtype` as the core takes it, after checking that every item fits."""
    if type(items) is np.ndarray and items.dtype == dtype and items.ndim == 1 and items.flags.c_contiguous:
        return items  # every value fits
    if isinstance(items, range) and not dtype.names:
        if items:
            _check_fits(min(items[0], items[-1]), max(items[0], items[-1]), dtype)
        start, step = (np.uint64(number % 2**64) for number in (items.start, items.step))
        return (start + step * np.arange(len(items), dtype=np.uint64)).astype(dtype)  # exact, as all is modulo 2**64
    items = asarray(items) if is_on_gpu(items) else items  # NumPy does not read those of other libraries
    given = _make_records(items, dtype) if dtype.names else np.atleast_1d(_read_integers(items))
    if given.ndim != 1:
        raise InvalidArgumentError(f"items are pushed as a one-dimensional array (got shape {given.shape})")
    if not dtype.names:
        if given.size and given.dtype.kind not in "iu" and not (given.dtype == object and _are_integers(given)):
            advice = f"; convert them, as in items.astype(np.{dtype})" if given.dtype.kind == "f" else ""
            raise UnsupportedTypeError(f"items of dtype {given.dtype} cannot be pushed to a queue of {dtype}{advice}")
        if given.size:
            _check_fits(int(given.min()), int(given.max()), dtype)
    return np.ascontiguousarray(given, dtype)


def items_made_there(items: Any, dtype: np.dtype[Any], device: Device) -> Array | range | None:
    """Return what is pushed to a queue of `dtype`, if it need not pass through the host: an array on its GPU, or a range.

    An array of another dtype has to, since its values are checked and cast there, as has one of another device.
    """
    if isinstance(items, range):
        is_plain = items.step == 1 and dtype.names is None
        return items if is_plain and items.start >= 0 and items.stop <= np.iinfo(dtype).max else None
    if device.kind != "cuda" or not (isinstance(items, Array) or is_on_gpu(items)):
        return None
    array = asarray(items)
    if array.device != device or array.dtype != dtype:
        return None
    if array.ndim > 1:
        raise InvalidArgumentError(f"items are pushed as a one-dimensional array (got shape {array.shape})")
    return array


def _check_fits(low: int, high: int, dtype: np.dtype[Any]) -> None:
    limits = np.iinfo(dtype)
    if low < limits.min or high > limits.max:
        bad = low if low < limits.min else high
        raise InvalidArgumentError(f"item {bad} does not fit {dtype} ({limits.min} to {limits.max})")


def _are_integers(values: NDArray[Any]) -> bool:
    return all(isinstance(value, (int, np.integer)) and not isinstance(value, bool) for value in values.flat)


def _read_integers(items: Any) -> NDArray[Any]:
    """Return items as they are; Python's integers exactly, of which NumPy makes floats where they mix signs and sizes."""
    given = as_host_array("what is pushed", items, may_round=True)
    if given.dtype.kind in "fO" and not isinstance(items, np.ndarray):
        exact = np.asarray(items, dtype=object)
        if exact.size and _are_integers(exact):
            return exact
    return given


def _make_records(items: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return records of `dtype`, of which every field holds its value."""
    names = dtype.names or ()
    if isinstance(items, (np.ndarray, np.void)) and items.dtype.names:
        given = np.atleast_1d(items)
        if given.dtype.names != names:
            raise UnsupportedTypeError(f"records with the fields {given.dtype.names} cannot be pushed to a queue of {dtype}")
        if any(given.dtype[name].shape != dtype[name].shape for name in names):
            raise UnsupportedTypeError(f"records of {given.dtype} have vectors of other lengths than a queue of {dtype}")
        shape: tuple[int, ...] = given.shape
        columns = [given[name] for name in names]
    else:
        rows: Any = [items] if isinstance(items, tuple) else items
        if isinstance(rows, list):
            rows = [row.item() if isinstance(row, np.void) else row for row in rows]
        if (
            not (isinstance(rows, list) or (isinstance(rows, np.ndarray) and rows.ndim == 1))
            or not all(isinstance(row, tuple) and len(row) == len(names) for row in rows)
            or not all(_has_shape(value, dtype[i].shape) for row in rows for i, value in enumerate(row))
        ):
            vectors = ", vectors as tuples of their numbers" if any(dtype[name].shape for name in names) else ""
            raise UnsupportedTypeError(
                f"items of a queue of {dtype} are tuples of {len(names)} numbers{vectors} (got {items!r})"
            )
        shape, columns = (len(rows),), [_read_integers([row[i] for row in rows]) for i in range(len(names))]
    result = np.empty(shape, dtype)
    for name, column in zip(names, columns, strict=True):
        field = result.dtype[name].base
        if column.dtype == object and field.kind in "iu" and _are_integers(column):
            limits = np.iinfo(field)
            if all(limits.min <= value <= limits.max for value in column.flat):
                column = column.astype(field)
        if column.dtype == object:
            raise InvalidArgumentError(f"field {name!r} of an item holds an integer that does not fit {field}")
        result[name] = cast_values(column, field) if column.size else 0
    return result


def _has_shape(value: Any, shape: tuple[int, ...]) -> bool:
    """Whether a value is a number, or a vector of as many numbers as a field has."""
    if not shape:
        return np.isscalar(value) or getattr(value, "ndim", 1) == 0
    return isinstance(value, (tuple, list, np.ndarray)) and len(value) == shape[0] and all(_has_shape(one, ()) for one in value)
