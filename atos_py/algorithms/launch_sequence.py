"""The launches of one call of an algorithm: items pushed and tasks run on one queue, one time limit, joint statistics."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..arrays.array import Array, zeros
from ..arrays.memory import clear_bytes
from ..arrays.record import begin_record, new_record
from ..compile.kinds import launchable
from ..compile.spec import ProgramSpec
from ..compile.task import Task
from ..core.devices import Device
from ..errors import LaunchTimeoutError
from ..operators.edge_map import THREAD_MAX_DEGREE
from ..operators.ranges import range_items
from ..operators.row_map import row_items
from ..runtime.experiment import join_experiments
from ..runtime.launch import PreparedLaunch
from ..runtime.launch_options import LaunchOptions
from ..runtime.launch_plan import LaunchPlan, compile_ahead
from ..runtime.queue import Queue
from ..runtime.stats import LaunchStats
from ..support.validation import check_timeout
from .kept_launches import KeptQueue

__all__ = ["LaunchSequence"]

_T = TypeVar("_T")
_WATCHING = {"timeout", "trace", "progress"}
_NOTHING: LaunchOptions = {}
_SOON = 1e-9  # seconds
_LINKS = {"cuda"}  # devices for which programs are linked
_compiled: set[Hashable] = set()  # by this process, ahead of launches


class LaunchSequence:
    """Launches on one queue with a user's options, of which `timeout` is for all of them together.

    Parameters
    ----------
    name : str
        The function that the user called.
    queue : Queue or KeptQueue
        A `KeptQueue` comes from `take_queue` for these options and this worker, and `finish` hands it back.
    options : LaunchOptions
        Those of the user.
    worker : str or None
        The worker that the user chose, if any; otherwise each launch has the one that suits its task.
    maps : Queue or KeptQueue, optional
        For launches over vertices, in place of `queue`: where that holds several kinds of tasks, whose items are larger, or is
        large itself, it would be made anew for a launch of one task.

    Attributes
    ----------
    runs : list of LaunchStats
        Of the launches so far.
    """

    def __init__(
        self,
        name: str,
        queue: Queue | KeptQueue,
        options: LaunchOptions,
        worker: str | None = None,
        maps: Queue | KeptQueue | None = None,
    ) -> None:
        self.name, self.options, self.worker = name, options, worker
        self._kept: dict[Queue, KeptQueue] = {}
        for each in queue, maps:
            if isinstance(each, KeptQueue):
                self._kept[each.queue] = each
        self.queue: Queue = queue.queue if isinstance(queue, KeptQueue) else queue
        self.maps: Queue = self.queue if maps is None else maps.queue if isinstance(maps, KeptQueue) else maps
        self.runs: list[LaunchStats] = []
        timeout = options.get("timeout")
        limit = math.inf if timeout is None else check_timeout(timeout)
        self.end = None if limit == math.inf else time.monotonic() + limit

    def launch(
        self,
        items: NDArray[Any] | range,
        task: Task | Sequence[Task],
        *args: Any,
        worker: str = "cta",
        defaults: LaunchOptions = _NOTHING,
        overrides: LaunchOptions = _NOTHING,
        on: Queue | None = None,
    ) -> None:
        """Push items and run a task on them, or several, the first of which is theirs; on another queue if one is given.

        Options of the user take the place of `defaults`, and `overrides` that of the user's.
        """
        queue = self.queue if on is None else on
        first = None
        if not isinstance(task, Task):
            queue._prepare_kinds(task)
            first = task[0]
        if isinstance(items, range):  # which fit
            queue._core.push(items, None if first is None else first.name)
        else:
            queue.push(items, task=first)
        kept = self._kept.get(queue)
        if kept is not None and self.end is None:
            self.runs.append(self._prepared(kept, task, args, worker, defaults, overrides)._run_with(*args))
            return
        options = self._join(defaults, overrides)
        if self.end is not None:
            left = self.end - time.monotonic()
            if left <= 0 and queue._site.group is None:
                raise self._over(len(queue))
            options["timeout"] = max(left, _SOON)  # of several processes others may have time: all begin, and stop together
        try:
            self.runs.append(queue.launch(task, *args, worker=self.worker or worker, **options))
        except LaunchTimeoutError as error:
            if self.end is None or error.stuck:
                raise
            raise self._over(error.pending) from error

    def _join(self, defaults: LaunchOptions, overrides: LaunchOptions) -> LaunchOptions:
        """Return the options of a launch, with an experiment of the user's in which `defaults` fill what it leaves open."""
        options: LaunchOptions = {**defaults, **self.options, **overrides}
        if "experiment" in defaults:
            options["experiment"] = join_experiments(defaults["experiment"], self.options.get("experiment"))
        return options

    def _prepared(
        self,
        kept: KeptQueue,
        task: Task | Sequence[Task],
        args: tuple[Any, ...],
        worker: str,
        defaults: LaunchOptions,
        overrides: LaunchOptions,
    ) -> PreparedLaunch:
        """Return a launch on a queue that is kept: as one of a call before it, or prepared now."""
        key = task, worker, *defaults.items(), *overrides.items()
        found = kept.prepared.get(key)
        if found is None:
            options = self._join(defaults, overrides)
            found = kept.prepared[key] = kept.queue.prepare(task, *args, worker=self.worker or worker, **options)
        return found

    def finish(self) -> None:
        """Keep the queues for the next call that are to be kept, if they are empty and have not grown."""
        if self._kept:
            for run in self.runs:
                if run.grown or (run.stopped and len(self.queue)):
                    return
            for each in self._kept.values():
                each.hand_back()

    def workspace(self, name: Hashable, make: Callable[[], _T]) -> _T:
        """Return arrays that a call needs while it runs, and not in its result: those of a call before, or new ones.

        Parameters
        ----------
        name : hashable
            Tells apart all that is kept with the queue: arrays for other options, or of other types.
        make : callable
            Returns an array, or a tuple with arrays. What is in them when the call begins is what the last one has left there.
        """
        kept = self._kept.get(self.queue)
        return make() if kept is None else kept.workspace(name, make)

    def record(self, kind: type[tuple[Any, ...]], dtype: DTypeLike = np.int64, **begin: Any) -> Array:
        """Return a record (`arrays.record`) of the workspace, with these words to begin with."""
        state = self.workspace((kind, dtype), lambda: new_record(kind, self.queue.device, dtype))
        begin_record(kind, state, **begin)
        return state

    def over_vertices(self, task: Task, n: int, *args: Any) -> None:
        """Run a vertex map (`operators.vertex_map`) over n vertices."""
        self.launch(range_items(n), task, n, *args, on=self.maps)

    def over_rows(self, task: Task, n: int, *args: Any, each_round: Callable[..., Any] | None = None) -> None:
        """Run a task with rounds over ranges of n vertices, whose rows it maps by degree (`operators.row_map`)."""
        device = self.queue.device
        items, size = row_items(n, device)
        rounds: LaunchOptions = {"barrier": True} if each_round is None else {"barrier": True, "each_round": each_round}
        self.launch(items, task, size, THREAD_MAX_DEGREE[device.kind], *args, overrides=rounds)

    def sums(self, task: Task, n: int, *args: Any) -> list[float]:
        """Run a vertex map that adds up numbers, and return the sums."""
        totals = self.zeroed_totals()
        self.over_vertices(task, n, totals, *args)
        return list(map(float, totals.to_numpy()))

    def zeroed_totals(self) -> Array:
        """Return the memory for sums, which are 0."""
        clear_bytes(self.totals.device, self.totals.pointer, self.totals.nbytes)
        return self.totals

    @functools.cached_property
    def totals(self) -> Array:
        """Memory for sums."""
        return self.workspace("totals", lambda: zeros(3, dtype=np.float64, device=self.queue.device))

    def compile_ahead(self, variant: Hashable, plan: Callable[[LaunchSequence], object]) -> None:
        """Have the tasks of launches to come linked side by side, the first time that this process makes them on a GPU.

        Parameters
        ----------
        variant : hashable
            Tells apart calls of the algorithm whose launches have other tasks, or arguments of other types.
        plan : callable
            Makes those launches on the sequence that it is given, which records them.
        """
        if self.queue.device.kind not in _LINKS:
            return
        options = repr([self.options.get(name) for name in ("num_threads", "debug")])  # not checked yet: maybe no keys
        key = self.name, self.worker, self.queue.device, self.queue.dtype, options, variant
        if key in _compiled:
            return
        recorder = _Recorder(self)
        plan(recorder)
        compile_ahead(list(recorder.programs))
        _compiled.add(key)

    def launch_planned(self, variant: Hashable, plan: Callable[[LaunchSequence], _T]) -> _T:
        """Make all launches of a call, with their tasks compiled ahead (`compile_ahead`), and return what the plan returns."""
        self.compile_ahead(variant, plan)
        result = plan(self)
        self.finish()
        return result

    def prepare(self, task: Task, *args: Any, worker: str = "cta") -> None:
        """Have a task compiled that this call did without and a later one may need, by a launch of nothing that is not counted.

        So one call warms up for all others of its kind, whatever its data made of it.
        """
        options: Any = {name: value for name, value in self.options.items() if name not in _WATCHING}
        self.queue.launch(task, *args, worker=self.worker or worker, **options)

    def total(self, task: str | None = None, like: LaunchStats | None = None) -> LaunchStats:
        """Return the statistics of all launches as those of one.

        A task of an algorithm stops a launch when all is done, and leaves nothing: to its caller that is the usual end.
        """
        if len(self.runs) == 1 and like is None:
            (found,) = self.runs
            found.task = found.task if task is None else task
        else:
            found = LaunchStats.total(self.runs, task=task, like=like)
        found.stopped = False
        return found

    def _over(self, pending: int | None) -> LaunchTimeoutError:
        text = f"{self.name} took longer than its timeout of {self.options['timeout']} s; nothing of the result is kept"
        return LaunchTimeoutError(text, pending=pending, stuck=False)


