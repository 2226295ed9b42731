"""Arrays of which each of several devices has a copy: tasks read that of their device, and write all of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .array import Array
from .import_external import kept_dtype
from .ownership import Ownership
from .partitioned import PartitionedArray
from .spread import zeros_over

__all__ = ["Blocks", "MirroredArray", "aligned"]

_GRANULE = 1 << 21  # of a GPU's memory, so that a block is on one alone
_ALIGNMENT = 256  # of arrays in a block, in bytes: a line of a cache is of one array


class Blocks:
    """Memory of which each device has a block of the same size, in which arrays lie one after another.

    Attributes
    ----------
    memory : Array
        The blocks, one after another, and `tail` bytes.
    step : int
        Bytes from a block to the next one.
    """

    def __init__(self, ownership: Ownership, nbytes: int, tail: int = 0) -> None:
        count, unit = len(ownership.devices), _GRANULE if ownership.over_gpus else 8
        self.step = -(-max(nbytes, 1) // unit) * unit
        borders = [*range(0, count * self.step, self.step), count * self.step + tail]
        self.memory = zeros_over(ownership, (borders[-1],), np.uint8, borders)
        self._taken = 0

    def take(self, nbytes: int) -> int:
        """Return where so many bytes of each block are that no array has."""
        first = self._taken
        self._taken += aligned(nbytes)
        return first


def aligned(nbytes: int) -> int:
    """Return so many bytes, rounded up to where the next array of a block may begin."""
    return -(-nbytes // _ALIGNMENT) * _ALIGNMENT


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

    __slots__ = ("_blocks", "_copies", "step")

    step: int

    def __init__(
        self, shape: int | tuple[int, ...], dtype: DTypeLike, ownership: Ownership, blocks: Blocks | None = None
    ) -> None:
        self._blocks = blocks
        super().__init__(shape, dtype, ownership)

    def _allocate(self, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
        kind, ownership = kept_dtype(dtype), self._ownership
        size = math.prod(shape) * kind.itemsize
        if self._blocks is None:
            self._blocks = Blocks(ownership, size)
        memory, self.step = self._blocks.memory, self._blocks.step
        first = memory.pointer + self._blocks.take(size)
        self._copies = [
            Array(first + k * self.step, shape, kind, ownership.reaching(k), readonly=False, owner=memory)
            for k in range(len(ownership.devices))
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
