"""Statistics of a launch: counts, times and configuration, with their text, table and plot."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..compile.timing import Profile
from ..errors import InvalidArgumentError, MissingPackageError, UnsupportedTypeError
from ..support.shown import format_bytes, html_table
from ..support.validation import check_int
from .trace import TRACE, format_digits, format_rate
from .waiting import WaitingCounters

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["COUNTED", "DeviceStats", "LaunchStats", "find_stats"]

COUNTED = "local_items", "items_donated", "items_split", "chunks_donated"  # with `Experiment.counters`


@dataclass(slots=True)
class DeviceStats:
    """Statistics of one device of a launch over several.

    Attributes
    ----------
    device : str
    tasks_run, tasks_pushed : int
        Tasks that it ran, and items that these pushed, to whatever device.
    num_workers : int
        Its workers.
    grown : int
        Times that its queue grew.
    trace : numpy.ndarray or None
        With the launch option `trace`, its part of `LaunchStats.trace`, by the same clock. Of one launch alone.

    Examples
    --------
    >>> @atos.task
    ... def nothing(worker, v):
    ...     pass
    >>> parts = atos.generate.road(3, 1.0, device="cpu").partition(["cpu:0", "cpu:1"])
    >>> queue = atos.Queue(10, owner=parts)
    >>> queue.push([0, 8])
    >>> stats = queue.launch_thread(nothing, num_blocks=1)
    >>> stats.devices[1]
    DeviceStats(device='cpu:1', tasks_run=1, tasks_pushed=0, num_workers=1, grown=0)
    """

    device: str
    tasks_run: int
    tasks_pushed: int
    num_workers: int
    grown: int
    trace: NDArray[Any] | None = field(default=None, repr=False, compare=False)


@dataclass(slots=True, repr=False)
class LaunchStats:
    """Statistics and configuration of one launch.

    Attributes
    ----------
    tasks_run, tasks_pushed : int
        Items that the task ran on, and items that tasks pushed (those pushed from the host do not count).
    tasks_run_by : dict
        Of the tasks run, those of each task function, by its name.
    milliseconds : float
        From the start of the first kernel to the end of the last, by the device's own clock.
    rounds : int
        With barriers the rounds, scans of a program for its active vertices included; otherwise the kernels launched.
    grown : int
        Times that the queue grew.
    stopped : bool
        Whether a task ended the launch by `worker.stop()`; what was unfinished is in the queue.
    task, device : str
    worker : str
        "thread", "warp" or "cta".
    fetch_size : int
        Items that a worker takes at once, at most.
    persistent, barrier : bool
        The schedule.
    num_blocks, num_threads, num_workers : int
        Blocks launched, threads of each, and workers in all. On the CPU a worker is a thread.
    overhead_bytes : int
        What the core allocated on the device for the queue and the launch beside the queue's slots, of which each takes the
        item's size and at most 8 bytes. What the driver takes for the kernel's code is not in it.
    trace : numpy.ndarray or None
        With the launch option `trace`, a record for each sample of the run: `milliseconds` since the first one, `tasks_run`
        so far, `waiting`, the items in the queue that no worker has taken, and `idle`, the share of the workers that wait
        for items, from 0 to 1; NaN in discrete launches and between barriers, whose workers wait in other ways. Over several
        devices these are sums, at each sample of any of them.
    profile : Profile
        What the call spent its time on.
    launches, registers : int
        Kernels launched, and registers of a thread: the most of all kernels; 0 on the CPU.
    devices : tuple of DeviceStats
        Of a launch over several devices, what each of them did. Otherwise empty.
    local_items, items_donated : int or None
        With ``experiment=atos.Experiment(counters=True)``: items that the worker which pushed them ran itself, without the
        queue, and items that it might have kept as well, and gave to idle workers. None in other launches, as the next two.
    items_split, chunks_donated : int or None
        Likewise: long items whose iterations were split into chunks for all workers, and the chunks that another worker ran
        than the one that had taken the item. None are split on the CPU.
    tier : str
        "first" if a GPU ran the kernel that a task has at once, while the best one was linked; otherwise "best".
    waiting : tuple of WaitingCounters
        With ``debug=True``, the counters of `worker.arrive` that were above zero when all was done, array by array: which ones
        wait, and what each of them lacks. Empty if nothing waits, after a stop, and without ``debug=True``.

    Examples
    --------
    >>> stats = atos.bfs(atos.generate.road(30, 1.0), 0).stats
    >>> print(stats.tasks_run >= 900, stats.worker, stats.schedule)
    True cta persistent, relaxed
    """

    tasks_run: int
    tasks_pushed: int
    milliseconds: float
    rounds: int
    task: str
    device: str
    worker: str
    fetch_size: int
    persistent: bool
    barrier: bool
    num_blocks: int
    num_threads: int
    num_workers: int
    overhead_bytes: int = 0
    grown: int = 0
    stopped: bool = False
    trace: NDArray[Any] | None = field(default=None, compare=False)
    profile: Profile = field(default_factory=Profile)
    tasks_run_by: dict[str, int] = field(default_factory=dict)
    launches: int = 1
    registers: int = 0
    devices: tuple[DeviceStats, ...] = ()
    local_items: int | None = None
    items_donated: int | None = None
    items_split: int | None = None
    chunks_donated: int | None = None
    tier: str = "best"
    waiting: tuple[WaitingCounters, ...] = field(default=(), compare=False)

    def __setstate__(self, state: tuple[None, dict[str, Any]]) -> None:
        """Take the fields that were pickled, but for those that the class has no more."""
        self.waiting, self.tier = (), "best"  # which it had not always
        for name, value in state[1].items():
            if hasattr(type(self), name):
                setattr(self, name, value)

    @classmethod
    def total(cls, runs: Iterable[LaunchStats], task: str | None = None, like: LaunchStats | None = None) -> LaunchStats:
        """Return the statistics of several launches as those of one.

        Tasks, times and rounds are added up, and traces joined as if each launch began when the one before ended. What waits is
        what waited at the end of the last one.

        Parameters
        ----------
        runs : iterable of LaunchStats
            One or more, in the order of time.
        task : str, optional
            What to call them; by default the task of `like`.
        like : LaunchStats, optional
            Whose configuration they are said to have; by default the last.

        Raises
        ------
        InvalidArgumentError
            If there is none, or something else among them.

        Examples
        --------
        >>> graph = atos.generate.road(30, 1.0)
        >>> runs = [atos.bfs(graph, source).stats for source in (0, 450)]
        >>> atos.LaunchStats.total(runs).tasks_run == sum(run.tasks_run for run in runs)
        True
        """
        runs = list(runs) if isinstance(runs, Iterable) else [runs]
        if not runs or not all(isinstance(run, LaunchStats) for run in runs):
            raise InvalidArgumentError(f"runs must be the statistics of one launch or more (got {runs or 'none'!s:.80})")
        like = like or runs[-1]
        if len(runs) == 1 and like is runs[0]:
            return like if task is None or task == like.task else replace(like, task=task)
        milliseconds, tasks_run, tasks_pushed, rounds, grown, launches, registers, stopped = 0.0, 0, 0, 0, 0, 0, 0, False
        profile, tasks_run_by = Profile(), dict[str, int]()
        traces: list[NDArray[Any]] = []
        for run in runs:
            for name, count in run.tasks_run_by.items():
                if count:
                    tasks_run_by[name] = tasks_run_by.get(name, 0) + count
            if run.trace is not None:
                trace = run.trace.copy()
                trace["milliseconds"] += milliseconds
                trace["tasks_run"] += tasks_run
                traces.append(trace)
            milliseconds += run.milliseconds
            tasks_run += run.tasks_run
            tasks_pushed += run.tasks_pushed
            rounds += run.rounds
            grown += run.grown
            launches += run.launches
            registers = max(registers, run.registers)
            stopped = stopped or run.stopped
            profile += run.profile
        found = copy.copy(like)
        found.task = like.task if task is None else task
        found.tasks_run, found.tasks_pushed, found.milliseconds, found.rounds = tasks_run, tasks_pushed, milliseconds, rounds
        found.grown, found.launches, found.registers, found.stopped = grown, launches, registers, stopped
        found.profile, found.tasks_run_by = profile, tasks_run_by
        found.trace = np.concatenate(traces) if traces else None
        found.devices = _sum_devices([run.devices for run in runs])
        found.tier = "first" if any(run.tier == "first" for run in runs) else "best"
        found.waiting = runs[-1].waiting
        if like.local_items is not None:  # counted
            for name in COUNTED:
                setattr(found, name, _sum_counts([getattr(run, name) for run in runs]))
        return found

    @property
    def throughput(self) -> float:
        """Tasks run in a second."""
        return self.tasks_run / self.milliseconds * 1e3 if self.milliseconds else 0.0

    @property
    def schedule(self) -> str:
        """The two switches in words."""
        return f"{'persistent' if self.persistent else 'discrete'}, {'barrier' if self.barrier else 'relaxed'}"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary that JSON can hold: the trace as a list for each of its columns.

        Examples
        --------
        >>> fields = atos.bfs(atos.generate.road(30, 1.0), 0).stats.to_dict()
        >>> print(fields["worker"], fields["fetch_size"])
        cta 128
        """
        without = tuple(replace(each, trace=None) for each in self.devices)
        fields = asdict(replace(self, trace=None, devices=without, waiting=()))
        fields["waiting"] = [each.to_dict() for each in self.waiting]
        traces = [(fields, self.trace), *zip(fields["devices"], [each.trace for each in self.devices], strict=True)]
        for its, trace in traces:
            if trace is not None:
                its["trace"] = {name: trace[name].tolist() for name in TRACE.names or ()}
                its["trace"]["idle"] = [None if share != share else share for share in its["trace"]["idle"]]
        return fields

    def plot(self, least_tasks: int | None = None) -> Figure:
        """Draw how the run went: tasks a second, the length of the queue and the share of idle workers over time.

        Below that it draws what the call spent its time on (`profile`). A launch records how it goes with the option `trace`.

        Parameters
        ----------
        least_tasks : int, optional
            The fewest tasks that could have done the work, such as the vertices reached by a search. Tasks run for each of them
            are the overwork, and throughput is drawn once more, divided by it: how fast the work itself went on (Chen et al.
            2022, Figures 1 to 3).

        Returns
        -------
        matplotlib.figure.Figure
            Shown by a notebook; elsewhere ``stats.plot().savefig("run.png")``.

        Raises
        ------
        InvalidArgumentError
            If there is no trace.
        MissingPackageError
            If matplotlib is not installed.

        Examples
        --------
        >>> result = atos.bfs(atos.generate.road(100), 5000, trace=20)
        >>> result.stats.plot(least_tasks=result.num_reached).savefig("run.png")
        """
        try:
            from .plot import draw_run
        except ImportError as error:
            raise MissingPackageError("drawing needs matplotlib: python -m pip install matplotlib") from error
        overwork = None if least_tasks is None else self.tasks_run / check_int("least_tasks", least_tasks, 1, 2**63)
        title = (
            f"{self.task}: {self.tasks_run:,} tasks in {format_digits(self.milliseconds)} ms\n"
            f"{self.schedule}; {self.num_workers:,} {self.worker} workers, fetch size {self.fetch_size}, on {self.device}"
        )
        return draw_run(title, self.trace, self.profile, overwork)

    def __repr__(self) -> str:
        return (
            f"<LaunchStats {self.task}: {self.tasks_run:,} tasks in {self.milliseconds:.3f} ms"
            f"{self._in_brackets()}, {self.schedule}, {self.worker}, on {self.device}; {self.profile}"
            f"{''.join(f'; {each}' for each in self.waiting)}>"
        )

    def _in_brackets(self) -> str:
        """Return how fast tasks ran, if any did."""
        return f" ({format_rate(self.throughput)})" if self.throughput else ""

    def _repr_html_(self) -> str:
        """Return a table, which notebooks show."""
        rows = {
            "tasks run": f"{self.tasks_run:,}{self._in_brackets()}",
            "tasks pushed": f"{self.tasks_pushed:,}",
            "time": f"{self.milliseconds:.3f} ms on the device; {self.profile}",
            "schedule": f"{self.schedule}; {_format_count(self.rounds, 'round')}",
            "workers": f"{self.num_workers:,} ({self.worker}; {self.num_blocks:,} x {self.num_threads} threads),"
            f" fetch size {self.fetch_size}, on {self.device}",
            **({} if self.local_items is None else {"sharing": _format_sharing(self)}),
            "memory": f"{format_bytes(self.overhead_bytes)} beside the queue's slots",
            "queue grew": _format_count(self.grown, "time"),
            "ended": "by a task, which called worker.stop()" if self.stopped else "when all was done",
            **({"waiting": "; ".join(map(str, self.waiting))} if self.waiting else {}),
            "trace": "none" if self.trace is None else f"{_format_count(len(self.trace), 'sample')}; draw it with plot()",
        }
        return html_table(self.task, rows)

    def __str__(self) -> str:
        by_task = ", ".join(f"{count:,} {name}" for name, count in self.tasks_run_by.items())
        return (
            f"{self.task}: {self.tasks_run:,} tasks run{'' if self.tasks_run or self.stopped else ' (the queue was empty)'},"
            f" {self.tasks_pushed:,} pushed in {self.milliseconds:.3f} ms"
            f"{self._in_brackets()}\n"
            + (f"  {by_task}\n" if len(self.tasks_run_by) > 1 else "")
            + f"  {self.schedule}; {_format_count(self.rounds, 'round')};"
            f" {self.num_workers:,} {self.worker} workers ({self.num_blocks:,} x {self.num_threads} threads),"
            f" fetch size {self.fetch_size}, on {self.device}\n"
            + ("" if self.local_items is None else f"  {_format_sharing(self)}\n")
            + ("  run by the first kernel of the task, before the best one was linked\n" if self.tier == "first" else "")
            + ("  ended by a task, which called worker.stop()\n" if self.stopped else "")
            + "".join([f"  {each}\n" for each in self.waiting])
            + f"  {self.profile}"
        )


