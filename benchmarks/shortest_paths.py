"""Time shortest paths by priorities for several widths of a bucket, and print a table in Markdown; every result is verified.

    python benchmarks/shortest_paths.py road:1000:0.62 rmat:16:16 --deltas none auto 10 100 1000 --device cuda

Edges of a generated graph weigh 1 to `--most`, the same in both directions; a file's own weights are taken if it has some. The
delta `none` is a queue without buckets. A result is verified by a certificate: no edge shortens a distance, and each vertex
reached but the source has an edge that explains its distance. Weights are positive, so that is a proof.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path
from typing import Any

import numpy as np

import atos_py as atos
from atos_py.graph.spec import SPEC_HELP, graph_of, source_of

STEP = np.dtype([("vertex", np.uint32), ("distance", np.uint32)])


def out_edges(v, indptr, indices, weights, distance):
    """Return the number of edges of a vertex, the first one, and the distance."""
    return indptr[v + 1] - indptr[v], indptr[v], distance[v]


@atos.task(workload=out_edges)
def relax(worker, v, i, first, length, indptr, indices, weights, distance):
    """Relax an edge, and push its end with its distance as priority."""
    neighbor, candidate = indices[first + i], length + weights[first + i]
    if atos.atomic_min(distance, neighbor, candidate) > candidate:
        worker.push(neighbor, candidate)


@atos.task(workload=out_edges)
def relax_in_order_of_arrival(worker, v, i, first, length, indptr, indices, weights, distance):
    """Relax an edge, and push its end."""
    neighbor, candidate = indices[first + i], length + weights[first + i]
    if atos.atomic_min(distance, neighbor, candidate) > candidate:
        worker.push(neighbor)


def edges_if_current(item, indptr, indices, weights, distance):
    """Return the number of edges of a vertex unless a shorter path to it is known, the first one, and the distance."""
    outdated = item.distance > distance[item.vertex]
    return 0 if outdated else indptr[item.vertex + 1] - indptr[item.vertex], indptr[item.vertex], item.distance


@atos.task(workload=edges_if_current)
def relax_current(worker, item, i, first, length, indptr, indices, weights, distance):
    """Relax an edge, and push its end together with its distance."""
    neighbor, candidate = indices[first + i], length + weights[first + i]
    if atos.atomic_min(distance, neighbor, candidate) > candidate:
        worker.push((neighbor, candidate), candidate)


def is_proved(source: Any, target: Any, weights: Any, distance: Any, start: int) -> bool:
    """Whether these are the shortest distances: no edge shortens one, and an edge explains each."""
    reached = distance != atos.UNREACHED
    used = reached[source]
    through, ends = distance[source[used]].astype(np.int64) + weights[used], target[used]
    explained = ~reached
    explained[ends[through == distance[ends]]] = True
    explained[start] = True
    return bool(distance[start] == 0 and (distance[ends] <= through).all() and explained.all())


def main() -> None:
    """Run each graph with each delta, some times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="+", metavar="GRAPH", help=SPEC_HELP)
    parser.add_argument("--deltas", nargs="+", default=["none", "auto", "10", "100", "1000"])
    parser.add_argument("--device", default=None)
    parser.add_argument("--worker", choices=("thread", "warp", "cta"), default="cta")
    parser.add_argument("--barrier", action="store_true")
    parser.add_argument("--discrete", action="store_true", help="persistent=False")
    parser.add_argument(
        "--records", action="store_true", help="items hold their distance, so that tasks skip those out of date"
    )
    parser.add_argument("--buckets", type=int, default=64)
    parser.add_argument("--most", type=int, default=255, help="the largest weight")
    parser.add_argument("--repeat", type=int, default=5)
    given = parser.parse_args()

    print(
        "| graph | delta | ms, median | fastest | tasks per vertex reached | grown |",
        "| --- | ---: " + "| ---: " * 4 + "|",
        sep="\n",
    )
    for spec in given.graphs:
        graph = atos.Graph.load(spec, device="cpu") if Path(spec).is_file() else graph_of(spec, device="cpu")
        start = source_of(spec, graph)
        target = graph.indices.to_numpy()
        source = np.repeat(np.arange(graph.num_vertices, dtype=np.uint32), graph.degrees())
        drawn = atos.generate.random_weights(graph, 1, given.most) if graph.weights is None else graph.weights
        weights = drawn.to_numpy().astype(np.uint32)
        if not (weights > 0).all():
            raise SystemExit(f"{spec}: weights have to be positive integers")
        host = graph.indptr.to_numpy(), target, weights
        arrays = [atos.asarray(part, device=given.device, copy=True, readonly=True) for part in host]
        for delta in given.deltas:
            run(given, spec, delta, arrays, (source, target, weights), start)


def run(given: argparse.Namespace, spec: str, delta: str, arrays: list[Any], edges: tuple[Any, ...], start: int) -> None:
    """Time one delta, and print a row of the table."""
    n = len(arrays[0]) - 1
    ordered = delta != "none"
    options: dict[str, Any] = {"dtype": STEP if given.records and ordered else np.uint32, "device": given.device}
    if ordered:
        options |= {"buckets": given.buckets, "delta": delta if delta == "auto" else float(delta)}
    queue = atos.Queue(2 * n, **options)
    task = (relax_current if given.records else relax) if ordered else relax_in_order_of_arrival
    distance = atos.full(n, atos.UNREACHED, dtype=np.uint32, device=given.device)
    times = []
    for turn in range(given.repeat + 1):  # the first one compiles
        distance[...] = atos.UNREACHED
        distance[start] = 0
        queue.push((start, 0) if task is relax_current else start)
        launch = getattr(queue, f"launch_{given.worker}")
        stats = launch(task, *arrays, distance, barrier=given.barrier, persistent=not given.discrete)
        if turn:
            times.append(stats.milliseconds)
    found = distance.to_numpy()
    if not is_proved(*edges, found, start):
        raise SystemExit(f"{spec}, delta {delta}: wrong distances")
    tasks = stats.tasks_run / np.count_nonzero(found != atos.UNREACHED)
    print(f"| {spec} | {delta} | {statistics.median(times):.2f} | {min(times):.2f} | {tasks:.2f} | {stats.grown} |", flush=True)


if __name__ == "__main__":
    main()
