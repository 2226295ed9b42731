"""How a launch ended: in order, or with an error that says what became of the tasks."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from ._core import check, ffi, lib, message
from .checks import task_error
from .errors import LaunchTimeoutError, QueueFullError, TaskError
from .interrupt import raised
from .program import Program
from .task import Task

if TYPE_CHECKING:
    from .queue import Queue

__all__ = ["check_end"]


def check_end(
    queue: Queue, task: Task, program: Program, status: int, stats: Any, timeout: float | None, used: tuple[Any, ...]
) -> None:
    """Raise what a launch of `queue` that ended with `status` comes to; `used` is what its workers may still be using."""
    interrupt = raised()
    if status in (lib.ATOS_STOPPED, lib.ATOS_STUCK):
        why = "it was interrupted" if interrupt else f"it took longer than its timeout of {timeout} s"
        stopped = _stopped(queue, task, why, status, stats, (*used, program))
        if interrupt is None:
            raise stopped
        raise interrupt from stopped
    if interrupt is not None:
        raise interrupt
    if status == lib.ATOS_QUEUE_FULL:
        raise QueueFullError(
            f"{message()}; "
            + (
                f"{stats.lost} of them were lost: start again with a larger capacity"
                if stats.lost
                else "all are still in it: raise max_capacity and launch again, or start with a larger one"
            ),
            capacity=queue.capacity,
            pending=stats.pending,
            lost=stats.lost,
        )
    if status == lib.ATOS_TASK_FAILED:
        raise _task_error(queue, task, program, stats)
    check(status)


def _stopped(queue: Queue, task: Task, why: str, status: int, stats: Any, used: tuple[Any, ...]) -> LaunchTimeoutError:
    """Say that a launch was stopped. What is used by one that is stuck lives from now on as long as the process."""
    if status == lib.ATOS_STOPPED:
        left = "all of them in the queue: launch again to go on, or clear() it"
        text = f"the launch of {task.name} was stopped, since {why}; {stats.pending} tasks are unfinished, {left}"
        return LaunchTimeoutError(text, pending=stats.pending, stuck=False)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object((queue, *used)))
    held = f"{queue.device} is" if queue.device.kind == "cuda" else "its queue and threads are"
    return LaunchTimeoutError(
        f"the launch of {task.name} was to stop, since {why}, but {message()}: a task seems to loop for ever inside"
        f" itself, so look at its loops and at what they wait for. Until it ends {held} of no use; if it never does,"
        " start a new process",
        pending=None,
        stuck=True,
    )


def _task_error(queue: Queue, task: Task, program: Program, stats: Any) -> TaskError:
    """Say which check failed."""
    item: Any = None
    if stats.failure.in_item:
        item = np.frombuffer(bytes(ffi.buffer(stats.failure.item)), queue.dtype, 1)[0].item()
    assert program.checks is not None
    return task_error(task.name, program.checks, stats.failure, item, stats.lost)
