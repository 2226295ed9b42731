"""Toolchain of the compiler: Numba's import, and the versions and settings that the code of a task depends on."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import os
import runpy
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ..errors import InvalidArgumentError

__all__ = ["environment", "import_numba", "is_configured"]

_PACKAGES = ("atos_py", "numba", "llvmlite", "cuda-core", "nvidia-nvjitlink", "nvidia-nvvm")
_NUMBA_FILE = ".numba_config.yaml"
_HARMLESS = ("NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS")
# Numba-cuda sets the first when it is imported, but tasks are compiled for the device that runs them. The second is set for a
# while by `vectorize_unrolled_loops`, perhaps in another thread.
_SET_MEANWHILE = ("CUDA_DEFAULT_PTX_CC", "SLP_VECTORIZE")


def import_numba() -> ModuleType:
    """Return Numba, which is imported where something has to be compiled, so that importing the package does not.

    Raises
    ------
    InvalidArgumentError
        If an environment variable keeps it from being imported.
    """
    try:
        import numba
    except ValueError as error:
        threads = os.environ.get("NUMBA_NUM_THREADS")
        raise InvalidArgumentError(
            f"Numba does not import: {str(error).rstrip('.')}; the environment variable NUMBA_NUM_THREADS is to be unset, or a"
            f" number from 1 on (got {threads!r})"
        ) from error
    return numba  # type: ignore[no-any-return]


def environment() -> tuple[Any, ...]:
    """Return what the code that is compiled depends on, beside its source and the machine."""
    return (*_toolchain(), *_settings())


def is_configured() -> bool:
    """Whether somebody has set anything of Numba that may change the code that it makes."""
    return any(name not in _HARMLESS for name, _ in _settings())


@functools.cache
def _toolchain() -> tuple[str, ...]:
    """Return the versions of everything that turns a task into code, and a hash of our own part of it."""

    def version(package: str) -> str:
        try:
            return importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            return "absent"

    here = Path(__file__).parent
    beside = ("arguments.py", "cuda_code.py", "debug_checks.py", "linker.py", "scratch.py", "spec.py", "toolchain.py")
    sources = sorted([*here.glob("codegen/*.py"), *(here / name for name in beside)])
    own = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    return (sys.version, np.__version__, *map(version, _PACKAGES), own)


def _settings() -> tuple[tuple[str, str], ...]:
    """Return Numba's settings, of which many change the code that it makes: from the environment, its file, and the program."""
    settings = {name: value for name, value in os.environ.items() if name.startswith("NUMBA_")}
    with contextlib.suppress(OSError):
        settings[_NUMBA_FILE] = Path(_NUMBA_FILE).read_text(errors="replace")
    config: Any = sys.modules.get("numba.core.config")
    if config is not None:  # otherwise nothing was set there
        known = vars(config).copy()  # another thread may be importing it
        now = {name: repr(value) for name, value in known.items() if name.isupper() and name not in _SET_MEANWHILE}
        settings |= {name: value for name, value in now.items() if value != _read_defaults(config.__file__).get(name, value)}
    return tuple(sorted(settings.items()))


@functools.cache
def _read_defaults(path: str) -> dict[str, str]:
    """Return what the settings in Numba's module `config` are before a program changes any."""
    return {name: repr(value) for name, value in runpy.run_path(path).items() if name.isupper()}
