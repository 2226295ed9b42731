"""Map the status of a launch to the exception that says what became of its tasks."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, Literal, Protocol

import numpy as np

from ..compile.codegen import stored_bytes
from ..compile.debug_checks import task_error
from ..compile.kinds import Launchable, Tasks, tasks_of
from ..compile.program import Program
from ..core.devices import Device
from ..core.library import check, ffi, lib, message
from ..errors import AtosError, LaunchTimeoutError, QueueFullError, TaskError
from .callbacks import finish_callback
from .core_queue import CoreQueue, is_replaced
from .peer_queues import PeerQueues

__all__ = ["LaunchedQueue", "check_end"]


class LaunchedQueue(Protocol):
    """A queue as far as launches know it."""

    _core: CoreQueue | PeerQueues
    _device: Device
    _dtype: np.dtype[Any]
    _buckets: int | None
    _take: Literal["oldest", "newest"]
    _site: Any  # one of `sites`, which rests on launches
    _sort: tuple[Any, ...]

    def __len__(self) -> int:
        """Return how many items are waiting."""

    @property
    def capacity(self) -> int:
        """The items for which it has room."""


def check_end(
    queue: LaunchedQueue,
    task: Launchable,
    program: Program,
    status: int,
    stats: Any,
    timeout: float | None,
    used: tuple[Any, ...],
    asked: bool = False,
    receivers: Sequence[LaunchedQueue] = (),
) -> None:
    """Raise the error of a launch of `queue` that ended with `status`, if that is one: no stop that was `asked` for.

    `receivers` are the queues that its tasks push into.

    If workers are stuck, `used`, with what they may still be using, lives from then on as long as the process.
    """
    interrupt = finish_callback()
    try:
        if status == lib.ATOS_GONE:
            _keep(queue, used, program)
        if is_replaced(status):
            status = lib.ATOS_OK  # nothing was done, and it is launched again
        if status == lib.ATOS_STOPPED and asked and interrupt is None:
            return
        if status in (lib.ATOS_STOPPED, lib.ATOS_STUCK, lib.ATOS_NOT_BEGUN, lib.ATOS_HELD):
            late = f"it took longer than its timeout of {timeout} s" if timeout is not None else "it failed"
            if asked:
                late = "stop() was called"
            if _others_interrupted(queue, status, interrupt):
                late = "another process was interrupted"
            why = "it was interrupted" if interrupt else late
            raise _describe_stop(queue, task, why, status, stats, (*used, program))
        if status == lib.ATOS_QUEUE_FULL:
            raise _describe_full(queue, receivers, stats)
        if status == lib.ATOS_TASK_FAILED:
            raise _describe_failed_check(queue, task, program, stats)
        check(status)
    except AtosError as error:
        if interrupt is None:
            raise
        raise interrupt from error  # which says how things stand
    if interrupt is not None:
        raise interrupt


def _others_interrupted(queue: LaunchedQueue, status: int, interrupt: BaseException | None) -> bool:
    """Tell the other processes of a launch whether this one was interrupted; return whether one of them was."""
    group = queue._site.group
    return status == lib.ATOS_STOPPED and group is not None and b"1" in group.gather(b"1" if interrupt else b"0")


def _describe_full(queue: LaunchedQueue, receivers: Sequence[LaunchedQueue], stats: Any) -> QueueFullError:
    """Say that tasks pushed more than their queue, or another one, may hold, now or in an earlier launch."""
    full, pending = queue, stats.pending
    if stats.full_receiver:
        full = receivers[stats.full_receiver - 1]
        pending = len(full)
    if stats.lost:
        advice = f"{stats.lost} of them were lost: start again with a larger capacity"
    else:
        advice = "all are still in it: raise max_capacity and launch again, or start with a larger one"
    return QueueFullError(f"{message()}; {advice}", capacity=full.capacity, pending=pending, lost=stats.lost)


def _describe_stop(
    queue: LaunchedQueue, task: Launchable, why: str, status: int, stats: Any, used: tuple[Any, ...]
) -> LaunchTimeoutError:
    """Say that a launch was stopped. What its workers may still use lives from now on as long as the process."""
    if status == lib.ATOS_STOPPED:
        left = "all of them in the queue: launch again to go on, or clear() it"
        text = f"the launch of {task.name} was stopped, since {why}; {stats.pending} tasks are unfinished, {left}"
        return LaunchTimeoutError(text, pending=stats.pending, stuck=False)
    if status == lib.ATOS_HELD:
        text = (
            f"the launch of {task.name} was stopped, since {why} while it waited for another launch of this queue, in another"
            " thread; it has run nothing: launch again when that has ended"
        )
        return LaunchTimeoutError(text, pending=None, stuck=False)
    _keep(queue, used)
    if status == lib.ATOS_NOT_BEGUN:
        return LaunchTimeoutError(
            f"the launch of {task.name} was to stop, since {why}, but {message()}. When it begins, it ends without running a"
            f" task; until then its queue is of no use, and {queue._device} can be used",
            pending=None,
            stuck=True,
        )
    on_gpu = queue._device.kind == "cuda"
    held = f"{queue._device} is" if on_gpu else "its queue and threads are"
    busy = f", unless other launches or processes keep {queue._device} busy" if on_gpu else ""
    return LaunchTimeoutError(
        f"the launch of {task.name} was to stop, since {why}, but {message()}: a task seems to loop for ever inside"
        f" itself{busy}, so look at its loops and at what they wait for. Until it ends {held} of no use; if it never"
        " does, start a new process",
        pending=None,
        stuck=True,
    )


def _keep(*used: Any) -> None:
    """Let what workers may still use live as long as the process."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(used))


def _describe_failed_check(queue: LaunchedQueue, task: Launchable, program: Program, stats: Any) -> TaskError:
    """Say which check failed."""
    item: Any = None
    failed, *_ = tasks_of(task)
    if stats.failure.in_item:
        stored = bytes(ffi.buffer(stats.failure.item))
        item = np.frombuffer(stored, queue._dtype, 1)[0].item()
        if isinstance(task, Tasks):
            failed = task.members[stored[stored_bytes(queue._dtype.itemsize, True) - 1]]
    assert program.code.checks is not None
    return task_error(failed.name, program.code.checks, stats.failure, item, stats.lost)
