"""Functions of whole arrays, computed where those are: by NumPy on the CPU, by CuPy on a GPU.

A function takes the library, NumPy or CuPy, and then the elements; what it uses has the same name and meaning in both.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.devices import release_memory
from ..core.library import check, ffi, lib
from ..errors import DeviceMemoryError, InvalidArgumentError, MissingPackageError
from .array import Array, asarray
from .array_library import current_stream

__all__ = ["compute", "on_gpu"]


def compute(function: Callable[..., tuple[Any, ...]], *arrays: Array) -> list[Array]:
    """Return the arrays of ``function(library, *elements)``, on the device of `arrays`, of which there is at least one.

    Raises
    ------
    MissingPackageError
        If the arrays are on a GPU, and CuPy is not installed.
    """
    device = arrays[0].device
    if device.kind == "cpu":
        with np.errstate(over="ignore", invalid="ignore"):  # as on a GPU
            return [asarray(each, device=device) for each in function(np, *map(np.asarray, arrays))]
    made: list[Array] = on_gpu(
        lambda cupy, *values: [asarray(cupy.ascontiguousarray(each)) for each in function(cupy, *values)], *arrays
    )
    for each in made:
        each.library = arrays[0].library  # whose stream a launch takes; CuPy has written the result
    return made


def on_gpu(function: Callable[..., Any], *arrays: Array) -> Any:
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
