"""A recorder of launches: what they compile, without a change of how they run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from .spec import ProgramSpec

__all__ = ["recorded_programs", "recorders"]

recorders: list[dict[ProgramSpec, None]] = []  # those that are at work


@contextlib.contextmanager
def recorded_programs() -> Iterator[dict[ProgramSpec, None]]:
    """Record what all launches in this block compile, or have compiled before, in any thread: each spec once, in order."""
    specs: dict[ProgramSpec, None] = {}
    recorders.append(specs)
    try:
        yield specs
    finally:
        recorders[:] = [each for each in recorders if each is not specs]
