"""A launch that is prepared: the call of the core that runs a queue's tasks, again and again."""

from __future__ import annotations

import contextlib
import inspect
import os
import time
from collections.abc import Sequence
from types import FunctionType, NoneType
from typing import Any, NamedTuple

import numpy as np

from ..arrays.array import Array, zeros
from ..arrays.join_kinds import JoinKinds
from ..arrays.streams import launch_stream
from ..compile.best_links import running
from ..compile.program import program_for
from ..compile.recorder import recorders
from ..compile.short_traceback import as_launch
from ..compile.task import Task
from ..compile.timing import Profile, annotated, compilation, nvtx_annotate, profile_of
from ..core.library import ffi, lib
from ..support.memory_cache import find, keep
from ..support.not_copied import NotCopied
from ..support.validation import check_option_names, check_timeout
from .callbacks import run_handlers, start_callback, thread_launch
from .core_queue import Form, is_replaced
from .experiment import OLD_OPTIONS, Experiment, take_old_options
from .inbox import Inbox
from .last_arguments import LastArguments
from .launch_arguments import Arguments
from .launch_errors import LaunchedQueue, check_end
from .launch_options import LaunchConfig, LaunchOptions
from .launch_plan import MAX_SAMPLES, LaunchPlan, ReadyLaunch
from .progress import make_observer
from .race_search import RaceSearch
from .stats import COUNTED, DeviceStats, LaunchStats
from .trace import trace_of
from .waiting import find_waiting

__all__ = ["PreparedLaunch", "launch_once"]

_SAMPLE_WORDS = ffi.sizeof("atos_sample") // 8
# Types of values that can be kept; a program keeps functions too.
_LASTING = {bool, int, float, str, NoneType, FunctionType, Experiment}
_LAUNCH, _WORDS, _STATS = map(ffi.typeof, ("atos_launch *", "uint64_t[]", "atos_stats *"))  # parsed once


class _Filled(NamedTuple):
    """Arguments, program and structs of the core for a launch; none of them changes, so that threads may share the launch."""

    arguments: Arguments
    form: Form
    ready: ReadyLaunch
    launch: Any
    words: Any


_NOT_FILLED: Any = None


