"""Processes of one host that work together: each makes the same calls in the same order, and they meet in some of them."""

from __future__ import annotations

import contextlib
import os
import struct
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from ..errors import AtosError, DistributedError
from ..support.host_memory import host_memory_for
from ..support.not_copied import NotCopied
from .devices import Device
from .library import check, ffi, in_turn, lib

__all__ = ["ProcessGroup", "all_succeed", "current_group", "set_group", "turn", "whole"]

_FIRST, _NEXT = 1024, int(lib.ATOS_GATHER_BYTES)  # bytes of messages
_HEAD = struct.Struct("=QQ")  # how many messages there were before, bytes of the whole


class ProcessGroup(NotCopied):
    """The processes that work together, as one of them sees them; `atos_py.distributed.init` makes it.

    It can be used in a ``with`` statement, whose end is `close`.

    Attributes
    ----------
    rank : int
        The number of this process.
    world_size : int
        How many there are.
    device : Device
        The device of this process: ``cpu:rank``, or a GPU.
    devices : tuple of Device
        Those of all processes, by rank, as each numbers its GPUs.
    threads : int
        The threads of a CPU device in a launch that does not say ``num_blocks``: its share of the cores.

    Examples
    --------
    >>> with atos.distributed.init(rank=0, world_size=1) as group:
    ...     print(group.rank, group.world_size)
    0 1
    """

    _not_copied = "a group of processes is neither copied nor pickled: each process calls atos.distributed.init()"

    def __init__(self, rank: int, sockets: Sequence[int]) -> None:
        self.rank, self.world_size = rank, len(sockets)
        self.devices = tuple(Device("cpu", number) for number in range(self.world_size))
        self.threads = 1
        self._count, self.lock = 0, threading.RLock()
        self.store: Any = None  # what `shared_gpu_memory` keeps
        slot = ffi.new("atos_group **")
        check(lib.atos_group_create(self.world_size, rank, list(sockets), slot))
        self.handle = ffi.gc(slot[0], lib.atos_group_destroy)

    def __enter__(self) -> ProcessGroup:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @property
    def device(self) -> Device:
        """The device of this process."""
        return self.devices[self.rank]

    def __repr__(self) -> str:
        return f"<process {self.rank} of {self.world_size}>"

    @host_memory_for("ProcessGroup.close")
    def close(self) -> None:
        """Leave the group, after which `init` may be called again. Those that wait for this process get an error.

        Examples
        --------
        >>> group = atos.distributed.init(rank=0, world_size=1)
        >>> group.close()
        """
        lib.atos_group_leave(self.handle)
        if self.store is not None:
            self.store.clear()
        if current_group() is self:
            set_group(None)

    @host_memory_for("ProcessGroup.barrier")
    def barrier(self) -> None:
        """Wait until every process has called this.

        What the host writes into arrays over the parts of a graph is seen by the others at once. So a process that changes what
        others still read waits for them first.

        Raises
        ------
        DistributedError
            If a process is gone.

        Examples
        --------
        >>> with atos.distributed.init(rank=0, world_size=1) as group:
        ...     group.barrier()
        """
        self.agree("a barrier")

    @host_memory_for("ProcessGroup.gather")
    def gather(self, mine: bytes) -> list[bytes]:
        """Return what every process has given, by rank; all of them call this.

        Examples
        --------
        >>> with atos.distributed.init(rank=0, world_size=1) as group:
        ...     group.gather(b"something")
        [b'something']
        """
        record = (_HEAD.pack(self._count, len(mine)) + mine)[:_FIRST].ljust(_FIRST, b"\0")
        first = self._exchange(record)
        counts, lengths = zip(*map(_HEAD.unpack_from, first), strict=True)
        if len(set(counts)) > 1:  # one was interrupted in a call that the others have ended
            self.close()
            raise DistributedError("a process was interrupted in a call of all; end all of them, and start them again")
        self._count += 1
        room = _FIRST - _HEAD.size
        found = [record[_HEAD.size :] for record in first]
        for start in range(room, max(lengths), _NEXT):
            parts = self._exchange(mine[start : start + _NEXT].ljust(_NEXT, b"\0"))
            found = [before + part for before, part in zip(found, parts, strict=True)]
        return [data[:length] for data, length in zip(found, lengths, strict=True)]

    @host_memory_for("ProcessGroup.agree")
    def agree(self, what: str) -> None:
        """Wait for every process to come to the same call, and raise an error in all of them if it is another one.

        Raises
        ------
        DistributedError
            If a process says something else, or is gone.

        Examples
        --------
        >>> with atos.distributed.init(rank=0, world_size=1) as group:
        ...     group.agree("the second part")
        """
        for rank, text in enumerate(self.gather(what.encode())):
            if text != what.encode():
                raise DistributedError(
                    f"process {self.rank} is at {what}, and process {rank} at {text.decode()}; all processes make the same"
                    " calls in the same order"
                )

    @host_memory_for("ProcessGroup.gather_files")
    def gather_files(self, file: int | None) -> list[int | None]:
        """Return the file descriptors that every process has given, by rank; all of them call this.

        Those of other processes are new ones here, of the same open files, and are to be closed.

        Examples
        --------
        >>> with atos.distributed.init(rank=0, world_size=1) as group:
        ...     group.gather_files(None)
        [None]
        """
        files = ffi.new("int32_t[]", [-1] * self.world_size)
        self._exchange(b"f", -1 if file is None else file, files)
        files[self.rank] = -1 if file is None else file
        return [None if each < 0 else each for each in files]

    def _exchange(self, record: bytes, *files: Any) -> list[bytes]:
        size, room = len(record), ffi.new("char[]", len(record) * self.world_size)
        gather = lib.atos_group_gather_files if files else lib.atos_group_gather
        with turn(self):
            try:
                check(in_turn(gather, self.handle, record, size, room, *files))
            except BaseException:  # also of a handler of a signal: then the others wait for what will not come
                lib.atos_group_leave(self.handle)
                raise
        together = ffi.buffer(room, size * self.world_size)
        return [bytes(together[rank * size : (rank + 1) * size]) for rank in range(self.world_size)]


