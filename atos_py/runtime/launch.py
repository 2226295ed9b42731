"""One launch: its program, and the call of the core that runs the queue's tasks."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..arrays.array import Array, zeros
from ..arrays.streams import launch_stream
from ..compile.host_kernels import threads
from ..compile.kinds import Launchable, check_tasks, launchable, tasks_of
from ..compile.program import WORKER_KINDS, Program, program_for, register_limits
from ..compile.scratch import MOST_BYTES, sized_scratch
from ..compile.short_traceback import ends_in_task
from ..compile.spec import ProgramSpec
from ..compile.task import Task
from ..compile.timing import annotated, profile_of
from ..compile.versions import current_version
from ..core.devices import Device
from ..core.library import ffi
from ..errors import LaunchConfigError, TaskCompileError
from .callbacks import start_callback
from .core_queue import Form, is_replaced
from .host_rounds import check_host_launch, run_by_rounds
from .launch_arguments import Arguments, prepare_arguments
from .launch_errors import LaunchedQueue, check_end
from .launch_options import LaunchConfig, LaunchOptions
from .mailbox import Mailbox
from .peer_queues import agree_on_launch, check_peer_launch
from .progress import make_observer
from .stats import COUNTED, DeviceStats, LaunchStats
from .trace import trace_of

__all__ = ["PlannedLaunch", "compile_ahead", "prepare_launch", "run_launch"]

_MAX_SAMPLES = 1 << 16
_SAMPLE_WORDS = ffi.sizeof("atos_sample") // 8
_LAUNCH, _WORDS = ffi.typeof("atos_launch *"), ffi.typeof("uint64_t[]")  # parsed once
# What `_fill_launch` looks at, of a config, beside what a program is compiled for.
_options_of = operator.attrgetter(
    *("persistent", "barrier", "fetch_size", "num_blocks", "shared_memory", "local_items", "push_buffer", "work_sharing"),
    *("streams", "sample_interval"),
)


class PlannedLaunch(NamedTuple):
    """A launch that is still to come."""

    queue: LaunchedQueue
    worker: str
    task: Task | Sequence[Task]
    args: tuple[Any, ...]
    options: LaunchOptions


@ends_in_task
def run_launch(
    queue: LaunchedQueue,
    form_for: Callable[[tuple[str, ...]], Form],
    worker: str,
    task: Task | Sequence[Task],
    args: tuple[Any, ...],
    options: LaunchOptions,
) -> LaunchStats:
    """Run a queue's tasks, and return what there is to say of that; see `Queue.launch_cta` and `prepare_launch`."""

    def run() -> LaunchStats:
        while (stats := prepare_launch(queue, form_for, worker, task, args, options)()) is None:
            pass
        return stats

    if queue.places is None:
        return run()
    name = " and ".join(each.name for each in check_tasks(task))
    check_host_launch(name, options)
    return run_by_rounds(queue, name, args, run)


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
    device, ownership = queue.device, queue.ownership
    config = LaunchConfig.from_options(worker, device, options, task)
    tasks = check_tasks(task)
    names = tuple([member.name for member in tasks])
    if mailbox is not None:
        _check_mailbox(queue, config)
    if ownership is not None and not ownership.is_alone:
        check_peer_launch(config, mailbox is not None)
    arguments = prepare_arguments(args, device, ownership, queue.places)
    if config.debug:
        arguments.check_overlaps()
    on_gpu = device.kind == "cuda"
    stream = launch_stream(config.stream, arguments.values, device) if on_gpu or config.stream is not None else 0
    form = form_for(names)
    if mailbox is not None:
        mailbox.open(form, names)
    launched = launchable(tasks, form.kinds is not None)
    observer = make_observer(config.progress, launched.name)
    programs = _load_programs(queue, launched, arguments, config, mailbox is not None)
    program = programs[0]
    key = _options_of(config)
    filled = program.launches.get(key)
    if filled is None:
        filled = program.launches[key] = _fill_launch(queue, launched, program, config)
    most = _MAX_SAMPLES * len(programs) if config.sample_interval else 0
    samples = zeros((most, _SAMPLE_WORDS), dtype=np.uint64, device=device) if most else None
    words = ffi.new(_WORDS, arguments.words or [0])
    launch = ffi.new(_LAUNCH, filled[0])  # a copy
    launch.argument_words, launch.arguments = len(arguments.words), words
    if stream and on_gpu:
        launch.stream = ffi.cast("void *", stream)
    if samples is not None:
        launch.samples = ffi.cast("atos_sample *", samples.pointer)
    if config.timeout is not None:
        launch.timeout = config.timeout
    launch.progress = observer is not None
    if mailbox is not None:
        launch.mailbox = mailbox.handle
    arguments.tell(launch)

    def run() -> LaunchStats | None:
        if ownership is not None:
            agree_on_launch(ownership, launched.name, config)
        launch.poll_callback = start_callback(observer)
        with annotated(launched.name):
            handles = program.handle if ownership is None else [each.handle for each in programs]
            status, stats, devices = form.launch(handles, launch)
        asked = mailbox is not None and mailbox.stopped
        others = [other for other, _, _ in arguments.receivers]
        check_end(queue, launched, program, status, stats, config.timeout, (arguments, words, samples, mailbox), asked, others)
        arguments.check_pools(launched.name)
        return None if is_replaced(status) else _report(queue, launched, config, program, stats, devices, samples, begin)

    return run


