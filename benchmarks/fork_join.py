"""Time Fibonacci by tasks of which each is a call, with joins and without; print a verified table in Markdown.

    python benchmarks/fork_join.py 30 36 40 --device cuda
    python benchmarks/fork_join.py 20 25 --device cpu
    python benchmarks/fork_join.py 30 --device cuda --lists 1 --records-of-block 64

With joins, a task opens one and pushes two calls that arrive there; the number at the root is compared with Fibonacci's. In
`opens_alone` nobody arrives, and without joins a task pushes the two calls and no more. Times are medians of kernels in ms,
with the least and the most, after a first launch that is not counted.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import tempfile
from typing import Any

import numpy as np

import atos_py as atos
from atos_py.arrays import join_layout

CALL = np.dtype([("n", np.int64), ("up", np.int64)])


@atos.task
def with_joins(worker, item, joins):  # type: ignore[no-untyped-def]
    """Add the numbers of two calls."""
    if item.n < 2:
        worker.arrive_at(joins, item.up, item.n)
    else:
        j = worker.open(joins, 2, parent=item.up)
        worker.push((item.n - 1, j))
        worker.push((item.n - 2, j))


@atos.task
def opens_alone(worker, item, joins):  # type: ignore[no-untyped-def]
    """Open a join at which nobody arrives."""
    if item.n >= 2:
        j = worker.open(joins, 2, parent=item.up)
        worker.push((item.n - 1, j))
        worker.push((item.n - 2, j))


@atos.task
def without_joins(worker, item):  # type: ignore[no-untyped-def]
    """Push two calls."""
    if item.n >= 2:
        worker.push((item.n - 1, 0))
        worker.push((item.n - 2, 0))


def number(n: int) -> tuple[int, int]:
    """Return Fibonacci's number, and how many calls compute it."""
    this, following = 0, 1
    for _ in range(n):
        this, following = following, this + following
    return this, 2 * following - 1


def main() -> None:
    """Run each task for each number."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("numbers", nargs="+", type=int, metavar="N")
    parser.add_argument("--device", default=None)
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--capacity", type=int, default=10**6, help="items and joins that have memory at the beginning")
    parser.add_argument("--take", nargs="+", default=["oldest", "newest"], help="which items workers take first")
    parser.add_argument("--dtype", nargs="+", default=["int64", "int32"], help="of the values of joins")
    parser.add_argument("--num-blocks", type=int)
    parser.add_argument("--fetch-size", type=int)
    parser.add_argument("--lists", type=int, help="of free records, in place of what the package has")
    parser.add_argument("--records-of-block", type=int, help="that come and go together, likewise")
    given = parser.parse_args()
    names = ("num_blocks", "fetch_size")
    options: dict[str, Any] = {name: getattr(given, name) for name in names if getattr(given, name) is not None}
    if given.lists or given.records_of_block:  # before other modules read them, and with a cache for such tasks alone
        os.environ["ATOS_CACHE_DIR"] = tempfile.mkdtemp(prefix="atos-fork-join-")
        join_layout.LISTS, join_layout.BLOCK = given.lists or join_layout.LISTS, given.records_of_block or join_layout.BLOCK
        join_layout.UNDECLARED, join_layout.FIRST_GENERATION = join_layout.LISTS, join_layout.LISTS + 1
    print("| number | task | values | take | tasks | ms | G tasks/s | records of joins |\n|" + " --- |" * 8)
    for n in given.numbers:
        wanted, calls = number(n)
        programs = [*itertools.product((with_joins, opens_alone), given.dtype), (without_joins, None)]
        for take, (task, dtype) in itertools.product(given.take, programs):
            joins = atos.Joins(given.capacity, dtype or "int64", device=given.device)
            queue = atos.Queue(given.capacity, dtype=CALL, device=given.device, take=take)
            arguments: list[Any] = [] if task is without_joins else [joins]
            times = []
            for _ in range(given.repeat + 1):
                joins.reset()
                queue.push([(n, 0)])
                stats = queue.launch_thread(task, *arguments, **options)
                times.append(stats.milliseconds)
                if stats.tasks_run != calls or (task is with_joins and joins.result != wanted):
                    raise SystemExit(f"{task.name}: {stats.tasks_run} calls and {joins.result}, not {calls} and {wanted}")
            _, *counted = times
            median = statistics.median(counted)
            spread = f"{median:.2f} ({min(counted):.2f} to {max(counted):.2f})"
            used = len(joins._records)
            rate = f"{calls / median / 1e6:.2f}"
            print(f"| {n} | {task.name} | {dtype or ''} | {take} | {calls:,} | {spread} | {rate} | {used:,} |", flush=True)


if __name__ == "__main__":
    os.environ.setdefault("ATOS_TIER", "best")  # first launches wait for the kernels that are timed
    main()
