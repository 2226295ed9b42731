"""Diagnosis of this machine: devices, compilers, packages and caches, with a command for each part that is missing."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..compile.codegen import ITEM_BYTES
from ..compile.linker import CORE_DIR
from ..compile.program import WORKERS
from ..core.devices import devices, driver_version, why_no_gpu
from ..errors import AtosError
from ..support.disk_cache import find_cache_fault, get_cache_directory
from .cuda_toolkit import NVCC_WHEELS, find_cuda

__all__ = ["Finding", "diagnose", "format_report"]

_REBUILD = "python setup.py build_core (in a checkout), or pip install again"
_GET_NVCC = f'python -m pip install "{NVCC_WHEELS}", then {_REBUILD}'
_GET_CXX = "sudo apt-get install g++ (or what your system calls it)"
_GPU_PARTS = {"driver", "cuda-core", "libNVVM", "nvJitLink", *(f"{worker} workers" for worker in WORKERS)}
#: Why the core was built for the CPU alone, by what the build noted.
_WHY_CPU_ONLY = {True: ", as ATOS_CPU_ONLY=1 asked when it was built", False: ", since nvcc was not found when it was built"}
_GPU_PACKAGES = 'python -m pip install "cuda-core[cu13]>=0.6,<2"'


@dataclass(frozen=True)
class Finding:
    """One line of the diagnosis.

    Attributes
    ----------
    section, name, value : str
    mend : str or None
        A command or advice for a part that is missing or wrong; None if it is in order.
    for_gpu : bool
        Whether that would be of use with a GPU only, and there is none.
    """

    section: str
    name: str
    value: str
    mend: str | None = None
    for_gpu: bool = False


def diagnose() -> list[Finding]:
    """Look at everything: what is ready and what is to do first, then section by section."""
    found = [*_check_devices(), *_check_compilers(), *_check_versions(), *_check_core(), *_check_caches()]
    if why_no_gpu() is None or _has_nvidia_hardware():
        found = [replace(finding, for_gpu=False) for finding in found]
    return [_find_ready(found), _find_to_do(found), *found]


def _find_ready(found: Sequence[Finding]) -> Finding:
    """Return a line without a section that says what tasks can run on as things are."""
    cores = devices()[0].processors
    names = [f"CPU backend ({cores} {'core' if cores == 1 else 'cores'})"]
    if not any(finding.mend and finding.name in _GPU_PARTS for finding in found):
        names += [str(device) for device in devices() if device.kind == "cuda"]
    return Finding("", "Ready", ", ".join(names))


def _find_to_do(found: Sequence[Finding]) -> Finding:
    """Return a line without a section that says whether anything is to do, and where the commands are."""
    broken = [finding for finding in found if finding.mend and not finding.for_gpu]
    if broken:
        return Finding("", "To do", "the commands at the end of this list")
    wanted = any(finding.mend for finding in found)
    return Finding("", "To do", "nothing for CPU threads; for a GPU, what the end of this list says" if wanted else "nothing")


def format_report(findings: Sequence[Finding] | None = None) -> str:
    """Return the diagnosis as text."""
    findings, lines = diagnose() if findings is None else findings, []
    width = max(len(finding.name) for finding in findings)
    section = None
    for finding in findings:
        if not finding.section:
            lines.append(f"{finding.name}: {finding.value}")
            continue
        if finding.section != section:
            section = finding.section
            lines += ["", section]
        lines.append(f"  {finding.name:{width}}  {finding.value}")
    broken, wanted = (_list_commands([each for each in findings if each.for_gpu == gpu]) for gpu in (False, True))
    lines += ["", "To mend", *broken] if broken else ["", f"Nothing is missing{' for CPU threads' * bool(wanted)}."]
    lines += ["", "There is no GPU here. To use one you would need", *wanted] if wanted else []
    return "\n".join(lines).lstrip("\n")


def _list_commands(findings: Sequence[Finding]) -> list[str]:
    """Return what mends them, in one line for all that the same command mends."""
    mends: dict[str, list[str]] = {}
    for finding in findings:
        if finding.mend:
            mends.setdefault(finding.mend, []).append(finding.name)
    return [f"  {', '.join(names)}: {mend}" for mend, names in mends.items()]


def _check_devices() -> list[Finding]:
    section, found = "Devices", []
    for device in devices():
        if device.kind == "cpu":
            what, unit = device.name, "core" if device.processors == 1 else "cores"
        else:
            what = "{}, compute capability {}.{}".format(device.name, *device.compute_capability)
            unit = "multiprocessors"
        try:
            free, total = device.memory
        except AtosError as error:  # a GPU that another program has filled up, say
            found.append(Finding(section, str(device), f"{what}: {error}", "see what else runs there: nvidia-smi"))
            continue
        memory = f"{free / 2**30:.1f} of {total / 2**30:.1f} GiB free"
        found.append(Finding(section, str(device), f"{what}, {device.processors} {unit}, {memory}"))
    reason = why_no_gpu()
    if reason:
        mend = "install NVIDIA's driver, version 580 or newer, and reboot" if _has_nvidia_hardware() else None
        if "this build" in reason:
            noted, mend = _read_build_note().get("cpu_only"), _how_to_build()
            reason += _WHY_CPU_ONLY[noted] if isinstance(noted, bool) else ""
        found.append(Finding(section, "driver", f"no GPU: {reason}", mend, for_gpu=True))
    else:
        version = driver_version() or (0, 0)
        old = version < (13, 0)
        found.append(
            Finding(
                section,
                "driver",
                f"runs CUDA {version[0]}.{version[1]}",
                "install NVIDIA's driver, version 580 or newer, and reboot" if old else None,
            )
        )
    return found


def _has_nvidia_hardware() -> bool:
    """Whether the PCI bus has a display or compute device of NVIDIA's, for which a driver would be of use."""
    for device in Path("/sys/bus/pci/devices").glob("*"):
        try:
            if (device / "vendor").read_text().strip() == "0x10de" and (device / "class").read_text().startswith("0x03"):
                return True
        except OSError:
            continue
    return False


