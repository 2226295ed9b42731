"""Tasks of the package's own algorithms for CPUs, lowered when the wheel was built: LLVM alone works in their first call.

An archive holds them as LLVM's bitcode before it is optimised, which knows nothing of the CPU but its architecture. Most of a
first call goes to Numba, which types and lowers Python functions. LLVM makes code for the very CPU that runs it, as always.

The bitcode is of the versions that made it, so the archive counts for these alone: of Numba, llvmlite and LLVM, of NumPy up to
its second number, and of what LLVM calls the machine and lays out data by. Python's version does not matter: what a
function does is the same in all, and code that no Python calls uses nothing of the interpreter.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .archive import CORE_DIR, hash_sources, name_in_archive, read_archive
from .arguments import Kind
from .kinds import Launchable
from .toolchain import is_configured

__all__ = ["CPU_ARCHIVE", "archive_key", "find_lowered", "name_lowered"]

CPU_ARCHIVE = CORE_DIR / "tasks_cpu.xz"


def name_lowered(
    task: Launchable,
    idle: Callable[..., Any] | None,
    kinds: tuple[Kind, ...],
    item_dtype: np.dtype[Any],
    buckets: bool,
    each_round: Callable[..., Any] | None,
) -> str | None:
    """Return the name of a lowered task in the archive; None if it depends on anything but the package."""
    return name_in_archive(task, idle, kinds, item_dtype, each_round, "cpu", buckets)


def find_lowered(abi: tuple[str, ...], *of: Any) -> Sequence[bytes] | None:
    """Return the parts of a lowered task of the archive, or None.

    Parameters
    ----------
    abi : tuple of str
        As `codegen.target_cpu.abi` returns it.
    *of
        The parameters of `name_lowered`.
    """
    if not CPU_ARCHIVE.is_file() or is_configured():
        return None
    name = name_lowered(*of)
    return _tasks(abi).get(name) if name else None


def archive_key(abi: tuple[str, ...]) -> bytes:
    """Return a hash of everything that lowered tasks depend on, beside what is in their names."""
    versions = (*map(importlib.metadata.version, ("numba", "llvmlite")), *np.__version__.split(".")[:2])
    return hashlib.sha256(hash_sources() + repr((versions, abi)).encode()).digest()


@functools.cache
def _tasks(abi: tuple[str, ...]) -> Mapping[str, Sequence[bytes]]:
    return read_archive(CPU_ARCHIVE, archive_key(abi))
