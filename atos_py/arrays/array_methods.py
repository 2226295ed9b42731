"""Methods of `Array` as NumPy's arrays have them: interfaces, lists and reductions; and shapes for `reshape`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidArgumentError, UnsupportedTypeError
from ..support.host_memory import host_memory_for
from .arrow_export import ArrowExport
from .on_host import Elementwise
from .with_cupy import on_gpu

if TYPE_CHECKING:
    from ..core.devices import Device

__all__ = ["ArrayMethods", "Function", "on_host", "shape_of", "sum_dtype"]

# A function of the elements and of the library that they are of: NumPy, or CuPy, which has the same names.
Function = Callable[[Any, Any], Any]


class ArrayMethods(ArrowExport, Elementwise):
    """Base class of `Array`: its interfaces for NumPy and for libraries on GPUs, lists and reductions."""

    __slots__ = ()

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    device: Device
    readonly: bool
    pointer: int

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """The memory of an array on the CPU, as libraries that know NumPy's protocol take it; they keep the array alive."""
        if self.device.kind != "cpu":
            raise AttributeError(f"__array_interface__: the array is on {self.device}, not on the CPU")
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.pointer, self.readonly),
            "strides": None,
            "version": 3,
        }

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self.device.kind != "cuda":
            raise AttributeError(f"__cuda_array_interface__: the array is on {self.device}, not on a GPU")
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.pointer if math.prod(self.shape) else 0, self.readonly),
            "strides": None,
            "stream": 1,  # the legacy default stream: every operation here has ended when it returns
            "version": 3,
        }

    def tolist(self) -> Any:
        """Return the elements as Python numbers: in a list, or in lists of lists where there are more dimensions.

        Examples
        --------
        >>> atos.asarray([[1, 2], [3, 4]]).tolist()
        [[1, 2], [3, 4]]
        """
        return np.asarray(self).tolist()

    def sum(self) -> Any:
        """Return the sum of all elements, as `atos.sum` does.

        Examples
        --------
        >>> print(atos.asarray([3, 0, 4]).sum())
        7
        """
        return self._reduce(lambda values, numpy: numpy.sum(values, dtype=sum_dtype(self.dtype)))

    def min(self) -> Any:
        """Return the least element, as `atos.min` does.

        Examples
        --------
        >>> print(atos.asarray([3, 0, 4]).min())
        0
        """
        return self._reduce(lambda values, numpy: numpy.min(values), "min")

    def max(self) -> Any:
        """Return the greatest element, as `atos.max` does.

        Examples
        --------
        >>> print(atos.asarray([3, 0, 4]).max())
        4
        """
        return self._reduce(lambda values, numpy: numpy.max(values), "max")

    @host_memory_for("a reduction of an array")
    def _reduce(self, function: Function, of_some: str = "") -> Any:
        """Return what a function makes of all elements; `of_some` names one that there has to be an element for."""
        if not math.prod(self.shape):
            if of_some:
                raise InvalidArgumentError(f"an array without elements has no {of_some} (got shape {self.shape})")
        elif self.device.kind == "cuda":
            return on_gpu(lambda cupy, values: cupy.asnumpy(function(values, cupy)), self)[()]
        return on_host(self, function)


def sum_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of sums of elements of one."""
    return dtype if dtype.kind == "f" else np.dtype(np.uint64 if dtype.kind == "u" else np.int64)


def on_host(array: Any, function: Function) -> Any:
    """Return what a function makes of the elements of an array, and of NumPy; overflows are as on a GPU."""
    values: NDArray[Any] = np.asarray(array)
    with np.errstate(over="ignore", invalid="ignore"):
        return function(values, np)


def shape_of(old: tuple[int, ...], given: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the shape that `Array.reshape` is given for an array of another one."""
    if len(given) == 1 and isinstance(given[0], (tuple, list)):
        given = tuple(given[0])
    size = math.prod(old)
    try:
        lengths = [int(length.__index__()) for length in given]
    except AttributeError:
        raise UnsupportedTypeError(f"a shape is made of integers (got {given!r})") from None
    if lengths.count(-1) == 1:
        rest = -math.prod(lengths)
        if rest and size % rest == 0:
            lengths[lengths.index(-1)] = size // rest
    if min(lengths, default=0) < 0 or math.prod(lengths) != size:
        raise InvalidArgumentError(f"an array of {size:,} elements has no shape {given}")
    return tuple(lengths)
