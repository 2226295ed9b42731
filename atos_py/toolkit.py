"""Where CUDA's compiler is. Read by setup.py as well, so it imports nothing of the package.

Run as a program it says what to install from PyPI for want of one.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path

__all__ = ["NVCC_WHEELS", "find_cuda"]

# All of nvcc from PyPI, of the version of the CUDA libraries that numba-cuda[cu13] brings: one package pins them all.
NVCC_WHEELS = "cuda-toolkit[nvcc,crt,nvvm,cudart,cccl]==13.*"


def find_cuda() -> Path | None:
    """Return the root of a CUDA toolkit, or None: ``$CUDA_HOME``, nvcc on the PATH, /usr/local/cuda, or PyPI's wheels.

    ``CUDA_HOME=none`` leaves the wheels alone to be looked at, as if the machine had no toolkit.
    """
    named = os.environ.get("CUDA_HOME")
    wheels = [Path(entry) / "nvidia" / "cu13" for entry in (sysconfig.get_path("purelib"), *sys.path)]
    on_path = shutil.which("nvcc")
    machines = [Path(on_path).resolve().parent.parent] if on_path else []
    candidates = wheels if named == "none" else [*([Path(named)] if named else []), *machines, Path("/usr/local/cuda"), *wheels]
    # What is on the PATH may be a wrapper, far from its toolkit: the headers have to be there too.
    return next((root for root in candidates if all((root / part).is_file() for part in ("bin/nvcc", "include/cuda.h"))), None)


if __name__ == "__main__":
    print("" if find_cuda() else NVCC_WHEELS)
