"""Time atos_py on CPU threads against SciPy's graph functions and networkx's PageRank (SciPy's too), alternating, whole calls.

networkx gets its matrix made beforehand, and the largest tolerance with which its error is at most that of atos_py's result.
"""

from __future__ import annotations

import argparse
import functools
import os
import statistics
import time
from collections.abc import Callable
from unittest import mock

import networkx as nx
import numpy as np
import scipy.sparse.csgraph as csgraph
from numpy.typing import NDArray

import atos_py as atos
from atos_py.algorithms.bfs import DIRECTIONS
from atos_py.graph.spec import SPEC_HELP, graph_of, source_of
from atos_py.support.splitmix64 import splitmix64

DAMPING = 0.85
ALGORITHMS = ("bfs", "components", "forest", "pagerank", "strong")


def with_weights(graph: atos.Graph) -> atos.Graph:
    """Return an undirected graph with weights from 1 to 255, the same in both directions."""
    tails = np.repeat(np.arange(graph.num_vertices, dtype=np.uint64), graph.degrees())
    heads = graph.indices.to_numpy().astype(np.uint64)
    hashes = splitmix64(np.minimum(tails, heads) << np.uint64(32) | np.maximum(tails, heads))
    return atos.Graph.from_csr(graph.indptr, graph.indices, (1 + hashes % np.uint64(255)).astype(np.int32))


def exact_ranks(graph: atos.Graph) -> NDArray[np.float64]:
    """Return the ranks by a power iteration, until a step changes them by 1e-12."""
    matrix = graph.to_scipy().astype(np.float64).T
    degrees = graph.degrees()
    n, scale = graph.num_vertices, 1 / np.maximum(degrees, 1)
    ranks, change = np.full(n, 1 / n), 1.0
    while change > 1e-12:
        dangling = ranks[degrees == 0].sum()
        last, ranks = ranks, DAMPING * (matrix @ (ranks * scale)) + (1 - DAMPING + DAMPING * dangling) / n
        change = np.abs(ranks - last).sum()
    return ranks


def networkx_pagerank(graph: atos.Graph, error: float) -> Callable[[], object]:
    """Return a call of networkx's PageRank whose error is at most `error`."""
    exact = exact_ranks(graph)
    matrix, nodes = graph.to_scipy().astype(np.float64), nx.empty_graph(graph.num_vertices, create_using=nx.DiGraph)
    nodes.add_edge(0, 0)  # of a graph without edges it would not look at the matrix
    tolerance = 10 * error / graph.num_vertices

    def call() -> dict[int, float]:
        with mock.patch.object(nx, "to_scipy_sparse_array", return_value=matrix.copy()):
            return nx.pagerank(nodes, DAMPING, tol=tolerance, max_iter=1000)

    while np.abs(np.fromiter(call().values(), np.float64) - exact).sum() > error:
        tolerance /= 1.5
    return call


def milliseconds(call: Callable[[], object]) -> float:
    """Time one call."""
    begin = time.perf_counter()
    call()
    return (time.perf_counter() - begin) * 1e3


def compare(name: str, ours: Callable[[], object], theirs: Callable[[], object], repeat: int) -> None:
    """Print the medians, the least times, and their ratios."""
    ours(), theirs()
    pairs = [(milliseconds(ours), milliseconds(theirs)) for _ in range(repeat)]
    for what, value in (("median", statistics.median), ("least", min)):
        a, b = (value(times) for times in zip(*pairs, strict=True))
        print(f"{name}, {what}: atos_py {a:.1f} ms, theirs {b:.1f} ms, {b / a:.2f} times as fast", flush=True)


def main() -> None:
    """Print two rows for each algorithm, and direction of BFS."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--algorithm", nargs="+", choices=ALGORITHMS, default=ALGORITHMS)
    parser.add_argument("--graph", default="rmat:18:16", help=SPEC_HELP)
    parser.add_argument("--tolerance", type=float, default=5e-4)
    parser.add_argument("--repeat", type=int, default=15)
    options = parser.parse_args()
    graph = graph_of(options.graph, device="cpu")
    print(f"{options.graph}: {graph.num_vertices:,} vertices, {graph.num_edges:,} edges")
    if "bfs" in options.algorithm:
        source, matrix = source_of(options.graph, graph), graph.to_scipy()
        theirs = functools.partial(csgraph.breadth_first_order, matrix, source)
        for direction in DIRECTIONS if graph.is_symmetric() else DIRECTIONS[:1]:
            ours = functools.partial(atos.bfs, graph, source, direction=direction)
            atos.verify_bfs(graph, source, ours().depth)
            compare(f"BFS, direction {direction}", ours, theirs, options.repeat)
    if "components" in options.algorithm:
        matrix = graph.to_scipy().astype(np.float64)  # what SciPy computes with
        ours = functools.partial(atos.connected_components, graph)
        atos.verify_connected_components(graph, ours().label)
        theirs = functools.partial(csgraph.connected_components, matrix, directed=False)
        compare("connected components", ours, theirs, options.repeat)
    if "strong" in options.algorithm:
        directed = atos.generate.sample_edges(graph, 0.5)
        ours = functools.partial(atos.strongly_connected_components, directed)
        atos.verify_strongly_connected_components(directed, ours().label)
        matrix = directed.to_scipy().astype(np.float64)
        theirs = functools.partial(csgraph.connected_components, matrix, connection="strong")
        compare("strongly connected components", ours, theirs, options.repeat)
    if "forest" in options.algorithm:
        weighted = with_weights(graph)
        matrix = weighted.to_scipy().astype(np.float64)
        ours = functools.partial(atos.minimum_spanning_forest, weighted)
        atos.verify_minimum_spanning_forest(weighted, ours().edges, ours().edge_ids)
        compare("spanning forest", ours, functools.partial(csgraph.minimum_spanning_tree, matrix), options.repeat)
    if "pagerank" in options.algorithm:
        result = atos.pagerank(graph, DAMPING, options.tolerance)
        atos.verify_pagerank(graph, result, options.tolerance)
        error = float(np.abs(result.rank.to_numpy().astype(np.float64) - exact_ranks(graph)).sum())
        ours = functools.partial(atos.pagerank, graph, DAMPING, options.tolerance)
        compare(f"PageRank, error {error:.1e}", ours, networkx_pagerank(graph, error), options.repeat)


if __name__ == "__main__":
    os.environ.setdefault("ATOS_TIER", "best")  # first launches wait for the kernels that are timed
    main()
