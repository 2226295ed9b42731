"""One launch: its options, their check, and the call of the core that runs the queue's tasks."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypedDict

import numpy as np

from ..arrays.array import Array, zeros
from ..arrays.streams import launch_stream
from ..compile.host_kernels import threads
from ..compile.kinds import Launchable, Tasks, check_tasks, tasks_of
from ..compile.program import WORKER_KINDS, Program, program_for
from ..compile.scratch import MOST_BYTES, sized_scratch
from ..compile.task import Task
from ..compile.timing import annotated, profile_of
from ..core.devices import Device
from ..core.devices import device as device_of
from ..core.library import ffi
from ..errors import InvalidArgumentError, LaunchConfigError, TaskCompileError, UnsupportedTypeError
from ..support.validation import check_bool, check_float, check_int, check_option_names, check_timeout
from .callbacks import start_callback
from .core_queue import Form, is_replaced
from .launch_arguments import Arguments, prepare_arguments
from .launch_errors import LaunchedQueue, check_end
from .mailbox import Mailbox
from .peer_queues import agree_on_launch, check_peer_launch
from .progress import check_progress, make_observer
from .stats import DeviceStats, LaunchStats
from .trace import trace_of

__all__ = ["LaunchConfig", "LaunchOptions", "PlannedLaunch", "compile_ahead", "prepare_launch", "run_launch"]

_DEFAULT_FETCH_SIZE = {"thread": 1, "warp": 32, "cta": 128}
_DEFAULT_THREADS = 256
_MAX_FETCH_SIZE = 4096
_MAX_SAMPLES = 1 << 16
_SAMPLE_WORDS = ffi.sizeof("atos_sample") // 8


class LaunchOptions(TypedDict, total=False):
    """Options of `Queue.launch_thread`, `launch_warp` and `launch_cta`, which `bfs`, `pagerank` and `color` take too.

    A type checker that knows them sees a misspelt option, or a value of the wrong type, before the program runs. A function
    of yours that hands options on shows them in the same way: ``**options: Unpack[atos.LaunchOptions]``.

    Attributes
    ----------
    idle : callable, optional
        ``idle(worker, *args)``, run by a worker that finds nothing to do. It may push. The launch then ends when no task
        is unfinished and a whole round of idle calls, one by each worker, begun after that, has pushed nothing.
    each_round : callable, optional
        ``each_round(worker, *args)``, run by one worker after every round of a launch with ``barrier=True``, before the next
        one opens. It may read ``worker.pending``, the number of items that wait for it, push, call
        ``worker.set_mode(integer)``, which every worker reads as ``worker.mode`` from then on, and ``worker.stop()``. The
        launch ends when the round and this function have pushed nothing, and the calls of `idle` after that.
    persistent : bool
        One resident kernel whose workers stay until the end (default), or kernels that the host launches over what the
        queue holds.
    barrier : bool
        Whether what is pushed runs only after all that was there before (bulk-synchronous). Off by default.
    fetch_size : int
        Items that a worker takes at once, at most, up to 4,096; by default 1 for threads, 32 for warps, 128 for CTAs.
    num_blocks : int or 'auto'
        Blocks; by default ('auto') as many as are resident at once, or in a discrete launch as there are items for, if that
        is less. On the CPU the number of threads, of each device; by default one for each core.
    num_threads : int
        Threads of a block, a multiple of 32 up to 1,024; by default 256. Not for the CPU, where a worker has one.
    shared_memory : int
        Bytes of scratch for each worker, up to what a multiprocessor has, and 1 MiB; needed by tasks that take
        ``worker.scratch(dtype)`` without a number of elements.
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

    Examples
    --------
    >>> @atos.task
    ... def mark(worker, v, seen):
    ...     seen[v] = 1
    >>> options: atos.LaunchOptions = {"fetch_size": 32, "barrier": True}
    >>> seen, queue = atos.zeros(4, dtype=np.int32), atos.Queue(capacity=10)
    >>> queue.push([0, 2])
    >>> print(queue.launch_warp(mark, seen, **options).schedule)
    persistent, barrier
    """

    idle: Callable[..., Any] | None
    each_round: Callable[..., Any] | None
    persistent: bool
    barrier: bool
    fetch_size: int | None
    num_blocks: int | Literal["auto"] | None
    num_threads: int | None
    shared_memory: int
    stream: Any
    device: Device | str | None
    timeout: float | None
    trace: float | None
    progress: bool | Callable[[int, float, int], Any]
    debug: bool | None


class PlannedLaunch(NamedTuple):
    """A launch that is still to come."""

    queue: LaunchedQueue
    worker: str
    task: Task | Sequence[Task]
    args: tuple[Any, ...]
    options: LaunchOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchConfig:
    """The checked options of one launch, with the default of each that was not given.

    Attributes
    ----------
    worker : str
        "thread", "warp" or "cta".
    num_blocks : int
        0 for as many as are resident at once.
    num_threads : int
        1 on the CPU.
    stream : object
        As it was given: the default depends on the arguments.
    sample_interval : int
        Nanoseconds between samples of a trace; 0 for no trace.

    The others are those of `LaunchOptions`.
    """

    worker: str
    idle: Callable[..., Any] | None
    each_round: Callable[..., Any] | None = field(repr=False)  # whose text has an address, in which processes differ
    persistent: bool
    barrier: bool
    fetch_size: int
    num_blocks: int
    num_threads: int
    shared_memory: int
    stream: Any
    timeout: float | None = field(repr=False)  # processes may differ in it
    sample_interval: int
    progress: bool | Callable[[int, float, int], Any]
    debug: bool

    @classmethod
    def from_options(cls, worker: str, device: Device, options: LaunchOptions) -> LaunchConfig:
        """Check what a caller gave for a launch of `worker` on `device`.

        Raises
        ------
        UnsupportedTypeError
            If there is no such option, or a value is of a wrong type.
        InvalidArgumentError
            If a value is out of range.
        LaunchConfigError
            If the launch is to run on another device, or a block would have a part of a warp.
        """
        check_option_names("a launch", options, LaunchOptions.__annotations__)
        where, idle, timeout = options.get("device"), options.get("idle"), options.get("timeout")
        fetch_size, blocks, threads = options.get("fetch_size"), options.get("num_blocks"), options.get("num_threads")
        trace, debug = options.get("trace"), options.get("debug")
        is_auto = isinstance(blocks, str) and blocks == "auto"
        if where is not None and device_of(where) != device:
            raise LaunchConfigError(f"the queue is on {device} and cannot run on {where}; make a queue there")
        num_threads = _DEFAULT_THREADS if threads is None else check_int("num_threads", threads, 1, 1024)
        if num_threads % 32:
            raise LaunchConfigError(f"num_threads must be a multiple of 32, at most 1024 (got {num_threads})")
        each_round = options.get("each_round")
        for name, function in (("idle", idle), ("each_round", each_round)):
            if function is not None and not (callable(function) and isinstance(function, Hashable)):
                raise UnsupportedTypeError(f"{name} must be a function of the worker and the arguments (got {function!r:.80})")
        if trace is not None and not check_float("trace", trace) > 0:
            raise InvalidArgumentError(f"trace must be a number of microseconds above 0 (got {trace})")
        if timeout is not None:
            check_timeout(timeout)
        return cls(
            worker=worker,
            idle=idle,
            each_round=each_round,
            persistent=check_bool("persistent", options.get("persistent", True)),
            barrier=check_bool("barrier", options.get("barrier", False)),
            fetch_size=(
                _DEFAULT_FETCH_SIZE[worker] if fetch_size is None else check_int("fetch_size", fetch_size, 1, _MAX_FETCH_SIZE)
            ),
            num_blocks=0 if blocks is None or is_auto else check_int("num_blocks", blocks, 1, 2**31 - 1),
            num_threads=num_threads if device.kind == "cuda" else 1,
            shared_memory=check_int("shared_memory", options.get("shared_memory", 0), 0, 1 << 20),
            stream=options.get("stream"),
            timeout=timeout,
            sample_interval=0 if trace is None else min(max(round(trace * 1e3), 1), 2**32 - 1),
            progress=check_progress(options.get("progress", False)),
            debug=_read_debug_default() if debug is None else check_bool("debug", debug),
        )


def run_launch(
    queue: LaunchedQueue,
    form_for: Callable[[tuple[str, ...]], Form],
    worker: str,
    task: Task | Sequence[Task],
    args: tuple[Any, ...],
    options: LaunchOptions,
) -> LaunchStats:
    """Run a queue's tasks, and return what there is to say of that; see `Queue.launch_cta` and `prepare_launch`."""
    while (stats := prepare_launch(queue, form_for, worker, task, args, options)()) is None:
        pass
    return stats


