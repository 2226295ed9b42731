"""Arrays for other libraries, by DLPack: memory that they share, on the CPU and on GPUs.

The structures are made by the core (csrc/api/dlpack.cpp), since a library may let go of them when no Python code may run.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from ..core.devices import Device
from ..core.library import check, ffi, lib
from ..errors import ExportError, InvalidArgumentError, UnsupportedTypeError

__all__ = ["CPU", "CUDA", "device_of", "export"]

CPU, CUDA = 1, 2  # kDLCPU, kDLCUDA
_TYPE_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}
_READ_ONLY, _COPIED = 1, 2

_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_increase = ctypes.pythonapi.Py_IncRef
_increase.restype = None
_increase.argtypes = [ctypes.py_object]
# A capsule keeps the address of its name, and not a copy.
_NAMES = {False: b"dltensor", True: b"dltensor_versioned"}


def device_of(array: Any) -> tuple[int, int]:
    """Return where an `Array` is, as DLPack numbers devices."""
    return (CUDA, array.device.index) if array.device.kind == "cuda" else (CPU, 0)


def export(
    array: Any,
    *,
    stream: int | None,
    max_version: tuple[int, int] | None,
    dl_device: tuple[int, int] | None,
    copy: bool | None,
    copied_to: Callable[[Device | str], Any],
) -> Any:
    """Return a capsule that holds an `Array`, or the copy that `copied_to` makes of it on a device.

    `Array.__dlpack__` has the other parameters.
    """
    here = device_of(array)
    for name, pair in (("max_version", max_version), ("dl_device", dl_device)):
        if pair is not None and not (isinstance(pair, (tuple, list)) and len(pair) == 2):
            raise UnsupportedTypeError(f"{name} must be a pair of integers (got {pair!r:.80})")
    # Every operation here has ended when it returns, so there is nothing that a stream would have to wait for.
    if stream is not None and (here[0] == CPU or stream < -1 or stream == 0):
        allowed = "None for an array on the CPU" if here[0] == CPU else "None, -1, 1, 2 or the address of a stream"
        raise InvalidArgumentError(f"stream must be {allowed} (got {stream})")
    flags = _READ_ONLY if array.readonly else 0
    if dl_device is not None and tuple(dl_device) != here:
        if tuple(dl_device) != (CPU, 0) or copy is False:
            raise ExportError(f"an array on {array.device} cannot be exported to device {dl_device} of DLPack without a copy")
        copy = True
    if copy:
        array, flags = copied_to("cpu" if dl_device and dl_device[0] == CPU else array.device), _COPIED
    versioned = max_version is not None and max_version[0] >= 1
    if flags & _READ_ONLY and not versioned:
        raise ExportError(
            "a read-only array can be exported by DLPack 1.0 or newer; pass copy=True, or update the other library"
        )
    shape = ffi.new("int64_t[]", array.shape or (1,))
    given = ffi.new(
        "atos_dlpack *",
        {
            "data": ffi.cast("void *", array.pointer if array.size else 0),
            "device_type": device_of(array)[0],
            "device_id": device_of(array)[1],
            "type_code": _TYPE_CODES[array.dtype.kind],
            "type_bits": 8 * array.dtype.itemsize,
            "ndim": array.ndim,
            "shape": shape,
            "versioned": versioned,
            "flags": flags,
            "owner": ffi.cast("void *", id(array)),
        },
    )
    managed = ffi.new("void **")
    check(lib.atos_dlpack_make(given, managed))
    _increase(array)  # the reference that was taken over
    dispose = int(ffi.cast("uintptr_t", ffi.addressof(lib, "atos_dlpack_dispose")))
    return _new_capsule(int(ffi.cast("uintptr_t", managed[0])), _NAMES[versioned], dispose)
