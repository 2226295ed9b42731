"""Time the scheduler alone: a chain of tasks, each pushing the next, and a tree of empty tasks, each pushing two."""

from __future__ import annotations

import argparse

import numpy as np

import atos_py as atos


@atos.task
def step(worker, left):  # type: ignore[no-untyped-def]
    """Push the next of `left` tasks."""
    if left > 0 and worker.rank == 0:
        worker.push(left - 1)


@atos.task
def split(worker, size):  # type: ignore[no-untyped-def]
    """Run a tree of `size` tasks: this one, and two halves of the rest."""
    rest = size - 1
    if worker.rank == 0:
        if rest - rest // 2 > 0:
            worker.push(rest - rest // 2)
        if rest // 2 > 0:
            worker.push(rest // 2)


def two(size):  # type: ignore[no-untyped-def]
    """Return the number of subtrees."""
    return 2


@atos.task(workload=two)
def fork(worker, size, i):  # type: ignore[no-untyped-def]
    """As `split`, nested: iteration i pushes half i."""
    half = (size - i) // 2
    if half > 0:
        worker.push(half)


def main() -> None:
    """Print nanoseconds a hop and tasks a second."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chain", type=int, default=100_000)
    parser.add_argument("--tree", type=int, default=100_000_000)
    parser.add_argument("--fetch", nargs="+", type=int, default=[32, 128, 512])
    options = parser.parse_args()
    queue = atos.Queue(1 << 20)
    for worker in ("warp", "cta"):
        for blocks in (1, 132, None):
            best = None
            for _ in range(3):
                queue.push(options.chain)
                stats = getattr(queue, f"launch_{worker}")(step, num_blocks=blocks, num_threads=128)
                assert stats.tasks_run == options.chain + 1
                best = min(best or 1e9, stats.milliseconds)
            print(f"chain {worker:6} blocks {stats.num_blocks:5}: {best * 1e6 / options.chain:8.0f} ns a hop", flush=True)
    queue = atos.Queue(options.tree)
    for worker, task in (("thread", split), ("thread", fork), ("warp", fork), ("cta", fork)):
        for fetch in options.fetch:
            best = None
            for _ in range(3):
                queue.push(np.uint32(options.tree))
                stats = getattr(queue, f"launch_{worker}")(task, fetch_size=fetch)
                assert stats.tasks_run == options.tree, stats
                best = min(best or 1e9, stats.milliseconds)
            print(f"tree {task.name:5} {worker:6} fetch {fetch:4}: {options.tree / best / 1e6:8.3f} G tasks/s", flush=True)


if __name__ == "__main__":
    main()