class PreparedLaunch(NotCopied):
    """A launch of a queue that was checked and compiled, to be made as often as one likes; `Queue.prepare` makes it.

    Calling it runs what is in the queue then, as `Queue.launch` does with the same arguments: it returns the `LaunchStats`, and
    raises the same errors. It takes a fraction of the time, since nothing is checked again but the global and captured
    variables that the task reads: where one has changed, the task is compiled for the new value. Arrays are used as they are
    at each call. The queue is kept as long as the prepared launch.

    Examples
    --------
    >>> @atos.task
    ... def mark(worker, v, seen, value):
    ...     seen[v] = value
    >>> seen, queue = atos.zeros(4, dtype=np.int32), atos.Queue(capacity=10)
    >>> launch = queue.prepare(mark, seen, 1, worker="thread")
    >>> for v in (0, 2):
    ...     queue.push(v)
    ...     print(launch().tasks_run, seen[:])
    1 [1 0 0 0]
    1 [1 0 1 0]
    """

    _last: LastArguments | None = None
    _not_copied = "a prepared launch has the queue that it is of, and is neither copied nor pickled: call queue.prepare again"

    def __init__(
        self,
        queue: LaunchedQueue,
        worker: str,
        task: Task | Sequence[Task],
        args: tuple[Any, ...],
        options: LaunchOptions,
        inbox: Inbox | None = None,
    ) -> None:
        self._began = time.perf_counter()
        self._queue, self._args, self._inbox = queue, args, inbox
        if not OLD_OPTIONS.isdisjoint(options):
            take_old_options(options)
        self._timeout = options.get("timeout")
        if self._timeout is not None:  # of which there are many values
            check_timeout(self._timeout)
            options = options.copy()
            del options["timeout"]
        self._plan = _plan_for(queue, worker, task, options)
        if inbox is not None:
            self._plan.check_inbox(queue)
        self._filled = self._fill()

    @as_launch
    def __call__(self) -> LaunchStats:
        """Run the queue's tasks, and what they push, until all is done; see `Queue.launch`."""
        return self._queue._site.run(self, time.perf_counter())

    @as_launch
    def rebind(self, **arguments: Any) -> PreparedLaunch:
        """Return the same launch with other arguments, each named as the parameter of the task that it is for.

        Parameters
        ----------
        **arguments
            Of the same types, or else the task is compiled for the new ones.

        Returns
        -------
        PreparedLaunch
            This one stays as it is.

        Raises
        ------
        UnsupportedTypeError
            If the task has no such parameter.
        AtosError
            What `Queue.launch` raises.

        Examples
        --------
        >>> @atos.task
        ... def mark(worker, v, seen, value):
        ...     seen[v] = value
        >>> seen, queue = atos.zeros(4, dtype=np.int32), atos.Queue(capacity=10)
        >>> launch = queue.prepare(mark, seen, 1)
        >>> queue.push([0, 2])
        >>> print(launch.rebind(value=7)().tasks_run, seen[:])
        2 [7 0 7 0]
        """
        task, args = self._plan.tasks[0], list(self._args)
        names = _argument_names(task, len(args))
        check_option_names(f"the task {task.name}", arguments, names)
        for name, value in arguments.items():
            args[names.index(name)] = value
        return self._with(*args)

    def _with(self, *args: Any) -> PreparedLaunch:
        """Return the same launch with these arguments in place of its own."""
        other = PreparedLaunch.__new__(PreparedLaunch)
        other._queue, other._plan, other._inbox, other._args = self._queue, self._plan, self._inbox, args
        other._timeout = self._timeout
        other._filled = other._fill()
        return other

    def _run_with(self, *args: Any) -> LaunchStats:
        """Run the launch with these arguments, of which it keeps none alive: from now on it is good for this alone.

        Words of arguments that are the same as in the call before are left as they are, so it is for one thread at a time.
        """
        begin = time.perf_counter()
        filled, last = self._filled, self._last
        self._args = args
        try:
            if last is None or not last.write_changes(args, filled.arguments.words, filled.words):
                self._filled = filled = self._fill()
                is_kept = filled.arguments.is_steady and not self._plan.config.debug
                self._last = LastArguments(args, self._queue._device) if is_kept else None
                return self._run(begin, filled)
            return self._run(begin)
        finally:
            self._args = ()
            if self._last is None:
                self._filled = _NOT_FILLED
            else:
                self._filled.arguments.values = []

    def __repr__(self) -> str:
        return f"<prepared launch of {', '.join(self._plan.names)} on {self._queue!r}>"

    def _fill(self) -> _Filled:
        """Look at the arguments and at the form of the queue, and return what the core is to be told."""
        queue, plan, inbox = self._queue, self._plan, self._inbox
        arguments = queue._site.arguments(self._args, queue._device, queue._site.owner)
        if plan.config.debug:
            arguments.check_overlaps()
        form = queue._core.form
        if form.kinds != plan.names and (form.kinds is not None or len(plan.names) > 1 or queue._core.is_of_many):
            form = queue._core.for_launch(plan.names)
        if inbox is not None:
            inbox.open(form, plan.names)
        if arguments.joins:
            arguments.check_joins(plan.config)
        ready = plan.ready.get((arguments.kinds, form.kinds is not None, inbox is not None))
        return self._filled_with(arguments, form, ready)

    def _filled_with(self, arguments: Arguments, form: Form, ready: ReadyLaunch | None) -> _Filled:
        """Return what the core is to be told, with a program that is ready or, without one, is made ready."""
        queue, inbox = self._queue, self._inbox
        config, device = self._plan.config, queue._device
        if ready is None:
            ready = self._plan.make_ready(queue, arguments, form.kinds is not None, inbox is not None)
        words = ffi.new(_WORDS, arguments.words or [0])
        launch = ffi.new(_LAUNCH, ready.filled[0])  # a copy
        launch.argument_words, launch.arguments = len(arguments.words), words
        launch.poll_callback = run_handlers
        if self._timeout is not None:
            launch.timeout = self._timeout
        if not arguments.is_steady:
            arguments.tell(launch)
        if config.stream is not None or (device.kind == "cuda" and not arguments.is_steady):
            stream = launch_stream(config.stream, arguments.values, device)
            launch.stream = ffi.cast("void *", stream if device.kind == "cuda" else 0)
        if inbox is not None:
            launch.inbox = inbox.handle
        return _Filled(arguments, form, ready, launch, words)

    def _run(self, begin: float, filled: _Filled | None = None) -> LaunchStats:
        """Run the launch, whose call began at a time by `time.perf_counter`; `filled` is what was looked at since."""
        queue, plan, inbox = self._queue, self._plan, self._inbox
        config = plan.config
        if filled is None:
            filled = self._filled
            if not filled.arguments.is_steady or queue._core.form is not filled.form:
                filled = self._filled = self._fill()
        variables, version = filled.ready.versions.newest
        better = filled.ready.better
        if version is not filled.ready.version or not variables.are_current() or (better is not None and better.is_due()):
            filled = self._filled = self._filled_with(filled.arguments, filled.form, None)
        arguments, form, ready, launch, words = filled
        if recorders:
            program_for(ready.spec, queue._device)
        samples = None
        if config.sample_interval:
            most = MAX_SAMPLES * len(ready.programs)
            samples = zeros((most, _SAMPLE_WORDS), dtype=np.uint64, device=queue._device)
        observer = None if config.progress is False else make_observer(config.progress, ready.launched.name)
        callback = thread_launch.callback if observer is None else start_callback(observer)
        if callback is not run_handlers or samples is not None:
            launch = ffi.new(_LAUNCH, launch[0])  # a copy, since other threads may make this launch
            launch.poll_callback = callback
        if samples is not None:
            launch.samples = ffi.cast("atos_sample *", samples.pointer)
        devices: tuple[DeviceStats, ...] = ()
        search = RaceSearch(queue, config, arguments.values) if config.debug == "races" else None
        held = arguments.hold_joins(ready.launched.name, plan.names, _kinds_in_joins(form)) if arguments.joins else []
        running.append(None)
        try:
            if search is None and type(form) is Form and nvtx_annotate() is None:  # as `Form.launch` does
                stats = ffi.new(_STATS)
                status = lib.atos_queue_launch(form.handle, ready.programs[0].handle, launch, stats)
            else:
                with annotated(ready.launched.name), search or contextlib.nullcontext():
                    status, stats, devices = form.launch([each.handle for each in ready.programs], launch)
        finally:
            running.pop()
            for lock in held:
                lock.release()
        if status or thread_launch.error is not None or observer is not None or arguments.pools:
            asked, used = inbox is not None and inbox.stopped, (self._args, arguments, words, samples, inbox)
            others = [other for other, _, _ in arguments.receivers]
            check_end(queue, ready.launched, ready.programs[0], status, stats, self._timeout, used, asked, others)
            arguments.check_pools(ready.launched.name)
            if is_replaced(status):  # another thread has changed the form of the queue, and nothing was done
                return self._run(begin) if inbox is None else None  # type: ignore[return-value]
        found = _report(ready, config, stats, devices, samples, begin)
        if search is not None:
            search.correct(found)
        checks = ready.programs[0].code.checks
        if checks is not None and not status and not found.stopped:  # after a stop, arrivals are still to come
            found.waiting = find_waiting(arguments.values, checks.counters)
            for joins, position in arguments.joins:
                joins._check_closed(ready.launched, position)
        if search is not None and checks is not None:
            search.check(ready.launched, checks)
        return found


