"""Arrays on the host: as those of NumPy, and what they do there element by element as NumPy's do, such as comparisons."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ..errors import InvalidArgumentError, UnsupportedTypeError
from ..support.host_memory import host_memory_for
from ..support.shown import Shown
from ..support.validation import as_host_array
from .import_external import detached, is_on_gpu, memory_of
from .memory import copy_bytes

__all__ = ["Elementwise", "to_host"]


class Elementwise(Shown):
    """Base class of arrays that become NumPy's by ``__array__``: comparisons, `in`, truth and iteration are those of NumPy.

    What comes out is NumPy's, and on the host, as it is of indexing. An array is no key of a dictionary, since `==` does not
    say whether it is the same array; `Remembered` has arrays as keys by identity.
    """

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    shape: Any
    dtype: Any

    def _shown(self) -> Mapping[str, object]:
        return {"shape": self.shape, "dtype": self.dtype, "array": repr(self)}

    def __eq__(self, other: object) -> Any:
        return self._compare(operator.eq, other)

    def __ne__(self, other: object) -> Any:
        return self._compare(operator.ne, other)

    def __lt__(self, other: object) -> Any:
        return self._compare(operator.lt, other)

    def __le__(self, other: object) -> Any:
        return self._compare(operator.le, other)

    def __gt__(self, other: object) -> Any:
        return self._compare(operator.gt, other)

    def __ge__(self, other: object) -> Any:
        return self._compare(operator.ge, other)

    @host_memory_for("a comparison of an array")
    def _compare(self, compare: Callable[[Any, Any], Any], other: Any) -> Any:
        """Return for each element whether the comparison holds: an array of bool, of NumPy."""
        values = np.asarray(self)
        others = as_host_array("what is compared", other) if isinstance(other, (list, tuple)) else to_host(other)
        try:
            return compare(values, others)
        except OverflowError:  # of NumPy, by a large integer beside bool
            return compare(values.astype(object), others).astype(bool)
        except ValueError as error:
            raise InvalidArgumentError(
                f"arrays of shapes {values.shape} and {np.shape(others)} cannot be compared element by element: {error}"
            ) from error
        except TypeError as error:
            raise UnsupportedTypeError(f"elements of {values.dtype} cannot be compared with {other!r:.80}: {error}") from error

    def __contains__(self, value: object) -> bool:
        """Whether an element is equal to a value."""
        return bool(np.any(self == value))

    def __bool__(self) -> bool:
        """Whether the only element is not 0."""
        values = np.asarray(self)
        if values.size != 1:
            raise InvalidArgumentError(
                f"an array of {values.size:,} elements is neither true nor false: write (array != 0).any(), (array != 0).all(),"
                " or array.size for whether there are any"
            )
        return bool(values.item())

    @host_memory_for("a copy of an array")
    def __iter__(self) -> Iterator[Any]:
        """Go through a copy on the host."""
        if not self.shape:
            raise UnsupportedTypeError("an array without dimensions has nothing to go through")
        return iter(np.array(self))


def to_host(obj: Any) -> Any:
    """Return an array on a GPU, or of a library that is not NumPy, as a NumPy array, and everything else as it is.

    What is on the CPU is not copied.
    """
    if isinstance(obj, type):
        raise UnsupportedTypeError(f"the class {obj.__qualname__} is no array; give one of its arrays")
    if isinstance(obj, Elementwise):
        return np.asarray(obj)
    if is_on_gpu(obj):
        pointer, shape, dtype, device, _, _ = memory_of(obj)
        result = np.empty(shape, dtype)
        copy_bytes(device, result, pointer, result.nbytes)
        return result
    if isinstance(obj, (np.ndarray, np.generic)) or not hasattr(obj, "__dlpack__"):
        return obj
    try:
        return np.asarray(detached(obj)) if hasattr(obj, "__array__") else np.from_dlpack(obj)
    except (RuntimeError, TypeError, BufferError) as error:
        raise UnsupportedTypeError(f"an array of {type(obj).__module__} cannot become one of NumPy: {error}") from error
