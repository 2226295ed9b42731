"""Time tree searches with known numbers: queens and UTS; print a verified table in Markdown.

    python benchmarks/trees.py --queens 13 16 --uts T1 T1L T3L --device cuda
    python benchmarks/trees.py --queens 10 --uts T1 T3 --device cpu --repeat 3

The tasks are those of examples/queens.py and examples/uts.py. A board or a node with children is a task. Times are medians of
kernels in ms, with the least and the most, after a first launch that is not counted and in which the queue grows. The memory is
that of the queue: its capacity times the bytes of an item and of a slot's number, and the stacks of the workers.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import atos_py as atos

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
import queens
import uts

ITEM_BYTES = {queens.BOARD: 16, uts.NODE: 32}  # in the queue, beside the 8 bytes of a slot's number


def search_board(n: int, queue: atos.Queue, worker: str, options: dict[str, Any]) -> tuple[int, atos.LaunchStats]:
    """Return how many tasks ran, after a check of the number of solutions."""
    solutions = atos.zeros(1, dtype="uint64", device=queue.device)
    queue.push([(0, 0, 0, 0)])
    stats = queue.launch(queens.place, n, solutions, worker=worker, **options)
    if n < len(queens.KNOWN) and int(solutions[0]) != queens.KNOWN[n]:
        raise SystemExit(f"{n} queens: {solutions[0]} solutions, and {queens.KNOWN[n]} are known")
    return stats.tasks_run, stats


def search_tree(name: str, queue: atos.Queue, worker: str, options: dict[str, Any]) -> tuple[int, atos.LaunchStats]:
    """Return how many nodes were counted, after a check."""
    tree = uts.TREES[name]
    counts = atos.asarray(uts.first_counts(), device=queue.device)
    queue.push(uts.root_of(tree))
    stats = queue.launch(uts.visit, tree, counts, worker=worker, **options)
    if int(counts[0]) != uts.KNOWN[name]:
        raise SystemExit(f"{name}: {counts[0]} nodes, and {uts.KNOWN[name]} are known")
    return uts.KNOWN[name], stats


def main() -> None:
    """Search each tree with each worker."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queens", nargs="*", type=int, default=[], metavar="N")
    parser.add_argument("--uts", nargs="*", default=[], choices=sorted(uts.TREES))
    parser.add_argument("--device", default=None)
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--capacity", type=int, default=1 << 16, help="of the queue at first")
    parser.add_argument("--workers", nargs="+", default=["thread", "warp", "cta"])
    parser.add_argument("--take", nargs="+", default=["oldest", "newest"], help="which items workers take first")
    parser.add_argument(
        "--stacks", nargs="+", type=int, default=[0], help="items of a worker's stack; 0: what the core chooses"
    )
    parser.add_argument("--blocks", nargs="+", type=int, default=[0], help="of a launch; 0: as many as are resident at once")
    parser.add_argument("--fetch-sizes", nargs="+", type=int, default=[0], help="0: what the launch chooses")
    given = parser.parse_args()
    searches: list[tuple[str, Callable[..., tuple[int, atos.LaunchStats]], Any, Any]] = [
        *((f"{n} queens", search_board, n, queens.BOARD) for n in given.queens),
        *((name, search_tree, name, uts.NODE) for name in given.uts),
    ]
    print("| tree | take | worker | blocks | fetch size | nodes | tasks | ms | M nodes/s | memory, MB |\n|" + " --- |" * 10)
    for label, search, tree, dtype in searches:
        ways = itertools.product(given.take, given.workers, given.fetch_sizes, given.blocks, given.stacks)
        for take, worker, fetch_size, blocks, stack in ways:
            options: dict[str, Any] = {"fetch_size": fetch_size} if fetch_size else {}
            if blocks:
                options["num_blocks"] = blocks
            if stack and take == "newest":
                options["experiment"] = atos.Experiment(push_buffer=stack)
            queue = atos.Queue(given.capacity, dtype=dtype, device=given.device, take=take)
            runs = [search(tree, queue, worker, options) for _ in range(given.repeat + 1)][1:]
            times = [stats.milliseconds for _, stats in runs]
            nodes, stats = runs[-1]
            median = statistics.median(times)
            spread = f"{median:.2f} ({min(times):.2f} to {max(times):.2f})"
            memory = (queue.capacity * (ITEM_BYTES[dtype] + 8) + stats.overhead_bytes) / 1e6
            how = f"{take}, stacks of {stack}" if "experiment" in options else take
            print(
                f"| {label} | {how} | {worker} | {stats.num_blocks} | {stats.fetch_size} | {nodes:,} |"
                f" {stats.tasks_run:,} | {spread} |"
                f" {nodes / median / 1e3:,.1f} | {memory:,.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    os.environ.setdefault("ATOS_TIER", "best")  # first launches wait for the kernels that are timed
    main()
