"""The compiled core, through cffi: it is loaded, its version is checked, and a status becomes an exception."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cffi import FFI

from ..errors import (
    AtosError,
    BuildError,
    DeviceError,
    DeviceFaultError,
    DeviceMemoryError,
    DeviceNotFoundError,
    DeviceStuckError,
    DistributedError,
    InvalidArgumentError,
    LaunchConfigError,
)

__all__ = ["LIBRARY_DIR", "check", "ffi", "in_turn", "lib", "message"]

LIBRARY_DIR = Path(__file__).parent.parent / "_lib"
_ABI_VERSION = 21
_BUILD = "build it with `pip install .`, or `python setup.py build_core` in a checkout"


def _load() -> tuple[FFI, Any]:
    header, library = LIBRARY_DIR / "atos.h", LIBRARY_DIR / "libatos.so"
    if not header.is_file() or not library.is_file():
        raise BuildError(f"the compiled core is missing from {LIBRARY_DIR}; {_BUILD}")
    interface = FFI()
    interface.cdef(header.read_text(encoding="utf-8"))
    try:
        loaded: Any = interface.dlopen(str(library))
    except OSError as error:
        raise BuildError(f"the compiled core does not load: {error}; {_BUILD}") from error
    version = loaded.atos_abi_version()
    if version != _ABI_VERSION:
        raise BuildError(f"the compiled core has ABI version {version}, but this package needs {_ABI_VERSION}; {_BUILD}")
    # cffi looks up each name once, under a lock that is not reentrant. Garbage may be collected while cffi holds it, and what
    # ends a queue or an array then would wait for ever for a name that is new.
    for name in dir(loaded):
        getattr(loaded, name)
    return interface, loaded


ffi, lib = _load()

_ERRORS: dict[int, type[AtosError]] = {
    lib.ATOS_INVALID: InvalidArgumentError,
    lib.ATOS_NO_DEVICE: DeviceNotFoundError,
    lib.ATOS_NO_MEMORY: DeviceMemoryError,
    lib.ATOS_DRIVER: DeviceError,
    lib.ATOS_TOO_MANY: LaunchConfigError,
    lib.ATOS_BUSY: DeviceStuckError,
    lib.ATOS_GONE: DistributedError,
}


def message() -> str:
    """Return what the core last said in this thread."""
    return ffi.string(lib.atos_message()).decode()  # type: ignore[union-attr]


def in_turn(function: Any, *args: Any) -> int:
    """Return the status of a function of a queue, waiting for another thread's launch; handlers of signals run meanwhile."""
    while (status := function(*args)) == lib.ATOS_HELD:
        pass  # the core has waited for a while
    return status


def check(status: int) -> None:
    """Raise the error that a status of the core stands for."""
    if status == lib.ATOS_FAULT:
        raise DeviceFaultError(
            f"{message()}; the device's context is lost, and with it every array and queue there, those of other libraries"
            " too: start a new process, and launch with debug=True (or ATOS_DEBUG=1) to find the line of the task"
        )
    if status != lib.ATOS_OK:
        raise _ERRORS.get(status, AtosError)(message())
