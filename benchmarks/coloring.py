"""Time graph colouring over orders, workers, windows and schedules; every result is verified.

Example: ``python benchmarks/coloring.py rmat:22:16 road:4900:0.62 --order natural degree --worker auto warp --threads 256 512``

The workload ratio is that of section 6.4 of the paper: tasks for each vertex, 2 if no neighbours clash. With ``--permute`` the
vertices are renumbered at random first.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time

from bfs import load

from atos_py.algorithms.coloring import ORDERS, color, verify
from atos_py.reproduce import permuted


def main() -> None:
    """Run what the command line says, and print a row for each setting."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="+", help="rmat:SCALE:EDGE_FACTOR, road:SIDE:KEEP, or a file")
    parser.add_argument("--order", nargs="+", default=list(ORDERS))
    parser.add_argument("--worker", nargs="+", default=["auto"], help="thread, warp, cta, or auto: the default")
    parser.add_argument("--window", nargs="+", type=int, default=[0], help="0: the default")
    parser.add_argument("--patience", nargs="+", type=int, default=[-1], help="-1: the default")
    parser.add_argument("--fetch", nargs="+", type=int, default=[0], help="0: the default")
    parser.add_argument("--threads", nargs="+", type=int, default=[0], help="0: the default")
    parser.add_argument("--blocks", nargs="+", type=int, default=[0], help="0: as many as are resident")
    parser.add_argument("--persistent", nargs="+", type=int, default=[1])
    parser.add_argument("--barrier", nargs="+", type=int, default=[0])
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--permute", action="store_true")
    options = parser.parse_args()
    for spec in options.graphs:
        begin = time.perf_counter()
        graph, _ = load(spec)
        graph = permuted(graph) if options.permute else graph
        print(f"{spec}: {graph}, made in {time.perf_counter() - begin:.1f} s", flush=True)
        settings = itertools.product(
            options.order, options.worker, options.window, options.patience, options.fetch, options.threads, options.blocks,
            options.persistent, options.barrier,
        )  # fmt: skip
        for order, worker, window, patience, fetch, threads, blocks, persistent, barrier in settings:
            given = {
                "worker": "" if worker == "auto" else worker,
                "fetch_size": fetch,
                "num_threads": threads,
                "num_blocks": blocks,
                "window": window,
            }
            given = {name: value for name, value in given.items() if value}
            if patience >= 0:
                given["patience"] = patience
            runs, walls = [], []
            for _ in range(options.repeat + 1):
                begin = time.perf_counter()
                result = color(graph, order, persistent=bool(persistent), barrier=bool(barrier), **given)
                walls.append(1e3 * (time.perf_counter() - begin))
                verify(graph, result.colors)
                runs.append(result)
            stats = runs[-1].stats
            times = [run.stats.milliseconds for run in runs[1:]]
            colors = [run.num_colors for run in runs[1:]]
            ratio = statistics.mean(run.stats.tasks_run for run in runs[1:]) / max(graph.num_vertices, 1)
            print(
                f"{spec} {order:7} {worker:6} window {window:7} patience {patience:4} fetch {stats.fetch_size:4}"
                f" threads {stats.num_threads:4} blocks {stats.num_blocks:5} {stats.schedule:20}"
                f" min {min(times):8.3f} median {statistics.median(times):8.3f} ms, call {min(walls[1:]):8.3f} ms,"
                f" colours {min(colors)} to {max(colors)}, workload ratio {ratio:.4f}, rounds {stats.rounds}",
                flush=True,
            )


if __name__ == "__main__":
    main()
