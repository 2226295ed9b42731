"""What a launch reports."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["LaunchStats"]


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
    task, device : str
    worker : str
        "thread", "warp" or "cta".
    fetch_size : int
        Items that a worker takes at once, at most.
    persistent, barrier : bool
        The schedule.
    num_blocks, num_threads, num_workers : int
        Blocks launched, threads of each, and workers in all. On the CPU a worker is a thread.
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
            f"  {self.schedule}; {self.rounds:,} {'round' if self.rounds == 1 else 'rounds'}; {self.num_workers:,} {self.worker} workers"
            f" ({self.num_blocks:,} x {self.num_threads} threads), fetch size {self.fetch_size}, on {self.device}"
        )
