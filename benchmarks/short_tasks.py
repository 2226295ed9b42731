"""Time shortest paths by tasks of a few lines, on a queue with buckets, and `atos.sssp`; print a verified table in Markdown.

    python benchmarks/short_tasks.py rmat:22:16 road:4900:0.62 --deltas 4 1000 --device cuda
    python benchmarks/short_tasks.py rmat:18:16 road:1000:0.62 --deltas 5 200 --device cpu

There is a delta for each graph. Edges weigh 1 to 255, in each direction by itself; loops and parallel edges are left out. The
tasks are those of docs/cookbook/priorities.md. Times are medians of kernels in ms, and every distance is proved.
"""

from __future__ import annotations

import argparse
import os
import statistics
from typing import Any

import numpy as np

import atos_py as atos
from atos_py.graph.spec import SPEC_HELP, graph_of, source_of

STEP = np.dtype([("vertex", np.uint32), ("distance", np.uint32)])


def out_edges(v, graph, distance, done):  # type: ignore[no-untyped-def]
    """Return the number of edges of a vertex, the first, and its distance."""
    first = graph.indptr[v]
    return graph.indptr[v + 1] - first, first, distance[v]


@atos.task(workload=out_edges)
def relax(worker, v, i, first, length, graph, distance, done):  # type: ignore[no-untyped-def]
    """Relax an edge, whether the item is out of date or not."""
    neighbor, candidate = graph.indices[first + i], length + graph.weights[first + i]
    if atos.atomic_min(distance, neighbor, candidate) > candidate:
        worker.push(neighbor, candidate)


def edges_if_current(item, graph, distance, done):  # type: ignore[no-untyped-def]
    """Return the number of edges, 0 if a shorter path has an item of its own."""
    v = item.vertex
    outdated = item.distance > distance[v]
    return 0 if outdated else graph.indptr[v + 1] - graph.indptr[v]


@atos.task(workload=edges_if_current)
def relax_record(worker, item, i, graph, distance, done):  # type: ignore[no-untyped-def]
    """Relax an edge by an item that has the distance."""
    edge = graph.indptr[item.vertex] + i
    neighbor, candidate = graph.indices[edge], item.distance + graph.weights[edge]
    if atos.atomic_min(distance, neighbor, candidate) > candidate:
        worker.push((neighbor, candidate), candidate)


def edges_if_new(v, graph, distance, done):  # type: ignore[no-untyped-def]
    """Return the number of edges, 0 if they were relaxed with this distance, and the distance."""
    length = distance[v]
    is_new = atos.atomic_min(done, v, length) > length
    return (graph.indptr[v + 1] - graph.indptr[v]) * is_new, length


@atos.task(workload=edges_if_new)
def relax_marked(worker, v, i, length, graph, distance, done):  # type: ignore[no-untyped-def]
    """Relax an edge of a vertex that is marked with its distance."""
    edge = graph.indptr[v] + i
    neighbor, candidate = graph.indices[edge], length + graph.weights[edge]
    if atos.atomic_min(distance, neighbor, candidate) > candidate:
        worker.push(neighbor, candidate)


def run(task: atos.Task | None, graph: atos.Graph, source: int, delta: float, options: dict[str, Any]) -> tuple[Any, Any]:
    """Return the distances and the statistics of one launch; of `atos.sssp` without a task."""
    if task is None:
        result = atos.sssp(graph, source)
        return result.distance, result.stats
    n, device = graph.num_vertices, graph.device
    distance, done = (atos.full(n, atos.UNREACHED, dtype=np.uint32, device=device) for _ in range(2))
    distance[source] = 0
    is_record = task is relax_record
    queue = atos.Queue(4 * n, dtype=STEP if is_record else np.uint32, device=device, buckets=64, delta=delta)
    queue.push(np.array([(source, 0)], STEP) if is_record else source, 0)
    return distance, queue.launch_cta(task, graph, distance, done, **options)


def main() -> None:
    """Run each task on each graph."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="+", metavar="GRAPH", help=SPEC_HELP)
    parser.add_argument("--deltas", nargs="+", type=float, required=True)
    parser.add_argument("--fetch-sizes", nargs="+", type=int, default=[128, 192])
    parser.add_argument("--device", default=None)
    parser.add_argument("--repeat", type=int, default=5)
    given = parser.parse_args()
    print("| graph | task | items of a batch | ms | tasks for each vertex reached |\n| --- | --- | --- | --- | --- |")
    for spec, delta in zip(given.graphs, given.deltas, strict=True):
        host = graph_of(spec, device="cpu").simplify(remove_loops=True, deduplicate=True)
        host, source = (
            host.with_weights(atos.generate.random_weights(host, 1, 255).to_numpy().astype(np.uint32)),
            source_of(spec, host),
        )
        graph = host.to(given.device)
        for task in (relax, relax_record, relax_marked, None):
            for fetch_size in given.fetch_sizes[: None if task else 1]:
                runs = [run(task, graph, source, delta, {"fetch_size": fetch_size}) for _ in range(given.repeat + 1)][1:]
                for distance, _ in runs:
                    atos.verify_sssp(host, source, distance)
                reached = np.count_nonzero(runs[0][0].to_numpy() != atos.UNREACHED)
                times, tasks = zip(*[(stats.milliseconds, stats.tasks_run / reached) for _, stats in runs], strict=True)
                name, batch = (task.name, fetch_size) if task else ("atos.sssp", runs[0][1].fetch_size)
                print(
                    f"| {spec} | {name} | {batch} | {statistics.median(times):.2f} | {statistics.median(tasks):.2f} |",
                    flush=True,
                )


if __name__ == "__main__":
    os.environ.setdefault("ATOS_TIER", "best")  # first launches wait for the kernels that are timed
    main()
