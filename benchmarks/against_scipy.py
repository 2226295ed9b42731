"""Time BFS on CPU threads against scipy.sparse.csgraph.breadth_first_order, alternating, on an R-MAT graph."""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
import scipy.sparse.csgraph as csgraph

import atos_py as atos
from atos_py.algorithms.bfs import verify


def main() -> None:
    """Print the medians and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=int, default=18)
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--fetch", type=int, default=None)
    options = parser.parse_args()
    graph = atos.generate.rmat(options.scale, 16, device="cpu")
    source = int(np.argmax(graph.degrees()))
    matrix = graph.to_scipy()
    ours, theirs = [], []
    for _ in range(options.repeat + 1):
        start = time.perf_counter()
        result = atos.bfs(graph, source, fetch_size=options.fetch)
        middle = time.perf_counter()
        csgraph.breadth_first_order(matrix, source, return_predecessors=True)
        end = time.perf_counter()
        ours.append((middle - start) * 1e3)
        theirs.append((end - middle) * 1e3)
        verify(graph, source, result.depth)
    a, b = statistics.median(ours[1:]), statistics.median(theirs[1:])
    print(f"R-MAT {options.scale}, {graph.num_edges:,} edges: atos_py {a:.1f} ms, scipy {b:.1f} ms, {b / a:.2f} times as fast")


if __name__ == "__main__":
    main()