def launch_once(
    queue: LaunchedQueue, worker: str, task: Task | Sequence[Task], args: tuple[Any, ...], options: LaunchOptions
) -> LaunchStats:
    """Run a queue's tasks, and return what there is to say of that; see `Queue.launch`."""
    launch = PreparedLaunch(queue, worker, task, args, options)
    return queue._site.run(launch, launch._began, launch._filled)


def _plan_for(queue: LaunchedQueue, worker: str, task: Task | Sequence[Task], options: LaunchOptions) -> LaunchPlan:
    """Return the plan of launches of a task with these options on queues like this one.

    It is kept in memory, so that a launch like one before finds it by one look.

    Raises
    ------
    AtosError
        What `LaunchConfig.from_options` and `check_tasks` raise.
    """
    # With the types of values, since True is 1, which some options do not take.
    types = tuple(map(type, options.values()))
    if "progress" in options or not _LASTING.issuperset(types):
        return LaunchPlan(queue, worker, task, options)
    tasks = tuple(task) if isinstance(task, list) else task
    key = queue._sort, worker, tasks, types, os.environ.get("ATOS_DEBUG"), *options.items()
    try:
        found: LaunchPlan | None = find(key)
    except TypeError:  # what is no task has no hash
        return LaunchPlan(queue, worker, task, options)
    return found or keep(key, LaunchPlan(queue, worker, task, options))


