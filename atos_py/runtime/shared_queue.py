"""The core's queue of a process, in memory that the other processes of its group have mapped too."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..compile.codegen import stored_bytes
from ..core.library import check, ffi, lib
from ..core.process_group import ProcessGroup, all_succeed
from ..core.shared_blocks import share_blocks
from ..core.shared_gpu_memory import share_queue_addresses
from .checkpoint import QueueOptions
from .core_queue import CoreQueue, Form

__all__ = ["Block", "SharedCoreQueue"]

# Of the memory that processes share for the queue of each; only pages that are used count.
_MOST_BYTES, _LEAST_BYTES = 1 << 44, 1 << 30


class Block(NamedTuple):
    """The memory of the queue of a process, as this one has it."""

    begin: Any
    addresses: Any  # the range of the core on a GPU, or null
    owner: Any


class SharedCoreQueue(CoreQueue):
    """The core's queue of this process, into which the workers of others push.

    Attributes
    ----------
    blocks : list of Block
        The memory of the queue of each process, by rank, as it is mapped here.
    """

    def __init__(
        self, group: ProcessGroup, capacity: int, most: int, dtype: np.dtype[Any], kinds: tuple[str | None, ...] | None = None
    ) -> None:
        self._group, self._most = group, most
        self._buckets: tuple[int, float] | None = None
        handle, self.blocks = self._make(capacity, stored_bytes(dtype.itemsize, kinds is not None))
        super().__init__(handle, dtype, kinds)

    def _make(self, capacity: int, stored: int) -> tuple[Any, list[Block]]:
        """Return an empty queue for items of so many bytes, and the memory of that of each process, whatever it grows to."""
        # Rings of twice that while workers run, and as much again where it becomes one ring; far items, in two sizes where it
        # grows; what spills; counters.
        slot_bytes = 8 if stored == 4 else stored + 8
        slot, group = ffi.new("atos_queue **"), self._group
        if group.device.kind == "cuda":
            ranges = share_queue_addresses(group)
            with all_succeed(group):
                check(lib.atos_queue_create_in(ranges.handles[group.rank], capacity, stored, slot))
            blocks = [Block(begin, handle, ranges) for begin, handle in zip(ranges.begins, ranges.handles, strict=True)]
        else:
            nbytes = min(12 * self._most * slot_bytes, _MOST_BYTES) + _LEAST_BYTES
            blocks = [Block(ffi.from_buffer(each), ffi.NULL, each) for each in share_blocks(group, nbytes)]
            own = blocks[group.rank].begin
            check(lib.atos_queue_create_shared(own, len(own), capacity, stored, slot))
        return ffi.gc(slot[0], _keeping(blocks)), blocks

    def set_buckets(self, number: int, width: float) -> None:
        """Give an empty queue buckets of a width; 0: one that adapts."""
        super().set_buckets(number, width)
        self._buckets = number, width

    @property
    def _end(self) -> Any:
        return _keeping(self.blocks)

    def _replace(self, form: Form, after: Form, table: bytes) -> int:
        """Make a queue of larger items in memory of its own, as all processes do in this call, and move the items there."""
        if after.stride == form.stride:
            return super()._replace(form, after, table)
        number = None if self._buckets is None else self._buckets[0]
        saved = self.snapshot(QueueOptions(self.capacities()[0], form.dtype, number))
        items = saved.items
        if len(items) and table[0] == lib.ATOS_NO_KIND:
            return int(lib.ATOS_OK)  # another process may have none; each does this once, for the next form that it tries
        capacity, most = self.capacities()
        handle, blocks = self._make(capacity, after.stride)
        check(lib.atos_queue_limit(handle, most))
        if self._buckets is not None:
            check(lib.atos_queue_set_buckets(handle, *self._buckets))
        made = CoreQueue(handle, form.dtype, after.kinds)  # it takes the place of this one when it has the items
        made.restore(saved._replace(kinds=None, numbers=np.full(len(items), table[0], np.uint8)))
        self.blocks, self.form = blocks, made.form
        return int(lib.ATOS_OK)


def _keeping(blocks: list[Block]) -> Any:
    """Return what ends a queue of the core, whose memory lives as long."""
    return lambda handle: (lib.atos_queue_destroy(handle), blocks)