def prepare_launch(
    queue: LaunchedQueue,
    form_for: Callable[[tuple[str, ...]], Form],
    worker: str,
    task: Task | Sequence[Task],
    args: tuple[Any, ...],
    options: LaunchOptions,
    mailbox: Mailbox | None = None,
) -> Callable[[], LaunchStats | None]:
    """Check and compile a launch, and return the function that runs it, in any thread, once.

    That function returns None if another thread has changed the form of the queue: nothing was done then, and the launch has to
    be prepared again.

    Parameters
    ----------
    queue : Queue
    form_for : callable
        Returns the form that the queue takes for tasks of these names.
    worker : str
        "thread", "warp" or "cta".
    task : Task or sequence of Task
    args : tuple
        The arguments of the task.
    options : LaunchOptions
        As the caller gave them.
    mailbox : Mailbox, optional
        For items that the host sends while the workers run.
    """
    begin = time.perf_counter()
    config = LaunchConfig.from_options(worker, queue.device, options)
    tasks = check_tasks(task)
    names = tuple(member.name for member in tasks)
    if mailbox is not None and (config.barrier or not config.persistent):
        raise LaunchConfigError(
            "a launch that takes items while it runs is persistent and has no barrier"
            f" (got persistent={config.persistent}, barrier={config.barrier}); leave both out"
        )
    if mailbox is not None and queue.buckets is not None:
        raise LaunchConfigError(
            "a launch that takes items while it runs has a queue without priorities"
            f" (got one with buckets={queue.buckets}); make the queue without buckets="
        )
    if queue.ownership is not None:
        check_peer_launch(config, mailbox is not None, queue.ownership)
    arguments = prepare_arguments(args, queue.device, queue.ownership)
    on_gpu = queue.device.kind == "cuda"
    stream = launch_stream(config.stream, arguments.values, queue.device) if on_gpu or config.stream is not None else 0
    form = form_for(names)
    if mailbox is not None:
        mailbox.open(form, names)
    launched = tasks[0] if form.kinds is None else Tasks(tasks)
    observer = make_observer(config.progress, launched.name)
    programs = _load_programs(queue, launched, arguments, config, mailbox is not None)
    program = programs[0]
    sized = _check_scratch(launched, program, config, on_gpu)
    _check_rounds(launched, program, config)
    most = _MAX_SAMPLES * len(programs) if config.sample_interval else 0
    samples = zeros((most, _SAMPLE_WORDS), dtype=np.uint64, device=queue.device) if most else None
    words = ffi.new("uint64_t[]", arguments.words or [0])
    launch = ffi.new(
        "atos_launch *",
        {
            "worker": WORKER_KINDS[worker],
            "persistent": config.persistent,
            "barrier": config.barrier,
            "fetch": config.fetch_size,
            "blocks": config.num_blocks,
            "threads": config.num_threads,
            "scratch": config.shared_memory,
            "sized_scratch": sized,
            "nested": launched.nested,
            "value_words": program.value_words,
            "idle": config.idle is not None,
            "buckets": queue.buckets is not None,
            "each_round": config.each_round is not None,
            "kinds": program.num_kinds,
            "argument_words": len(arguments.words),
            "arguments": words,
            "stream": ffi.cast("void *", stream if on_gpu else 0),
            "samples": ffi.NULL if samples is None else ffi.cast("atos_sample *", samples.pointer),
            "max_samples": 0 if samples is None else _MAX_SAMPLES,
            "sample_interval": config.sample_interval,
            "timeout": 0.0 if config.timeout is None else config.timeout,
            "poll_callback": ffi.NULL,  # of the thread that runs it
            "progress": observer is not None,
            "mailbox": ffi.NULL if mailbox is None else mailbox.handle,
            **arguments.in_core(),
        },
    )

    def run() -> LaunchStats | None:
        if queue.ownership is not None:
            agree_on_launch(queue.ownership, launched.name, config)
        launch.poll_callback = start_callback(observer)
        with annotated(launched.name):
            handles = program.handle if queue.ownership is None else [each.handle for each in programs]
            status, stats, devices = form.launch(handles, launch)
        asked = mailbox is not None and mailbox.stopped
        others = [other for other, _, _ in arguments.receivers]
        check_end(queue, launched, program, status, stats, config.timeout, (arguments, words, samples, mailbox), asked, others)
        arguments.check_pools(launched.name)
        return None if is_replaced(status) else _report(queue, launched, config, program, stats, devices, samples, begin)

    return run


