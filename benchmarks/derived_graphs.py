"""Time what is derived from graphs on CPU threads against SciPy's sparse matrices, alternating, whole calls with weights.

    python benchmarks/derived_graphs.py rmat:18 road:1000

Prints a table in Markdown: medians in ms, and for orders the bandwidths. The results are compared before they are timed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse.csgraph as csgraph

import atos_py as atos
from atos_py.graph.spec import SPEC_HELP, graph_of


def milliseconds(call: Callable[[], Any]) -> float:
    """Time one call."""
    begin = time.perf_counter()
    call()
    return (time.perf_counter() - begin) * 1e3


def bandwidth(graph: atos.Graph) -> int:
    """Return the largest difference of the ids of neighbors."""
    sources = np.repeat(np.arange(graph.num_vertices), graph.degrees())
    return int(np.abs(sources - graph.indices[:].astype(np.int64)).max(initial=0))


def largest_by_scipy(matrix: Any) -> Any:
    """Return the rows and columns of the largest component."""
    labels = csgraph.connected_components(matrix, directed=False)[1]
    chosen = np.flatnonzero(labels == np.bincount(labels).argmax())
    return matrix[chosen][:, chosen]


def compare(spec: str, repeat: int) -> None:
    """Print the rows of one graph."""
    graph = graph_of(spec, device="cpu").reorder("random")[0]
    graph = graph.with_weights(atos.generate.random_weights(graph, 1, 255))
    matrix = graph.to_scipy()
    half = np.random.default_rng(0).permutation(graph.num_vertices)[: graph.num_vertices // 2]

    def fresh() -> atos.Graph:
        """Return the graph as one of which nothing is kept."""
        return atos.Graph(graph.indptr, graph.indices, atos.asarray(graph.weights, copy=True, readonly=True))

    def reorder_by_scipy() -> Any:
        order = csgraph.reverse_cuthill_mckee(matrix, symmetric_mode=True)
        return matrix[order][:, order]

    calls: dict[str, tuple[Callable[[], atos.Graph], Callable[[], Any]]] = {
        "transpose": (lambda: fresh().transpose(), lambda: matrix.T.tocsr()),
        "half of the vertices": (lambda: graph.subgraph(half)[0], lambda: matrix[half][:, half]),
        "largest component": (lambda: graph.largest_component()[0], lambda: largest_by_scipy(matrix)),
        "reverse Cuthill-McKee": (lambda: graph.reorder("rcm")[0], reorder_by_scipy),
    }
    for name, (ours, theirs) in calls.items():
        found, expected = ours(), theirs()
        note = ""
        if name == "reverse Cuthill-McKee":
            note = f"bandwidth {bandwidth(found):,}, SciPy's {bandwidth(atos.Graph.from_scipy(expected, device='cpu')):,}"
        elif (found.to_scipy() != expected).nnz:
            raise SystemExit(f"{spec}, {name}: not the graph that SciPy makes")
        times = [(milliseconds(ours), milliseconds(theirs)) for _ in range(repeat)]
        mine, scipy = (statistics.median(column) for column in zip(*times, strict=True))
        print(f"| {spec} | {name} | {mine:.0f} | {scipy:.0f} | {note} |", flush=True)


def main() -> None:
    """Compare each graph."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="+", metavar="GRAPH", help=SPEC_HELP)
    parser.add_argument("--repeat", type=int, default=5)
    given = parser.parse_args()
    print("| graph | | atos_py | SciPy | |", "| --- | --- | ---: | ---: | --- |", sep="\n")
    for spec in given.graphs:
        compare(spec, given.repeat)


if __name__ == "__main__":
    os.environ.setdefault("ATOS_TIER", "best")  # first launches wait for the kernels that are timed
    main()
