"""What a measurement has to say about the machine that it was made on, and how much memory of the host something takes."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib.metadata
import platform
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from ..core.devices import Device, driver_version

__all__ = ["device_facts", "peak_of", "versions"]

_PACKAGES = ("atos_py", "numpy", "numba", "numba-cuda", "nvidia-nvjitlink")
_T = TypeVar("_T")


def device_facts(device: Device) -> dict[str, Any]:
    """Return the model of a device, its cores or multiprocessors, and its driver."""
    facts: dict[str, Any] = {"name": device.name, "processors": device.processors}
    if device.kind == "cpu":
        found = re.search(r"^model name\s*:\s*(.+)$", _read("/proc/cpuinfo"), re.MULTILINE)
        facts["name"] = found[1] if found else platform.processor() or platform.machine()
    else:
        found = re.search(r"\s(\d{3,}\.[\d.]+)\s", _read("/proc/driver/nvidia/version"))
        facts["driver"] = found[1] if found else "unknown"
        facts["cuda"] = ".".join(map(str, driver_version() or ()))
    return facts


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that make code."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[package] = importlib.metadata.version(package)
    return found


def peak_of(make: Callable[[], _T]) -> tuple[_T, int | None]:
    """Return what `make` returns, and how many bytes of the host's memory this process took at most meanwhile.

    That is the peak of its resident memory beyond what was resident before, as Linux accounts for it; None where it does not.
    """
    gc.collect()
    with contextlib.suppress(AttributeError, OSError):
        # What is freed but still with the allocator would be used again, and not be seen.
        ctypes.CDLL(None).malloc_trim(0)
    try:
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    except OSError:
        return make(), None
    before = _resident("VmRSS")
    made = make()
    peak = _resident("VmHWM")
    return made, None if before is None or peak is None else max(peak - before, 0)


def _resident(name: str) -> int | None:
    found = re.search(rf"^{name}:\s*(\d+) kB", _read("/proc/self/status"), re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
