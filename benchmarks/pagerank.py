"""Time PageRank over ways to find work, worker sizes and schedules.

The error is that against a float64 power iteration to 1e-12, and every result is verified.

Example: ``python benchmarks/pagerank.py rmat:22:16 road:4900:0.62 --fetch 32 128 --threads 256 512``

With ``--networkx``, the time of networkx's PageRank to the same error as well, without that of making its matrix.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from unittest import mock

import numpy as np
from bfs import load
from numpy.typing import NDArray

import atos_py as atos
from atos_py.algorithms.pagerank import pagerank, verify


def exact_ranks(graph: atos.Graph, damping: float) -> NDArray[np.float64]:
    """Return the ranks by a power iteration, until a step changes them by 1e-12."""
    matrix = graph.to_scipy().astype(np.float64).T
    degrees = graph.degrees()
    n, scale = graph.num_vertices, 1 / np.maximum(degrees, 1)
    ranks, change = np.full(n, 1 / n), 1.0
    while change > 1e-12:
        dangling = ranks[degrees == 0].sum()
        last, ranks = ranks, damping * (matrix @ (ranks * scale)) + (1 - damping + damping * dangling) / n
        change = np.abs(ranks - last).sum()
    return ranks


def time_networkx(graph: atos.Graph, damping: float, error: float, exact: NDArray[np.float64]) -> str:
    """Run networkx's PageRank, with a matrix made beforehand, until its error is at most `error`."""
    import networkx as nx

    matrix, nodes = graph.to_scipy().astype(np.float64), nx.empty_graph(graph.num_vertices, create_using=nx.DiGraph)
    nodes.add_edge(0, 0)  # of a graph without edges it would not look at the matrix
    tolerance = 10 * error / graph.num_vertices
    while True:
        with mock.patch.object(nx, "to_scipy_sparse_array", return_value=matrix.copy()):
            start = time.perf_counter()
            ranks = nx.pagerank(nodes, damping, tol=tolerance, max_iter=1000)
            seconds = time.perf_counter() - start
        found = np.abs(np.fromiter(ranks.values(), np.float64) - exact).sum()
        if found <= error:
            return f"networkx {1e3 * seconds:.1f} ms, error {found:.2e}"
        tolerance /= 1.5


def main() -> None:
    """Run what the command line says, and print a row for each setting."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="+", help="rmat:SCALE:EDGE_FACTOR, road:SIDE:KEEP, or a file")
    parser.add_argument("--tolerance", nargs="+", type=float, default=[5e-4])
    parser.add_argument("--damping", type=float, default=0.85)
    parser.add_argument("--find", nargs="+", default=["sweep", "push"])
    parser.add_argument("--dtype", nargs="+", default=["float32"])
    parser.add_argument("--worker", nargs="+", default=["cta"])
    parser.add_argument("--fetch", nargs="+", type=int, default=[128])
    parser.add_argument("--threads", nargs="+", type=int, default=[256])
    parser.add_argument("--blocks", nargs="+", type=int, default=[0], help="0: as many as are resident")
    parser.add_argument("--persistent", nargs="+", type=int, default=[1])
    parser.add_argument("--barrier", nargs="+", type=int, default=[0])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--networkx", action="store_true")
    options = parser.parse_args()
    for spec in options.graphs:
        begin = time.perf_counter()
        graph, _ = load(spec)
        made = time.perf_counter() - begin
        exact = exact_ranks(graph, options.damping)
        print(f"{spec}: {graph}, made in {made:.1f} s, solved in {time.perf_counter() - begin - made:.1f} s", flush=True)
        settings = itertools.product(
            options.tolerance, options.find, options.dtype, options.worker, options.fetch, options.threads, options.blocks,
            options.persistent, options.barrier,
        )  # fmt: skip
        for tolerance, find, dtype, worker, fetch, threads, blocks, persistent, barrier in settings:
            runs, walls = [], []
            for _ in range(options.repeat + 1):
                begin = time.perf_counter()
                result = pagerank(
                    graph, options.damping, tolerance, dtype=dtype, find=find, worker=worker, fetch_size=fetch,
                    num_threads=threads, num_blocks=blocks or None, persistent=bool(persistent), barrier=bool(barrier),
                )  # fmt: skip
                walls.append(1e3 * (time.perf_counter() - begin))
                runs.append(result.stats)
                verify(graph, result, tolerance, damping=options.damping)
            times = [run.milliseconds for run in runs[1:]]
            error = np.abs(result.rank.to_numpy().astype(np.float64) - exact).sum()
            print(
                f"{spec} {tolerance:.0e} {find:5} {dtype} {worker:6} fetch {fetch:4} threads {threads:4}"
                f" blocks {runs[-1].num_blocks:5} {runs[-1].schedule:20}"
                f" min {min(times):8.3f} median {statistics.median(times):8.3f} ms, call {min(walls[1:]):8.3f} ms,"
                f" error {error:.2e} <= {result.error_bound:.2e} tasks {runs[-1].tasks_run:,} rounds {runs[-1].rounds}",
                flush=True,
            )
        if options.networkx:
            for tolerance in options.tolerance:
                print(f"{spec} {tolerance:.0e} {time_networkx(graph, options.damping, tolerance, exact)}", flush=True)


if __name__ == "__main__":
    main()
