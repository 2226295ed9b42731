"""Time algorithms over several devices against one of them, in turns, and print a verified table in Markdown.

    python benchmarks/several_devices.py rmat:24:16 road:4900:0.62 --devices cuda:0 cuda:1
    python benchmarks/several_devices.py rmat:18:16 --devices cpu:0 cpu:1

Times are medians in ms: of whole calls, and in brackets of their kernels. Edges weigh 1 to 255 for `sssp`. Each call runs once
before it is timed, and that result is proved from the edges.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import atos_py as atos
from atos_py.graph.spec import SPEC_HELP, graph_of, source_of

TOLERANCE = 5e-4
Calls = dict[str, tuple[Callable[[Any], Any], Callable[[Any], None]]]


def calls_on(host: atos.Graph, source: int, weighted: bool) -> Calls:
    """Return the calls, which take a graph or its parts, and the proof of the result of each."""
    if weighted:
        return {
            "sssp": (
                lambda graph: atos.sssp(graph, source),
                lambda result: atos.verify_sssp(host, source, result.distance.to_numpy()),
            )
        }
    return {
        "bfs": (
            lambda graph: atos.bfs(graph, source),
            lambda result: atos.verify_bfs(host, source, result.depth.to_numpy()),
        ),
        "bfs, pushing": (
            lambda graph: atos.bfs(graph, source, direction="push"),
            lambda result: atos.verify_bfs(host, source, result.depth.to_numpy()),
        ),
        "pagerank, 5e-4": (
            lambda graph: atos.pagerank(graph, tolerance=TOLERANCE),
            lambda result: atos.verify_pagerank(host, result.rank.to_numpy(), TOLERANCE),
        ),
        "connected_components": (
            atos.connected_components,
            lambda result: atos.verify_connected_components(host, result.label.to_numpy(), result.num_components),
        ),
    }


def measure(call: Callable[[Any], Any], graph: Any) -> tuple[float, float]:
    """Return the time of the kernels of a call, and that of the call."""
    begin = time.perf_counter()
    result = call(graph)
    return result.stats.milliseconds, (time.perf_counter() - begin) * 1e3


def main() -> None:
    """Time each call on each graph."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="+", metavar="GRAPH", help=SPEC_HELP)
    parser.add_argument("--devices", nargs="+", default=["cpu:0", "cpu:1"])
    parser.add_argument(
        "--order", choices=("keep", "random", "degree"), help="by default 'keep' for road networks, else 'random'"
    )
    parser.add_argument("--only", nargs="+", help="calls to time, by the first word of their row")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--no-proof", action="store_true", help="skip the proofs")
    given = parser.parse_args()

    print(f"| graph | call | {given.devices[0]} | {len(given.devices)} devices | ratio of kernels | of calls |")
    print("| --- | --- " + "| ---: " * 4 + "|")
    for spec in given.graphs:
        begin = time.perf_counter()
        host = graph_of(spec, device="cpu")
        source = source_of(spec, host)
        made = time.perf_counter() - begin
        order = given.order or ("keep" if spec.startswith("road") else "random")
        for weighted in (False, True):
            calls = calls_on(host, source, weighted)
            wanted = {name: each for name, each in calls.items() if not given.only or name.split(",")[0] in given.only}
            if not wanted:
                continue
            if weighted:
                host = host.with_weights(atos.generate.random_weights(host, 1, 255))
                wanted = {name: calls_on(host, source, True)[name] for name in wanted}
            begin = time.perf_counter()
            whole, parts = host.to(given.devices[0]), host.partition(given.devices, order=order)
            placed = time.perf_counter() - begin
            for name, (call, prove) in wanted.items():
                where = (whole, parts)
                for graph in where:
                    result = call(graph)
                    if not given.no_proof:
                        prove(result)
                times = [[measure(call, graph) for graph in where] for _ in range(given.repeat)]
                kernels, whole_calls = (
                    [statistics.median(run[k][what] for run in times) for k in range(2)] for what in range(2)
                )
                cells = [f"{whole_calls[k]:.2f} ({kernels[k]:.2f})" for k in range(2)]
                ratios = [f"{one / several:.2f}" for one, several in (kernels, whole_calls)]
                print(f"| {spec} | {name} | {' | '.join(cells + ratios)} |", flush=True)
            del whole, parts
            print(f"made in {made:.1f} s, placed in {placed:.1f} s", flush=True)


if __name__ == "__main__":
    os.environ.setdefault("ATOS_TIER", "best")  # first launches wait for the kernels that are timed
    main()