class _Recorder(LaunchSequence):
    """A sequence that makes no launches, and records which they would be: what they compute is not there then."""

    def __init__(self, launches: LaunchSequence) -> None:
        super().__init__(launches.name, launches.queue, launches.options, launches.worker, launches.maps)
        self.programs: dict[tuple[ProgramSpec, Device], None] = {}  # in the order of the launches
        self._have_kinds: set[int] = set()  # queues whose items have kinds from some launch on

    def launch(
        self,
        items: NDArray[Any] | range,
        task: Task | Sequence[Task],
        *args: Any,
        worker: str = "cta",
        defaults: LaunchOptions = _NOTHING,
        overrides: LaunchOptions = _NOTHING,
        on: Queue | None = None,
    ) -> None:
        """Record a launch."""
        queue = self.queue if on is None else on
        plan = LaunchPlan(queue, self.worker or worker, task, self._join(defaults, overrides))
        if len(plan.tasks) > 1:
            self._have_kinds.add(id(queue))
        launched = launchable(plan.tasks, with_kinds=id(queue) in self._have_kinds)
        arguments = queue._site.arguments(args, queue.device, queue._site.owner)
        self.programs[plan.spec(queue, arguments, launched), queue.device] = None
        self.runs.append(_NOTHING_RAN)


_NOTHING_RAN = LaunchStats(0, 0, 0.0, 1, "", "", "cta", 1, True, True, 0, 0, 0)
