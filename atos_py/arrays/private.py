"""Arrays of which each of several devices has a copy of its own, which its tasks alone read and write."""

from __future__ import annotations

from .array import Array
from .mirrored import MirroredArray

__all__ = ["PrivateArray"]


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
        first, memory = self._copies[0], self._memory
        shape = len(self._copies), self.step // self.dtype.itemsize
        return type(memory)(memory.pointer, shape, self.dtype, first.device, readonly=False, owner=memory)

    def __repr__(self) -> str:
        return f"<atos array shape={self.shape} dtype={self.dtype} private to {', '.join(map(str, self.devices))}>"
