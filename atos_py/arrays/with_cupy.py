"""Functions of the elements of arrays on a GPU, computed there by CuPy, which is imported by the first of them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from ..core.devices import release_memory
from ..core.library import check, ffi, lib
from ..errors import DeviceMemoryError, InvalidArgumentError, MissingPackageError
from .array_library import current_stream

__all__ = ["on_gpu"]


def on_gpu(function: Callable[..., Any], *arrays: Any) -> Any:
    """Return ``function(cupy, *elements)`` for arrays on a GPU; where memory is short, kept memory is released."""
    device = arrays[0].device
    try:
        import cupy
    except ImportError as error:
        raise MissingPackageError(
            f"this operation on an array on {device} needs CuPy: python -m pip install cupy-cuda13x ({error})"
        ) from error
    for library in {array.library for array in arrays}:
        stream = current_stream(library, device)
        if stream is not None:  # its library may still be writing
            check(lib.atos_stream_wait(device.number, ffi.cast("void *", stream)))
    with cupy.cuda.Device(device.index):
        values = [cupy.asarray(array) for array in arrays]
        try:
            return function(cupy, *values)
        except cupy.cuda.memory.OutOfMemoryError:
            with contextlib.suppress(InvalidArgumentError):  # beside an open run, nothing is released
                release_memory()
        try:
            return function(cupy, *values)
        except cupy.cuda.memory.OutOfMemoryError as error:
            raise DeviceMemoryError(f"{device} has too little free memory for the result: {error}") from error
