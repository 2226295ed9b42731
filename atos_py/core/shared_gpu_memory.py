"""Memory of GPUs that have a process each, which all processes of the group have mapped, at addresses of their own.

Mapping takes milliseconds. So what is released is kept, and used again for what has the same size in every process. All of them
make the same calls in the same order; a number that counts these calls tells which of their ranges are of one memory.
"""

from __future__ import annotations

import contextlib
import json
import os
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..errors import DeviceMemoryError
from .devices import Device, on_release
from .library import check, ffi, lib
from .process_group import ProcessGroup, whole
from .shared_blocks import everywhere

__all__ = ["SharedRanges", "share_gpu_memory", "share_queue_addresses"]

GRANULE = int(lib.ATOS_SHARED_GRANULE)  # bytes, which are of one GPU
_MOST_KEPT = 4 << 30  # bytes of this process's GPU
_MOST_OFFERED = 32


class SharedRanges(NamedTuple):
    """Ranges of addresses on the GPU of this process, and where they begin; free for others to use when `owner` is gone."""

    handles: list[Any]
    begins: list[Any]
    owner: Any


class _Ranges(NamedTuple):
    key: Any  # what they are made for
    handles: list[Any]
    begins: list[Any]

    @property
    def nbytes(self) -> int:
        """Bytes of memory that this process provides."""
        return sum(int(lib.atos_shared_created(handle)) for handle in self.handles)


class _Store:
    """The ranges of a group, by the number of the call in which all processes have made them."""

    def __init__(self) -> None:
        self.calls = 0
        self._used, self._kept = dict[int, _Ranges](), dict[int, _Ranges]()

    def offered(self, key: Any) -> list[int]:
        """Return the numbers of those that may be used again."""
        return [number for number, each in self._kept.items() if each.key == key][:_MOST_OFFERED]

    def make(self, key: Any, handles: list[Any], begins: list[Any]) -> SharedRanges:
        """Return new ranges for their first user."""
        return self._use(self.calls, _Ranges(key, handles, begins))

    def take(self, number: int) -> SharedRanges:
        """Return ranges that are used again."""
        return self._use(number, self._kept.pop(number))

    def _use(self, number: int, ranges: _Ranges) -> SharedRanges:
        self._used[number] = ranges  # so that nothing of it is lost with a user that is garbage in a cycle
        owner = ffi.cast("void *", ranges.begins[0])
        weakref.finalize(owner, self._give, number).atexit = False
        return SharedRanges(ranges.handles, ranges.begins, owner)

    def _give(self, number: int) -> None:
        """Keep ranges that nobody uses any more, if there is not too much."""
        ranges = self._used.pop(number)
        if sum(each.nbytes for each in self._kept.values()) + ranges.nbytes <= _MOST_KEPT:
            self._kept[number] = ranges

    def clear(self) -> None:
        """Release those that are kept here; their memory is free when all processes have."""
        self._kept.clear()


def _store_of(group: ProcessGroup) -> _Store:
    if group.store is None:
        group.store = _Store()
        on_release(group.store.clear)
    store: _Store = group.store
    return store


def _reserve(device: Device, nbytes: int) -> tuple[Any, Any]:
    slot, begin = ffi.new("atos_shared **"), ffi.new("void **")
    check(lib.atos_shared_reserve(device.number, nbytes, slot, begin))
    return ffi.gc(slot[0], lib.atos_shared_release), begin[0]


def _find_kept(group: ProcessGroup, key: Any, told: Any = None) -> tuple[int | None, list[Any]]:
    """Return the number of ranges that all processes have kept, or None, and what each of them has told."""
    store = _store_of(group)
    store.calls += 1
    all_told = [json.loads(each) for each in group.gather(json.dumps([store.offered(key), told]).encode())]
    common = set.intersection(*(set(numbers) for numbers, _ in all_told))
    return min(common, default=None), [its for _, its in all_told]


def share_gpu_memory(group: ProcessGroup, ends: Sequence[int]) -> SharedRanges:
    """Return memory over the GPUs of all processes, all zeros.

    The GPU of process k has the bytes from `ends[k]` to `ends[k + 1]`, as far as granules of 2 MiB allow: one across a border
    is of either.
    """
    size = max(-(-ends[-1] // GRANULE), 1) * GRANULE
    cuts = [0, *(min((end + GRANULE // 2) // GRANULE * GRANULE, size) for end in ends[1:-1]), size]
    first, last = cuts[group.rank : group.rank + 2]
    with whole(group):
        key = tuple(cuts)
        number, _ = _find_kept(group, key)
        if number is not None:
            kept = _store_of(group).take(number)

            def clear() -> None:
                if first < last:
                    at, zero = ffi.cast("char *", kept.begins[0]) + first, ffi.new("uint32_t *")
                    check(lib.atos_fill(group.device.number, at, zero, 4, (last - first) // 4))

            everywhere(group, clear)
            return kept
        handle, begin = _make(group, cuts)
        return _store_of(group).make(key, [handle], [begin])


def _make(group: ProcessGroup, cuts: Sequence[int]) -> tuple[Any, Any]:
    """Return new memory over the GPUs of all processes, and where it begins here."""
    first, last = cuts[group.rank : group.rank + 2]
    own, made = ffi.new("int32_t *", -1), []
    with contextlib.ExitStack() as stack:

        def make() -> None:
            made.append(_reserve(group.device, cuts[-1]))
            if first == last:
                return
            try:
                check(lib.atos_shared_create(made[0][0], first, last - first, own))
            except DeviceMemoryError:
                _store_of(group).clear()
                check(lib.atos_shared_create(made[0][0], first, last - first, own))
            stack.callback(os.close, own[0])

        def take() -> None:
            for rank, file in enumerate(files):
                if file is not None and rank != group.rank:
                    check(lib.atos_shared_attach(made[0][0], cuts[rank], cuts[rank + 1] - cuts[rank], file))

        everywhere(group, make)
        files = group.gather_files(None if own[0] < 0 else own[0])
        for rank, file in enumerate(files):
            if file is not None and rank != group.rank:
                stack.callback(os.close, file)
        everywhere(group, take)
        return made[0]


def share_queue_addresses(group: ProcessGroup) -> SharedRanges:
    """Return ranges of addresses for a queue of each process, by rank: memory comes as the queue of each needs it."""
    with whole(group):
        # As large as all memory of a GPU, twice: addresses cost nothing, and all processes need as many.
        number, sizes = _find_kept(group, "queues", 2 * group.device.memory[1])
        if number is not None:
            return _store_of(group).take(number)
        made: list[tuple[Any, Any]] = []
        size = -(-max(sizes) // GRANULE) * GRANULE
        everywhere(group, lambda: made.extend([_reserve(group.device, size) for _ in group.devices]))
        handles, begins = map(list, zip(*made, strict=True))
        return _store_of(group).make("queues", handles, begins)
