"""Memory that the processes of a group have mapped, each at addresses of its own.

It has no name: it is gone when no process has it any more, however they ended. Of a block of the host only pages that were
written take memory.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ..errors import AtosError, DeviceMemoryError, DistributedError
from .devices import Device
from .library import check, ffi, lib
from .process_group import ProcessGroup, whole

__all__ = ["GPU_GRANULE", "reserve_addresses", "share_blocks", "share_gpu_memory"]

GPU_GRANULE = int(lib.ATOS_SHARED_GRANULE)  # bytes of a GPU's memory, which are of one GPU

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

        made = _everywhere(group, make)
        blocks: list[mmap.mmap | None] = []
        _everywhere(group, lambda: blocks.extend([take(*one) for one in made]))
        return blocks


def reserve_addresses(device: Device, nbytes: int) -> tuple[Any, Any]:
    """Return a range of addresses on a GPU for memory that processes share, which has none yet, and its begin."""
    slot, begin = ffi.new("atos_shared **"), ffi.new("void **")
    check(lib.atos_shared_reserve(device.number, nbytes, slot, begin))
    return ffi.gc(slot[0], lib.atos_shared_release), begin[0]


def share_gpu_memory(group: ProcessGroup, ends: Sequence[int]) -> tuple[Any, Any]:
    """Return memory over the GPUs of all processes, all zeros, and its begin here.

    The GPU of process k has the bytes from `ends[k]` to `ends[k + 1]`, as far as granules of 2 MiB allow: one across a border
    is of either.
    """
    size = max(-(-ends[-1] // GPU_GRANULE), 1) * GPU_GRANULE
    cuts = [0, *(min((end + GPU_GRANULE // 2) // GPU_GRANULE * GPU_GRANULE, size) for end in ends[1:-1]), size]
    own, made = ffi.new("int32_t *", -1), []
    with whole(group), contextlib.ExitStack() as stack:

        def make() -> None:
            made.append(reserve_addresses(group.device, size))
            first, last = cuts[group.rank : group.rank + 2]
            if first < last:
                check(lib.atos_shared_create(made[0][0], first, last - first, own))
                stack.callback(os.close, own[0])

        def take() -> None:
            for rank, file in enumerate(files):
                if file is not None and rank != group.rank:
                    check(lib.atos_shared_attach(made[0][0], cuts[rank], cuts[rank + 1] - cuts[rank], file))

        _everywhere(group, make)
        files = group.gather_files(None if own[0] < 0 else own[0])
        for rank, file in enumerate(files):
            if file is not None and rank != group.rank:
                stack.callback(os.close, file)
        _everywhere(group, take)
        return made[0]


def _everywhere(group: ProcessGroup, part: Callable[[], _R]) -> list[Any]:
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
