"""Arrays of other libraries on GPUs: whether something is one, and what an `Array` of its memory is made of."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ..core.devices import Device
from ..core.devices import device as device_of
from ..core.library import check, ffi, lib
from ..errors import AtosError, InvalidArgumentError, UnsupportedTypeError
from ..support.validation import as_dtype, check_int
from . import dlpack_export as dlpack
from .array_library import current_stream, library_of

__all__ = ["Memory", "detached", "is_on_gpu", "kept_dtype", "memory_of"]

_KEPT = frozenset(np.dtype(name) for name in ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"))
_LEGACY_STREAM = 1  # as CUDA and DLPack number it
_MANAGED = 13  # kDLCUDAManaged


class Memory(NamedTuple):
    """C-contiguous memory on a GPU, with what keeps it alive."""

    pointer: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    device: Device
    readonly: bool
    owner: object


def is_on_gpu(obj: Any) -> bool:
    """Whether something is an array on a GPU, of whichever library."""
    if isinstance(obj, (np.ndarray, np.generic, type)):  # a class has the methods of its arrays, and is none
        return False
    if hasattr(obj, "__dlpack_device__"):
        try:
            return bool(obj.__dlpack_device__()[0] in (dlpack.CUDA, _MANAGED))
        except TypeError:  # as PyArrow says of bool, which has no form in DLPack there
            return False
    return hasattr(obj, "__cuda_array_interface__")


def memory_of(obj: Any) -> Memory:
    """Return the memory of an array on a GPU, when its producer has written what it has begun to write."""
    obj = detached(obj)
    return _from_cuda_interface(obj) if hasattr(obj, "__cuda_array_interface__") else _from_dlpack(obj)


def _from_cuda_interface(obj: Any) -> Memory:
    interface = obj.__cuda_array_interface__
    try:
        pointer, readonly = interface["data"]
        shape, typestr = (
            tuple(check_int("extent of a shape", extent, 0, 2**62) for extent in interface["shape"]),
            interface["typestr"],
        )
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, AtosError):
            raise
        raise UnsupportedTypeError(f"the __cuda_array_interface__ of {type(obj).__name__} is malformed: {error!r}") from error
    kind = kept_dtype(typestr)
    if interface.get("mask") is not None:
        raise UnsupportedTypeError(f"the array of {type(obj).__name__} has a mask, which would be ignored; pass it without one")
    if interface.get("strides") is not None and not _contiguous(shape, interface["strides"], kind.itemsize):
        raise InvalidArgumentError(f"the array of shape {shape} has strides {interface['strides']}; make it C-contiguous first")
    number = ffi.new("int32_t *")
    check(lib.atos_pointer_device(ffi.cast("void *", pointer), number))
    target = device_of() if not math.prod(shape) else Device("cpu") if number[0] == lib.ATOS_CPU else Device("cuda", number[0])
    library = library_of(obj)
    # The producer may still be writing, on the stream that it names; PyTorch names none.
    stream = interface.get("stream", current_stream(library, target) if target.kind == "cuda" else None)
    if stream is not None:
        check(lib.atos_stream_wait(target.number, ffi.cast("void *", stream)))
    return Memory(pointer, shape, kind, target, bool(readonly) or library == "jax", obj)


def _from_dlpack(obj: Any) -> Memory:
    from cuda.core.utils import StridedMemoryView

    view = StridedMemoryView.from_dlpack(obj, stream_ptr=_LEGACY_STREAM)  # which waits for the producer from now on
    kind = kept_dtype(view.dtype)
    strides = None if view.strides is None else tuple(s * kind.itemsize for s in view.strides)
    if strides is not None and not _contiguous(view.shape, strides, kind.itemsize):
        raise InvalidArgumentError(f"the array of shape {view.shape} has strides {strides}; make it C-contiguous first")
    target = Device("cuda", view.device_id)
    check(lib.atos_stream_wait(target.number, ffi.cast("void *", _LEGACY_STREAM)))
    return Memory(view.ptr, tuple(view.shape), kind, target, view.readonly or library_of(obj) == "jax", (obj, view))


def detached(obj: Any) -> Any:
    """Return an array without its gradient, for PyTorch does not share an array with one."""
    return obj.detach() if getattr(obj, "requires_grad", False) else obj


def _contiguous(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    expected = itemsize
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent > 1 and stride != expected:
            return False
        expected *= extent
    return True


def held_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype in which an array holds numbers of another: halves as float32, and the machine's own order of bytes."""
    native = dtype.newbyteorder("=")
    return np.dtype(np.float32) if native == np.float16 else native


def kept_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """Return a dtype, if arrays can hold it."""
    kind = as_dtype(dtype)
    if kind not in _KEPT:
        raise UnsupportedTypeError(f"arrays hold integers of 8 to 64 bits, float32, float64 or bool (got {kind})")
    return kind
