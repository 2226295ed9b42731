"""Latency of stopping a launch by schedule and pending items: stop_latency.py [--device cuda] [N ...] [--bursts SECONDS ...]

For each N and schedule: a queue whose tasks push their items again, so that N are always pending; one that was filled from the
host, with buckets also with a thousand priorities ("far items"), and, for persistent launches, one that grew while workers ran.
Prints how long after its deadline a launch with a timeout is back, how long a launch takes whose first task calls
worker.stop(), and how long one takes that finds the queue full; medians of three. The number of pending items is checked
after each.

--bursts SECONDS ...: each thread of a CTA pushes its CTA's item again, so that at a stop millions of items are in hand, and
find no slot. For each timeout, launches of one queue follow each other: how long after its deadline each is back, how many
items are pending, and how long the next launch takes, whose first task calls worker.stop().
"""

from __future__ import annotations

import argparse
import statistics
import time
from functools import partial

import numpy as np

import atos_py as atos

TIMEOUT = 0.1
SCHEDULES = {
    "relaxed": {},
    "rounds": {"barrier": True},
    "discrete": {"persistent": False},
    "discrete rounds": {"barrier": True, "persistent": False},
    "buckets": {},
    "far items": {},
}
LEVELS = 1000  # priorities of far items


@atos.task
def again(worker, item):
    if worker.rank == 0:
        worker.push(item)


@atos.task
def double(worker, item, count, most):
    if worker.rank == 0:
        worker.push(item)
        if atos.atomic_add(count, 0, 1) < most:
            worker.push(item)


@atos.task
def burst(worker, item):
    worker.push(item)


@atos.task
def stop(worker, item):
    if worker.rank == 0:
        worker.push(item)
        worker.stop()


@atos.task
def twice(worker, item):
    if worker.rank == 0:
        worker.push(item)
        worker.push(item)


@atos.task
def again_far(worker, item):
    if worker.rank == 0:
        worker.push(item, item % LEVELS)


@atos.task
def stop_far(worker, item):
    if worker.rank == 0:
        worker.push(item, item % LEVELS)
        worker.stop()


@atos.task
def twice_far(worker, item):
    if worker.rank == 0:
        worker.push(item, item % LEVELS)
        worker.push(item, item % LEVELS)


def ended(call, error: type[Exception] | None) -> float:
    """Return the seconds until a call ended, with an error if one is named."""
    begin = time.perf_counter()
    try:
        call()
    except atos.AtosError as raised:
        if error is None or not isinstance(raised, error):
            raise
    return time.perf_counter() - begin


def check(queue: atos.Queue, expected: int) -> None:
    if len(queue) != expected:
        raise SystemExit(f"{len(queue):,} items are pending, not {expected:,}")


