"""Arrays in one range of addresses over several devices: each GPU provides the memory of a part, and all reach all of it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from numpy.typing import DTypeLike

from ..core.devices import Device
from ..core.library import check, ffi, lib
from ..errors import DeviceMemoryError
from .array import Array, zeros
from .import_external import kept_dtype
from .memory import check_shape
from .ownership import Ownership
from .shared import byte_borders, shared_zeros

__all__ = ["spread_zeros", "zeros_over"]


def spread_zeros(shape: int | tuple[int, ...], dtype: DTypeLike, devices: Sequence[Device], borders: Sequence[int]) -> Array:
    """Return a new array of zeros over GPUs that are connected: elements, or rows, from `borders[k]` on are of device k.

    Memory comes in granules of 2 MiB, each of one GPU, so that a border may lie a little elsewhere.
    """
    dimensions, kind = check_shape(shape), kept_dtype(dtype)
    if math.prod(dimensions) * kind.itemsize >= 2**63:
        raise DeviceMemoryError(f"an array of shape {dimensions} is larger than any memory")
    ends = byte_borders(dimensions, kind, borders)
    slot = ffi.new("void **")
    check(lib.atos_allocate_over(len(devices), [device.number for device in devices], ends, slot))
    owner = ffi.gc(slot[0], lib.atos_release_over)
    return Array(int(ffi.cast("uintptr_t", owner)), dimensions, kind, devices[0], readonly=False, owner=owner)


def zeros_over(ownership: Ownership, shape: tuple[int, ...], dtype: DTypeLike, borders: Sequence[int]) -> Array:
    """Return a new array of zeros over the devices of an ownership, with borders as in `spread_zeros`.

    On one device, and on CPU devices, it is ordinary memory, which the processes of a group share.
    """
    if ownership.group is not None:
        return shared_zeros(ownership.group, shape, dtype, borders=borders)
    if ownership.over_gpus:
        return spread_zeros(shape, dtype, ownership.devices, borders)
    return zeros(shape, dtype=dtype, device=ownership.devices[0])
