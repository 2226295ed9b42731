"""Latency of stopping a launch, by the number of pending items: stop_latency.py [--device cuda] [N ...]

For each N: a queue whose tasks push their items again, so that N are always pending; one that was filled from the host, and one
that grew while workers ran. Prints how long after its deadline a launch with a timeout is back, how long a launch takes whose
first task calls worker.stop(), and how long one takes that finds the queue full; medians of three. The number of pending items
is checked after each.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np

import atos_py as atos

TIMEOUT = 0.1


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
def stop(worker, item):
    if worker.rank == 0:
        worker.push(item)
        worker.stop()


@atos.task
def twice(worker, item):
    if worker.rank == 0:
        worker.push(item)
        worker.push(item)


def ended(call, error: type[Exception] | None) -> float:
    """Return the seconds until a call ended, with an error if one is named."""
    begin = time.perf_counter()
    try:
        call()
    except atos.AtosError as raised:
        if error is None or not isinstance(raised, error):
            raise
    return time.perf_counter() - begin


def check(queue: atos.Queue, expected: int | None = None) -> None:
    if expected is not None and len(queue) != expected:
        raise SystemExit(f"{len(queue):,} items are pending, not {expected:,}")


def measure(queue: atos.Queue, n: int, worker: str) -> tuple[float, float]:
    late, stopped = [], []
    for _ in range(3):
        seconds = ended(lambda: queue.launch(again, worker=worker, timeout=TIMEOUT), atos.LaunchTimeoutError)
        late.append(1e3 * (seconds - TIMEOUT))
        check(queue, n)
        stopped.append(1e3 * ended(lambda: queue.launch(stop, worker=worker), None))
        check(queue, n)
    return statistics.median(late), statistics.median(stopped)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("n", nargs="*", type=float, default=[1e5, 1e6, 1e7])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--worker", default="cta")
    given = parser.parse_args()
    print(f"{atos.device(given.device)}, {given.worker} workers, items of 8 bytes, milliseconds")
    print(f"{'pending':>14} {'ring':>9} {'after deadline':>15} {'worker.stop()':>14} {'full queue':>11}")
    warm = atos.Queue(64, device=given.device, dtype=np.int64)
    for task in (again, stop, twice, double):
        warm.push(range(16))
        options = {"worker": given.worker, "timeout": 0.02}
        extra = (atos.zeros(1, dtype=np.int64, device=given.device), 10) if task is double else ()
        ended(lambda task=task, extra=extra, options=options: warm.launch(task, *extra, **options), atos.AtosError)
        warm.clear()
    for n in map(int, given.n):
        queue = atos.Queue(n, device=given.device, dtype=np.int64, max_capacity=n)
        queue.push(range(n))
        late, stopped = measure(queue, n, given.worker)
        full = []
        for _ in range(3):
            full.append(1e3 * ended(lambda queue=queue: queue.launch(twice, worker=given.worker), atos.QueueFullError))
            if len(queue) <= n:
                raise SystemExit(f"{len(queue):,} items are pending in a queue that is full with {n:,}")
            queue.clear()
            queue.push(range(n))
        print(f"{n:14,} {'pushed':>9} {late:15.1f} {stopped:14.1f} {statistics.median(full):11.1f}", flush=True)
        del queue
        queue, count = atos.Queue(64, device=given.device, dtype=np.int64), atos.zeros(1, dtype=np.int64, device=given.device)
        queue.push(range(16))
        while len(queue) < n:
            ended(
                lambda queue=queue, count=count, n=n: queue.launch(double, count, n - 16, worker=given.worker, timeout=0.5),
                atos.LaunchTimeoutError,
            )
        late, stopped = measure(queue, len(queue), given.worker)
        print(f"{len(queue):14,} {'grown':>9} {late:15.1f} {stopped:14.1f} {'':>11}", flush=True)
        del queue


if __name__ == "__main__":
    main()
