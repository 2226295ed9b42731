"""Workers and groups of many threads, as on a GPU, for tests of tasks without one: threads of Python that meet at barriers."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np


class Threads:
    """The barrier and the values of a team of threads that emulate the lanes of a worker."""

    def __init__(self, count: int) -> None:
        self.barrier, self.values, self.memory = threading.Barrier(count, timeout=30), [None] * count, {}


class Team:
    """A group or a worker, as one of its threads sees it."""

    def __init__(self, shared: Threads, rank: int, index: int = 0, count: int = 1, group: Any = None) -> None:
        self.shared, self.rank, self.size, self.index, self.count = shared, rank, len(shared.values), index, count
        self.group = lambda size: group

    def sync(self) -> None:
        self.shared.barrier.wait()

    def gathered(self, value: Any) -> list[Any]:
        self.shared.values[self.rank] = value
        self.sync()
        values = list(self.shared.values)
        self.sync()
        return values

    def shuffle(self, value: Any, source: int) -> Any:
        return self.gathered(value)[int(source) % self.size]

    def min(self, value: Any) -> Any:
        return min(self.gathered(value))

    def max(self, value: Any) -> Any:
        return max(self.gathered(value))

    def sum(self, value: Any) -> Any:
        return sum(self.gathered(value))

    def split(self, work: int | range) -> range:
        work = range(work) if isinstance(work, int) else work
        return range(work.start + self.rank, work.stop, self.size)

    def scratch(self, dtype: Any, count: int) -> Any:
        caller = sys._getframe(1)
        return self.shared.memory.setdefault((caller.f_code, caller.f_lasti, dtype, count), np.full(count, 7, dtype))


def run_teams(threads: int, function: Callable[[Any], Any]) -> list[Any]:
    """Return what each thread of a worker returns, called with the worker, which has groups of 32 threads."""
    groups, all_threads = [Threads(32) for _ in range(threads // 32)], Threads(threads)

    def run(thread: int) -> Any:
        group = Team(groups[thread // 32], thread % 32, thread // 32, threads // 32)
        return function(Team(all_threads, thread, group=group))

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(run, range(threads)))
