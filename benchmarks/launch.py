"""Print what a launch costs beside its tasks, and what a whole call of an algorithm takes.

python benchmarks/launch.py --device cuda --graph rmat:22:16 road:4900:0.62
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import atos_py as atos
from atos_py.graph.spec import graph_of, source_of


@atos.task
def nothing(worker, item):  # type: ignore[no-untyped-def]
    """Do nothing."""


def median_of(run: Callable[[], atos.LaunchStats], repeat: int) -> tuple[float, float]:
    """Return medians, in ms, of what a call takes and of what the device says that it takes of it; the first runs warm up."""
    calls, inside = [], []
    for _ in range(repeat + 3):
        begin = time.perf_counter()
        stats = run()
        calls.append(1e3 * (time.perf_counter() - begin))
        inside.append(stats.milliseconds)
    return statistics.median(calls[3:]), statistics.median(inside[3:])


def launches(device: atos.Device) -> None:
    """Print the rows of launches of one block, for one item."""
    queue = atos.Queue(10, device=device)
    for schedule in ({"persistent": True}, {"persistent": True, "barrier": True}, {"persistent": False}):
        for worker in ("thread", "warp", "cta"):

            def run(worker: str = worker, schedule: dict[str, Any] = schedule) -> atos.LaunchStats:
                queue.push([1])
                return queue.launch(nothing, worker=worker, num_blocks=1, **schedule)

            prepared = queue.prepare(nothing, worker=worker, num_blocks=1, **schedule)

            def run_prepared(prepared: atos.PreparedLaunch = prepared) -> atos.LaunchStats:
                queue.push([1])
                return prepared()

            call, inside = median_of(run, 300)
            again, _ = median_of(run_prepared, 300)
            what = " ".join(f"{name}={on}" for name, on in schedule.items())
            print(f"| {worker} {what} | {1e3 * call:.0f} us | {1e3 * again:.0f} us | {1e3 * inside:.0f} us |")


def calls(graph: atos.Graph, name: str) -> None:
    """Print the rows of one graph."""
    source = source_of(name, graph.to("cpu"))
    for what, run in (
        ("bfs", lambda: atos.bfs(graph, source)),
        ("pagerank", lambda: atos.pagerank(graph, tolerance=5e-4)),
        ("color", lambda: atos.color(graph)),
    ):
        call, inside = median_of(lambda run=run: run().stats, 7)  # type: ignore[misc]
        print(f"| {what} of {name} | {call:.2f} ms | | {inside:.2f} ms |")


def main() -> None:
    """Parse the options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="the best there is, by default")
    parser.add_argument("--graph", nargs="*", default=[], metavar="GRAPH", help="files or generators, as for `bench`")
    options = parser.parse_args()
    device = atos.device(options.device)
    print("| | call | prepared | on the device's clock |", "| --- | --- | --- | --- |", sep="\n")
    launches(device)
    for spec in options.graph:
        calls(graph_of(spec, device=device), spec)


if __name__ == "__main__":
    os.environ.setdefault("ATOS_TIER", "best")  # first launches wait for the kernels that are timed
    main()
