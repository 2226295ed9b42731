"""Arrays of a caller that are changed in place: checked, and wrapped without a copy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.devices import Device
from ..errors import InvalidArgumentError, UnsupportedTypeError
from .array import Array, asarray
from .import_external import is_on_gpu

__all__ = ["array_in_place"]


def array_in_place(name: str, value: Any, size: int, device: Device) -> Array:
    """Return an array of `size` numbers as one of this package that shares its memory.

    Raises
    ------
    UnsupportedTypeError
        If it is no array, or not of integers or floats.
    InvalidArgumentError
        If it is somewhere else than on `device`, not writable, not contiguous, or of another shape.
    """
    advice = f"it is changed in place, on {device}: make it by atos.asarray(..., device={str(device)!r})"
    if not isinstance(value, Array):
        if not (isinstance(value, np.ndarray) or hasattr(value, "__dlpack__") or hasattr(value, "__cuda_array_interface__")):
            raise UnsupportedTypeError(f"{name} must be an array (got {value!r:.80}); {advice}")
        if is_on_gpu(value) != (device.kind == "cuda"):
            raise InvalidArgumentError(f"{name} is an array of {'the host' if device.kind == 'cuda' else 'a GPU'}; {advice}")
        if isinstance(value, np.ndarray) and not (value.flags.c_contiguous and value.flags.writeable):
            raise InvalidArgumentError(f"{name} is changed in place, so it has to be contiguous and writable; pass a copy")
        value = asarray(value, device=device)
    if value.device != device:
        raise InvalidArgumentError(f"{name} is on {value.device}; {advice}")
    if value.readonly:
        raise InvalidArgumentError(f"{name} is changed in place, and this array is read-only; pass a copy of it")
    if value.shape != (size,):
        raise InvalidArgumentError(f"{name} must have one number for each of {size} vertices (got shape {value.shape})")
    if value.dtype.kind not in "iuf":
        raise UnsupportedTypeError(f"{name} must be integers or floats, not {value.dtype}")
    return value
