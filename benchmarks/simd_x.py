"""Time programs of `atos_py.acc` against tasks by hand and the algorithms of the package, and print a table in Markdown.

    python benchmarks/simd_x.py rmat:22:16 road:4900:0.62 --device cuda

Milliseconds are those of kernels: the least and the median of ``--repeat`` runs, in which the two of a row take turns, and the
ratio of the medians. Every result is proved once, in a run that compiles. Edges weigh 1 to 255. A round of PageRank is the
difference between two runs, divided by that of their rounds.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import atos_py as atos
from atos_py import acc
from atos_py.acc import programs
from atos_py.algorithms.sssp.distances import suit_delta
from atos_py.graph.spec import SPEC_HELP, graph_of, source_of

K = 16
BFS_BY_MINIMUM = acc.Program(programs.next_level, acc.MIN)
Run = Callable[[], tuple[float, Callable[[], Any]]]  # returns milliseconds, and what proves the result


def edges_of(v, graph, depth):  # type: ignore[no-untyped-def]
    """Return how many edges v has, the first, and the depth of their ends."""
    first = graph.indptr[v]
    return np.int64(graph.indptr[v + 1] - first), first, depth[v] + 1


@atos.task(workload=edges_of)
def visit_in_rounds(worker, v, i, first, next_depth, graph, depth):  # type: ignore[no-untyped-def]
    """Push the end of an edge if nobody has reached it."""
    u = graph.indices[first + i]
    if depth[u] == atos.UNREACHED and atos.atomic_cas(depth, u, atos.UNREACHED, next_depth) == atos.UNREACHED:
        worker.push(u)


@atos.task(workload=edges_of)
def visit_by_minimum(worker, v, i, first, next_depth, graph, depth):  # type: ignore[no-untyped-def]
    """Push the end of an edge if it is less deep than anybody knew."""
    u = graph.indices[first + i]
    if atos.atomic_min(depth, u, next_depth) > next_depth:
        worker.push(u)


def edges_of_leaving(v, graph, degree, k):  # type: ignore[no-untyped-def]
    """Return how many edges v has, and the first."""
    first = graph.indptr[v]
    return np.int64(graph.indptr[v + 1] - first), first


@atos.task(workload=edges_of_leaving)
def leave(worker, v, i, first, graph, degree, k):  # type: ignore[no-untyped-def]
    """Take an edge from its end, and push that if it has too few now."""
    u = graph.indices[first + i]
    if degree[u] >= k and atos.atomic_add(degree, u, -1) == k:
        worker.push(u)


def pairs(graph: atos.Graph, host: atos.Graph, source: int) -> Iterator[tuple[str, Run, Run]]:
    """Yield what is compared on a graph: its name, the program, and the other."""
    n, device = graph.num_vertices, graph.device

    def start() -> atos.Array:
        depth = atos.full(n, atos.UNREACHED, dtype=np.uint32, device=device)
        depth[source] = 0
        return depth

    def is_bfs(stats: atos.LaunchStats, depth: Any) -> tuple[float, Callable[[], Any]]:
        return stats.milliseconds, lambda: atos.verify_bfs(host, source, depth)

    def by_hand(task: atos.Task, **options: Any) -> Run:
        def run() -> tuple[float, Callable[[], Any]]:
            depth, queue = start(), atos.Queue(2 * n, device=device)
            queue.push(source)
            return is_bfs(queue.launch_cta(task, graph, depth, **options), depth)

        return run

    def by_program(program: acc.Program, **options: Any) -> Run:
        def run() -> tuple[float, Callable[[], Any]]:
            depth = start()
            return is_bfs(program.run(graph, depth, start=source, **options), depth)

        return run

    def atos_bfs() -> tuple[float, Callable[[], Any]]:
        result = atos.bfs(graph, source)
        return is_bfs(result.stats, result.depth)

    in_rounds = by_hand(visit_in_rounds, barrier=True)
    yield "BFS, online / by hand, in rounds", by_program(programs.BFS, filter="online"), in_rounds
    yield "BFS, jit / by hand, in rounds", by_program(programs.BFS, filter="jit"), in_rounds
    relaxed = by_program(BFS_BY_MINIMUM, barrier=False)
    yield "BFS by minimum / by hand, without rounds", relaxed, by_hand(visit_by_minimum)
    yield "BFS, auto / atos.bfs", by_program(programs.BFS, direction="auto"), atos_bfs
    yield "BFS, auto, all in one kernel / atos.bfs", by_program(programs.BFS, direction="auto", fuse="all"), atos_bfs

    weighted = graph.with_weights(atos.generate.random_weights(graph, 1, 255).to_numpy().astype(np.float32))
    delta = suit_delta(weighted, "auto")

    def sssp(distance: Any, stats: atos.LaunchStats) -> tuple[float, Callable[[], Any]]:
        return stats.milliseconds, lambda: atos.verify_sssp(weighted.to("cpu"), source, distance)

    def atos_sssp() -> tuple[float, Callable[[], Any]]:
        result = atos.sssp(weighted, source)
        return sssp(result.distance, result.stats)

    yield "SSSP, by arrival / atos.sssp", lambda: sssp(*programs.sssp(weighted, source, barrier=False)), atos_sssp
    yield f"SSSP, delta {delta:.4g} / atos.sssp", lambda: sssp(*programs.sssp(weighted, source, delta=delta)), atos_sssp

    def k_core(members: Any, stats: atos.LaunchStats) -> tuple[float, Callable[[], Any]]:
        return stats.milliseconds, lambda: atos.verify_k_core(host, K, members)

    def atos_k_core() -> tuple[float, Callable[[], Any]]:
        result = atos.k_core(graph, K)
        return k_core(result.members, result.stats)

    def k_core_by_hand(**options: Any) -> Run:
        def run() -> tuple[float, Callable[[], Any]]:
            degrees = graph.degrees().astype(np.int32)
            degree, queue = atos.asarray(degrees, device=device, copy=True), atos.Queue(2 * n, device=device)
            queue.push(np.flatnonzero(degrees < K).astype(np.uint32))
            stats = queue.launch_cta(leave, graph, degree, K, **options)
            return k_core(degree.to_numpy() >= K, stats)

        return run

    def k_core_by_program(**options: Any) -> Run:
        return lambda: k_core(*programs.k_core(graph, K, **options))

    in_rounds = k_core_by_hand(barrier=True)
    yield f"{K}-core, online / by hand, in rounds", k_core_by_program(filter="online"), in_rounds
    yield f"{K}-core, jit / by hand, in rounds", k_core_by_program(filter="jit"), in_rounds
    yield f"{K}-core / by hand, without rounds", k_core_by_program(barrier=False), k_core_by_hand()
    yield f"{K}-core, without rounds / atos.k_core", k_core_by_program(barrier=False), atos_k_core

    def a_round(run: Callable[[int], tuple[Any, atos.LaunchStats, int]]) -> Run:
        def difference() -> tuple[float, Callable[[], Any]]:
            (_, few, a), (rank, many, b) = run(0), run(1)
            return (many.milliseconds - few.milliseconds) / max(b - a, 1), lambda: atos.verify_pagerank(host, rank, 0.5)

        return difference

    def program_rounds(more: int) -> tuple[Any, atos.LaunchStats, int]:
        rank, stats = programs.pagerank(graph, tolerance=0.0, rounds=10 + 20 * more)
        return rank, stats, len(stats.frontiers)

    def atos_rounds(more: int) -> tuple[Any, atos.LaunchStats, int]:
        result = atos.pagerank(graph, tolerance=(1e-2, 1e-5)[more], find="gather")
        return result.rank, result.stats, result.stats.rounds

    yield "PageRank, a round / atos.pagerank", a_round(program_rounds), a_round(atos_rounds)


def main() -> None:
    """Print a row for each pair on each graph."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="+", metavar="GRAPH", help=SPEC_HELP)
    parser.add_argument("--device", default=None)
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--only", default="", help="rows with this in their name")
    given = parser.parse_args()
    print("| graph | program / other | program, ms: least, median | other, ms: least, median | ratio |")
    print("| --- | --- | ---: | ---: | ---: |")
    for spec in given.graphs:
        host = graph_of(spec, device="cpu").with_weights(None).simplify(remove_loops=True, deduplicate=True)
        for name, *runs in pairs(host.to(given.device), host, source_of(spec, host)):
            if given.only not in name:
                continue
            for run in runs:
                run()[1]()
            times = [[run()[0] for run in runs] for _ in range(given.repeat)]
            cells = [(min(each), statistics.median(each)) for each in zip(*times, strict=True)]
            shown = " | ".join(f"{least:.3f}, {median:.3f}" for least, median in cells)
            print(f"| {spec} | {name} | {shown} | {cells[0][1] / cells[1][1]:.3f} |", flush=True)


if __name__ == "__main__":
    os.environ.setdefault("ATOS_TIER", "best")  # first launches wait for the kernels that are timed
    main()
