"""The launches of one call of an algorithm: items pushed and tasks run on one queue, one time limit, joint statistics."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.array import Array, zeros
from ..compile.task import Task
from ..errors import LaunchTimeoutError
from ..operators.edge_map import THREAD_MAX_DEGREE
from ..operators.ranges import range_items
from ..operators.row_map import row_items
from ..runtime.launch_options import LaunchOptions
from ..runtime.launch_plan import PlannedLaunch, compile_ahead
from ..runtime.queue import Queue
from ..runtime.stats import LaunchStats
from ..support.validation import check_timeout

__all__ = ["LaunchSequence"]

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
    queue : Queue
    options : LaunchOptions
        Those of the user.
    worker : str or None
        The worker that the user chose, if any; otherwise each launch has the one that suits its task.
    maps : Queue, optional
        For launches over vertices, in place of `queue`: where that holds several kinds of tasks, whose items are larger, or is
        large itself, it would be made anew for a launch of one task.

    Attributes
    ----------
    runs : list of LaunchStats
        Of the launches so far.
    """

    def __init__(
        self, name: str, queue: Queue, options: LaunchOptions, worker: str | None = None, maps: Queue | None = None
    ) -> None:
        self.name, self.queue, self.options, self.worker = name, queue, options, worker
        self.maps = queue if maps is None else maps
        self.runs: list[LaunchStats] = []
        self.planned: list[PlannedLaunch] | None = None  # launches that `compile_ahead` records
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
        options: LaunchOptions = {**defaults, **self.options, **overrides}
        queue = self.queue if on is None else on
        if self.planned is not None:
            self.planned.append(PlannedLaunch(queue, self.worker or worker, task, args, options))
            return
        if isinstance(task, Task):
            queue.push(items)
        else:
            queue._prepare_kinds(task)
            queue.push(items, task=task[0])
        if self.end is not None:
            left = self.end - time.monotonic()
            if left <= 0 and (queue.ownership is None or queue.ownership.group is None):
                raise self._over(len(queue))
            options["timeout"] = max(left, _SOON)  # of several processes others may have time: all begin, and stop together
        try:
            self.runs.append(queue.launch(task, *args, worker=self.worker or worker, **options))
        except LaunchTimeoutError as error:
            if self.end is None or error.stuck:
                raise
            raise self._over(error.pending) from error

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
        if "totals" in self.__dict__:  # otherwise it is new
            self.totals[:] = 0
        return self.totals

    @functools.cached_property
    def totals(self) -> Array:
        """Memory for sums."""
        return zeros(3, dtype=np.float64, device=self.queue.device)

    def compile_ahead(self, variant: Hashable, plan: Callable[[], object]) -> None:
        """Have the tasks of launches to come linked side by side, the first time that this process makes them on a GPU.

        Parameters
        ----------
        variant : hashable
            Tells apart calls of the algorithm whose launches have other tasks, or arguments of other types.
        plan : callable
            Makes those launches on this object, which records them in `planned` instead of running them.
        """
        if self.queue.device.kind not in _LINKS:
            return
        options = repr([self.options.get(name) for name in ("num_threads", "debug")])  # not checked yet: maybe no keys
        key = self.name, self.worker, self.queue.device, self.queue.dtype, options, variant
        if key in _compiled:
            return
        self.planned = []
        try:
            plan()
            compile_ahead(self.planned)
        finally:
            self.planned = None
        _compiled.add(key)

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
        found = LaunchStats.total(self.runs, task=task, like=like)
        return replace(found, stopped=False) if found.stopped else found

    def _over(self, pending: int | None) -> LaunchTimeoutError:
        text = f"{self.name} took longer than its timeout of {self.options['timeout']} s; nothing of the result is kept"
        return LaunchTimeoutError(text, pending=pending, stuck=False)
