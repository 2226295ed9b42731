"""Arrays over several devices whose elements tasks only lower: each device knows a bound of what others have."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .ownership import Ownership
from .partitioned import PartitionedArray
from .private import PrivateArray

__all__ = ["LoweredArray"]


class LoweredArray(PartitionedArray):
    """An array over the devices of a partition that tasks change by `worker.push_min` and `atomic_min` alone.

    `atos_py.full` makes one with ``combine="min"``. Each device keeps a bound of the elements of others, the least that it
    knows they were: what is no smaller is not sent to them. So of many tasks that would lower an element, few cross the link to
    its device. What tasks read is the element itself. Other changes are refused when a task is compiled.

    Attributes
    ----------
    dtype : numpy.dtype
        Type of the elements: integers, or floats of 32 or 64 bits.

    Examples
    --------
    >>> parts = atos.Graph.from_edges([0, 1], [1, 2], device="cpu").partition(["cpu:0", "cpu:1"])
    >>> atos.full(3, 9, partition=parts, combine="min")
    <atos array shape=(3,) dtype=int64 lowered over cpu, cpu:1>
    """

    __slots__ = ("_are_stale", "_bounds")

    def __init__(self, shape: int | tuple[int, ...], dtype: DTypeLike, ownership: Ownership) -> None:
        super().__init__(shape, dtype, ownership)
        self._bounds = PrivateArray(self.shape, self.dtype, ownership)
        self._are_stale = True

    @property
    def bounds(self) -> PrivateArray:
        """Bounds of the others' elements on each device: the largest number after the host may have raised elements."""
        if self._are_stale:
            kind = self.dtype
            self._bounds._fill(np.array(np.inf if kind.kind == "f" else np.iinfo(kind).max, kind))
            self._are_stale = False
        return self._bounds

    def __repr__(self) -> str:
        return f"<atos array shape={self.shape} dtype={self.dtype} lowered over {', '.join(map(str, self.devices))}>"

    def _write(self, key: Any, value: ArrayLike) -> None:
        self._are_stale = True
        super()._write(key, value)

    def _fill(self, number: NDArray[Any]) -> None:
        self._are_stale = True
        super()._fill(number)