def _sum_counts(counts: list[int | None]) -> int | None:
    """Return what several launches counted; None if one of them did not."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _sum_devices(runs: list[tuple[DeviceStats, ...]]) -> tuple[DeviceStats, ...]:
    """Return what devices did in several launches; nothing if these were not all over the same ones."""
    if not any(runs) or len({tuple(each.device for each in run) for run in runs}) > 1:
        return ()
    return tuple(
        [
            DeviceStats(
                each[-1].device,
                sum([one.tasks_run for one in each]),
                sum([one.tasks_pushed for one in each]),
                each[-1].num_workers,
                sum([one.grown for one in each]),
            )
            for each in zip(*runs, strict=True)
        ]
    )


def _format_count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _format_sharing(stats: LaunchStats) -> str:
    return (
        f"{stats.local_items:,} items kept and {stats.items_donated:,} donated; {stats.items_split:,} split,"
        f" {stats.chunks_donated:,} chunks run by others"
    )


def find_stats(result: Any) -> LaunchStats:
    """Return the statistics that a call returned, as they are or as the member `stats` of its result."""
    stats = result if isinstance(result, LaunchStats) else getattr(result, "stats", None)
    if not isinstance(stats, LaunchStats):
        raise UnsupportedTypeError(f"return the LaunchStats of a launch, or a result that has them as stats (got {result!r})")
    return stats
