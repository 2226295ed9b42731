"""Arrays that are not the package's own: one over NumPy memory, and one that has nothing but DLPack."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from atos_py.compile.arguments import words


class FakeArray:
    """Stand-in for an `Array` over NumPy memory, with the attributes that `compile/arguments.py` reads."""

    def __init__(self, data: np.ndarray, readonly: bool = False) -> None:
        self.data = data
        self.dtype = data.dtype
        self.shape = data.shape
        self.readonly = readonly
        self.pointer = data.ctypes.data


def array(dtype: Any, ndim: int = 1, readonly: bool = False) -> FakeArray:
    """Return zeros, two along each axis."""
    return FakeArray(np.zeros((2,) * ndim, dtype), readonly)


class Pair(NamedTuple):
    first: Any
    second: Any


def blob(*values: Any) -> np.ndarray:
    """Return the argument words of a launch."""
    return np.array([word for value in values for word in words(value)], np.uint64)


class OnlyDLPack:
    """An array that has nothing but DLPack."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()
