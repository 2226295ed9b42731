"""Indices of an array from the host: the contiguous part of its memory that one stands for."""

from __future__ import annotations

import math
from types import EllipsisType
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from ..errors import InvalidArgumentError, UnsupportedTypeError

__all__ = ["Element", "Key", "find_part"]

Key = SupportsIndex | slice | EllipsisType | tuple[SupportsIndex | slice | EllipsisType, ...]

if TYPE_CHECKING:

    class Element(np.generic, Any):
        """What an index stands for to type checkers: a scalar of NumPy, or a part of an array of more dimensions."""
else:
    Element = Any


def find_part(extents: tuple[int, ...], key: Key) -> tuple[int, tuple[int, ...]]:
    """Return the offset of the first element of a part, in elements, and the part's shape.

    Parameters
    ----------
    extents : tuple of int
        The shape of the array.
    key : int, slice, Ellipsis or tuple of those
        The index, as for an array of NumPy.

    Raises
    ------
    InvalidArgumentError
        If it is out of range, or the part is not contiguous.
    UnsupportedTypeError
        If it is no index.
    """
    if len(extents) == 1 and isinstance(key, (int, np.integer)) and 0 <= key < extents[0] and not isinstance(key, bool):
        return int(key), ()
    if key is Ellipsis:
        return 0, extents
    keys = list(key) if isinstance(key, tuple) else [key]
    if any(k is Ellipsis for k in keys[:-1]) or len([k for k in keys if k is not Ellipsis]) > len(extents):
        raise InvalidArgumentError(f"{key!r} does not index an array of shape {extents}")
    keys = [k for k in keys if k is not Ellipsis]
    offset, shape = 0, list(extents)
    stride = math.prod(extents)
    for axis, k in enumerate(keys):
        extent = extents[axis]
        stride = stride // extent if extent else 0
        if not isinstance(k, slice):
            if isinstance(k, (bool, np.bool_)) or not hasattr(k, "__index__"):
                raise UnsupportedTypeError(f"an index is an integer or a slice (got {k!r})")
            try:
                index = k.__index__()
            except TypeError:  # an array of several
                raise UnsupportedTypeError(f"an index is an integer or a slice (got {k!r:.80})") from None
            if not -extent <= index < extent:
                raise InvalidArgumentError(f"index {index} is out of range for axis {axis} of length {extent}")
            offset += (index % extent) * stride
            shape[axis] = -1
            continue
        try:
            start, stop, step = k.indices(extent)
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(f"{key!r:.80} does not index an array of shape {extents}: {error}") from None
        whole = (start, stop, step) == (0, extent, 1)
        if step != 1 or (not whole and any(s != -1 for s in shape[:axis])):
            raise _scattered(key)
        offset += start * stride
        shape[axis] = max(stop - start, 0)
    if any(s == -1 for s in shape[len([s for s in shape if s == -1]) :]):
        raise _scattered(key)
    return offset, tuple(s for s in shape if s != -1)


def _scattered(key: Key) -> InvalidArgumentError:
    return InvalidArgumentError(f"only contiguous parts can be indexed from the host (got {key!r}); use to_numpy() first")
