"""Arrays in memory that the processes of a group share: one for all of them, each of which fills its own part."""

from __future__ import annotations

import math
import mmap

import numpy as np
from numpy.typing import DTypeLike

from ..core.devices import Device
from ..core.process_group import ProcessGroup
from ..core.shared_blocks import share_blocks
from ..errors import DeviceMemoryError
from .array import Array, zeros
from .import_external import kept_dtype
from .memory import check_shape
from .ownership import Ownership

__all__ = ["SharedArray", "common_zeros", "shared_zeros"]


class SharedArray(Array):
    """An array in memory that several processes have in common."""

    __slots__ = ()


def shared_zeros(
    group: ProcessGroup, shape: tuple[int, ...], dtype: DTypeLike, device: Device, *, readonly: bool = False
) -> SharedArray:
    """Return a new array of zeros that all processes have; each calls this with the same shape and dtype.

    What a process writes the others see, but they wait for each other only where they say so.
    """
    kind = kept_dtype(dtype)
    group.agree(f"an array of shape {shape} and dtype {kind}")
    nbytes = math.prod(shape) * kind.itemsize
    if nbytes > device.memory[1]:
        raise DeviceMemoryError(f"an array of {nbytes:,} bytes, of shape {shape}, is larger than the host's memory")
    # Whole pages, since a mapping is never empty.
    block, *_ = share_blocks(group, max(nbytes, mmap.PAGESIZE) if group.rank == 0 else 0)
    assert block is not None
    values = np.frombuffer(block, kind, math.prod(shape)).reshape(shape)
    return SharedArray(values.ctypes.data, shape, kind, device, readonly=readonly, owner=values)


def common_zeros(shape: int | tuple[int, ...], dtype: DTypeLike, ownership: Ownership) -> Array:
    """Return a new array of zeros that all devices of an ownership have in common, in whatever process they are."""
    if ownership.group is None:  # GPUs of an ownership reach each other's memory
        return zeros(shape, dtype=dtype, device=ownership.devices[0])
    return shared_zeros(ownership.group, check_shape(shape), dtype, ownership.devices[0])
