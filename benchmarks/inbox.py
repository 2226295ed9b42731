"""Print how long it takes to send items to workers that run, and until idle workers have them.

python benchmarks/inbox.py --device cuda

On a GPU the host cannot see at once that a task has run: there "taken" is the time from before the push until the host sees
that its items lie in the slots for which idle workers wait, two trips over the bus. On the CPU "run" is the time until it sees
what the task wrote.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

import numpy as np

import atos_py as atos


@atos.task
def count(worker, item, counts):  # type: ignore[no-untyped-def]
    """Count an item."""
    if worker.rank == 0:
        atos.atomic_add(counts, 0, 1)


def quantiles(seconds: list[float]) -> str:
    """Return the median and the 99th percentile, in microseconds."""
    ordered = sorted(seconds)
    return f"{1e6 * statistics.median(ordered):.1f} us | {1e6 * ordered[len(ordered) * 99 // 100]:.1f} us"


def measure(device: atos.Device, worker: str, size: int, repeat: int, pause: float) -> None:
    """Print the rows of one worker and one number of items at a time."""
    queue, host = atos.Queue(1_000_000, device=device), np.zeros(1, np.int64)
    counts = atos.asarray(host, device=device)  # on the CPU the same memory
    items = np.arange(size, dtype=np.uint32)
    pushed, taken, ran = [], [], []
    with queue.start(count, counts, worker=worker) as run:
        for k in range(repeat):
            time.sleep(pause)  # until all workers are idle again
            begin = time.perf_counter()
            run.push(items)
            pushed.append(time.perf_counter() - begin)
            while run.waiting:
                pass
            taken.append(time.perf_counter() - begin)
            if device.kind == "cpu":
                while host[0] < (k + 1) * size:
                    pass
                ran.append(time.perf_counter() - begin)
    for what, seconds in (("push", pushed), ("taken", taken), ("run", ran)):
        if seconds:
            print(f"| {worker} | {size} | {what} | {quantiles(seconds[10:])} |")


def stream(device: atos.Device, worker: str, count_of_items: int) -> None:
    """Print how many items a second go through."""
    queue, counts = atos.Queue(1_000_000, device=device), atos.zeros(1, dtype=np.int64, device=device)
    items = np.arange(8192, dtype=np.uint32)
    begin = time.perf_counter()
    with queue.start(count, counts, worker=worker) as run:
        for _ in range(count_of_items // len(items)):
            run.push(items)
    seconds = time.perf_counter() - begin
    ran = run.wait().tasks_run
    if counts[0] != ran:
        raise SystemExit(f"{ran} tasks ran, and {counts[0]} were counted")
    print(f"| {worker} | {len(items)} | stream | {ran / seconds / 1e6:.2f} M/s | |")


def main() -> None:
    """Read the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="by default the best there is")
    parser.add_argument("--repeat", type=int, default=1000)
    parser.add_argument("--pause", type=float, default=0.001, help="seconds before each push")
    options = parser.parse_args()
    device = atos.device(options.device)
    print("| worker | items | | median | 99 % |\n| --- | --- | --- | --- | --- |")
    for worker in ("thread", "warp", "cta"):
        for size in (1, 1000):
            measure(device, worker, size, options.repeat, options.pause)
        stream(device, worker, 1_000_000)


if __name__ == "__main__":
    os.environ.setdefault("ATOS_TIER", "best")  # first launches wait for the kernels that are timed
    main()
