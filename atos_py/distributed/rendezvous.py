"""Rendezvous of the processes of a job: connected Unix sockets, whose abstract names are made from that of the job."""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import struct
import time

from ..errors import DistributedError
from .environment import Place

__all__ = ["connect_all"]

_HELLO = struct.Struct("=16sII")  # of the job, rank, processes
_PAUSE = 0.01  # seconds between tries


def connect_all(place: Place, timeout: float) -> list[int]:
    """Return connected sockets to all others, by rank, with -1 for this process itself.

    Each process waits for those of higher ranks and calls those of lower ones, which may not be there yet.

    Raises
    ------
    DistributedError
        If they are not there in time, or another job has the name.
    """
    deadline = time.monotonic() + timeout
    found: dict[int, socket.socket] = {}
    with contextlib.ExitStack() as stack:
        waiting = stack.enter_context(_new())
        try:
            waiting.bind(_address(place, place.rank))
        except OSError as error:
            raise DistributedError(
                f"process {place.rank} of job {place.job!r} is there already ({error}); pass another job= for other processes"
            ) from error
        waiting.listen(place.world_size)
        for rank in range(place.rank):
            found[rank] = stack.enter_context(_new())
            _call(found[rank], place, rank, deadline)
        while len(found) < place.world_size - 1:
            other, rank = _answer(waiting, place, deadline, found)
            found[rank] = stack.enter_context(other)
        for each in found.values():
            each.settimeout(None)
        return [-1 if rank == place.rank else found[rank].detach() for rank in range(place.world_size)]


def _new() -> socket.socket:
    return socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def _address(place: Place, rank: int) -> bytes:
    return b"\0atos_py-%d-%s-%d" % (os.getuid(), _digest(place).hex().encode(), rank)


def _digest(place: Place) -> bytes:
    return hashlib.sha256(place.job.encode()).digest()[:16]


def _hello(place: Place) -> bytes:
    return _HELLO.pack(_digest(place), place.rank, place.world_size)


def _call(other: socket.socket, place: Place, rank: int, deadline: float) -> None:
    """Connect to a process of a lower rank, and say who calls."""
    while True:
        try:
            other.connect(_address(place, rank))
            _check_user(other)
            other.sendall(_hello(place))
            return
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise _late(place, [rank]) from None
            time.sleep(_PAUSE)


def _answer(
    waiting: socket.socket, place: Place, deadline: float, found: dict[int, socket.socket]
) -> tuple[socket.socket, int]:
    """Wait for the next process of a higher rank."""
    missing = [rank for rank in range(place.world_size) if rank != place.rank and rank not in found]
    try:
        waiting.settimeout(max(deadline - time.monotonic(), _PAUSE))
        other, _ = waiting.accept()
        other.settimeout(max(deadline - time.monotonic(), _PAUSE))
        _check_user(other)
        data = other.recv(_HELLO.size)
    except (TimeoutError, socket.timeout):  # noqa: UP041
        raise _late(place, missing) from None
    if len(data) != _HELLO.size:
        other.close()
        return _answer(waiting, place, deadline, found)  # it has ended
    job, rank, size = _HELLO.unpack(data)
    if (job, size) != (_digest(place), place.world_size) or rank not in missing:
        raise DistributedError(
            f"process {rank} of {size} has called, and this is process {place.rank} of {place.world_size} of job {place.job!r};"
            " give all of them one world_size, and each another rank"
        )
    return other, rank


def _check_user(other: socket.socket) -> None:
    """Refuse processes of another user, which could take such a name too."""
    _, user, _ = struct.unpack("3i", other.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    if user != os.getuid():
        raise DistributedError(f"another user, {user}, has a process under the name of this job; pass another job=")


def _late(place: Place, missing: list[int]) -> DistributedError:
    which = ", ".join(map(str, missing))
    return DistributedError(
        f"process {place.rank} of {place.world_size} of job {place.job!r} waited in vain for process{'es' * (len(missing) > 1)}"
        f" {which}; start all of them, with one job name, or pass a longer timeout="
    )
