"""Facts of the machine that a measurement is made on, and the peak of the host's memory during a call."""

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

__all__ = ["measure_peak", "read_device_facts", "read_versions"]

_PACKAGES = ("atos_py", "numpy", "numba", "cuda-core", "nvidia-nvvm", "nvidia-nvjitlink")
_T = TypeVar("_T")


def read_device_facts(device: Device) -> dict[str, Any]:
    """Return the model of a device, its cores or multiprocessors, and its driver."""
    facts: dict[str, Any] = {"name": device.name, "processors": device.processors}
    if device.kind == "cpu":
        found = re.search(r"^model name\s*:\s*(.+)$", _read_file("/proc/cpuinfo"), re.MULTILINE)
        facts["name"] = found[1] if found else platform.processor() or platform.machine()
    else:
        found = re.search(r"\s(\d{3,}\.[\d.]+)\s", _read_file("/proc/driver/nvidia/version"))
        facts["driver"] = found[1] if found else "unknown"
        facts["cuda"] = ".".join(map(str, driver_version() or ()))
    return facts


def read_versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that make code."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[package] = importlib.metadata.version(package)
    return found


def measure_peak(make: Callable[[], _T]) -> tuple[_T, int | None]:
    """Return what `make` returns, and how many bytes of the host's memory this process took at most meanwhile.

    That is the peak of its resident memory beyond what was resident before, as Linux accounts for it; None where it does not.
    """
    gc.collect()
    with contextlib.suppress(AttributeError, OSError):
        # The allocator would use memory again that was freed before, so that it would not count.
        ctypes.CDLL(None).malloc_trim(0)
    try:
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    except OSError:
        return make(), None
    before = _read_resident("VmRSS")
    made = make()
    peak = _read_resident("VmHWM")
    return made, None if before is None or peak is None else max(peak - before, 0)


def _read_resident(name: str) -> int | None:
    found = re.search(rf"^{name}:\s*(\d+) kB", _read_file("/proc/self/status"), re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def _read_file(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
