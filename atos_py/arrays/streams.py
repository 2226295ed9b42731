"""The stream of a GPU that a launch runs on: the one that is named, or the one that the arguments' library is using."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..core.devices import Device
from ..errors import InvalidArgumentError, UnsupportedTypeError
from ..support.validation import check_int
from .array import Array
from .array_library import current_stream

__all__ = ["launch_stream"]


def launch_stream(stream: Any, arguments: Iterable[Any], device: Device) -> int:
    """Return the address of a stream.

    Parameters
    ----------
    stream : int, object or None
        An address; anything with ``__cuda_stream__``; a stream of CuPy, PyTorch or Numba; or None.
    arguments : iterable
        Those of the launch. If `stream` is None, the current stream of the library whose arrays they are is taken, if that is
        CuPy or PyTorch, otherwise the legacy default stream.
    device : Device
        Where the launch runs.

    Raises
    ------
    UnsupportedTypeError
        If `stream` is none of these.
    InvalidArgumentError
        If it is no address, or None while the arguments' libraries use different streams.
    """
    if stream is not None:
        return _address(stream)
    libraries = _libraries(arguments)
    if not libraries:
        return 0
    used = {library: current_stream(library, device) for library in libraries}
    found = {address for address in used.values() if address is not None}
    if len(found) > 1:
        raise InvalidArgumentError(
            "the arguments are arrays of CuPy and of PyTorch, whose current streams differ; say which to take, as in stream=..."
        )
    return found.pop() if found else 0


def _address(stream: Any) -> int:
    if hasattr(stream, "__cuda_stream__"):
        protocol = stream.__cuda_stream__
        version, handle = protocol() if callable(protocol) else protocol
        if version != 0:
            raise UnsupportedTypeError(f"__cuda_stream__ of {stream!r} speaks version {version}, but only 0 is known")
        stream = handle
    else:
        for name in ("cuda_stream", "ptr", "handle"):  # PyTorch, CuPy, Numba
            if hasattr(stream, name):
                handle = getattr(stream, name)
                stream = getattr(handle, "value", handle) or 0
                break
    # Handles of CUDA's own bindings are numbers too.
    scalar = hasattr(stream, "__int__") and not isinstance(stream, type) and not hasattr(stream, "__len__")
    if scalar and not isinstance(stream, (bool, float, np.bool_, np.floating)):
        return check_int("stream", int(stream), 0, 2**64 - 1)
    raise UnsupportedTypeError(
        f"stream must be an address or a stream of CuPy, PyTorch or anything with __cuda_stream__ (got {stream!r:.80})"
    )


def _libraries(values: Iterable[Any]) -> set[str]:
    """Return the libraries that arrays were made from."""
    found: set[str] = set()
    for value in values:
        if isinstance(value, Array):
            if value.library is not None:
                found.add(value.library)
        elif isinstance(value, tuple):
            found |= _libraries(value)
    return found
