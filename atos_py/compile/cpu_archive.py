"""Tasks of the package's own algorithms for CPUs, lowered when the wheel was built: LLVM alone works in their first call.

An archive holds them as LLVM's bitcode before it is optimized, which knows nothing of the CPU but its architecture. Most of a
first call goes to Numba, which types and lowers Python functions. LLVM makes code for the very CPU that runs it, as always.

The bitcode is of the versions that made it, so the archive counts for these alone: of Numba, llvmlite and LLVM, of NumPy up to
its second number, and of what LLVM calls the machine and lays out data by. Python's version does not matter: what a
function does is the same in all, and code that no Python calls uses nothing of the interpreter.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from .archive import CORE_DIR, check_name, hash_sources, name_in_archive, read_archive
from .spec import ProgramSpec
from .toolchain import is_configured

__all__ = ["CPU_ARCHIVE", "archive_key", "collected_tasks", "find_lowered"]

CPU_ARCHIVE = CORE_DIR / "tasks_cpu.xz"


def find_lowered(spec: ProgramSpec, abi: tuple[str, ...]) -> Sequence[bytes] | None:
    """Return the parts of a lowered task of the archive, or None; `abi` is what `codegen.target_cpu.abi` returns."""
    if _collected is not None:
        return _collect(spec, _collected)
    if not CPU_ARCHIVE.is_file() or is_configured():
        return None
    name = name_in_archive(spec)
    return _tasks(abi).get(name) if name else None


def archive_key(abi: tuple[str, ...]) -> bytes:
    """Return a hash of everything that lowered tasks depend on, beside what is in their names."""
    versions = (*map(importlib.metadata.version, ("numba", "llvmlite")), *np.__version__.split(".")[:2])
    return hashlib.sha256(hash_sources() + repr((versions, abi)).encode()).digest()


_collected: dict[str, Sequence[bytes]] | None = None


@contextlib.contextmanager
def collected_tasks() -> Iterator[dict[str, Sequence[bytes]]]:
    """Collect all tasks that are compiled for the CPU in this block, lowered, by name; what runs is made from these."""
    global _collected
    _collected = {}
    try:
        yield _collected
    finally:
        _collected = None


def _collect(spec: ProgramSpec, table: dict[str, Sequence[bytes]]) -> Sequence[bytes]:
    from .codegen.target_cpu import lower_cpu

    parts = lower_cpu(spec)
    table[check_name(spec)] = parts
    return parts


@functools.cache
def _tasks(abi: tuple[str, ...]) -> Mapping[str, Sequence[bytes]]:
    return read_archive(CPU_ARCHIVE, archive_key(abi))
