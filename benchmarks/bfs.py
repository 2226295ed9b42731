"""Time BFS over worker sizes, fetch sizes, block sizes and schedules; every result is verified.

Example: ``python benchmarks/bfs.py rmat:22:16 road:4900:0.62 --fetch 32 128 --threads 256 512``
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time

import numpy as np

import atos_py as atos
from atos_py.algorithms.bfs import verify


def load(spec: str) -> tuple[atos.Graph, int]:
    """Return a graph and the source that the figures in the documentation start from."""
    kind, *numbers = spec.split(":")
    if kind == "rmat":
        graph = atos.generate.rmat(int(numbers[0]), int(numbers[1]))
        return graph, int(np.argmax(graph.degrees()))
    if kind == "road":
        side = int(numbers[0])
        graph = atos.generate.road(side, float(numbers[1]))
        return graph, side // 2 * side + side // 2
    return atos.Graph.load(spec), 0


def main() -> None:
    """Run what the command line says, and print a row for each setting."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="+", help="rmat:SCALE:EDGE_FACTOR, road:SIDE:KEEP, or a file")
    parser.add_argument("--worker", nargs="+", default=["warp", "cta"])
    parser.add_argument("--fetch", nargs="+", type=int, default=[32, 128])
    parser.add_argument("--threads", nargs="+", type=int, default=[256])
    parser.add_argument("--blocks", nargs="+", type=int, default=[0], help="0: as many as are resident")
    parser.add_argument("--persistent", nargs="+", type=int, default=[1])
    parser.add_argument("--barrier", nargs="+", type=int, default=[0])
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    for spec in options.graphs:
        start = time.perf_counter()
        graph, source = load(spec)
        print(f"{spec}: {graph}, made in {time.perf_counter() - start:.1f} s, source {source}", flush=True)
        settings = itertools.product(
            options.worker, options.fetch, options.threads, options.blocks, options.persistent, options.barrier
        )
        for worker, fetch, threads, blocks, persistent, barrier in settings:
            runs = []
            for _ in range(options.repeat + 1):
                result = atos.bfs(
                    graph, source, worker=worker, fetch_size=fetch, num_threads=threads, num_blocks=blocks or None,
                    persistent=bool(persistent), barrier=bool(barrier),
                )  # fmt: skip
                runs.append(result.stats)
            verify(graph, source, result.depth)
            times = [run.milliseconds for run in runs[1:]]
            print(
                f"{spec} {worker:6} fetch {fetch:4} threads {threads:4} blocks {runs[-1].num_blocks:5}"
                f" {runs[-1].schedule:20} min {min(times):8.3f} median {statistics.median(times):8.3f} ms"
                f" tasks {runs[-1].tasks_run:,} rounds {runs[-1].rounds}",
                flush=True,
            )


if __name__ == "__main__":
    main()
