"""Time `atos.sssp` for several widths of a bucket, whole calls and kernels, and print a verified table in Markdown.

    python benchmarks/shortest_paths.py road:1000:0.62 rmat:16:16 --deltas auto 10 100 1000 --device cuda

Edges of a generated graph weigh 1 to `--most`, the same in both directions; a file's own weights are taken if it has some. With
`--scipy`, SciPy's Dijkstra takes its turn after each call, from the same arrays in float64, made beforehand.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse import csgraph

import atos_py as atos
from atos_py.graph.spec import SPEC_HELP, graph_of, source_of


def milliseconds(call: Any) -> tuple[float, Any]:
    """Time one call; return its result too."""
    begin = time.perf_counter()
    result = call()
    return (time.perf_counter() - begin) * 1e3, result


def main() -> None:
    """Run each graph with each delta, some times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="+", metavar="GRAPH", help=SPEC_HELP)
    parser.add_argument("--deltas", nargs="+", default=["auto", "10", "100", "1000"])
    parser.add_argument("--device", default=None)
    parser.add_argument("--worker", choices=("thread", "warp", "cta"), default="cta")
    parser.add_argument("--barrier", action="store_true")
    parser.add_argument("--discrete", action="store_true", help="persistent=False")
    parser.add_argument("--dtype", default="uint32", help="of the weights of a generated graph")
    parser.add_argument("--most", type=int, default=255, help="the largest weight")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--scipy", action="store_true", help="time SciPy's Dijkstra in turns")
    given = parser.parse_args()

    print("| graph | delta | call, ms | kernels, ms | tasks per vertex reached | SciPy, ms |")
    print("| --- " + "| ---: " * 5 + "|")
    for spec in given.graphs:
        graph = atos.Graph.load(spec, device="cpu") if Path(spec).is_file() else graph_of(spec, device="cpu")
        if graph.weights is None:
            weights = atos.generate.random_weights(graph, 1, given.most).to_numpy().astype(given.dtype)
            graph = atos.Graph.from_csr(graph.indptr, graph.indices, weights, device="cpu")
        for delta in given.deltas:
            run(given, spec, "auto" if delta == "auto" else float(delta), graph)


def run(given: argparse.Namespace, spec: str, delta: Any, graph: atos.Graph) -> None:
    """Time one delta, and print a row of the table."""
    start, on_device = source_of(spec, graph), graph.to(given.device)
    options = {"delta": delta, "worker": given.worker, "barrier": given.barrier, "persistent": not given.discrete}
    size = 2 * (graph.num_vertices,)
    rows = graph.indices.to_numpy().astype(np.int32), graph.indptr.to_numpy()
    matrix = scipy.sparse.csr_array((np.asarray(graph.weights, dtype=np.float64), *rows), shape=size)
    result = atos.sssp(on_device, start, **options)  # which compiles
    atos.verify_sssp(graph, start, result.distance)
    calls, kernels, theirs = [], [], []
    for _ in range(given.repeat):
        took, result = milliseconds(lambda: atos.sssp(on_device, start, **options))
        calls.append(took)
        kernels.append(result.stats.milliseconds)
        if given.scipy:
            theirs.append(milliseconds(lambda: csgraph.dijkstra(matrix, indices=start))[0])
    distance = np.asarray(result.distance)
    reached = np.count_nonzero(distance != (np.inf if distance.dtype.kind == "f" else np.iinfo(distance.dtype).max))
    times = [statistics.median(each) if each else float("nan") for each in (calls, kernels, theirs)]
    tasks = result.stats.tasks_run / reached
    print(f"| {spec} | {delta} | {times[0]:.1f} | {times[1]:.1f} | {tasks:.2f} | {times[2]:.1f} |", flush=True)


if __name__ == "__main__":
    os.environ.setdefault("ATOS_TIER", "best")  # first launches wait for the kernels that are timed
    main()
