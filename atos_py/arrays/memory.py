"""Memory of a device by address: copies, fills, and the shapes and alignment that arrays there may have."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.devices import Device
from ..core.library import check, ffi, lib
from ..errors import InvalidArgumentError
from ..support.validation import check_int

__all__ = ["check_alignment", "check_shape", "clear_bytes", "copy_bytes", "fill_elements"]

_MAX_DIMENSIONS = 32  # as in NumPy 1
_VOID = ffi.typeof("void *")  # parsed once


def check_alignment(pointer: int, size: int, dtype: np.dtype[Any]) -> None:
    """Refuse memory to be shared whose elements a task could not read and write at once, or not at all."""
    if size and pointer % dtype.itemsize:
        raise InvalidArgumentError(
            f"the array of {dtype} begins at address {pointer:#x}, which is no multiple of {dtype.itemsize}, so tasks cannot"
            " use it; give one that is aligned, for NumPy numpy.require(array, requirements='A'), or make a copy with"
            " atos.asarray(array, copy=True)"
        )


def check_shape(shape: int | tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape as a tuple of integers."""
    extents = shape if isinstance(shape, (tuple, list)) else (shape,)
    if len(extents) > _MAX_DIMENSIONS:
        raise InvalidArgumentError(f"an array has at most {_MAX_DIMENSIONS} dimensions (got {len(extents)})")
    return tuple([check_int("an extent of a shape", extent, 0, 2**63 - 1) for extent in extents])


def copy_bytes(device: Device, to: int | NDArray[Any], source: int | NDArray[Any], nbytes: int) -> None:
    """Copy memory to, from or on a device, given by its address or as a contiguous array of the host."""
    check(lib.atos_copy(device.number, _at(to), _at(source), nbytes))


def fill_elements(device: Device, to: int, element: NDArray[Any] | np.generic, count: int) -> None:
    """Write one element so many times."""
    status = lib.atos_fill(device.number, ffi.cast(_VOID, to), element.tobytes(), element.itemsize, count)
    if status:
        check(status)


def clear_bytes(device: Device, to: int, nbytes: int) -> None:
    """Write zeros."""
    check(lib.atos_fill(device.number, ffi.cast(_VOID, to), b"\0", 1, nbytes))


def _at(where: int | NDArray[Any]) -> Any:
    return ffi.from_buffer(where) if isinstance(where, np.ndarray) else ffi.cast(_VOID, where)