def _program_key(
    queue: LaunchedQueue, launched: Launchable, arguments: Arguments, config: LaunchConfig, mailbox: bool = False
) -> tuple[Any, ...]:
    """Return the parameters of `program_for`."""
    where = queue.device, queue.dtype, config.worker, config.num_threads
    peers = queue.ownership is not None and queue.ownership.on_gpus
    options = config.debug, queue.buckets is not None, config.each_round, mailbox, peers
    return launched, config.idle, arguments.kinds, *where, *options


def _load_programs(
    queue: LaunchedQueue, launched: Launchable, arguments: Arguments, config: LaunchConfig, mailbox: bool
) -> list[Program]:
    """Return the program of a launch, for each device of the queue that is in this process."""
    first, idle, kinds, _, *rest = _program_key(queue, launched, arguments, config, mailbox)
    devices = [queue.device] if queue.ownership is None else [queue.ownership.devices[k] for k in queue.ownership.here]
    return [program_for(first, idle, kinds, device, *rest) for device in devices]


def compile_ahead(launches: Iterable[PlannedLaunch]) -> None:
    """Compile and link the programs of launches to come, of queues whose items have no kinds so far.

    Numba compiles one task at a time. On a GPU those that it has compiled are linked meanwhile, each by a thread. On the CPU
    nothing is linked, and so nothing gained.
    """
    keys: dict[tuple[Any, ...], None] = {}  # in the order of the launches
    with_kinds: dict[int, bool] = {}  # of each queue
    for queue, worker, task, args, options in launches:
        config = LaunchConfig.from_options(worker, queue.device, options)
        tasks = check_tasks(task)
        with_kinds[id(queue)] = with_kinds.get(id(queue), False) or len(tasks) > 1  # from then on
        launched = Tasks(tasks) if with_kinds[id(queue)] else tasks[0]
        keys[_program_key(queue, launched, prepare_arguments(args, queue.device), config)] = None
    with threads(max(len(keys), 1)) as pool:
        list(pool.map(lambda key: program_for(*key), keys))