class Launches:
    """Launches of one schedule on one device, with items of 8 bytes."""

    def __init__(self, schedule: str, device: str, worker: str) -> None:
        self.schedule, self.device = schedule, device
        self.options = {"worker": worker, **SCHEDULES[schedule]}
        self.is_far, self.has_buckets = schedule == "far items", schedule in ("buckets", "far items")
        self.grows = self.options.get("persistent", True) and not self.has_buckets
        self.again, self.stop, self.twice = (again_far, stop_far, twice_far) if self.is_far else (again, stop, twice)

    def queue(self, capacity: int, **options) -> atos.Queue:
        buckets = {"buckets": 16, "delta": 1.0} if self.has_buckets else {}
        return atos.Queue(capacity, device=self.device, dtype=np.int64, **buckets, **options)

    def fill(self, queue: atos.Queue, n: int) -> None:
        if self.is_far:
            queue.push(np.arange(n), priority=np.arange(n) % LEVELS)
        else:
            queue.push(range(n))

    def grown(self, n: int) -> atos.Queue:
        """Return a queue that has grown to n items while workers ran."""
        queue, count = self.queue(64), atos.zeros(1, dtype=np.int64, device=self.device)
        queue.push(range(16))
        while len(queue) < n:
            ended(lambda: queue.launch(double, count, n - 16, timeout=0.5, **self.options), atos.LaunchTimeoutError)
        return queue

    def warm_up(self) -> None:
        queue = self.queue(64)
        for task in (self.again, self.stop, self.twice, *([double] if self.grows else [])):
            self.fill(queue, 16)
            extra = (atos.zeros(1, dtype=np.int64, device=self.device), 10) if task is double else ()
            ended(lambda task=task, extra=extra: queue.launch(task, *extra, timeout=0.02, **self.options), atos.AtosError)
            queue.clear()

    def measure(self, queue: atos.Queue) -> tuple[float, float]:
        n, late, stopped = len(queue), [], []
        for _ in range(3):
            seconds = ended(lambda: queue.launch(self.again, timeout=TIMEOUT, **self.options), atos.LaunchTimeoutError)
            late.append(1e3 * (seconds - TIMEOUT))
            check(queue, n)
            stopped.append(1e3 * ended(lambda: queue.launch(self.stop, **self.options), None))
            check(queue, n)
        return statistics.median(late), statistics.median(stopped)

    def measure_full(self, queue: atos.Queue, n: int) -> float:
        full = []
        for _ in range(3):
            full.append(1e3 * ended(lambda: queue.launch(self.twice, **self.options), atos.QueueFullError))
            if len(queue) <= n:
                raise SystemExit(f"{len(queue):,} items are pending in a queue that is full with {n:,}")
            queue.clear()
            self.fill(queue, n)
        return statistics.median(full)


def print_bursts(device: str, timeouts: list[float]) -> None:
    print(f"{'timeout, s':>12} {'pending':>15} {'after deadline':>15} {'next launch':>12}")
    for timeout in timeouts:
        queue = atos.Queue(64, dtype=np.int64, device=device)
        queue.push([1])
        ended(partial(queue.launch_cta, burst, timeout=0.001), atos.LaunchTimeoutError)
        queue.launch_cta(stop)
        queue = atos.Queue(64, dtype=np.int64, device=device)
        queue.push([1])
        for _ in range(3):
            try:
                seconds = ended(partial(queue.launch_cta, burst, timeout=timeout), atos.LaunchTimeoutError)
            except atos.QueueFullError:
                print(f"{timeout:12} {len(queue):15,}   more than memory holds, before the deadline", flush=True)
                break
            pending = len(queue)
            begin = time.perf_counter()
            stopped = queue.launch_cta(stop)
            after = time.perf_counter() - begin
            check(queue, pending)
            if not stopped.stopped:
                raise SystemExit("a launch was not stopped")
            print(f"{timeout:12} {pending:15,} {1e3 * (seconds - timeout):15.1f} {1e3 * after:12.1f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("n", nargs="*", type=float, default=[1e5, 1e6, 1e7])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--worker", default="cta")
    parser.add_argument("--schedule", choices=SCHEDULES, nargs="+", default=list(SCHEDULES))
    parser.add_argument("--bursts", type=float, nargs="+", metavar="SECONDS")
    given = parser.parse_args()
    if given.bursts:
        return print_bursts(given.device, given.bursts)
    print(f"{atos.device(given.device)}, {given.worker} workers, items of 8 bytes, milliseconds")
    print(f"{'schedule':>16} {'pending':>12} {'ring':>7} {'after deadline':>15} {'worker.stop()':>14} {'full queue':>11}")
    for schedule in given.schedule:
        launches = Launches(schedule, given.device, given.worker)
        launches.warm_up()
        for n in map(int, given.n):
            queue = launches.queue(n, max_capacity=n)
            launches.fill(queue, n)
            late, stopped = launches.measure(queue)
            full = launches.measure_full(queue, n)
            print(f"{schedule:>16} {n:12,} {'pushed':>7} {late:15.1f} {stopped:14.1f} {full:11.1f}", flush=True)
            del queue
            if launches.grows:
                queue = launches.grown(n)
                late, stopped = launches.measure(queue)
                print(f"{schedule:>16} {len(queue):12,} {'grown':>7} {late:15.1f} {stopped:14.1f}", flush=True)
                del queue


if __name__ == "__main__":
    main()