def _check_compilers() -> list[Finding]:
    section = "Compilers, needed to build the core only"
    cuda = find_cuda()
    needed = not all(_find_item_sizes(worker) == ITEM_BYTES for worker in WORKERS)
    nvcc = (
        Finding(section, "nvcc", f"{_read_version(str(cuda / 'bin' / 'nvcc'))}, {cuda}")
        if cuda
        else Finding(section, "nvcc", "not found", _GET_NVCC if needed else None, for_gpu=True)
    )
    words = shlex.split(os.environ.get("CXX") or "c++")
    name, path = " ".join(words), shutil.which(words[0])
    cxx = (
        Finding(section, name, f"{_read_version(path, *words[1:])}, {path}")
        if path
        else Finding(section, name, "not found", _GET_CXX if needed else None, for_gpu=True)
    )
    return [nvcc, cxx]


def _find_item_sizes(worker: str) -> tuple[int, ...]:
    """Return the sizes of items, in bytes, for which the core has these workers."""
    return tuple(size for size in ITEM_BYTES if (CORE_DIR / f"core_{worker}_{size}.fatbin").is_file())


def _read_version(*command: str) -> str:
    try:
        text = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=60, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        return f"does not run ({error})"
    lines = text.splitlines() or [""]
    release = re.search(r"V([\d.]+)", text)
    return release[1] if release else lines[0]