def _check_mailbox(queue: LaunchedQueue, config: LaunchConfig) -> None:
    """Refuse what a launch that takes items while it runs cannot do."""
    if config.barrier or not config.persistent:
        raise LaunchConfigError(
            "a launch that takes items while it runs is persistent and has no barrier"
            f" (got persistent={config.persistent}, barrier={config.barrier}); leave both out"
        )
    if queue.buckets is not None:
        raise LaunchConfigError(
            "a launch that takes items while it runs has a queue without priorities"
            f" (got one with buckets={queue.buckets}); make the queue without buckets="
        )
    if queue.places is not None:
        raise LaunchConfigError("a launch over several hosts has no start(); call launch_thread, launch_warp or launch_cta")


def _spec_of(
    queue: LaunchedQueue, launched: Launchable, arguments: Arguments, config: LaunchConfig, mailbox: bool = False
) -> ProgramSpec:
    """Return what the program of a launch is compiled for."""
    return ProgramSpec(
        current_version(launched, config.idle, config.each_round),
        config.idle,
        arguments.kinds,
        queue.dtype,
        worker=config.worker,
        max_registers=register_limits(config.num_threads),
        debug=config.debug,
        buckets=queue.buckets is not None,
        each_round=config.each_round,
        mailbox=mailbox,
        peers=queue.ownership is not None and queue.ownership.over_gpus,
        counters=config.counters,
    )


def _load_programs(
    queue: LaunchedQueue, launched: Launchable, arguments: Arguments, config: LaunchConfig, mailbox: bool
) -> list[Program]:
    """Return the program of a launch, for each device of the queue that is in this process."""
    spec = _spec_of(queue, launched, arguments, config, mailbox)
    if queue.ownership is None:
        return [program_for(spec, queue.device)]
    return [program_for(spec, queue.ownership.devices[k]) for k in queue.ownership.here]


def compile_ahead(launches: Iterable[PlannedLaunch]) -> None:
    """Compile and link the programs of launches to come, of queues whose items have no kinds so far.

    Numba compiles one task at a time. On a GPU those that it has compiled are linked meanwhile, each by a thread. On the CPU
    nothing is linked, and so nothing gained.
    """
    specs: dict[tuple[ProgramSpec, Device], None] = {}  # in the order of the launches
    with_kinds: dict[int, bool] = {}  # of each queue
    for queue, worker, task, args, options in launches:
        config = LaunchConfig.from_options(worker, queue.device, options)
        tasks = check_tasks(task)
        with_kinds[id(queue)] = with_kinds.get(id(queue), False) or len(tasks) > 1  # from then on
        launched = launchable(tasks, with_kinds[id(queue)])
        arguments = prepare_arguments(args, queue.device, places=queue.places)
        specs[_spec_of(queue, launched, arguments, config), queue.device] = None
    with threads(max(len(specs), 1)) as pool:
        list(pool.map(lambda each: program_for(*each), specs))


