"""What a launch reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import UnsupportedTypeError

__all__ = ["TRACE", "LaunchStats", "stats_of", "trace_of"]

TRACE = np.dtype([("milliseconds", np.float64), ("tasks_run", np.int64), ("waiting", np.int64)])


@dataclass(slots=True)
class LaunchStats:
    """What one launch did, and how it was configured.

    Attributes
    ----------
    tasks_run, tasks_pushed : int
        Items that the task ran on, and items that tasks pushed (those pushed from the host do not count).
    milliseconds : float
        From the start of the first kernel to the end of the last, by the device's own clock.
    rounds : int
        Kernels launched, or levels between barriers.
    grown : int
        Times that the queue grew.
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
        so far, and `waiting`, the items in the queue, or less than 0 for workers that wait for items.
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
    trace: NDArray[Any] | None = None

    @classmethod
    def total(cls, runs: Sequence[LaunchStats], task: str | None = None) -> LaunchStats:
        """Return the statistics of several launches as those of one.

        Tasks, times and rounds are added up, and traces joined as if each launch began when the one before ended.

        Parameters
        ----------
        runs : sequence of LaunchStats
            One or more, in the order of time; the configuration is that of the last.
        task : str, optional
            What to call them; by default the task of the last.
        """
        traces: list[NDArray[Any]] = []
        milliseconds, tasks_run = 0.0, 0
        for run in runs:
            if run.trace is not None:
                trace = run.trace.copy()
                trace["milliseconds"] += milliseconds
                trace["tasks_run"] += tasks_run
                traces.append(trace)
            milliseconds += run.milliseconds
            tasks_run += run.tasks_run
        return replace(
            runs[-1],
            task=runs[-1].task if task is None else task,
            tasks_run=tasks_run,
            tasks_pushed=sum(run.tasks_pushed for run in runs),
            milliseconds=milliseconds,
            rounds=sum(run.rounds for run in runs),
            grown=sum(run.grown for run in runs),
            trace=np.concatenate(traces) if traces else None,
        )

    @property
    def throughput(self) -> float:
        """Tasks run in a second."""
        return self.tasks_run / self.milliseconds * 1e3 if self.milliseconds else 0.0

    @property
    def schedule(self) -> str:
        """The two switches in words."""
        return f"{'persistent' if self.persistent else 'discrete'}, {'barrier' if self.barrier else 'relaxed'}"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary."""
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"{self.task}: {self.tasks_run:,} tasks run, {self.tasks_pushed:,} pushed in {self.milliseconds:.3f} ms"
            f" ({self.throughput / 1e6:.1f} M tasks/s)\n"
            f"  {self.schedule}; {self.rounds:,} {'round' if self.rounds == 1 else 'rounds'};"
            f" {self.num_workers:,} {self.worker} workers ({self.num_blocks:,} x {self.num_threads} threads),"
            f" fetch size {self.fetch_size}, on {self.device}"
        )


def stats_of(result: Any) -> LaunchStats:
    """Return the statistics that a call returned, as they are or as the member `stats` of its result."""
    stats = result if isinstance(result, LaunchStats) else getattr(result, "stats", None)
    if not isinstance(stats, LaunchStats):
        raise UnsupportedTypeError(f"return the LaunchStats of a launch, or a result that has them as stats (got {result!r})")
    return stats


def trace_of(samples: NDArray[np.uint64]) -> NDArray[Any]:
    """Return the trace that the core's samples make, in the order of time."""
    samples = samples[np.argsort(samples[:, 0], kind="stable")].astype(np.int64)
    trace = np.zeros(len(samples), TRACE)
    if len(samples):
        trace["milliseconds"] = (samples[:, 0] - samples[0, 0]) / 1e6
        trace["tasks_run"] = np.maximum.accumulate(samples[:, 1])
        trace["waiting"] = samples[:, 2] - samples[:, 3]
    return trace
