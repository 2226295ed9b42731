"""Search for the CUDA compiler. The build reads this file as well, so it imports nothing of the package.

Run as a program it says what to install from PyPI for want of one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

__all__ = ["NVCC_WHEELS", "cpu_only", "find_cuda", "found_architectures"]

# All of nvcc from PyPI, for x86-64 and aarch64: one package pins them all. It is the oldest of its major version, since
# nvJitLink links LTO-IR of its own version and of earlier ones, and a wheel meets any nvJitLink.
NVCC_WHEELS = "cuda-toolkit[nvcc,crt,nvvm,cudart,cccl]==13.0.*"
_VERSION = re.compile(r"#define CUDA_VERSION 13\d{3}\b")  # LTO-IR of another major version does not link with ours


def cpu_only() -> bool:
    """Whether the environment variable ATOS_CPU_ONLY asks to build for the CPU alone."""
    value = os.environ.get("ATOS_CPU_ONLY", "")
    if value not in ("", "0", "1"):
        raise ValueError(f"the environment variable ATOS_CPU_ONLY is 1, for a build for the CPU alone, or 0 (got {value!r})")
    return value == "1"


def find_cuda() -> Path | None:
    """Return the root of a CUDA toolkit, or None: ``$CUDA_HOME``, nvcc on the PATH, /usr/local/cuda, or PyPI's wheels.

    ``CUDA_HOME=none`` leaves the wheels alone to be looked at, as if the machine had no toolkit. A toolkit
    of another CUDA than 13 is passed over.
    """
    named = os.environ.get("CUDA_HOME")
    wheels = [Path(entry) / "nvidia" / "cu13" for entry in (sysconfig.get_path("purelib"), *sys.path)]
    on_path = shutil.which("nvcc")
    machines = [Path(on_path).resolve().parent.parent] if on_path else []
    candidates = wheels if named == "none" else [*([Path(named)] if named else []), *machines, Path("/usr/local/cuda"), *wheels]
    return next((root for root in candidates if _is_usable(root)), None)


def found_architectures(toolkit: Path) -> list[str]:
    """Return the architectures, such as "90", of the GPUs that nvidia-smi finds here, as far as a toolkit compiles for them."""

    def output_of(*command: str) -> str:
        try:
            return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout
        except (OSError, subprocess.TimeoutExpired):
            return ""

    known = output_of(str(toolkit / "bin" / "nvcc"), "--list-gpu-arch").split()
    found = re.findall(
        r"^(\d+)\.(\d)$", output_of("nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"), re.MULTILINE
    )
    return sorted({major + minor for major, minor in found if f"compute_{major}{minor}" in known})


def _is_usable(root: Path) -> bool:
    # An nvcc on the PATH may be a wrapper, far from its toolkit: the headers have to be there too.
    nvcc, header = root / "bin" / "nvcc", root / "include" / "cuda.h"
    return nvcc.is_file() and header.is_file() and _VERSION.search(header.read_text(errors="replace")) is not None


if __name__ == "__main__":
    print("" if cpu_only() or find_cuda() else NVCC_WHEELS)
