"""Time batches of edges that are inserted into a graph and deleted again, with results that are kept up to date.

    python benchmarks/dynamic_graph.py rmat:22:16 --edges 1000000 --device cuda

Edges are random, their ends as likely as the ends of the graph's own edges. A row is the least and the median of ``--repeat``
whole calls in ms: of the edits alone, with `DynamicComponents` or `DynamicBFS`, and of `connected_components` or `bfs` from
scratch on the graph as it is then. Every result is proved once. On the CPU the edits are timed in Numba, too
(`numba_edits.py`), and the edges compared.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numba_edits import NumbaEdits

import atos_py as atos
from atos_py.graph.spec import SPEC_HELP, graph_of, source_of


def times(run: Callable[[int], Any], repeat: int) -> str:
    """Return the least and the median time of calls, after one that compiles."""
    found = []
    for k in range(repeat + 1):
        begin = time.perf_counter()
        run(k)
        found.append(1e3 * (time.perf_counter() - begin))
    return f"{min(found[1:]):.2f} | {statistics.median(found[1:]):.2f}"


def measure(spec: str, count: int, device: str | None, repeat: int) -> None:
    """Print the rows of a graph."""
    given = graph_of(spec, device=device).to_symmetric()
    source = source_of(spec, given)
    targets = given.indices.to_numpy()
    rng = np.random.default_rng(3)
    # On the device, as the edges of a stream would be.
    ends = [
        [atos.asarray(targets[rng.integers(targets.size, size=count)], device=given.device) for _ in range(2)]
        for _ in range(repeat + 1)
    ]
    for name, make in {
        "edits": lambda graph: None,
        "components": atos.DynamicComponents,
        "depths": lambda graph: atos.DynamicBFS(graph, source),
    }.items():
        graph = atos.DynamicGraph(given, undirected=True)
        kept = make(graph)
        inserting = times(lambda k, graph=graph: graph.insert_edges(*ends[k]), repeat)
        print(f"| {spec} | insert {count:,}, {name} | {inserting} |", flush=True)
        prove(graph, kept, source)
        deleting = times(lambda k, graph=graph: graph.delete_edges(*ends[k]), repeat)
        print(f"| {spec} | delete {count:,}, {name} | {deleting} |", flush=True)
        prove(graph, kept, source)
    if given.device.kind == "cpu":
        graph, host = atos.DynamicGraph(given, undirected=True), NumbaEdits(given, count, repeat + 1)
        batches = [np.stack([end.to_numpy() for end in batch]) for batch in ends]
        for verb, own, other in (("insert", graph.insert_edges, host.insert), ("delete", graph.delete_edges, host.delete)):
            for batch in batches:
                own(*batch)
            print(
                f"| {spec} | {verb} {count:,}, edits in Numba | {times(lambda k, run=other: run(batches[k]), repeat)} |",
                flush=True,
            )
            host.check(graph.to_graph())
    now = graph.to_graph()
    print(f"| {spec} | connected_components | {times(lambda _: atos.connected_components(now), repeat)} |")
    print(f"| {spec} | bfs | {times(lambda _: atos.bfs(now, source), repeat)} |", flush=True)


def prove(graph: atos.DynamicGraph, kept: Any, source: int) -> None:
    """Prove what is kept up to date."""
    now = graph.to_graph()
    if isinstance(kept, atos.DynamicComponents):
        atos.verify_connected_components(now, kept.label, kept.num_components)
    elif kept is not None:
        atos.verify_bfs(now, source, kept.depth)


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="+", metavar="GRAPH", help=SPEC_HELP)
    parser.add_argument("--edges", type=int, default=1_000_000, metavar="N", help="of a batch; default: 1000000")
    parser.add_argument("--device", default=None)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    print("| graph | | least, ms | median, ms |\n| --- | --- | --- | --- |")
    for spec in options.graphs:
        measure(spec, options.edges, options.device, options.repeat)


if __name__ == "__main__":
    os.environ.setdefault("ATOS_TIER", "best")  # first launches wait for the kernels that are timed
    main()
