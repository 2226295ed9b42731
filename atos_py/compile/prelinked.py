"""Kernels of the package's own algorithms, linked when the wheel was built, so that their first call compiles nothing.

An archive holds them, for one compute capability.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from .archive import CORE_DIR, hash_sources, name_in_archive, read_archive
from .spec import ProgramSpec
from .toolchain import is_configured

__all__ = ["ARCHIVE", "CAPABILITY", "find_prelinked"]

CAPABILITY = (9, 0)
ARCHIVE = CORE_DIR / "kernels_sm_90.xz"


def find_prelinked(spec: ProgramSpec, cc: tuple[int, int]) -> Sequence[bytes] | None:
    """Return the parts of a kernel of the archive, or None."""
    if cc != CAPABILITY or not ARCHIVE.is_file() or is_configured():
        return None
    name = name_in_archive(spec)
    return _kernels().get(name) if name else None


@functools.cache
def _kernels() -> Mapping[str, Sequence[bytes]]:
    return read_archive(ARCHIVE, hash_sources())
