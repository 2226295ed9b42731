"""Arrays of which each of several devices has a copy: tasks read that of their device, and write all of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .array import Array
from .import_external import kept_dtype
from .partitioned import PartitionedArray
from .spread import zeros_over

__all__ = ["MirroredArray"]

_GRANULE = 1 << 21  # of a GPU's memory, so that a copy is on one alone


class MirroredArray(PartitionedArray):
    """An array with a copy on each device of a partition: a task reads that of its device, and writes all of them.

    `atos_py.full` makes one with ``placement="mirrored"``. It suits what is written once for each vertex and read along edges:
    on GPUs a load does not cross a link. One task alone writes an element between two barriers, by a plain store, which is
    refused by no check; until the next barrier other devices may see the old value or the new one. Atomic operations on it are
    refused when a task is compiled. The host reads and writes it like any array over the parts.

    Attributes
    ----------
    dtype : numpy.dtype
        Type of the elements.

    Examples
    --------
    >>> parts = atos.Graph.from_edges([0, 1], [1, 2], device="cpu").partition(["cpu:0", "cpu:1"])
    >>> share = atos.full(3, 0.5, partition=parts, placement="mirrored")
    >>> share[2] = 1.0
    >>> print(share, share[:])
    <atos array shape=(3,) dtype=float64 mirrored over cpu, cpu:1> [0.5 0.5 1. ]
    """

    __slots__ = ("_copies", "_memory", "step")

    step: int

    def _allocate(self, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
        kind, ownership = kept_dtype(dtype), self._ownership
        size = max(math.prod(shape) * kind.itemsize, 1)
        self.step = -(-size // _GRANULE) * _GRANULE if ownership.on_gpus else -(-size // 8) * 8
        count = len(ownership.devices)
        self._memory = memory = zeros_over(ownership, (count * self.step,), np.uint8, [k * self.step for k in range(count + 1)])
        places = [memory.pointer + k * self.step for k in range(count)]
        self._copies = [
            Array(place, shape, kind, device, readonly=False, owner=memory)
            for place, device in zip(places, ownership.devices, strict=True)
        ]
        return self._copies[ownership.here.start]

    @property
    def pointer(self) -> int:
        """Address of the first element of the first device's copy; the others follow at distances of `step` bytes."""
        return self._copies[0].pointer

    def __repr__(self) -> str:
        return f"<atos array shape={self.shape} dtype={self.dtype} mirrored over {', '.join(map(str, self.devices))}>"

    def _write(self, key: Any, value: ArrayLike) -> None:
        for copy in self._copies:
            copy[key] = value

    def _fill(self, number: NDArray[Any]) -> None:
        for k in self._ownership.here:
            self._copies[k][...] = number
