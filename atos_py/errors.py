"""Exceptions of the package. Every error inherits `AtosError` and the builtin exception that fits it."""

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
    "DistributedError",
    "ExportError",
    "FileWriteError",
    "GraphFormatError",
    "InvalidArgumentError",
    "JoinsFullError",
    "LaunchConfigError",
    "LaunchTimeoutError",
    "MissingFileError",
    "MissingPackageError",
    "PoolFullError",
    "QueueFullError",
    "RaceError",
    "TaskCallError",
    "TaskCompileError",
    "TaskError",
    "UnsupportedTypeError",
    "VerificationError",
]


class AtosError(Exception):
    """Base class of every error that this package raises.

    Examples
    --------
    >>> try:
    ...     atos.Queue(capacity=0)
    ... except atos.AtosError as error:
    ...     print(error)
    capacity must be from 1 to 4611686018427387904 (got 0)
    """

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
    """An argument has a value that makes no sense; the message names it and the values that do.

    Examples
    --------
    >>> atos.Queue(capacity=0)
    Traceback (most recent call last):
    atos_py.errors.InvalidArgumentError: ...
    """


class UnsupportedTypeError(AtosError, TypeError):
    """An argument is of a type that cannot be used here; the message says which can.

    Examples
    --------
    >>> atos.Queue(capacity=10, dtype="float32")
    Traceback (most recent call last):
    atos_py.errors.UnsupportedTypeError: ...
    """


class ExportError(AtosError, BufferError):
    """An array cannot be handed to another library as that asks for it, by DLPack.

    Examples
    --------
    >>> atos.asarray([1, 2], readonly=True).__dlpack__()  # as libraries older than DLPack 1.0 ask
    Traceback (most recent call last):
    atos_py.errors.ExportError: ...
    """


class BuildError(AtosError, ImportError):
    """The compiled core is missing, or was built for another version of the package."""


class DeviceNotFoundError(AtosError, LookupError):
    """The device asked for is not on this machine.

    Examples
    --------
    >>> atos.device("cuda:999")
    Traceback (most recent call last):
    atos_py.errors.DeviceNotFoundError: ...
    """


class DeviceError(AtosError, RuntimeError):
    """The driver refused an operation, or a kernel failed; the message carries the driver's own words."""


class DeviceFaultError(DeviceError):
    """A kernel did what the hardware forbids, such as a read outside of all memory, and the device's context is lost.

    Every later call on that device in this process raises this error again. Start a new process; to find the line of the task,
    launch with ``debug=True`` there.
    """


class DeviceMemoryError(AtosError, MemoryError):
    """The device, or the host, has too little free memory for what was asked.

    Examples
    --------
    >>> atos.zeros(2**62)
    Traceback (most recent call last):
    atos_py.errors.DeviceMemoryError: ...
    """


class DistributedError(AtosError, ConnectionError):
    """Processes that work together cannot go on: one is gone, or they did not meet, or they made different calls.

    The message names them. `atos_py.distributed.init` begins such work. After one is gone, what the others made together is of
    no use: let them end too, and start all of them again.

    Examples
    --------
    >>> atos.distributed.init(rank=0, world_size=2, job="alone", timeout=0.1)
    Traceback (most recent call last):
    atos_py.errors.DistributedError: ...
    """


class LaunchConfigError(AtosError, ValueError):
    """A launch asks for a configuration that cannot run, such as more workers than can be resident.

    Examples
    --------
    >>> @atos.task
    ... def nothing(worker, v):
    ...     pass
    >>> atos.Queue(capacity=10).launch_cta(nothing, num_threads=33)
    Traceback (most recent call last):
    atos_py.errors.LaunchConfigError: num_threads must be a multiple of 32, at most 1024 (got 33)
    """


class DeviceStuckError(DeviceError):
    """A launch that was asked to stop has not ended, and holds what was to be used: its queue, or a whole GPU."""


class LaunchTimeoutError(AtosError, TimeoutError):
    """A launch took longer than its `timeout`.

    Attributes
    ----------
    pending : int or None
        Tasks that are unfinished, all of them in the queue: launch again to go on. None if that is not known: the launch is
        stuck, or has waited in vain for another one of its queue, and has run nothing.
    stuck : bool
        Whether the launch did not end within a second after its stop, so that the queue cannot be used until the launch ends: a
        task still runs, or the launch has not begun, since other launches or processes hold the GPU.

    Examples
    --------
    >>> @atos.task
    ... def endless(worker, v):
    ...     worker.push(v)
    >>> queue = atos.Queue(capacity=10)
    >>> queue.push([1, 2])
    >>> try:
    ...     queue.launch_thread(endless, timeout=0.1)
    ... except atos.LaunchTimeoutError as error:
    ...     print(error.pending, error.stuck)
    2 False
    """

    def __init__(self, message: str, *, pending: int | None, stuck: bool) -> None:
        super().__init__(message)
        self.pending, self.stuck = pending, stuck


class TaskCompileError(AtosError, TypeError):
    """A task function could not be compiled for the arguments given.

    Attributes
    ----------
    place : tuple of str, int, str, or None
        The file, the line and the function that the error is about. Its traceback ends there.

    Examples
    --------
    >>> @atos.task
    ... def wrong(worker, v, data):
    ...     data.append(v)
    >>> queue = atos.Queue(capacity=10)
    >>> queue.push(1)
    >>> queue.launch_thread(wrong, atos.zeros(2))
    Traceback (most recent call last):
    atos_py.errors.TaskCompileError: ...
    """

    def __init__(self, message: str, place: tuple[str, int, str] | None = None) -> None:
        super().__init__(message)
        self.place = place


