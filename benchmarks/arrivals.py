"""Time arrivals at counters: how many a second at distinct counters, and a hop that depends on an arrival; print a table.

    python benchmarks/arrivals.py --device cuda
    python benchmarks/arrivals.py --device cpu --counters 1_000_000 --hops 10_000

"not the last" arrives at each counter once, where two arrivals are missing, and "the last" once more. "a hop" is a chain of
items, each of which is pushed by the arrival that its predecessor makes. Times are medians of kernels, with the least and the
most, after a first launch that is not counted; counters and the numbers of tasks are compared with what they must be.
"""

from __future__ import annotations

import argparse
import os
import statistics
from typing import Any

import numpy as np

import atos_py as atos

PER_ITEM = 1 << 12


def of_item(v, missing):  # type: ignore[no-untyped-def]
    """Return the number of counters of an item, and the first."""
    return min(PER_ITEM, len(missing) - v * PER_ITEM), v * PER_ITEM


@atos.task(workload=of_item)
def arrive(worker, v, i, first, missing):  # type: ignore[no-untyped-def]
    """Arrive at one counter."""
    worker.arrive(missing, first + i)


@atos.task
def hop(worker, v, missing):  # type: ignore[no-untyped-def]
    """Arrive for the next item, which is pushed for the last arrival."""
    if worker.rank == 0 and v + 1 < len(missing):
        worker.arrive(missing, v + 1, push=v + 1)


def spread(times: list[float]) -> str:
    """Return a median with the least and the most."""
    return f"{statistics.median(times):.3f} ({min(times):.3f} to {max(times):.3f})"


def at_distinct_counters(given: argparse.Namespace, worker: str) -> None:
    """Print how many arrivals there are in a second."""
    queue = atos.Queue(-(-given.counters // PER_ITEM), device=given.device)
    times: dict[int, list[float]] = {2: [], 1: []}
    for turn in range(given.repeat + 1):
        missing = atos.full(given.counters, 2, dtype=np.int32, device=given.device)
        for left in (2, 1):
            queue.push(np.arange(queue.capacity))
            stats = queue.launch(arrive, missing, worker=worker)
            if not (missing.to_numpy() == left - 1).all():
                raise SystemExit(f"counters are not {left - 1}")
            times[left] += [stats.milliseconds] if turn else []
    for left, what in ((2, "not the last"), (1, "the last")):
        rate = given.counters / statistics.median(times[left]) / 1e6
        print(f"| {what} | {worker} | {given.counters:,} | {spread(times[left])} | {rate:.2f} G/s |", flush=True)


def along_a_chain(given: argparse.Namespace, worker: str) -> None:
    """Print how long a hop takes."""
    queue, times = atos.Queue(64, device=given.device), []
    for turn in range(given.repeat + 1):
        missing = atos.full(given.hops, 1, dtype=np.int32, device=given.device)
        queue.push(0)
        stats = queue.launch(hop, missing, worker=worker)
        if stats.tasks_run != given.hops or missing.to_numpy()[1:].any():
            raise SystemExit(f"{stats.tasks_run} tasks ran, of {given.hops}")
        times += [stats.milliseconds] if turn else []
    each = statistics.median(times) / given.hops * 1e3
    print(f"| a hop | {worker} | {given.hops:,} | {spread(times)} | {each:.2f} us |", flush=True)


def main() -> None:
    """Run all rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default=None)
    parser.add_argument("--counters", type=int, default=1 << 27)
    parser.add_argument("--hops", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--workers", nargs="+", default=["thread", "warp", "cta"])
    given: Any = parser.parse_args()
    print("| arrivals | worker | number | ms | each |\n| --- | --- | --- | --- | --- |")
    for worker in given.workers:
        at_distinct_counters(given, worker)
        along_a_chain(given, worker)


if __name__ == "__main__":
    os.environ.setdefault("ATOS_TIER", "best")  # first launches wait for the kernels that are timed
    main()
