"""The inbox of a launch, through which the host sends items to workers that run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from ..core.devices import Device
from ..core.library import check, ffi, in_turn, lib
from ..errors import InvalidArgumentError
from .core_queue import Form

__all__ = ["Inbox"]


class Inbox:
    """An inbox for one launch of a queue on `device`.

    Attributes
    ----------
    handle : cdata
        The core's `atos_inbox`.
    closed, stopped : bool
        Whether `close` or `stop` was called.
    """

    handle: Any

    def __init__(self, device: Device) -> None:
        self._device = device
        self.closed = self.stopped = False
        self._process = os.getpid()

    def open(self, form: Form, tasks: Sequence[str]) -> None:
        """Make the core's inbox, for a launch of these tasks on a queue of this form."""
        slot = ffi.new("atos_inbox **")
        check(lib.atos_inbox_create(self._device.number, form.stride, slot))
        self.handle = ffi.gc(slot[0], lib.atos_inbox_destroy)
        self._form, self._tasks = form, tasks

    def has_begun(self) -> bool:
        """Wait until the launch has the queue; False if it has ended without."""
        status = in_turn(lib.atos_inbox_begun, self.handle)
        if status != lib.ATOS_CLOSED:
            check(status)
        return status != lib.ATOS_CLOSED  # type: ignore[no-any-return]

    def push(self, items: NDArray[Any], task: str | None) -> int:
        """Hand over items, as `as_items` returns them, for a task of the launch; None is the first.

        Returns how many, which are all unless the launch ends before.

        Raises
        ------
        InvalidArgumentError
            If the launch has no such task.
        """
        self.refuse_fork()
        if task is not None and task not in self._tasks:
            raise InvalidArgumentError(f"the run has the tasks {', '.join(self._tasks)} (got task={task})")
        stored = self._form.encode(items, 0 if task is None else self._tasks.index(task))
        done, count, size, pushed = 0, len(items), self._form.stride, ffi.new("uint64_t *")
        raw = ffi.from_buffer("char[]", stored)  # in a fraction of the time of stored.ctypes
        while True:
            status = lib.atos_inbox_push(self.handle, raw + done * size, count - done, pushed)
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
        return lib.atos_inbox_waiting(self.handle)  # type: ignore[no-any-return]

    def close(self) -> None:
        """Say that no more items will come."""
        self.refuse_fork()
        self.closed = True
        check(lib.atos_inbox_close(self.handle))

    def stop(self) -> None:
        """Stop the launch, unless it is that of the process which this one was forked from."""
        if os.getpid() == self._process:
            self.stopped = True
            lib.atos_inbox_stop(self.handle)

    def refuse_fork(self) -> None:
        """Refuse a process that was forked from the one that started the launch."""
        if os.getpid() != self._process:
            raise InvalidArgumentError(
                f"the run belongs to process {self._process}, which this one was forked from; start another one here"
            )
