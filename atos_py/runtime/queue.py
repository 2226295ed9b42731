"""The queue of tasks, and the ways to launch workers on it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..arrays.array import Array, asarray, to_host, zeros
from ..arrays.import_external import is_on_gpu
from ..arrays.streams import launch_stream
from ..compile.arguments import describe, is_named_tuple, words
from ..compile.codegen import item_bytes
from ..compile.program import WORKERS, program_for
from ..compile.task import Task
from ..compile.timing import annotated, profile_of
from ..core.devices import Device
from ..core.devices import device as device_of
from ..core.library import check, ffi, in_turn, lib, message
from ..errors import InvalidArgumentError, LaunchConfigError, QueueFullError, UnsupportedTypeError
from ..support.host_memory import host_memory_for
from ..support.validation import as_dtype, flag, number, seconds, unknown_option, whole
from . import checkpoint
from .callbacks import question
from .checkpoint import QueueSnapshot, QueueState
from .items import as_items, item_dtype, padded
from .launch_errors import check_end
from .progress import observer_of
from .stats import LaunchStats
from .trace import trace_of

__all__ = ["Queue"]

_DEFAULT_FETCH = {"thread": 1, "warp": 32, "cta": 128}
_DEFAULT_THREADS = {"thread": 256, "warp": 256, "cta": 256}
_MAX_FETCH = 4096
_MAX_SAMPLES = 1 << 16


class Queue:
    """A shared queue of tasks in the memory of one device: FIFO as far as concurrency allows.

    Parameters
    ----------
    capacity : int
        The items for which it has room at first.
    max_capacity : int, optional
        The most items for which it makes room by itself: before it is full it becomes twice as large, while the workers of a
        persistent launch go on. Until that launch ends, it keeps the smaller rings that it had, together as large as the last.
        By default what fits into half of the memory that the device has free when the queue is made, and at least `capacity`.
    dtype : dtype, optional
        Of the items: an integer of 32 or 64 bits, or a structured dtype of at most 16 bytes whose fields are numbers.
        Every value of the type may be an item.
    device : Device or str, optional
        By default the best there is.

    Raises
    ------
    UnsupportedTypeError
        If `dtype` cannot be an item.
    InvalidArgumentError
        If `capacity` is not at least 1, or `max_capacity` is less.
    DeviceMemoryError
        If the device has too little free memory: an item takes its size, rounded up to 4, 8 or 16 bytes, plus 4 bytes if
        that is 4, otherwise 8.

    Notes
    -----
    The protocol is that of Chen et al., "Atos: A Task-Parallel GPU Scheduler for Graph Analytics" (ICPP 2022), with an exact
    end in place of its tuned number of vain polls; docs/design.md argues why it is right.

    Examples
    --------
    >>> @atos.task
    ... def count_down(worker, v):
    ...     if v > 0:
    ...         worker.push(v - 1)
    >>> queue = atos.Queue(capacity=100)
    >>> queue.push([9, 19])
    >>> print(queue.launch_thread(count_down).tasks_run, len(queue))
    30 0
    """

    @host_memory_for("a Queue")
    def __init__(
        self,
        capacity: int,
        *,
        max_capacity: int | None = None,
        dtype: DTypeLike = np.uint32,
        device: Device | str | None = None,
    ) -> None:
        self._dtype = item_dtype(as_dtype(dtype))
        self._device = device_of(device)
        first = whole("capacity", capacity, 1, 1 << 62)
        most = 0 if max_capacity is None else whole("max_capacity", max_capacity, first, 1 << 62)
        slot = ffi.new("atos_queue **")
        check(lib.atos_queue_create(self._device.number, first, item_bytes(self._dtype.itemsize), slot))
        self._handle = ffi.gc(slot[0], lib.atos_queue_destroy)
        check(lib.atos_queue_limit(self._handle, most))

    @property
    def capacity(self) -> int:
        """The items for which it has room now; it grows by itself up to `max_capacity`, and `resize` changes it."""
        return self._capacities()[0]

    @property
    def max_capacity(self) -> int:
        """The most items for which the queue makes room by itself; may be set, to `capacity` or more."""
        return self._capacities()[1]

    @max_capacity.setter
    def max_capacity(self, most: int) -> None:
        check(lib.atos_queue_limit(self._handle, whole("max_capacity", most, 1, 1 << 62)))

    def _capacities(self) -> tuple[int, int]:
        pair = ffi.new("uint64_t[2]")
        lib.atos_queue_capacity(self._handle, pair, pair + 1)
        return pair[0], pair[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the items."""
        return self._dtype

    @property
    def device(self) -> Device:
        """Where the queue lives and its tasks run."""
        return self._device

    @property
    def tasks_run(self) -> int:
        """Tasks that all launches so far have run, those before a checkpoint included."""
        return self._read(0)[1].tasks_run

    @property
    def tasks_pushed(self) -> int:
        """Items that those tasks pushed."""
        return self._read(0)[1].tasks_pushed

    def __reduce__(self) -> Any:
        raise UnsupportedTypeError(
            "a queue is neither copied nor pickled: save(path) writes what is in it, Queue.load reads it"
        )

    def __len__(self) -> int:
        """Return how many items are waiting."""
        count = ffi.new("uint64_t *")
        check(in_turn(lib.atos_queue_pending, self._handle, count))
        return count[0]

    def __repr__(self) -> str:
        return f"<atos queue {len(self):,} of {self.capacity:,} items of {self.dtype} on {self.device}>"

    @host_memory_for("Queue.push")
    def push(self, items: ArrayLike | Array) -> None:
        """Append items from the host.

        Parameters
        ----------
        items : array_like
            One-dimensional, or a single item; cast to the queue's dtype if every value fits.

        Raises
        ------
        QueueFullError
            If there is no room for all of them, and cannot be made up to `max_capacity`; none is pushed then.
        InvalidArgumentError
            If a value does not fit the dtype.

        Examples
        --------
        >>> queue = atos.Queue(capacity=10)
        >>> queue.push([3, 1, 2])
        >>> queue.push(7)
        >>> len(queue)
        4
        """
        values = as_items(items, self._dtype)
        status = in_turn(lib.atos_queue_push, self._handle, ffi.cast("void *", values.ctypes.data), len(values))
        if status == lib.ATOS_QUEUE_FULL:
            waiting = len(self)
            raise QueueFullError(
                f"{message()}; set queue.max_capacity = {waiting + len(values)} or more",
                capacity=self.capacity,
                pending=waiting,
                lost=0,
            )
        check(status)

    def peek(self) -> NDArray[Any]:
        """Return a copy of the waiting items, the oldest first; a launch in another thread is waited for.

        Examples
        --------
        >>> queue = atos.Queue(capacity=10)
        >>> queue.push([3, 1, 2])
        >>> queue.peek()
        array([3, 1, 2], dtype=uint32)
        """
        return self._read()[0]

    def clear(self) -> None:
        """Drop every waiting item.

        Examples
        --------
        >>> queue = atos.Queue(capacity=10)
        >>> queue.push([3, 1, 2])
        >>> queue.clear()
        >>> len(queue)
        0
        """
        check(in_turn(lib.atos_queue_clear, self._handle))

    def resize(self, capacity: int) -> None:
        """Change the capacity; what is waiting stays, in order.

        A `max_capacity` that is less is raised to it; a queue whose `max_capacity` is its capacity keeps it so.

        Raises
        ------
        InvalidArgumentError
            If more items are waiting than the new capacity holds.

        Examples
        --------
        >>> queue = atos.Queue(capacity=10)
        >>> queue.resize(1000)
        >>> queue.capacity
        1000
        """
        check(in_turn(lib.atos_queue_resize, self._handle, whole("capacity", capacity, 1, 1 << 62)))

    def save(self, path: str | os.PathLike[str], /, **arrays: Any) -> None:
        """Write the waiting items and the counters to a file, together with the arrays that the tasks work on.

        Parameters
        ----------
        path : path-like
            The file. It is replaced once the new one is whole and on disk, so that a process killed meanwhile leaves the old
            one.
        **arrays
            Whatever tasks write: arrays on any device, each under a name of your choice. They and the items have to be of one
            moment, so no other queue's launch may be writing to them; a launch on this queue is waited for.

        Raises
        ------
        FileWriteError
            If the file cannot be written.

        See Also
        --------
        load

        Notes
        -----
        `atos_py.runtime.checkpoint` describes the format. A launch saves nothing by itself: stop it part-way, save, and launch
        again.

        Examples
        --------
        >>> queue, done = atos.Queue(capacity=10), atos.zeros(4)
        >>> queue.push([2, 3])
        >>> queue.save("run.atos", done=done)
        >>> len(atos.Queue.load("run.atos", done=done))
        2
        """
        checkpoint.save(self._snapshot, lambda: self._read(0)[1], path, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str], /, *, device: Device | str | None = None, **arrays: Any) -> Queue:
        """Return the queue that `save` wrote to a file, and fill arrays with what they held at that moment.

        It has the capacity that it had, and may grow to what this device can spare: set `max_capacity` if that is too much.

        Parameters
        ----------
        path : path-like
            The file.
        device : Device or str, optional
            Where the queue shall be, which need not be where it was; by default the best there is.
        **arrays
            A writable array to be filled for each one that was saved, under the same name, of the same shape and dtype, on any
            device. Nothing is written before the whole file is checked.

        Raises
        ------
        CheckpointError
            If the file is not a checkpoint, or is truncated or altered.
        MissingFileError
            If there is no such file.
        InvalidArgumentError
            If the arrays are not those that were saved.

        Examples
        --------
        >>> queue, done = atos.Queue(capacity=10), atos.full(2, 5)
        >>> queue.save("run.atos", done=done)
        >>> done[...] = 0
        >>> print(atos.Queue.load("run.atos", done=done).capacity, done[:])
        10 [5 5]
        """
        return checkpoint.load(
            lambda capacity, dtype, place: cls(capacity, dtype=dtype, device=place), cls._restore, path, device, arrays
        )

    # The oldest items, all of them or at most `room`, and how the queue stood when they were read.
    @host_memory_for("the items of a Queue")
    def _read(self, room: int | None = None) -> tuple[NDArray[Any], QueueState]:
        state = ffi.new("atos_queue_state *")
        space = len(self) if room is None else room
        while True:
            raw = np.zeros((space, item_bytes(self._dtype.itemsize)), np.uint8)
            check(in_turn(lib.atos_queue_read, self._handle, ffi.cast("void *", raw.ctypes.data), space, state))
            if room is not None or state.pending <= space:
                break
            space = state.pending  # another thread pushed meanwhile
        items = np.ascontiguousarray(raw[: state.pending, : self._dtype.itemsize]).view(self._dtype).reshape(-1)
        return items, QueueState(*(getattr(state, field) for field in QueueState._fields))

    def _snapshot(self) -> QueueSnapshot:
        items, state = self._read()
        return QueueSnapshot(self.capacity, self._dtype, items, state)

    def _restore(self, items: NDArray[Any], state: QueueState) -> None:
        raw, given = padded(items), ffi.new("atos_queue_state *", state)
        check(in_turn(lib.atos_queue_restore, self._handle, ffi.cast("void *", raw.ctypes.data), given))

    @host_memory_for("a launch")
    def launch_thread(self, task: Task, *args: Any, **options: Any) -> LaunchStats:
        """Run the queue's tasks with workers of one thread; otherwise as `launch_cta`.

        Examples
        --------
        >>> @atos.task
        ... def mark(worker, v, seen):
        ...     seen[v] = 1
        >>> seen, queue = atos.zeros(4, dtype=np.int32), atos.Queue(capacity=10)
        >>> queue.push([0, 2])
        >>> print(queue.launch_thread(mark, seen).worker, seen[:])
        thread [1 0 1 0]
        """
        return self._launch("thread", task, args, **options)

    @host_memory_for("a launch")
    def launch_warp(self, task: Task, *args: Any, **options: Any) -> LaunchStats:
        """Run the queue's tasks with workers of one warp, 32 threads; otherwise as `launch_cta`.

        Examples
        --------
        >>> @atos.task
        ... def mark(worker, v, seen):
        ...     seen[v] = 1
        >>> seen, queue = atos.zeros(4, dtype=np.int32), atos.Queue(capacity=10)
        >>> queue.push([0, 2])
        >>> print(queue.launch_warp(mark, seen).worker, seen[:])
        warp [1 0 1 0]
        """
        return self._launch("warp", task, args, **options)

    @host_memory_for("a launch")
    def launch_cta(self, task: Task, *args: Any, **options: Any) -> LaunchStats:
        """Run the queue's tasks, and what they push, with workers of one block (CTA), until all is done.

        Parameters
        ----------
        task : Task
            What to run on each item.
        *args
            Handed to the task: arrays on the queue's device, numbers, None, and named tuples of those, such as a `Graph`. They
            take 256 words at most: an array one and one for each dimension, a number one.
        idle : callable, optional
            ``idle(worker, *args)``, run by a worker that finds nothing to do. It may push. The launch then ends when no task
            is unfinished and a whole round of idle calls, one by each worker, begun after that, has pushed nothing.
        persistent : bool
            One resident kernel whose workers stay until the end (default), or kernels that the host launches over what the
            queue holds.
        barrier : bool
            Whether what is pushed runs only after all that was there before (bulk-synchronous). Off by default.
        fetch_size : int
            Items that a worker takes at once, at most, up to 4,096; by default 1 for threads, 32 for warps, 128 for CTAs.
        num_blocks : int
            Blocks; by default as many as are resident at once. On the CPU the number of threads; by default one for
            each core.
        num_threads : int
            Threads of a block, a multiple of 32 up to 1,024; by default 256. Not for the CPU, where a worker has one.
        shared_memory : int
            Bytes of scratch for each worker, up to what a multiprocessor has, and 1 MiB; needed by tasks that take any.
        stream : int or object, optional
            A stream of the GPU as an address or as an object of CuPy, PyTorch or anything with ``__cuda_stream__``; by default
            the current stream of CuPy or PyTorch if arguments are arrays of theirs, otherwise the legacy default stream. The
            launch runs in the order of that stream, and has ended on return.
        device : Device or str, optional
            Where to run; must be the queue's device, which is the default.
        timeout : float, optional
            Seconds after which the launch is stopped. Workers finish the items that they have in hand and leave; what is
            unfinished is in the queue. By default there is no limit.
        trace : float, optional
            Microseconds between samples of the run, for `LaunchStats.trace`; by default none are taken.
        progress : bool or callable
            True shows a bar on stderr while the launch runs, tqdm's if that is installed. A function is called instead, some
            50 times a second, in the thread of the launch, as ``progress(tasks_run, rate, waiting)``: the tasks that this
            launch has run, tasks a second since the call before, and items in the queue that nobody has taken. It cannot use
            queues, and what it raises stops the launch. By default nothing is shown.
        debug : bool, optional
            Whether to check every index, division and cast to an integer type in the task, and its asserts; slower. By default
            what the environment variable ``ATOS_DEBUG`` says: 1 or 0.

        Returns
        -------
        LaunchStats

        Raises
        ------
        QueueFullError
            If tasks pushed more than the queue can hold. What is pending is still in it: raise `max_capacity` and launch again.
        LaunchTimeoutError
            If the launch took longer than `timeout`. What is pending is still in the queue: launch again to go on.
        KeyboardInterrupt
            If Ctrl-C was pressed, or whatever else the handler of a signal raised. The launch is stopped as by `timeout`.
        DeviceStuckError
            If a task of an earlier launch, which was stopped, still runs and holds the queue or the device.
        LaunchConfigError
            If a persistent launch asks for more blocks than can be resident, or a block for more than a multiprocessor has; or
            if the task takes scratch, and `shared_memory` is not given or is less than one element.
        TaskCompileError
            If the task does not compile for these arguments.
        TaskError
            If a check failed, with `debug`. The launch has ended in order, and what is pending is still in the queue, without
            the item of the task that failed.

        See Also
        --------
        launch_thread, launch_warp

        Notes
        -----
        Chen et al. 2022, Listing 3. A larger fetch size gives each worker more to balance over its threads and leaves less
        to the others.

        Examples
        --------
        >>> @atos.task
        ... def mark(worker, v, seen):
        ...     seen[v] = 1
        >>> seen, queue = atos.zeros(4, dtype=np.int32), atos.Queue(capacity=10)
        >>> queue.push([0, 2])
        >>> print(queue.launch_cta(mark, seen, fetch_size=32, persistent=False).schedule, seen[:])
        discrete, relaxed [1 0 1 0]
        """
        return self._launch("cta", task, args, **options)

    def _launch(
        self,
        worker: str,
        task: Task,
        args: tuple[Any, ...],
        *,
        idle: Callable[..., Any] | None = None,
        persistent: bool = True,
        barrier: bool = False,
        fetch_size: int | None = None,
        num_blocks: int | None = None,
        num_threads: int | None = None,
        shared_memory: int = 0,
        stream: Any = None,
        device: Device | str | None = None,
        timeout: float | None = None,
        trace: float | None = None,
        progress: bool | Callable[[int, float, int], Any] = False,
        debug: bool | None = None,
        **unknown: Any,
    ) -> LaunchStats:
        begin = time.perf_counter()
        if error := unknown_option("a launch", unknown, Queue._launch.__kwdefaults__ or ()):
            raise error
        if not isinstance(task, Task):
            raise UnsupportedTypeError(f"launch a task made with @atos.task (got {task!r})")
        if device is not None and device_of(device) != self._device:
            raise LaunchConfigError(f"the queue is on {self._device} and cannot run on {device}; make a queue there")
        on_gpu = self._device.kind == "cuda"
        fetch = _DEFAULT_FETCH[worker] if fetch_size is None else whole("fetch_size", fetch_size, 1, _MAX_FETCH)
        threads = _DEFAULT_THREADS[worker] if num_threads is None else whole("num_threads", num_threads, 1, 1024)
        if threads % 32:
            raise LaunchConfigError(f"num_threads must be a multiple of 32, at most 1024 (got {threads})")
        if not on_gpu:
            threads = 1
        persistent, barrier = flag("persistent", persistent), flag("barrier", barrier)
        if idle is not None and not (callable(idle) and isinstance(idle, Hashable)):
            raise UnsupportedTypeError(f"idle must be a function of the worker and the arguments (got {idle!r:.80})")
        if trace is not None and not number("trace", trace) > 0:
            raise InvalidArgumentError(f"trace must be a number of microseconds above 0 (got {trace})")
        arguments = [self._argument(i, arg) for i, arg in enumerate(args)]
        kinds = tuple([describe(arg) for arg in arguments])
        address = launch_stream(stream, arguments, self._device) if on_gpu or stream is not None else 0
        packed = [word for arg in arguments for word in words(arg)]
        if len(packed) > lib.ATOS_MAX_ARGUMENT_WORDS:
            most = lib.ATOS_MAX_ARGUMENT_WORDS
            raise InvalidArgumentError(f"the arguments take {len(packed)} words of 8 bytes, but at most {most} can be passed")
        blocks = 0 if num_blocks is None else whole("num_blocks", num_blocks, 1, 2**31 - 1)
        scratch = whole("shared_memory", shared_memory, 0, 1 << 20)
        limit = 0.0 if timeout is None else seconds(timeout)
        observer = observer_of(progress, task.name)
        checked = _debug_by_default() if debug is None else flag("debug", debug)
        program = program_for(task, idle, kinds, self._device, self._dtype, worker, threads, checked)
        if scratch < program.scratch_itemsize:
            raise LaunchConfigError(
                f"task {task.name!r}, its idle function or a helper takes worker.scratch of elements of"
                f" {program.scratch_itemsize} bytes, but the launch gives each worker {scratch} bytes;"
                " pass shared_memory=, the size of the scratch in bytes"
            )

        samples = None if trace is None else zeros((_MAX_SAMPLES, 4), dtype=np.uint64, device=self._device)
        buffer = ffi.new("uint64_t[]", packed or [0])
        launch = ffi.new(
            "atos_launch *",
            (
                WORKERS.index(worker),
                persistent,
                barrier,
                fetch,
                blocks,
                threads,
                scratch,
                task.nested,
                program.value_words,
                idle is not None,
                len(packed),
                buffer,
                ffi.cast("void *", address if on_gpu else 0),
                ffi.NULL if samples is None else ffi.cast("atos_sample *", samples.pointer),
                0 if samples is None else len(samples),
                0 if trace is None else min(max(round(trace * 1e3), 1), 2**32 - 1),
                limit,
                question(observer),
                observer is not None,
            ),
        )
        stats = ffi.new("atos_stats *")
        with annotated(task.name):
            status = lib.atos_queue_launch(self._handle, program.handle, launch, stats)
        check_end(self, task, program, status, stats, timeout, (arguments, samples))
        idling = stats.workers if persistent and not barrier else None
        return LaunchStats(
            tasks_run=stats.tasks_run,
            tasks_pushed=stats.tasks_pushed,
            milliseconds=stats.milliseconds,
            rounds=stats.rounds,
            task=task.name,
            device=str(self._device),
            worker=worker,
            fetch_size=fetch,
            persistent=persistent,
            barrier=barrier,
            num_blocks=stats.blocks,
            num_threads=stats.threads,
            num_workers=stats.workers,
            overhead_bytes=stats.overhead_bytes,
            grown=stats.grown,
            trace=None if samples is None else trace_of(samples[: stats.samples], idling),
            profile=profile_of(begin, stats.milliseconds, stats.copy_milliseconds),
        )

    # An argument as the task takes it: others' arrays are wrapped, and have to be where the task runs.
    def _argument(self, position: int, value: Any) -> Any:
        if isinstance(value, tuple) and is_named_tuple(value):
            members = [self._argument(position, member) for member in value]
            return value if all(a is b for a, b in zip(members, value, strict=True)) else type(value)._make(members)  # type: ignore[attr-defined]
        if not isinstance(value, Array):
            if _is_host_array(value):
                if self._device.kind == "cuda":
                    raise UnsupportedTypeError(
                        f"argument {position} is an array of the host, which a task on {self._device} cannot reach;"
                        " copy it there with atos.asarray(...), and read the result with to_numpy()"
                    )
                if not np.asarray(to_host(value)).flags.c_contiguous:
                    raise InvalidArgumentError(f"argument {position} is not C-contiguous; pass numpy.ascontiguousarray(...)")
                value = asarray(value, device=self._device)
            elif not isinstance(value, np.generic) and (
                hasattr(value, "__cuda_array_interface__") or hasattr(value, "__dlpack_device__")
            ):
                value = asarray(value)
        if isinstance(value, Array) and value.device != self._device:
            advice = f"copy it with atos.asarray(..., device={str(self._device)!r})"
            raise InvalidArgumentError(f"argument {position} is on {value.device}, the task runs on {self._device}; {advice}")
        return value


def _debug_by_default() -> bool:
    value = os.environ.get("ATOS_DEBUG", "")
    if value not in ("", "0", "1"):
        raise InvalidArgumentError(f"the environment variable ATOS_DEBUG is 0 or 1 (got {value!r})")
    return value == "1"


def _is_host_array(value: Any) -> bool:
    """Whether an argument is an array in memory of the host: NumPy's, or one that DLPack says is there."""
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return hasattr(value, "__dlpack_device__") and not isinstance(value, (np.generic, type)) and not is_on_gpu(value)