class TaskError(AtosError, RuntimeError):
    """A task that was launched with ``debug=True`` did what it must not; the launch has ended in order.

    Attributes
    ----------
    task : str
        The name of the task.
    kind : {'index', 'owner', 'alignment', 'arrival', 'join', 'division', 'cast', 'assert', 'raise'}
        What it did.
    function, filename, line : str, str, int
        Where: in the task function, or in one that it calls.
    item : int, tuple or None
        The item that it ran on; None in an idle function.
    index, bound : int or None
        The index that is out of range, and the length of that axis; None for the other kinds.
    lost : int
        Pushed tasks that found no room, as in `QueueFullError`.

    Examples
    --------
    >>> @atos.task
    ... def mark(worker, v, seen):
    ...     seen[v] = 1
    >>> queue = atos.Queue(capacity=10)
    >>> queue.push(7)
    >>> try:
    ...     queue.launch_thread(mark, atos.zeros(5), debug=True)
    ... except atos.TaskError as error:
    ...     print(error.item, error.index, error.bound)
    7 7 5
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
        self.task, self.kind, self.function, self.filename, self.line = task, kind, function, filename, line
        self.item, self.index, self.bound, self.lost = item, index, bound, lost


class RaceError(AtosError, RuntimeError):
    """Tasks of a launch with ``debug="races"`` accessed elements in no order; `races` has a `Race` for each pair of lines.

    Examples
    --------
    >>> count = atos.task(lambda worker, v, total: atos.atomic_add(total, 0, total[0]))
    >>> queue, total = atos.Queue(10, device="cpu"), atos.zeros(1, device="cpu")
    >>> queue.push([0, 1])
    >>> queue.launch_thread(count, total, debug="races")
    Traceback (most recent call last):
    atos_py.errors.RaceError: ...
    """

    races: tuple[Any, ...] = ()


class TaskCallError(AtosError, RuntimeError):
    """A name that has a meaning only inside a task was called from the host.

    Examples
    --------
    >>> atos.atomic_add(np.zeros(1), 0, 1)
    Traceback (most recent call last):
    atos_py.errors.TaskCallError: ...
    """


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

    Examples
    --------
    >>> queue = atos.Queue(capacity=2, max_capacity=2)
    >>> try:
    ...     queue.push([1, 2, 3])
    ... except atos.QueueFullError as error:
    ...     print(error.capacity, error.pending, error.lost)
    2 0 0
    """

    def __init__(self, message: str, *, capacity: int, pending: int, lost: int) -> None:
        super().__init__(message)
        self.capacity, self.pending, self.lost = capacity, pending, lost


class PoolFullError(AtosError, MemoryError):
    """Tasks, or the host, took more elements of a pool than it can have.

    A launch that meets it has ended in order: what was taken is in the pool, and what is unfinished in the queue.

    Attributes
    ----------
    capacity : int
        Elements that the pool can have.
    needed : int
        Elements that would be in use, had all been given that were asked for until the launch ended.

    Examples
    --------
    >>> pool = atos.Pool(np.int32, 2, max_capacity=2)
    >>> try:
    ...     pool.append([1, 2, 3])
    ... except atos.PoolFullError as error:
    ...     print(error.capacity, error.needed, len(pool))
    2 3 0
    """

    def __init__(self, message: str, *, capacity: int, needed: int) -> None:
        super().__init__(message)
        self.capacity, self.needed = capacity, needed


class JoinsFullError(PoolFullError):
    """Tasks, or the host, opened more joins than there are records for, which the attributes count.

    Examples
    --------
    >>> atos.Joins(1, max_capacity=1, device="cpu").open(1, n=10**6)
    Traceback (most recent call last):
    atos_py.errors.JoinsFullError: ...
    """


class MissingFileError(AtosError, FileNotFoundError):
    """A file does not exist or cannot be read.

    Examples
    --------
    >>> atos.Graph.load("nowhere.gr")
    Traceback (most recent call last):
    atos_py.errors.MissingFileError: ...
    """


class MissingPackageError(AtosError, ImportError):
    """A call needs a package that is not installed; the message says how to get it."""


class FileWriteError(AtosError, OSError):
    """A file cannot be written; what was there under its name before still is.

    Examples
    --------
    >>> atos.generate.road(3).save("/nowhere/grid.npz")
    Traceback (most recent call last):
    atos_py.errors.FileWriteError: ...
    """


class CheckpointError(AtosError, ValueError):
    """A file is not a checkpoint, is truncated or altered, or has the format of another version of the package.

    Attributes
    ----------
    path : str
        The file.
    reason : str
        What is wrong with it.

    Examples
    --------
    >>> _ = Path("run.atos").write_text("no checkpoint")
    >>> atos.Queue.load("run.atos")
    Traceback (most recent call last):
    atos_py.errors.CheckpointError: ...
    """

    def __init__(self, path: str | Path, reason: str) -> None:
        self.path, self.reason = str(path), reason
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

    Examples
    --------
    >>> _ = Path("bad.txt").write_text("0 one")
    >>> atos.Graph.load("bad.txt")
    Traceback (most recent call last):
    atos_py.errors.GraphFormatError: ...
    """

    def __init__(self, path: str | Path, line: int | None, reason: str) -> None:
        self.path, self.line, self.reason = str(path), line, reason
        super().__init__(f"{self.path}{'' if line is None else f', line {line}'}: {reason}")


class VerificationError(AtosError, AssertionError):
    """A result failed its certificate; the message names the first offending element.

    Examples
    --------
    >>> atos.verify_bfs(atos.generate.road(3), 0, np.zeros(9, np.int64))
    Traceback (most recent call last):
    atos_py.errors.VerificationError: ...
    """