def _kinds_in_joins(form: Form) -> JoinKinds:
    """Return the kinds of the items that joins push into a queue of a form."""
    return JoinKinds() if form.kinds is None else JoinKinds(form.kinds, form.stride - 1)


def _argument_names(task: Task, count: int) -> list[str]:
    """Return the names of so many arguments of launches of a task: of its last parameters."""
    parameters = inspect.signature(task.body).parameters.values()
    names = [each.name for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return [*names[2:], *[""] * count][:count]  # those that `*args` takes have no names
    return names[len(names) - count :]


def _report(
    ready: ReadyLaunch,
    config: LaunchConfig,
    stats: Any,
    devices: tuple[DeviceStats, ...],
    samples: Array | None,
    begin: float,
) -> LaunchStats:
    """Return the statistics of a launch from those of the core; it began at `begin`, by `time.perf_counter`."""
    launched, program = ready.launched, ready.programs[0]
    took, copied, ran = stats.milliseconds, stats.copy_milliseconds, stats.tasks_run
    trace = None
    if samples is not None:
        trace = trace_of(samples, stats, devices, waits_for_items=config.persistent and not config.barrier)
    if compilation.began < begin:  # the task was ready
        on_host = (time.perf_counter() - begin) * 1e3 - max(took, copied)
        profile = Profile(0.0, 0.0, 0.0, copied, max(on_host, 0.0), max(took - copied, 0.0))
    else:
        profile = profile_of(begin, took, copied)
    found = LaunchStats(
        tasks_run=ran,
        tasks_pushed=stats.tasks_pushed,
        milliseconds=took,
        rounds=stats.rounds,
        task=launched.name,
        device=ready.device if not devices else ", ".join([each.device for each in devices]),
        worker=config.worker,
        fetch_size=config.fetch_size,
        persistent=config.persistent,
        barrier=config.barrier,
        num_blocks=stats.blocks,
        num_threads=stats.threads,
        num_workers=stats.workers,
        overhead_bytes=stats.overhead_bytes,
        grown=stats.grown,
        stopped=stats.stopped != 0,
        trace=trace,
        profile=profile,
        tasks_run_by={launched.name: ran}
        if program.num_kinds == 0
        else dict(zip(ready.names, stats.tasks_run_by, strict=False)),
        launches=1 if config.persistent else stats.rounds,
        registers=getattr(program.code, "registers", 0),
        devices=devices,
        tier="best" if ready.better is None else "first",
    )
    if config.experiment.counters:
        for name in COUNTED:
            setattr(found, name, getattr(stats.sharing, name))
    return found
