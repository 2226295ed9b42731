"""Time branch and bound on a knapsack by priorities against serial depth-first programs in Numba, in turns.

    python benchmarks/knapsack.py --device cuda

The task is that of ``examples/knapsack.py``. The serial programs have a stack each: one decides on one thing after the other,
the other one packs as the task does. All prune by Dantzig's bound. Every result is verified.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numba
import numpy as np

import atos_py as atos

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))
from knapsack import NODE, VALUES, WEIGHTS, leave_out


@numba.njit
def one_by_one(weight: Any, value: Any, room: int) -> tuple[int, int]:
    """Decide on one thing after the other; return the best value and the number of nodes."""
    n, best, nodes, top = len(weight) - 1, 0, 0, 1
    stack = np.empty((2 * n + 2, 3), np.int64)
    stack[0] = 0, room, 0
    while top:
        top -= 1
        nodes += 1
        depth, left, got = stack[top]
        limit, low, high = weight[depth] + left, depth, n
        while low < high:
            middle = (low + high + 1) // 2
            if weight[middle] <= limit:
                low = middle
            else:
                high = middle - 1
        packed = got + value[low] - value[depth]
        best = max(best, packed)
        if (
            low == n
            or packed + (limit - weight[low]) * (value[low + 1] - value[low]) // (weight[low + 1] - weight[low]) <= best
        ):
            continue
        stack[top] = depth + 1, left, got
        top += 1
        w, v = weight[depth + 1] - weight[depth], value[depth + 1] - value[depth]
        if w <= left:
            stack[top] = depth + 1, left - w, got + v
            top += 1
    return best, nodes


@numba.njit
def as_the_task(weight: Any, value: Any, room: int) -> tuple[int, int]:
    """Pack what fits next, and leave out one thing of it; return the best value and the number of nodes."""
    n, best, nodes, top = len(weight) - 1, 0, 0, 1
    stack = np.empty((n * (n + 1) + 1, 3), np.int64)
    stack[0] = 0, room, 0
    while top:
        top -= 1
        nodes += 1
        depth, left, got = stack[top]
        limit, low, high = weight[depth] + left, depth, n
        while low < high:
            middle = (low + high + 1) // 2
            if weight[middle] <= limit:
                low = middle
            else:
                high = middle - 1
        packed = got + value[low] - value[depth]
        best = max(best, packed)
        if low == n:
            continue
        last_weight, last_value = weight[low + 1] - weight[low], value[low + 1] - value[low]
        for k in range(depth, low + 1):
            w, v = weight[k + 1] - weight[k], value[k + 1] - value[k]
            if (limit - weight[low] + w) * last_value >= (best + 1 - packed + v) * last_weight:
                stack[top] = k + 1, limit - weight[k], got + value[k] - value[depth]
                top += 1
    return best, nodes


def most_valuable(weights: Any, values: Any, room: int) -> int:
    """Return the best value by dynamic programming."""
    table = np.zeros(room + 1, np.int64)
    for weight, value in zip(weights, values, strict=True):
        table[weight:] = np.maximum(table[weight:], table[:-weight] + value)
    return int(table[room])


def main() -> None:
    """Time all programs in turns, and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default=None)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--worker", choices=("thread", "warp", "cta"), default="cta")
    parser.add_argument("--capacity", type=int, default=1 << 14)
    parser.add_argument("--buckets", type=int, default=16)
    parser.add_argument("--delta", type=lambda text: text if text == "auto" else float(text), default=1)
    given = parser.parse_args()

    room, sums = int(WEIGHTS.sum()) // 2, [np.concatenate([[0], np.cumsum(of)]) for of in (WEIGHTS, VALUES)]
    right = most_valuable(WEIGHTS, VALUES, room)
    queue = atos.Queue(given.capacity, dtype=NODE, device=given.device, buckets=given.buckets, delta=given.delta)
    arrays = [atos.asarray(of, device=queue.device, readonly=True) for of in sums]
    best = atos.zeros(1, dtype=np.int64, device=queue.device)

    def by_priorities() -> tuple[float, int, int]:
        best[0] = 0
        queue.push((0, room, 0), 0)
        stats = queue.launch(leave_out, *arrays, best, worker=given.worker)
        return stats.milliseconds, int(best[0]), stats.tasks_run

    def serial(program: Any) -> tuple[float, int, int]:
        begin = time.perf_counter()
        found, nodes = program(*sums, room)
        return (time.perf_counter() - begin) * 1e3, found, nodes

    programs = {
        f"priorities, {queue.device}": by_priorities,
        "serial, thing by thing": lambda: serial(one_by_one),
        "serial, as the task": lambda: serial(as_the_task),
    }
    times: dict[str, list[float]] = {name: [] for name in programs}
    nodes: dict[str, int] = {}
    for turn in range(given.repeat + 1):  # the first one compiles
        for name, run in programs.items():
            milliseconds, found, nodes[name] = run()
            if found != right:
                raise SystemExit(f"{name}: found {found}, but the best value is {right}")
            if turn:
                times[name].append(milliseconds)
    print(
        "| program | ms, median | fastest | nodes | median / that of the task |",
        "| --- | ---: | ---: | ---: | ---: |",
        sep="\n",
    )
    own = statistics.median(next(iter(times.values())))
    for name, taken in times.items():
        median = statistics.median(taken)
        print(f"| {name} | {median:.1f} | {min(taken):.1f} | {nodes[name]:,} | {median / own:.2f} |")
    print(f"\nThe queue has room for {queue.capacity:,} items.")


if __name__ == "__main__":
    os.environ.setdefault("ATOS_TIER", "best")  # first launches wait for the kernels that are timed
    main()