def _check_versions() -> list[Finding]:
    section = "Versions"
    found = [Finding(section, "atos_py", _find_installed_version("atos_py") or "a checkout")]
    found.append(Finding(section, "python", platform.python_version()))
    for package in ("numba", "numpy"):
        found.append(Finding(section, package, _find_installed_version(package) or "unknown"))
    for name, version in {"cuda-core": _find_installed_version("cuda-core"), "libNVVM": _find_nvvm()}.items():
        value = version or "absent: tasks cannot be compiled for GPUs"
        found.append(Finding(section, name, value, None if version else _GPU_PACKAGES, for_gpu=True))
    built = _read_build_note().get("nvcc")
    linker = _find_installed_version("nvidia-nvjitlink")
    newest = max(filter(None, (_parse_version(built), _parse_version(_find_installed_version("nvidia-nvvm")))), default=None)
    if linker is None:
        found.append(Finding(section, "nvJitLink", "absent: tasks cannot be linked for GPUs", _GPU_PACKAGES, for_gpu=True))
    elif newest and (_parse_version(linker) or (0,))[:2] < newest[:2]:
        older = f"{linker}, older than the CUDA {newest[0]}.{newest[1]} code that it has to link"
        found.append(
            Finding(section, "nvJitLink", older, 'python -m pip install --upgrade "nvidia-nvjitlink==13.*"', for_gpu=True)
        )
    else:
        found.append(Finding(section, "nvJitLink", linker))
    return found


def _find_installed_version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _find_nvvm() -> str | None:
    """Return the version of the package that brings libNVVM, or else the library of a CUDA toolkit."""
    version = _find_installed_version("nvidia-nvvm")
    if version is not None:
        return version
    try:
        from cuda import pathfinder

        return str(pathfinder.load_nvidia_dynamic_lib("nvvm").abs_path)
    except (ImportError, OSError, RuntimeError):  # among which is the error of what is not found
        return None


def _parse_version(version: object) -> tuple[int, ...] | None:
    return tuple(map(int, re.findall(r"\d+", version))) if isinstance(version, str) else None


def _read_build_note() -> dict[str, object]:
    """Return the note that the build left."""
    try:
        note = json.loads((CORE_DIR / "built.json").read_text())
    except (OSError, ValueError):
        return {}
    return note if isinstance(note, dict) else {}


def _how_to_build() -> str:
    """Return how to build the core for GPUs."""
    how = _REBUILD if find_cuda() else _GET_NVCC
    return f"{how}, without ATOS_CPU_ONLY=1" if _read_build_note().get("cpu_only") is True else how


def _check_core() -> list[Finding]:
    section, note = "Core", _read_build_note()
    library = CORE_DIR / "libatos.so"
    found = [Finding(section, "library", f"{library}, {library.stat().st_size:,} bytes")]
    architectures = note.get("architectures")
    names = ", ".join(f"sm_{number}" for number in architectures) if isinstance(architectures, list) else "unknown"
    for worker in WORKERS:
        sizes = _find_item_sizes(worker)
        if sizes == ITEM_BYTES:
            value = f"items of {', '.join(map(str, sizes))} bytes; {names} and later; by nvcc {note.get('nvcc', 'unknown')}"
            found.append(Finding(section, f"{worker} workers", value))
        else:
            missing = ", ".join(str(size) for size in ITEM_BYTES if size not in sizes)
            value = (
                f"on CPU threads; for GPUs those of items of {missing} bytes were not built"
                if sizes
                else "on CPU threads alone"
            )
            found.append(Finding(section, f"{worker} workers", value, _how_to_build(), for_gpu=True))
    return found


def _check_caches() -> list[Finding]:
    section = "Caches"
    try:
        directory = get_cache_directory()
    except RuntimeError as error:
        return [Finding(section, "linked tasks", f"none: {error}", "export ATOS_CACHE_DIR=/a/directory/of/yours")]
    files = [path for path in directory.glob("*") if path.is_file()] if directory.is_dir() else []
    size = sum(path.stat().st_size for path in files)
    parent = next((path for path in (directory, *directory.parents) if path.exists()), Path("/"))
    fault = find_cache_fault() or (None if os.access(parent, os.W_OK) else "it cannot be written")
    if fault:
        mend = f"chmod go-w {directory}, if it is yours, or export ATOS_CACHE_DIR=/a/directory/of/yours"
        return [Finding(section, "linked tasks", f"{directory}: every process compiles anew, because {fault}", mend)]
    return [Finding(section, "linked tasks", f"{directory}, {len(files)} entries, {size / 2**20:.1f} MiB")]
