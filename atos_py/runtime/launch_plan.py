"""Plans of launches: the options and tasks of a launch checked once, and its program with what the core is told of it.

What differs between two launches of one plan is left to `launch`: arguments, the state of the queue, and changed variables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..compile.best_links import BestLink
from ..compile.host_kernels import threads
from ..compile.kinds import Launchable, check_tasks, launchable
from ..compile.program import WORKER_KINDS, Program, check_worker, program_for, register_limits
from ..compile.scratch import MOST_BYTES, sized_scratch
from ..compile.spec import ProgramSpec
from ..compile.task import Task
from ..compile.versions import Versions, versions_of
from ..core.devices import Device
from ..core.library import ffi
from ..errors import LaunchConfigError, TaskCompileError
from .launch_arguments import Arguments
from .launch_errors import LaunchedQueue
from .launch_options import LaunchConfig, LaunchOptions

__all__ = ["MAX_SAMPLES", "LaunchPlan", "ReadyLaunch", "compile_ahead"]

MAX_SAMPLES = 1 << 16


class ReadyLaunch(NamedTuple):
    """A plan with a program for arguments of certain kinds.

    Attributes
    ----------
    launched : Task or Tasks
    versions : Versions
        Of the tasks.
    version : Task or Tasks
        The one that the program was compiled from.
    spec : ProgramSpec
    programs : list of Program
        One for each device of the queue that is in this process.
    filled : cdata
        What the core is told of all launches with this.
    names : tuple of str
        Those of the tasks.
    device : str
        The device of the queue.
    better : BestLink or None
        Of better kernels, if the programs are of the first tier.
    """

    launched: Launchable
    versions: Versions
    version: Launchable
    spec: ProgramSpec
    programs: list[Program]
    filled: Any
    names: tuple[str, ...]
    device: str
    better: BestLink | None


class LaunchPlan:
    """Checked options, worker and programs of launches of the same tasks on queues of the same device and item type.

    Attributes
    ----------
    config : LaunchConfig
    tasks : tuple of Task
    names : tuple of str
        Those of the tasks.
    ready : dict
        What is ready to be launched, by the kinds of the arguments, whether items have a kind, and whether there is an inbox.
    """

    def __init__(self, queue: LaunchedQueue, worker: str, task: Task | Sequence[Task], options: LaunchOptions) -> None:
        self.config = LaunchConfig.from_options(check_worker(worker), queue._device, options, task)
        if queue._take == "newest":
            _check_newest(self.config)
        self.tasks = check_tasks(task)
        self.names = tuple([member.name for member in self.tasks])
        self.ready: dict[tuple[Any, ...], ReadyLaunch] = {}
        queue._site.check_launch(self.names, self.config, options)

    def check_inbox(self, queue: LaunchedQueue) -> None:
        """Refuse what launches that take items while they run cannot do."""
        _check_inbox(queue, self.config)
        queue._site.check_inbox()

    def spec(self, queue: LaunchedQueue, arguments: Arguments, launched: Launchable, inbox: bool = False) -> ProgramSpec:
        """Return what the program of a launch is compiled for."""
        config = self.config
        return ProgramSpec(
            versions_of(launched, config.idle, config.each_round).current(),
            config.idle,
            arguments.kinds,
            queue._dtype,
            worker=config.worker,
            max_registers=register_limits(config.num_threads),
            debug=config.debug,
            buckets=queue._buckets is not None,
            each_round=config.each_round,
            inbox=inbox,
            peers=queue._site.over_gpus,
            counters=config.experiment.counters,
            newest=queue._take == "newest",
            threads=config.num_threads if queue._device.kind == "cpu" else 1,
        )

    def make_ready(self, queue: LaunchedQueue, arguments: Arguments, with_kinds: bool, inbox: bool) -> ReadyLaunch:
        """Have the program of a launch compiled, linked and loaded, and check the options against it."""
        launched = launchable(self.tasks, with_kinds)
        spec = self.spec(queue, arguments, launched, inbox)
        programs = [program_for(spec, device, self.config.tier == "best") for device in queue._site.here]
        filled = _fill_launch(queue, launched, programs[0], self.config)
        versions = versions_of(launched, self.config.idle, self.config.each_round)
        name, better = str(queue._device), programs[0].better
        ready = ReadyLaunch(launched, versions, spec.task, spec, programs, filled, self.names, name, better)
        self.ready[arguments.kinds, with_kinds, inbox] = ready
        return ready


def compile_ahead(programs: Sequence[tuple[ProgramSpec, Device]]) -> None:
    """Compile and link programs of launches to come.

    Numba compiles one task at a time. On a GPU those that it has compiled are linked meanwhile, each by a thread. On the CPU
    nothing is linked, and so nothing gained.
    """
    with threads(max(len(programs), 1)) as pool:
        list(pool.map(lambda each: program_for(*each), programs))


def _check_newest(config: LaunchConfig) -> None:
    """Refuse a launch in rounds, or of several kernels, of a queue that takes the newest items first."""
    if config.barrier or not config.persistent:
        raise LaunchConfigError(
            'a launch of a queue with take="newest" is persistent and has no barrier'
            f" (got persistent={config.persistent}, barrier={config.barrier}); leave both out, or make the queue without take="
        )


def _check_inbox(queue: LaunchedQueue, config: LaunchConfig) -> None:
    """Refuse what a launch that takes items while it runs cannot do."""
    if config.barrier or not config.persistent:
        raise LaunchConfigError(
            "a launch that takes items while it runs is persistent and has no barrier"
            f" (got persistent={config.persistent}, barrier={config.barrier}); leave both out"
        )
    if queue._buckets is not None:
        raise LaunchConfigError(
            "a launch that takes items while it runs has a queue without priorities"
            f" (got one with buckets={queue._buckets}); make the queue without buckets="
        )


def _fill_launch(queue: LaunchedQueue, launched: Launchable, program: Program, config: LaunchConfig) -> Any:
    """Check the options of a launch against its program, and return what the core is told of all launches with both."""
    sized = _check_scratch(launched, program, config, queue._device.kind == "cuda")
    _check_rounds(launched, program, config)
    experiment = config.experiment
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
            "buckets": queue._buckets is not None,
            "newest": queue._take == "newest",
            "each_round": config.each_round is not None,
            "kinds": program.num_kinds,
            "local_items": 0 if experiment.local_items is None else 1 + experiment.local_items,
            "push_buffer": 0 if experiment.push_buffer is None else 1 + experiment.push_buffer,
            "unshared": not experiment.work_sharing,
            # From here on nulls are filled in for each launch.
            "argument_words": 0,
            "arguments": ffi.NULL,
            "streams": config.streams,
            "stream": ffi.NULL,
            "samples": ffi.NULL,
            "max_samples": MAX_SAMPLES if config.sample_interval else 0,
            "sample_interval": config.sample_interval,
            "timeout": 0.0,
            "poll_callback": ffi.NULL,
            "progress": config.progress is not False,
            "inbox": ffi.NULL,
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
    threads = {"thread": 1, "warp": 32, "cta": config.num_threads}[config.worker] if on_gpu else config.num_threads
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
