"""Arguments that tasks take as they are: checked and packed in one pass, since each launch does it for all of its arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays.array import Array, is_of_core
from ..arrays.ownership import Ownership
from ..arrays.partitioned import PartitionedArray
from ..core.devices import Device
from .arguments import Kind, describe, device_words, is_named_tuple, tuple_kind, words

__all__ = ["pack_plain"]


def pack_plain(
    value: Any, device: Device, ownership: Ownership | None, packed: list[int], by_device: list[tuple[int, int]]
) -> Kind | None:
    """Append the words of an argument that tasks on one device, or over those of an ownership, take as it is; return its kind.

    It is an array there, a number, None, or a named tuple of those. Words that differ by device are noted in `by_device`, as
    `device_words` returns them, but by their places in `packed`. For others this returns None, and may have appended some.
    """
    cls: Any = type(value)
    if cls is Array:
        if not _reaches(device, ownership, value):
            return None
        packed.append(value.pointer)
        packed += value.shape
        return describe(value)
    if value is None or isinstance(value, (int, float, np.generic)):
        packed += words(value)
        return describe(value)
    if ownership is not None and isinstance(value, PartitionedArray):
        if value.ownership is not ownership and value.ownership.base is not ownership:
            return None
        by_device += [(len(packed) + place, step) for place, step in device_words(value)]
        packed += words(value)
        return describe(value)
    owner = getattr(value, "ownership", None)
    if owner is not ownership and (owner is not None or hasattr(value, "indptr")):  # maybe a graph with other numbers
        return None
    if not is_named_tuple(value) or hasattr(value, "_core"):
        return None
    kinds = []
    for member in value:
        kind = pack_plain(member, device, ownership, packed, by_device)
        if kind is None:
            return None
        kinds.append(kind)
    return tuple_kind(cls, cls._fields, tuple(kinds))


def _reaches(device: Device, ownership: Ownership | None, array: Array) -> bool:
    """Whether tasks on a device, or over those of an ownership, may use an array as it is."""
    if ownership is None:
        return array.device is device or array.device == device
    if ownership.group is not None and not array.readonly:
        return False
    return array.device in ownership.devices and (not ownership.over_gpus or is_of_core(array))