def _fill_launch(queue: LaunchedQueue, launched: Launchable, program: Program, config: LaunchConfig) -> Any:
    """Check the options of a launch against its program, and return what the core is told of all launches with both."""
    sized = _check_scratch(launched, program, config, queue.device.kind == "cuda")
    _check_rounds(launched, program, config)
    return ffi.new(
        "atos_launch *",
        {
            "worker": WORKER_KINDS[config.worker],
            "persistent": config.persistent,
            "barrier": config.barrier,
            "fetch": config.fetch_size,
            "blocks": config.num_blocks,
            "threads": config.num_threads,
            "scratch": config.shared_memory,
            "sized_scratch": sized,
            "nested": launched.nested,
            "value_words": getattr(program.code, "value_words", 0),
            "idle": config.idle is not None,
            "buckets": queue.buckets is not None,
            "each_round": config.each_round is not None,
            "kinds": program.num_kinds,
            "local_items": 0 if config.local_items is None else 1 + config.local_items,
            "push_buffer": 0 if config.push_buffer is None else 1 + config.push_buffer,
            "unshared": not config.work_sharing,
            # From here on nulls are filled in for each launch.
            "argument_words": 0,
            "arguments": ffi.NULL,
            "streams": config.streams,
            "stream": ffi.NULL,
            "samples": ffi.NULL,
            "max_samples": _MAX_SAMPLES if config.sample_interval else 0,
            "sample_interval": config.sample_interval,
            "timeout": 0.0,
            "poll_callback": ffi.NULL,
            "progress": 0,
            "mailbox": ffi.NULL,
            "num_receivers": 0,
            "receivers": [],
            "num_pools": 0,
            "pool_words": [],
            "num_device_words": 0,
            "device_words": [],
        },
    )


def _check_scratch(task: Launchable, program: Program, config: LaunchConfig, on_gpu: bool) -> int:
    """Return the bytes of scratch that the task sizes, of a worker, and refuse a launch that cannot give what it takes."""
    if config.shared_memory < program.code.scratch_itemsize:
        raise LaunchConfigError(
            f"task {task.name!r}, its idle function or a helper takes worker.scratch of elements of"
            f" {program.code.scratch_itemsize} bytes, but the launch gives each worker {config.shared_memory} bytes;"
            " pass shared_memory=, the size of the scratch in bytes, or in the task the number of elements, as in"
            " worker.scratch(np.int32, 16)"
        )
    threads = {"thread": 1, "warp": 32, "cta": config.num_threads}[config.worker] if on_gpu else 1
    sized = sized_scratch(program.code.sized_scratch, threads)
    if sized > MOST_BYTES:
        raise LaunchConfigError(
            f"task {task.name!r}, its idle function or a helper takes {sized} bytes of scratch for each worker of {threads}"
            f" threads, more than {MOST_BYTES}; take fewer elements, or launch workers of fewer threads"
        )
    return sized


def _check_rounds(task: Launchable, program: Program, config: LaunchConfig) -> None:
    """Refuse a launch without barriers, and so without rounds, whose task asks for them."""
    if config.barrier or not (program.code.asks_for_round or config.each_round):
        return
    what = "uses worker.round or worker.mode" if program.code.asks_for_round else "comes with a function each_round"
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
        registers=getattr(program.code, "registers", 0),
        devices=devices,
        **({name: getattr(stats.sharing, name) for name in COUNTED} if config.counters else {}),
    )
