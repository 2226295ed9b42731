"""Verify BFS in every configuration; prints a row for each graph and schedule."""

from __future__ import annotations

import argparse
import itertools
import time

import numpy as np
from bfs import load

import atos_py as atos
from atos_py.algorithms.bfs import verify


def main() -> None:
    """Run every worker, fetch sizes 1, 32 and 128, and the four schedules; fail at the first wrong result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graphs", nargs="+", help="FILE[@TIMES], rmat:SCALE:EDGE_FACTOR[@TIMES] or road:SIDE:KEEP[@TIMES]")
    options = parser.parse_args()
    for spec in options.graphs:
        name, _, times = spec.partition("@")
        graph, source = load(name)
        source = source or int(np.argmax(graph.degrees()))
        begin, runs = time.perf_counter(), 0
        for persistent, barrier in itertools.product((True, False), (False, True)):
            row = []
            for worker, fetch in itertools.product(("thread", "warp", "cta"), (1, 32, 128)):
                best = float("inf")
                for _ in range(int(times or 1)):
                    result = atos.bfs(graph, source, worker=worker, fetch_size=fetch, persistent=persistent, barrier=barrier)
                    verify(graph, source, result.depth)
                    best, runs = min(best, result.stats.milliseconds), runs + 1
                row.append(f"{worker} {fetch}: {best:.3f}")
            print(f"{name.rpartition('/')[2]:32} {result.stats.schedule:20} ms: {', '.join(row)}", flush=True)
        print(f"{name.rpartition('/')[2]:32} {runs} runs verified in {time.perf_counter() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()
