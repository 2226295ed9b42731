"""What can go wrong. Every error inherits `AtosError` and the builtin exception that fits it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = [
    "AtosError",
    "BuildError",
    "CheckpointError",
    "DeviceError",
    "DeviceFaultError",
    "DeviceMemoryError",
    "DeviceNotFoundError",
    "DeviceStuckError",
    "ExportError",
    "FileWriteError",
    "GraphFormatError",
    "InvalidArgumentError",
    "LaunchConfigError",
    "LaunchTimeoutError",
    "MissingFileError",
    "MissingPackageError",
    "QueueFullError",
    "TaskCallError",
    "TaskCompileError",
    "TaskError",
    "UnsupportedTypeError",
    "VerificationError",
]


class AtosError(Exception):
    """Base class of every error that this package raises."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions are copied by calling their class with `args`, which those with other parameters do not take.
        return _copied, (type(self), self.args, self.__dict__)


def _copied(cls: type[AtosError], args: tuple[Any, ...], attributes: dict[str, Any]) -> AtosError:
    builtin: Any = cls
    while builtin.__module__ != "builtins":
        builtin = builtin.__base__
    error: AtosError = builtin.__new__(cls, *args)  # cls.__new__ may be that of another of its bases, which refuses
    error.args = args  # which an OSError leaves to its __init__
    error.__dict__.update(attributes)
    return error


class InvalidArgumentError(AtosError, ValueError):
    """An argument has a value that makes no sense; the message names it and the values that do."""


class UnsupportedTypeError(AtosError, TypeError):
    """An argument is of a type that cannot be used here; the message says which can."""


class ExportError(AtosError, BufferError):
    """An array cannot be handed to another library as that asks for it, by DLPack."""


class BuildError(AtosError, ImportError):
    """The compiled core is missing, or was built for another version of the package."""


class DeviceNotFoundError(AtosError, LookupError):
    """The device asked for is not on this machine."""


class DeviceError(AtosError, RuntimeError):
    """The driver refused an operation, or a kernel failed; the message carries the driver's own words."""


class DeviceFaultError(DeviceError):
    """A kernel did what the hardware forbids, such as a read outside of all memory, and the device's context is lost.

    Every later call on that device in this process raises this error again. Start a new process; to find the line of the task,
    launch with ``debug=True`` there.
    """


class DeviceMemoryError(AtosError, MemoryError):
    """The device, or the host, has too little free memory for what was asked."""


class LaunchConfigError(AtosError, ValueError):
    """A launch asks for a configuration that cannot run, such as more workers than can be resident."""


class DeviceStuckError(DeviceError):
    """A task that was asked to stop still runs, and holds what was to be used: a queue, or a whole GPU."""


class LaunchTimeoutError(AtosError, TimeoutError):
    """A launch took longer than its `timeout`.

    Attributes
    ----------
    pending : int or None
        Tasks that are unfinished, all of them in the queue: launch again to go on. None if that is not known: the launch is
        stuck, or has waited in vain for another one of its queue, and has run nothing.
    stuck : bool
        Whether a task did not end when the launch was stopped, so that the queue cannot be used until it does.
    """

    def __init__(self, message: str, *, pending: int | None, stuck: bool) -> None:
        super().__init__(message)
        self.pending = pending
        self.stuck = stuck


class TaskCompileError(AtosError, TypeError):
    """A task function could not be compiled for the arguments given."""


class TaskError(AtosError, RuntimeError):
    """A task that was launched with ``debug=True`` did what it must not; the launch has ended in order.

    Attributes
    ----------
    task : str
        The name of the task.
    kind : {'index', 'division', 'cast', 'assert', 'raise'}
        What it did.
    function, filename, line : str, str, int
        Where: in the task function, or in one that it calls.
    item : int, tuple or None
        The item that it ran on; None in an idle function.
    index, bound : int or None
        The index that is out of range, and the length of that axis; None for the other kinds.
    lost : int
        Pushed tasks that found no room, as in `QueueFullError`.
    """

    def __init__(
        self,
        message: str,
        *,
        task: str,
        kind: str,
        function: str,
        filename: str,
        line: int,
        item: Any,
        index: int | None,
        bound: int | None,
        lost: int,
    ) -> None:
        super().__init__(message)
        self.task = task
        self.kind = kind
        self.function = function
        self.filename = filename
        self.line = line
        self.item = item
        self.index = index
        self.bound = bound
        self.lost = lost


class TaskCallError(AtosError, RuntimeError):
    """A name that has a meaning only inside a task was called from the host."""


class QueueFullError(AtosError, MemoryError):
    """A push would have left more unfinished tasks than the queue has room for, or may make.

    Attributes
    ----------
    capacity : int
        Capacity of the queue, in tasks.
    pending : int
        Tasks that are still in the queue, in order.
    lost : int
        Pushed tasks that found no room at all. If 0, the work can go on: raise `Queue.max_capacity` and launch again.
        Otherwise start again with a larger queue.
    """

    def __init__(self, message: str, *, capacity: int, pending: int, lost: int) -> None:
        super().__init__(message)
        self.capacity = capacity
        self.pending = pending
        self.lost = lost


class MissingFileError(AtosError, FileNotFoundError):
    """A file does not exist or cannot be read."""


class MissingPackageError(AtosError, ImportError):
    """What was asked for needs a package that is not installed; the message says how to get it."""


class FileWriteError(AtosError, OSError):
    """A file cannot be written; what was there under its name before still is."""


class CheckpointError(AtosError, ValueError):
    """A file is not a checkpoint, is truncated or altered, or has the format of another version of the package.

    Attributes
    ----------
    path : str
        The file.
    reason : str
        What is wrong with it.
    """

    def __init__(self, path: str | Path, reason: str) -> None:
        self.path = str(path)
        self.reason = reason
        super().__init__(f"{self.path}: {reason}")


class GraphFormatError(AtosError, ValueError):
    """A graph file is malformed.

    Attributes
    ----------
    path : str
        The file.
    line : int or None
        Line number, from 1, or None where the fault has no line (a truncated archive, say).
    reason : str
        What is wrong with it.
    """

    def __init__(self, path: str | Path, line: int | None, reason: str) -> None:
        self.path = str(path)
        self.line = line
        self.reason = reason
        where = f"{self.path}, line {line}" if line is not None else self.path
        super().__init__(f"{where}: {reason}")


class VerificationError(AtosError, AssertionError):
    """A result failed its certificate; the message names the first offending element."""
