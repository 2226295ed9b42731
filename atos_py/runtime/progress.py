"""Progress of a launch while it runs, for a bar or a function of the caller."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import UnsupportedTypeError
from .trace import format_rate

__all__ = ["Observer", "Show", "check_progress", "make_observer"]

Show = Callable[[int, float, int], Any]
_BETWEEN_LINES = 0.1  # seconds


class Observer:
    """Passes on how many tasks have run and how many items wait, when the core calls back during a launch.

    Parameters
    ----------
    show : callable
        ``show(tasks_run, rate, waiting)``, with the rate in tasks a second since it was told before.
    """

    def __init__(self, show: Show) -> None:
        self.show = show
        self.before = 0, time.perf_counter()

    def see(self, tasks_run: int, waiting: int) -> None:
        """Tell how many tasks have run, and how many items wait; the latter is negative if workers wait for items."""
        now = time.perf_counter()
        ran, since = self.before
        self.before = tasks_run, now
        self.show(tasks_run, max(tasks_run - ran, 0) / max(now - since, 1e-9), max(waiting, 0))

    def close(self) -> None:
        """Take away what is shown."""
        if isinstance(self.show, (_Bar, _Line)):
            self.show.close()


def check_progress(progress: Any) -> bool | Show:
    """Return whether a bar shows a launch, or the function that is told of it.

    Raises
    ------
    UnsupportedTypeError
        If it is neither.
    """
    if isinstance(progress, (bool, np.bool_)):
        return bool(progress)
    if not callable(progress):
        raise UnsupportedTypeError(f"progress must be True, False or a function of three numbers (got {progress!r:.80})")
    return progress  # type: ignore[no-any-return]


def make_observer(progress: bool | Show, task: str) -> Observer | None:
    """Return the observer of a launch, if its progress is wanted: a bar, of tqdm's where that is installed, for True.

    Parameters
    ----------
    progress : bool or callable
        As `check_progress` returns it.
    task : str
        The name of the task that runs.
    """
    if progress is False:
        return None
    if progress is not True:
        return Observer(progress)
    try:
        from tqdm import tqdm
    except ImportError:
        return Observer(_Line(task))
    return Observer(_Bar(task, tqdm))


class _Bar:
    """A bar of tqdm's, which begins when a launch is long enough to be asked about, and is gone with it."""

    def __init__(self, task: str, tqdm: Any) -> None:
        self.task, self.tqdm = task, tqdm
        self.bar: Any = None

    def __call__(self, tasks_run: int, rate: float, waiting: int) -> None:
        first = self.bar is None
        if first:
            self.bar = self.tqdm(desc=self.task, unit=" tasks", unit_scale=True, leave=False, file=sys.stderr)
        self.bar.set_postfix_str(f"{waiting:,} waiting", refresh=first)  # the first may be the only one
        self.bar.update(tasks_run - self.bar.n)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()


class _Line:
    """A line on stderr that is written over and over."""

    def __init__(self, task: str) -> None:
        self.task, self.width, self.next = task, 0, 0.0

    def __call__(self, tasks_run: int, rate: float, waiting: int) -> None:
        if time.perf_counter() < self.next:
            return
        self.next = time.perf_counter() + _BETWEEN_LINES
        self.write(f"{self.task}: {tasks_run:,} tasks, {format_rate(rate)}, {waiting:,} waiting")

    def write(self, text: str) -> None:
        sys.stderr.write(f"\r{text:{self.width}}")
        sys.stderr.flush()
        self.width = len(text)

    def close(self) -> None:
        if self.width:
            self.write("")
            sys.stderr.write("\r")
