"""Kernels of the package's own algorithms, linked when the wheel was built, so that their first call compiles nothing.

An archive holds them, for one compute capability.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .archive import CORE_DIR, hash_sources, name_in_archive, read_archive
from .arguments import Kind
from .kinds import Launchable
from .toolchain import is_configured

__all__ = ["ARCHIVE", "CAPABILITY", "find_prelinked", "name_prelinked"]

CAPABILITY = (9, 0)
ARCHIVE = CORE_DIR / "kernels_sm_90.xz"


def name_prelinked(
    task: Launchable,
    idle: Callable[..., Any] | None,
    kinds: tuple[Kind, ...],
    item_dtype: np.dtype[Any],
    worker: str,
    max_registers: int | tuple[int, ...] | None,
    buckets: bool,
    each_round: Callable[..., Any] | None,
    mailbox: bool,
) -> str | None:
    """Return the name of a kernel in the archive; None if it depends on anything but the package."""
    return name_in_archive(task, idle, kinds, item_dtype, each_round, worker, max_registers, buckets, mailbox)


def find_prelinked(cc: tuple[int, int], *of: Any) -> Sequence[bytes] | None:
    """Return the parts of a kernel of the archive, or None; parameters after the first as those of `name_prelinked`."""
    if cc != CAPABILITY or not ARCHIVE.is_file() or is_configured():
        return None
    name = name_prelinked(*of)
    return _kernels().get(name) if name else None


@functools.cache
def _kernels() -> Mapping[str, Sequence[bytes]]:
    return read_archive(ARCHIVE, hash_sources())
