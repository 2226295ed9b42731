"""Time atos_py on a GPU against CuPy and PyTorch, whose sparse products are those of cuSPARSE: calls, all in one process.

Of the three, their matrices lie on the GPU before the clock starts. PageRank is power iteration with the products of each
library until its error is proved to be small enough: that of an iteration is at most d / (1 - d) times the L1 norm of the last
change. BFS multiplies by the frontier in each level. Triangles of a vertex are half the row sums of (A A) * A. CuPy and PyTorch
have no other algorithm of `atos_py`. Each result is proved once, by the verifiers of `atos_py`.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import cupy as cp
import cupyx.scipy.sparse as sparse
import numpy as np

import atos_py as atos
from atos_py.graph.spec import SPEC_HELP, graph_of

DAMPING = 0.85
LARGE = 40  # the largest degree of meshes. Products A A of other graphs do not fit into memory


def matrix_of(graph: atos.Graph) -> Any:
    """Return the adjacency matrix, on the GPU, of a graph without weights."""
    parts = cp.ones(graph.num_edges, np.float32), cp.asarray(graph.indices, np.int32), cp.asarray(graph.indptr, np.int32)
    return sparse.csr_matrix(parts, shape=(graph.num_vertices,) * 2)


def rank_by(product: Callable[[Any], Any], degrees: Any, ones: Any, total: Callable[[Any], float], tolerance: float) -> Any:
    """Return ranks by power iteration, of arrays of any library with the syntax of NumPy."""
    n = len(degrees)
    share, is_dangling = 1 / degrees.clip(1), degrees == 0
    rank = ones / n
    while True:
        lost = total(rank * is_dangling)
        after = DAMPING * product(rank * share) + ((1 - DAMPING) + DAMPING * lost) / n
        error = total(abs(after - rank)) * DAMPING / (1 - DAMPING)
        rank = after
        if error <= tolerance:
            return rank


def depths_by_cupy(matrix: Any, source: int) -> Any:
    """Return BFS depths of a symmetric matrix, a product with the frontier a level."""
    depth = cp.full(matrix.shape[0], atos.UNREACHED, np.uint32)
    depth[source], level, frontier = 0, 0, cp.zeros(matrix.shape[0], np.float32)
    frontier[source] = 1
    while True:
        level += 1
        reached = (matrix @ frontier > 0) & (depth == atos.UNREACHED)
        if not reached.any():
            return depth
        depth[reached] = level
        frontier = reached.astype(np.float32)


def mesh(side: int) -> atos.Graph:
    """Return a grid of squares, each of which has a diagonal: two triangles a square."""
    index = cp.arange(side * side, dtype=np.uint32).reshape(side, side)
    ends = ((index[:, :-1], index[:, 1:]), (index[:-1], index[1:]), (index[:-1, :-1], index[1:, 1:]))
    tails, heads = (cp.concatenate([pair[k].ravel() for pair in ends]) for k in (0, 1))
    return atos.Graph.from_edges(tails, heads, num_vertices=side * side, symmetrize=True, device="cuda")


def on_host(array: Any) -> np.ndarray[Any, Any]:
    """Return an array of any library on the GPU as one of NumPy."""
    return cp.asarray(array).get()  # type: ignore[no-any-return]


def milliseconds(call: Callable[[], Any], repeat: int) -> str:
    """Return the median of the whole calls, after two."""
    times = []
    for _ in range(repeat + 2):
        cp.cuda.Device().synchronize()
        begin = time.perf_counter()
        call()
        cp.cuda.Device().synchronize()
        times.append(1e3 * (time.perf_counter() - begin))
    return f"{statistics.median(times[2:]):.2f}"


def rows_of(spec: str, graph: atos.Graph, tolerance: float, repeat: int) -> list[tuple[str, ...]]:
    """Return what was called, on what graph, and the times of atos_py, CuPy and PyTorch."""
    matrix, degrees = matrix_of(graph), cp.asarray(np.asarray(graph.degrees(), np.float32))
    host, source = graph.to("cpu"), int(cp.argmax(degrees))
    rows: list[tuple[str, ...]] = []

    def ranks_by_cupy() -> Any:
        ones = cp.ones(len(degrees), np.float32)
        return rank_by(lambda x: matrix @ x, degrees, ones, lambda x: float(x.sum()), tolerance)

    atos.verify_pagerank(host, on_host(atos.pagerank(graph, tolerance=tolerance).rank), tolerance)
    atos.verify_pagerank(host, on_host(ranks_by_cupy()), 2 * tolerance)  # sums in float32
    torch_time = "-"
    try:
        import torch
    except ImportError:
        pass
    else:
        parts = [torch.from_numpy(part.get()).cuda() for part in (matrix.indptr, matrix.indices, matrix.data, degrees)]
        there = torch.sparse_csr_tensor(*parts[:3], matrix.shape)

        def ranks_by_torch() -> Any:
            return rank_by(lambda x: there @ x, parts[3], torch.ones_like(parts[3]), lambda x: float(x.sum()), tolerance)

        atos.verify_pagerank(host, on_host(ranks_by_torch()), 2 * tolerance)
        torch_time = milliseconds(ranks_by_torch, repeat)
        del there, parts
    ours = milliseconds(lambda: atos.pagerank(graph, tolerance=tolerance), repeat)
    rows.append(("pagerank", spec, ours, milliseconds(ranks_by_cupy, repeat), torch_time))
    if graph.max_degree > LARGE:  # few levels: thousands, with a product for each, take seconds
        depth = on_host(atos.bfs(graph, source).depth)
        atos.verify_bfs(host, source, depth)
        assert np.array_equal(on_host(depths_by_cupy(matrix, source)), depth)
        ours = milliseconds(lambda: atos.bfs(graph, source), repeat)
        rows.append(("bfs", spec, ours, milliseconds(lambda: depths_by_cupy(matrix, source), repeat), "-"))
    found = atos.count_triangles(graph)
    ours = milliseconds(lambda: atos.count_triangles(graph), repeat)
    theirs = "-"
    if graph.max_degree <= LARGE:

        def triangles_by_cupy() -> Any:
            return (matrix @ matrix).multiply(matrix).sum(axis=1) / 2

        assert np.array_equal(on_host(triangles_by_cupy()).ravel(), on_host(found.triangles))
        theirs = milliseconds(triangles_by_cupy, min(repeat, 3))
    rows.append((f"count_triangles: {found.total}", spec, ours, theirs, "-"))
    return rows


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graph", nargs="*", default=["rmat:22:16", "road:4900:0.62"], help=SPEC_HELP)
    parser.add_argument("--mesh", type=int, default=4900, help="the side of a mesh of triangles; 0: none")
    parser.add_argument("--tolerance", type=float, default=5e-4, help="of ranks, relative L1 (default: 5e-4)")
    parser.add_argument("--repeat", type=int, default=7)
    options = parser.parse_args()
    graphs: dict[str, Callable[[], atos.Graph]] = {}
    for spec in options.graph:
        graphs[spec] = lambda spec=spec: graph_of(spec, device="cuda")  # type: ignore[misc]
    if options.mesh:
        graphs[f"mesh:{options.mesh}"] = lambda: mesh(options.mesh)
    print("| call | graph | atos_py | CuPy | PyTorch |\n| --- | --- | --- | --- | --- |")
    for spec, make in graphs.items():
        for row in rows_of(spec, make(), options.tolerance, options.repeat):
            print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    os.environ.setdefault("ATOS_TIER", "best")  # first launches wait for the kernels that are timed
    main()
