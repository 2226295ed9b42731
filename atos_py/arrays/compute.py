"""Functions of whole arrays, computed where those are: by NumPy on the CPU, by CuPy on a GPU.

A function takes the library, NumPy or CuPy, and then the elements; what it uses has the same name and meaning in both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .array import Array, asarray
from .with_cupy import on_gpu

__all__ = ["compute"]


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
