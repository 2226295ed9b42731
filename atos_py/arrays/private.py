"""Arrays of which each of several devices has a copy of its own, which its tasks alone read and write."""

from __future__ import annotations

import math
from typing import Any

from numpy.typing import DTypeLike

from .array import Array
from .import_external import kept_dtype
from .memory import check_shape
from .mirrored import Blocks, MirroredArray, aligned
from .ownership import Ownership

__all__ = ["PrivateArray", "arrays_together"]

_TAIL = 4096  # bytes behind the blocks


class PrivateArray(MirroredArray):
    """An array of which a task uses the copy of its device, for what a device counts, lists or knows by itself.

    Atomic operations are allowed, and of the scope of one GPU. What the function between rounds is to see of all devices, it
    reads and writes in `rows`.

    Attributes
    ----------
    dtype : numpy.dtype
        Type of the elements.
    """

    __slots__ = ()

    @property
    def copies(self) -> list[Array]:
        """The copy of each device."""
        return self._copies

    @property
    def rows(self) -> Array:
        """The copies of an array of one dimension as one of two, whose row k is that of device k: for tasks of all devices."""
        assert self._blocks is not None
        first, memory = self._copies[0], self._blocks.memory
        assert first.pointer + len(self._copies) * self.step <= memory.pointer + memory.nbytes
        shape = len(self._copies), self.step // self.dtype.itemsize
        return type(memory)(first.pointer, shape, self.dtype, first.device, readonly=False, owner=memory)

    def __repr__(self) -> str:
        return f"<atos array shape={self.shape} dtype={self.dtype} private to {', '.join(map(str, self.devices))}>"


def arrays_together(ownership: Ownership, *wanted: tuple[type[MirroredArray], int | tuple[int, ...], DTypeLike]) -> list[Any]:
    """Return arrays of these classes, shapes and dtypes that lie in the same blocks, of which each device has one.

    They are not of the vertices of the ownership, but of other elements. On GPUs one allocation is faster than several, since
    each clears the memory of one after another, and waits. Arrays whose `rows` are used begin in the first 4 KiB.
    """
    shapes = [check_shape(shape) for _, shape, _ in wanted]
    sizes = [math.prod(shape) * kept_dtype(dtype).itemsize for shape, (_, _, dtype) in zip(shapes, wanted, strict=True)]
    blocks = Blocks(ownership, sum(map(aligned, sizes)), _TAIL)
    return [
        kind(shape, dtype, ownership.others(shape[0]), blocks) for shape, (kind, _, dtype) in zip(shapes, wanted, strict=True)
    ]
