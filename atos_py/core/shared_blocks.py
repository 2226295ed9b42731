"""Memory that the processes of a group have mapped, each at addresses of its own.

A block has no name: it is gone when no process has it any more, however they ended. Only pages that were written take memory.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
from collections.abc import Callable
from typing import Any, TypeVar

from ..errors import AtosError, DeviceMemoryError, DistributedError
from .process_group import ProcessGroup, whole

__all__ = ["everywhere", "share_blocks"]

_R = TypeVar("_R")


def share_blocks(group: ProcessGroup, nbytes: int) -> list[mmap.mmap | None]:
    """Return a block of each process, by rank, as large as that has asked for: all zeros; None for those of no bytes."""
    with whole(group), contextlib.ExitStack() as stack:

        def make() -> list[int]:
            if nbytes == 0:
                return [0, 0, 0]
            file = os.memfd_create("atos")
            stack.callback(os.close, file)
            os.ftruncate(file, nbytes)
            return [os.getpid(), file, nbytes]

        def take(pid: int, file: int, size: int) -> mmap.mmap | None:
            if size == 0:
                return None
            opened = os.open(f"/proc/{pid}/fd/{file}", os.O_RDWR | os.O_CLOEXEC)
            try:
                return mmap.mmap(opened, size)
            finally:
                os.close(opened)

        made = everywhere(group, make)
        blocks: list[mmap.mmap | None] = []
        everywhere(group, lambda: blocks.extend([take(*one) for one in made]))
        return blocks


def everywhere(group: ProcessGroup, part: Callable[[], _R]) -> list[Any]:
    """Return the results of all processes; raise an error in all if one has failed."""
    result: Any = None
    error: Exception | None = None
    try:
        result = part()
    except (OSError, ValueError, OverflowError, MemoryError, AtosError) as failed:
        error = failed
    text = None if error is None else str(error) or "no memory"
    lacks_memory = isinstance(error, DeviceMemoryError) or "memory" in (text or "")
    told = [json.loads(each) for each in group.gather(json.dumps([result, text, lacks_memory]).encode())]
    for rank, (_, text, lacks_memory) in enumerate(told):
        if text is not None:
            message = f"process {rank} cannot map the memory that the processes share: {text}"
            kind: type[AtosError] = DeviceMemoryError if lacks_memory else DistributedError
            raise kind(f"{message}; they have to be on one host, of one user, with enough free memory") from error
    return [value for value, _, _ in told]
