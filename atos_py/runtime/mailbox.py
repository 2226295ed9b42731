"""The mailbox of a launch, through which the host sends items to workers that run."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compile.codegen import item_bytes
from ..core.devices import Device
from ..core.library import check, ffi, in_turn, lib
from ..errors import InvalidArgumentError

__all__ = ["Mailbox"]


class Mailbox:
    """A mailbox for one launch on `device`, with items of `dtype`.

    Attributes
    ----------
    handle : cdata
        The core's `atos_mailbox`.
    closed, stopped : bool
        Whether `close` or `stop` was called.
    """

    def __init__(self, device: Device, dtype: np.dtype[Any]) -> None:
        slot = ffi.new("atos_mailbox **")
        check(lib.atos_mailbox_create(device.number, item_bytes(dtype.itemsize), slot))
        self.handle = ffi.gc(slot[0], lib.atos_mailbox_destroy)
        self.closed = self.stopped = False
        self._process = os.getpid()

    def has_begun(self) -> bool:
        """Wait until the launch has the queue; False if it has ended without."""
        status = in_turn(lib.atos_mailbox_begun, self.handle)
        if status != lib.ATOS_CLOSED:
            check(status)
        return status != lib.ATOS_CLOSED  # type: ignore[no-any-return]

    def push(self, items: NDArray[Any]) -> int:
        """Hand over items, as `as_items` returns them; return how many, which are all unless the launch ends before."""
        self.refuse_fork()
        done, count, size, pushed = 0, len(items), items.strides[0], ffi.new("uint64_t *")
        raw = ffi.from_buffer("char[]", items)  # in a fraction of the time of items.ctypes
        while True:
            status = lib.atos_mailbox_push(self.handle, raw + done * size, count - done, pushed)
            done += pushed[0]
            if status == lib.ATOS_CLOSED:
                return done if count else -1
            if status != lib.ATOS_HELD:  # it is full, and the core has waited for a while
                check(status)
                if done == count:
                    return done

    def waiting(self) -> int:
        """Return how many items no worker has taken yet."""
        self.refuse_fork()
        return lib.atos_mailbox_waiting(self.handle)  # type: ignore[no-any-return]

    def close(self) -> None:
        """Say that no more items will come."""
        self.refuse_fork()
        self.closed = True
        check(lib.atos_mailbox_close(self.handle))

    def stop(self) -> None:
        """Stop the launch, unless it is that of the process which this one was forked from."""
        if os.getpid() == self._process:
            self.stopped = True
            lib.atos_mailbox_stop(self.handle)

    def refuse_fork(self) -> None:
        """Refuse a process that was forked from the one that started the launch."""
        if os.getpid() != self._process:
            raise InvalidArgumentError(
                f"the run belongs to process {self._process}, which this one was forked from; start another one here"
            )
