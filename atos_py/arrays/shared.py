"""Arrays in memory that the processes of a group share: one for all of them, each of which fills its own part.

On GPUs each process provides a part of the memory, and all reach all of it.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ..core.library import ffi
from ..core.process_group import ProcessGroup
from ..core.shared_blocks import share_blocks
from ..core.shared_gpu_memory import share_gpu_memory
from ..errors import DeviceMemoryError
from .array import Array, zeros
from .import_external import kept_dtype
from .memory import check_shape
from .ownership import Ownership

__all__ = ["SharedArray", "byte_borders", "common_zeros", "shared_zeros"]

_MOST_BYTES = 1 << 46  # addresses of a GPU


class SharedArray(Array):
    """An array in memory that several processes have in common."""

    __slots__ = ()


def shared_zeros(
    group: ProcessGroup, shape: tuple[int, ...], dtype: DTypeLike, *, borders: Sequence[int] | None = None
) -> SharedArray:
    """Return a new array of zeros that all processes have; each calls this with the same shape and dtype.

    What a process writes the others see, but they wait for each other only where they say so. On GPUs process k provides the
    elements, or rows, from `borders[k]` on; without borders process 0 provides all.
    """
    kind, device = kept_dtype(dtype), group.device
    group.agree(f"an array of shape {shape} and dtype {kind}")
    nbytes = math.prod(shape) * kind.itemsize
    if device.kind == "cuda":
        ends = [0, *[nbytes] * group.world_size] if borders is None else byte_borders(shape, kind, borders)
        if ends[-1] >= _MOST_BYTES:
            raise DeviceMemoryError(f"an array of shape {shape} is larger than any memory")
        owner = share_gpu_memory(group, ends).owner
        return SharedArray(int(ffi.cast("uintptr_t", owner)), shape, kind, device, readonly=False, owner=owner)
    if nbytes > device.memory[1]:
        raise DeviceMemoryError(f"an array of {nbytes:,} bytes, of shape {shape}, is larger than the host's memory")
    # Whole pages, since a mapping is never empty.
    block, *_ = share_blocks(group, max(nbytes, mmap.PAGESIZE) if group.rank == 0 else 0)
    assert block is not None
    values = np.frombuffer(block, kind, math.prod(shape)).reshape(shape)
    return SharedArray(values.ctypes.data, shape, kind, device, readonly=False, owner=values)


def common_zeros(shape: int | tuple[int, ...], dtype: DTypeLike, ownership: Ownership) -> Array:
    """Return a new array of zeros that all devices of an ownership have in common, in whatever process they are."""
    if ownership.group is None:  # GPUs of an ownership reach each other's memory
        return zeros(shape, dtype=dtype, device=ownership.devices[0])
    return shared_zeros(ownership.group, check_shape(shape), dtype)


def byte_borders(shape: tuple[int, ...], kind: np.dtype[Any], borders: Sequence[int]) -> list[int]:
    """Return where the memory of each device begins, by the number of its first element or row, and where all ends."""
    row = math.prod(shape[1:]) * kind.itemsize
    ends = [min(border, shape[0]) * row for border in borders]
    ends[-1] = -(-ends[-1] // 4) * 4  # whole words, as on one device
    return ends
