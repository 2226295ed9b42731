"""Arrays over several devices, of which each has the elements of the vertices that it owns."""

from __future__ import annotations

import math
import operator
from types import EllipsisType
from typing import Any, SupportsIndex, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..core.devices import Device
from ..errors import InvalidArgumentError
from ..support.host_memory import host_memory_for
from ..support.not_copied import NotCopied
from .array import Array, asarray, one_number
from .indexing import Element, Key
from .memory import check_shape
from .on_host import Elementwise
from .ownership import Ownership
from .spread import zeros_over

__all__ = ["PartitionedArray"]


class PartitionedArray(Elementwise, NotCopied):
    """An array over the devices of a partition: a task on any of them reads and writes all of it.

    `atos_py.full` makes one. From the host, its first dimension is indexed by the ids of vertices, as they were given; inside
    tasks, by the numbers that vertices have there, as `Graph.partition` describes. Parts are read and written by indexing,
    which copies; `to_numpy` copies all.

    Attributes
    ----------
    dtype : numpy.dtype
        Type of the elements.

    Examples
    --------
    >>> parts = atos.Graph.from_edges([0, 1], [1, 2], device="cpu").partition(["cpu:0", "cpu:1"], order="random")
    >>> depth = atos.full(3, 7, partition=parts)
    >>> depth[2] = 9
    >>> print(depth[2], depth.to_numpy(), len(depth.devices))
    9 [7 7 9] 2
    """

    # On CPU devices the memory is one, which processes share. On GPUs it is one range of addresses too, whose pages each owner
    # provides.
    __slots__ = ("__weakref__", "_elements", "_ownership")

    _not_copied = "an array over several devices is neither copied nor pickled: to_numpy() returns its elements"

    def __init__(self, shape: int | tuple[int, ...], dtype: DTypeLike, ownership: Ownership) -> None:
        dimensions = check_shape(shape)
        if not dimensions or dimensions[0] != ownership.size:
            raise InvalidArgumentError(
                f"an array of a partition has an element or a row for each of its {ownership.size:,} vertices (got shape"
                f" {dimensions})"
            )
        self._ownership = ownership
        self._elements = self._allocate(dimensions, dtype)

    @classmethod
    def _of_one(cls, elements: Array, ownership: Ownership) -> PartitionedArray:
        """Return an array over the one device that there is, from one of all its elements."""
        made = cls.__new__(cls)
        made._ownership, made._elements = ownership, elements
        return made

    def _allocate(self, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
        """Return zeros, of which each device has a part."""
        owned = self._ownership
        return zeros_over(owned, shape, dtype, owned.borders)

    @property
    def ownership(self) -> Ownership:
        """Which device owns each element."""
        return self._ownership

    def _check_owner(self, argument: str, owner: Any, where: str) -> None:
        self._ownership.check_owner(argument, owner, where)

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices that have it."""
        return self._ownership.devices

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements."""
        return self._elements.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Its dimensions, of which the first is the number of vertices."""
        return self._elements.shape

    @property
    def pointer(self) -> int:
        """Address of the first element, of the vertex with number 0."""
        return self._elements.pointer

    @property
    def readonly(self) -> bool:
        """Whether tasks may only read it: never so far."""
        return False

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Size of the elements in bytes."""
        return self._elements.nbytes

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<atos array shape={self.shape} dtype={self.dtype} over {', '.join(map(str, self.devices))}>"

    @host_memory_for("PartitionedArray.to_numpy")
    def to_numpy(self) -> NDArray[Any]:
        """Return a copy on the host, in the order of the vertices' ids.

        Examples
        --------
        >>> parts = atos.generate.road(2, 1.0, device="cpu").partition(["cpu:0", "cpu:1"])
        >>> atos.full(4, 7, partition=parts).to_numpy()
        array([7, 7, 7, 7])
        """
        values = self._elements.to_numpy()
        return values if self._ownership.numbers is None else values[self._ownership.numbers]

    @host_memory_for("PartitionedArray.fill")
    def fill(self, value: ArrayLike) -> None:
        """Write the same value everywhere; it has to fit the dtype.

        With several processes all of them call this, and wait for each other before and after.

        Examples
        --------
        >>> parts = atos.generate.road(2, 1.0, device="cpu").partition(["cpu:0", "cpu:1"])
        >>> array = atos.full(4, 7, partition=parts)
        >>> array.fill(2)
        >>> print(array[:])
        [2 2 2 2]
        """
        number = one_number(value)
        with self._ownership.all_at(f"a value to fill an array with, {value!r:.80}"):
            self._fill(number)

    @host_memory_for("a NumPy array of an array")
    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise InvalidArgumentError("an array over several devices cannot become a NumPy array without a copy")
        result = self.to_numpy()
        return result if dtype is None else result.astype(dtype, copy=False)

    @overload
    def __getitem__(self, key: slice | EllipsisType) -> NDArray[Any]: ...
    @overload
    def __getitem__(self, key: SupportsIndex | tuple[SupportsIndex | slice | EllipsisType, ...]) -> Element: ...
    @host_memory_for("a copy of a part of an array")
    def __getitem__(self, key: Key) -> Any:
        """Return an element as a NumPy scalar, or a contiguous part as a NumPy array; both are copies."""
        inner = self._inner_key(key)
        return self._by_id()[key] if inner is None else self._elements[inner]

    @host_memory_for("what is written to an array")
    def __setitem__(self, key: Key, value: ArrayLike) -> None:
        """Write an element or a contiguous part; `value` is broadcast."""
        inner = self._inner_key(key)
        if inner is not None:
            self._write(inner, value)
            return
        values = self._by_id()
        values[key] = value
        self._write(..., np.asarray(values)[self._ownership.ids])

    def _write(self, key: Any, value: ArrayLike) -> None:
        """Write elements by their numbers."""
        self._elements[key] = value

    def _fill(self, number: NDArray[Any]) -> None:
        """Write a number everywhere; of several processes, in the part of this one."""
        self._elements[... if self._ownership.group is None else self._ownership.own] = number

    def _inner_key(self, key: Key) -> Key | None:
        """Return where the elements of a key are; None if they are not contiguous there."""
        numbers = self._ownership.numbers
        if numbers is None:
            return key
        first, *rest = key if isinstance(key, tuple) and key else (key,)
        if isinstance(first, (bool, np.bool_)) or not hasattr(first, "__index__"):
            return None
        try:
            vertex = operator.index(first)  # type: ignore[arg-type]
        except TypeError:
            return None
        if not -len(numbers) <= vertex < len(numbers):
            return key  # which is refused
        return (int(numbers[vertex]), *rest)

    def _by_id(self) -> Array:
        return asarray(self.to_numpy(), device=self._ownership.local)