def _check_scratch(task: Launchable, program: Program, config: LaunchConfig, on_gpu: bool) -> int:
    """Return the bytes of scratch that the task sizes, of a worker, and refuse a launch that cannot give what it takes."""
    if config.shared_memory < program.scratch_itemsize:
        raise LaunchConfigError(
            f"task {task.name!r}, its idle function or a helper takes worker.scratch of elements of"
            f" {program.scratch_itemsize} bytes, but the launch gives each worker {config.shared_memory} bytes;"
            " pass shared_memory=, the size of the scratch in bytes, or in the task the number of elements, as in"
            " worker.scratch(np.int32, 16)"
        )
    threads = {"thread": 1, "warp": 32, "cta": config.num_threads}[config.worker] if on_gpu else 1
    sized = sized_scratch(program.sized_scratch, threads)
    if sized > MOST_BYTES:
        raise LaunchConfigError(
            f"task {task.name!r}, its idle function or a helper takes {sized} bytes of scratch for each worker of {threads}"
            f" threads, more than {MOST_BYTES}; take fewer elements, or launch workers of fewer threads"
        )
    return sized


def _check_rounds(task: Launchable, program: Program, config: LaunchConfig) -> None:
    """Refuse a launch without barriers, and so without rounds, whose task asks for them."""
    if config.barrier or not (program.asks_for_round or config.each_round):
        return
    what = "uses worker.round or worker.mode" if program.asks_for_round else "comes with a function each_round"
    raise TaskCompileError(f"task {task.name!r} {what}, but a launch without barriers has no rounds; pass barrier=True")


def _report(
    queue: LaunchedQueue,
    task: Launchable,
    config: LaunchConfig,
    program: Program,
    stats: Any,
    devices: tuple[DeviceStats, ...],
    samples: Array | None,
    begin: float,
) -> LaunchStats:
    """Return the statistics of a launch from those of the core; it began at `begin`, by `time.perf_counter`."""
    waits_for_items = config.persistent and not config.barrier
    members = tasks_of(task)
    counts = list(stats.tasks_run_by) if len(members) > 1 else [stats.tasks_run]
    return LaunchStats(
        tasks_run=stats.tasks_run,
        tasks_pushed=stats.tasks_pushed,
        tasks_run_by={member.name: count for member, count in zip(members, counts, strict=False)},
        milliseconds=stats.milliseconds,
        rounds=stats.rounds,
        task=task.name,
        device=", ".join(each.device for each in devices) or str(queue.device),
        worker=config.worker,
        fetch_size=config.fetch_size,
        persistent=config.persistent,
        barrier=config.barrier,
        num_blocks=stats.blocks,
        num_threads=stats.threads,
        num_workers=stats.workers,
        overhead_bytes=stats.overhead_bytes,
        grown=stats.grown,
        stopped=bool(stats.stopped),
        trace=None if samples is None else trace_of(samples, stats, devices, waits_for_items),
        profile=profile_of(begin, stats.milliseconds, stats.copy_milliseconds),
        launches=1 if config.persistent else stats.rounds,
        registers=program.registers,
        devices=devices,
    )


def _read_debug_default() -> bool:
    """Return whether launches have checks if they do not say, by the environment."""
    value = os.environ.get("ATOS_DEBUG", "")
    if value not in ("", "0", "1"):
        raise InvalidArgumentError(f"the environment variable ATOS_DEBUG is 0 or 1 (got {value!r})")
    return value == "1"
