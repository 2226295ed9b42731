"""A value and an id in one 64-bit word, in the order of the values: for an argmin by one atomic operation.

The upper half of a word is the value, as bits that compare like the values do; the lower half is the id.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..arrays.casting import cast_values
from ..errors import UnsupportedTypeError
from ..support.validation import as_dtype, as_host_array, broadcast_arrays

__all__ = ["PACKED_DTYPES", "pack", "unpack"]

PACKED_DTYPES = (np.dtype(np.uint32), np.dtype(np.int32), np.dtype(np.float32))
_UINT32, _INT32, _FLOAT32 = PACKED_DTYPES
_HALF = np.uint64(32)
_LOWER = np.uint64(2**32 - 1)
_SIGN, _ONES, _NAN = np.uint32(2**31), np.uint32(2**32 - 1), np.uint32(0x7FC00000)


def pack(value: Any, id: Any, dtype: DTypeLike | None = None, /) -> Any:
    """Return one uint64 of a value and an id, which is less than another if the value is, or if it is equal and the id is less.

    So `atomic_min` of such words, on an array of uint64, keeps the smallest value and of these the smallest id, and
    `atomic_max` the largest of both. Works in tasks, and on the host on numbers and NumPy arrays.

    Parameters
    ----------
    value : number
        What to compare.
    id : int
        From 0 to 2**32 - 1.
    dtype : {uint32, int32, float32}, optional
        What `value` is packed as. By default float32 for floats, uint32 for unsigned integers, and int32 for signed integers of
        up to 32 bits. An int64, which is what a task reads from an array of uint32, may be meant as either, so it takes a
        `dtype`.

    Returns
    -------
    numpy.uint64 or numpy.ndarray
        A word, or those of arrays that are broadcast against each other.

    Raises
    ------
    UnsupportedTypeError
        If it is not known what the value is to be packed as, or something is no number.
    InvalidArgumentError
        If a value or an id does not fit, of which in a task only `debug=True` tells, or shapes do not go together.

    See Also
    --------
    unpack : the value and the id of a word.

    Notes
    -----
    Negative values come before positive ones, as numbers do. -0.0 is packed as 0.0, which it equals, so that the id decides
    between the two. Any NaN is packed as the same one, which is larger than infinity: a minimum is NaN only if nothing else
    came. Floats of 64 bits are rounded to 32.

    Examples
    --------
    >>> @atos.task
    ... def nearest(worker, v, distance, best):
    ...     atos.atomic_min(best, 0, atos.pack(distance[v], v))
    >>> distance = atos.asarray(np.array([4.5, -1, 7, -1], np.float32))
    >>> best, queue = atos.full(1, 2**64 - 1, dtype=np.uint64), atos.Queue(capacity=10)
    >>> queue.push([0, 1, 2, 3])
    >>> stats = queue.launch_thread(nearest, distance, best)
    >>> value, v = atos.unpack(best[0], np.float32)
    >>> print(value, v)
    -1.0 1
    """
    values, ids = as_host_array("value", value), as_host_array("id", id)
    for name, given, kinds in (("a value", values, "iuf"), ("an id", ids, "iu")):
        if given.dtype.kind not in kinds:
            raise UnsupportedTypeError(f"pack takes {name} of {'numbers' if 'f' in kinds else 'integers'}, not {given.dtype}")
    kind = _kind_of(values.dtype) if dtype is None else _check_dtype("pack", dtype)
    if values.dtype.kind == "f" and kind != _FLOAT32:
        raise UnsupportedTypeError(f"pack would cut off a {values.dtype} to {kind}; convert it, as in int(x)")
    upper, lower = broadcast_arrays("pack", _in_order(cast_values(values, kind)), cast_values(ids, _UINT32))
    return (upper.astype(np.uint64) << _HALF | lower)[()]


def unpack(word: Any, dtype: DTypeLike, /) -> Any:
    """Return the value and the id of a word that `pack` made.

    Works in tasks, and on the host on numbers and NumPy arrays.

    Parameters
    ----------
    word : uint64
    dtype : {uint32, int32, float32}
        What the value was packed as. A word does not tell, since all of its bits are in use: the same one is another number in
        each type.

    Returns
    -------
    value, id
        The value of type `dtype` and the id of type uint32, or arrays of those. In a task, uint32 is int64, as read from
        an array.

    Raises
    ------
    UnsupportedTypeError
        If `dtype` is another, or `word` has another type.

    Examples
    --------
    >>> words = atos.pack(np.array([3, -5, 2], np.int32), np.arange(3))
    >>> value, i = atos.unpack(words.min(), np.int32)
    >>> print(value, i)
    -5 1
    """
    words = as_host_array("word", word)
    kind = _check_dtype("unpack", dtype)
    if words.dtype.kind not in "iu":
        raise UnsupportedTypeError(f"unpack takes a word of uint64, not {words.dtype}")
    words = cast_values(words, np.dtype(np.uint64))
    return _out_of_order((words >> _HALF).astype(np.uint32), kind)[()], (words & _LOWER).astype(np.uint32)[()]


def _kind_of(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype.kind == "f":
        return _FLOAT32
    if dtype.kind == "u":
        return _UINT32
    if dtype.itemsize > 4:
        raise UnsupportedTypeError(
            f"pack takes a {dtype} as uint32 or as int32, whose words differ; say which, as in pack(value, id, np.int32)"
        )
    return _INT32


def _check_dtype(name: str, dtype: DTypeLike) -> np.dtype[Any]:
    kind = as_dtype(dtype)
    if kind not in PACKED_DTYPES:
        raise UnsupportedTypeError(f"{name} takes a dtype of uint32, int32 or float32, not {kind}")
    return kind


def _in_order(values: NDArray[Any]) -> NDArray[Any]:
    """Return uint32 that compare as the values do."""
    if values.dtype == _UINT32:
        return values
    bits = values.view(np.uint32)
    if values.dtype == _INT32:
        return np.asarray(bits ^ _SIGN)
    bits = np.where(np.isnan(values), _NAN, np.where(values == 0, np.uint32(0), bits))
    return bits ^ np.where(bits & _SIGN, _ONES, _SIGN)


def _out_of_order(upper: NDArray[Any], kind: np.dtype[Any]) -> NDArray[Any]:
    if kind == _UINT32:
        return np.asarray(upper)
    bits = np.asarray(upper ^ (_SIGN if kind == _INT32 else np.where(upper & _SIGN, _SIGN, _ONES)), np.uint32)
    return bits.view(kind)
