"""Operations on whole arrays whose results stay on the device: compaction, prefix sums, sorting and reductions.

On the CPU they are NumPy's, on a GPU CuPy's, which has CUB's and Thrust's algorithms in its wheel as machine code. CuPy is
imported by the first call for an array on a GPU. Everything else that such libraries can do, they do with an `Array` as it is,
by DLPack.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ..errors import InvalidArgumentError, UnsupportedTypeError
from ..support.host_memory import host_memory_for
from ..support.validation import as_dtype
from .array import Array, asarray
from .array_methods import Function, on_host, sum_dtype
from .compute import compute

__all__ = ["argsort", "cumsum", "max", "min", "nonzero", "sort", "sum"]


@host_memory_for("atos.nonzero")
def nonzero(array: Any, *, dtype: DTypeLike = np.int64) -> Array:
    """Return the indices of the elements that are not 0, in order: compaction.

    Parameters
    ----------
    array : Array or array_like
        One-dimensional. NaN is not 0.
    dtype : dtype
        Of the indices, an integer that can hold all of them. With the dtype of a queue on the same device, they can be pushed
        there without a trip to the host.

    Returns
    -------
    Array
        On the device of `array`.

    Raises
    ------
    MissingPackageError
        If the array is on a GPU, and CuPy is not installed.

    Examples
    --------
    >>> active = atos.asarray([0, 3, 0, 1])
    >>> atos.nonzero(active, dtype=np.uint32).to_numpy()
    array([1, 3], dtype=uint32)
    """
    given, kind = _one_dimensional("nonzero", array), as_dtype(dtype)
    if kind.kind not in "iu":
        raise UnsupportedTypeError(f"indices are integers (got {kind})")
    if given.size - 1 > np.iinfo(kind).max:
        raise InvalidArgumentError(f"indices of an array of {given.size:,} elements do not fit {kind}; take a larger dtype")
    return _array_of(given, lambda values, numpy: numpy.flatnonzero(values).astype(kind, copy=False))


@host_memory_for("atos.cumsum")
def cumsum(array: Any) -> Array:
    """Return the sums of the elements up to each one: an inclusive prefix sum.

    Parameters
    ----------
    array : Array or array_like
        One-dimensional.

    Returns
    -------
    Array
        On the device of `array`: int64 for signed integers and bool, uint64 for unsigned ones, as in NumPy; floats keep their
        dtype. Integers wrap around. Floats may be added in another order on a GPU.

    Examples
    --------
    >>> atos.cumsum(atos.asarray([3, 0, 4])).to_numpy()
    array([3, 3, 7])
    """
    given = _one_dimensional("cumsum", array)
    return _array_of(given, lambda values, numpy: numpy.cumsum(values, dtype=sum_dtype(given.dtype)))


@host_memory_for("atos.sort")
def sort(array: Any) -> Array:
    """Return the elements in ascending order, in a new array; NaN comes last.

    Parameters
    ----------
    array : Array or array_like
        One-dimensional.

    Examples
    --------
    >>> atos.sort(atos.asarray([3, 0, 4])).to_numpy()
    array([0, 3, 4])
    """
    return _array_of(_one_dimensional("sort", array), _sorted)


@host_memory_for("atos.argsort")
def argsort(array: Any) -> Array:
    """Return the indices that sort an array, as int64; equal elements stay in order, and NaN comes last.

    Parameters
    ----------
    array : Array or array_like
        One-dimensional.

    Examples
    --------
    >>> atos.argsort(atos.asarray([3, 0, 3, 1])).to_numpy()
    array([1, 3, 0, 2])
    """
    return _array_of(_one_dimensional("argsort", array), lambda values, numpy: numpy.argsort(values, kind="stable"))


@host_memory_for("atos.sum")
def sum(array: Any) -> Any:
    """Return the sum of all elements, as a NumPy scalar on the host.

    Parameters
    ----------
    array : Array or array_like
        Of any shape.

    Returns
    -------
    numpy.generic
        int64 for signed integers and bool, uint64 for unsigned ones, as in NumPy; floats keep their dtype. Integers wrap
        around. Floats may be added in another order on a GPU.

    Examples
    --------
    >>> print(atos.sum(atos.asarray([3, 0, 4])))
    7
    """
    return asarray(array).sum()


@host_memory_for("atos.min")
def min(array: Any) -> Any:
    """Return the least element, as a NumPy scalar on the host; NaN if there is one.

    Parameters
    ----------
    array : Array or array_like
        Of any shape, with at least one element.

    Examples
    --------
    >>> print(atos.min(atos.asarray([3, 0, 4])))
    0
    """
    return asarray(array).min()


@host_memory_for("atos.max")
def max(array: Any) -> Any:
    """Return the greatest element, as a NumPy scalar on the host; NaN if there is one.

    Parameters
    ----------
    array : Array or array_like
        Of any shape, with at least one element.

    Examples
    --------
    >>> print(atos.max(atos.asarray([3, 0, 4])))
    4
    """
    return asarray(array).max()


def _sorted(values: Any, numpy: Any) -> Any:
    # NumPy sorts integers much faster if it need not keep equal ones in order, which nobody can tell.
    return numpy.sort(values, kind="stable" if values.dtype.kind == "f" else None)


def _one_dimensional(name: str, array: Any) -> Array:
    given = asarray(array)
    if given.ndim != 1:
        raise InvalidArgumentError(f"{name} takes a one-dimensional array (got shape {given.shape})")
    return given


def _array_of(array: Array, function: Function) -> Array:
    """Return an array on the device of another, of whose elements it is a function."""
    if array.size:
        return compute(lambda numpy, values: (function(values, numpy),), array)[0]
    return asarray(on_host(array, function), device=array.device)