@contextlib.contextmanager
def turn(group: ProcessGroup | None) -> Iterator[None]:
    """Keep other threads of this process away from calls of all, which no order would hold together."""
    if group is None:
        yield
        return
    if not group.lock.acquire(blocking=False):
        raise DistributedError("another thread of this process is at a call of all processes; make them in one thread")
    try:
        yield
    finally:
        group.lock.release()


@contextlib.contextmanager
def whole(group: ProcessGroup | None) -> Iterator[None]:
    """Leave the group if what all do together is cut short here; an error of this package is one of all."""
    try:
        yield
    except AtosError:
        raise
    except BaseException:
        if group is not None:
            group.close()
        raise


@contextlib.contextmanager
def all_succeed(group: ProcessGroup | None) -> Iterator[None]:
    """Wait at the end of a block, in which there is no call of all, until every process has ended its own.

    Raises
    ------
    DistributedError
        If the block has failed in another process, which has its error.
    """
    if group is None:
        yield
        return
    try:
        yield
    except BaseException as error:
        with contextlib.suppress(AtosError):  # the others are gone
            group.gather((str(error) or type(error).__name__).encode(errors="backslashreplace"))
        raise
    for rank, text in enumerate(group.gather(b"")):
        if text:
            raise DistributedError(f"process {rank}: {text.decode()}")


_groups: list[ProcessGroup] = []  # that of this process, or none


def current_group() -> ProcessGroup | None:
    """Return the group that this process is in."""
    return _groups[0] if _groups else None


def set_group(group: ProcessGroup | None) -> None:
    """Note which group this process is in."""
    _groups[:] = [] if group is None else [group]


def _forget() -> None:
    """Hang up in a forked child: as long as it held the sockets, nobody would see its parent end."""
    if _groups:
        lib.atos_group_leave(_groups.pop().handle)


os.register_at_fork(after_in_child=_forget)
