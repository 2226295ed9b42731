"""Array libraries: finds the one that an array is of, returns results as arrays of it, and finds its current stream.

No library is imported here that the program has not imported itself.
"""

from __future__ import annotations

import sys
from typing import Any

from ..core.devices import Device
from ..errors import UnsupportedTypeError

__all__ = ["as_library", "current_stream", "library_of"]

_LIBRARIES = {"cupy": "cupy", "cupyx": "cupy", "torch": "torch", "jax": "jax", "jaxlib": "jax"}


def library_of(obj: Any) -> str | None:
    """Return "cupy", "torch" or "jax" if `obj` is an array of that library, or was made from one; otherwise None."""
    found = _LIBRARIES.get(type(obj).__module__.partition(".")[0])
    if found is None:
        found = _LIBRARIES.get(str(getattr(obj, "library", None)))
    return found


def as_library(array: Any, library: str | None) -> Any:
    """Return an `Array` as an array of `library`, which shares its memory.

    It is returned as it is if `library` is None, or CuPy and the array on the CPU.

    Raises
    ------
    UnsupportedTypeError
        If the library cannot hold it, as a JAX without CUDA cannot hold an array of a GPU.
    """
    if library is None or (library == "cupy" and array.device.kind == "cpu"):
        return array
    module = sys.modules[library]
    try:
        if library == "cupy":
            return module.asarray(array)
        return module.from_dlpack(array) if library == "torch" else module.numpy.from_dlpack(array)
    except (RuntimeError, TypeError, ValueError, AssertionError) as error:
        raise UnsupportedTypeError(
            f"{library} cannot hold {array!r}: {error}; choose another device, as with device='cpu'"
        ) from error


def current_stream(library: str | None, device: Device) -> int | None:
    """Return the stream of a GPU that a library is using, as an address; None if it has no such thing."""
    if library == "cupy":
        return int(sys.modules["cupy"].cuda.get_current_stream(device.index).ptr)
    if library == "torch":
        return int(sys.modules["torch"].cuda.current_stream(device.index).cuda_stream)
    return None
