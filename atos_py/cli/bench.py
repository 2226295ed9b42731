"""``python -m atos_py bench``: times algorithms over graphs, devices and settings; every counted run is verified.

Figures of different machines are never put side by side: a report names its devices, and is compared with another only if they
are the same.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..core.devices import Device, device
from ..errors import InvalidArgumentError
from ..graph.graph import Graph
from ..graph.spec import graph_of, source_of
from ..tools.machine import device_facts, peak_of, versions
from ..tools.measure import measure
from ..tools.report import GraphFacts, Report, Row
from ..tools.tuning_cache import tuned
from ..tools.workloads import ALGORITHMS, OPTIONS, SCHEDULER, on_graph, scheduler
from .options import (
    LAUNCH,
    add_device,
    add_graphs,
    add_json,
    add_launch,
    add_own,
    check_outputs,
    given,
    say,
    write_json,
    write_text,
)

HELP = "time algorithms over graphs, devices and settings"
DESCRIPTION = """\
Runs each algorithm on each graph and device in each setting: all combinations of the values that are given, defaults for what
is not. One run warms up; the others count, and are verified by a certificate over all edges. Prints, and writes as JSON and
Markdown:

  ms        median of the device's time, and its least and most
  call      median of the whole call on the host, in ms
  tasks     tasks run; M/s: millions of them a second
  beside    MB that the core took of the device beside graph, arrays and the queue's slots; the driver's share after a plus
  result    vertices reached and levels; bound of the PageRank error; colours

Beside pagerank, color and bfs, tree and chain measure the scheduler alone: empty tasks, each pushing two or one.
Of each graph it says what making it took of the host's memory, at most."""
EXAMPLES = """\
  python -m atos_py bench --algorithm bfs --graph road:1000:0.62 --fetch-size 32 128
  python -m atos_py bench --device cpu cuda --json now.json --against before.json
  python -m atos_py bench --algorithm tree chain --worker thread warp cta"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command to `argparse`."""
    everything = (*ALGORITHMS, *SCHEDULER)
    parser.add_argument(
        "--algorithm",
        nargs="+",
        action="extend",
        choices=everything,
        metavar="NAME",
        help=f"any of {', '.join(everything)} (default: the first three)",
    )
    add_graphs(parser, "one of each, as large as suits the device")
    add_device(parser, several=True)
    parser.add_argument("--source", type=int, metavar="V", help="where BFS begins (default: largest degree, a grid's middle)")
    parser.add_argument("--size", type=int, help="tasks of tree and chain (default: 100 million and 100,000; less on a CPU)")
    parser.add_argument("--repeat", type=int, default=7, metavar="N", help="counted runs of each setting (default: 7)")
    add_json(parser)
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write tables there")
    parser.add_argument("--against", type=Path, metavar="FILE", help="compare with an earlier --json of the same device")
    add_own(parser, *OPTIONS, several=True)
    add_launch(parser, several=True)


def command(options: argparse.Namespace) -> int:
    """Run the command; return its exit code."""
    if options.repeat < 1:
        raise InvalidArgumentError(f"--repeat must be at least 1 (got {options.repeat})")
    if options.size is not None and options.size < 1:
        raise InvalidArgumentError(f"--size must be at least 1 (got {options.size})")
    if options.size is not None and options.size >= 2**32:
        raise InvalidArgumentError(f"--size must be less than {2**32}, since the items are of 32 bits (got {options.size})")
    check_outputs(options.json, options.markdown)
    chosen = [device(name) for name in dict.fromkeys(options.device or [None])]
    report = Report({str(on): device_facts(on) for on in chosen}, versions())
    old = Report.load(options.against) if options.against else None
    if old:
        list(report.against(old, options.against))  # refuses before anything is measured
    for name, facts in report.devices.items():
        say(options, f"{name}: {', '.join(map(str, facts.values()))}")
    for row in _rows(options, chosen, report):
        report.rows.append(row)
        say(options, "  ".join(cell for cell in row.cells() if cell))
    if old:
        say(options, *report.against(old, options.against))
    write_json(options, report.to_json())
    if options.markdown:
        write_text(options.markdown, report.to_markdown())
    return 1 if any(row.failure for row in report.rows) else 0


def _size(options: argparse.Namespace, shape: str, on: Device) -> int:
    if options.size is not None:
        return int(options.size)
    return 100_000 if shape == "chain" else 100_000_000 if on.kind == "cuda" else 1_000_000


def _rows(options: argparse.Namespace, chosen: Sequence[Device], report: Report) -> Iterator[Row]:
    algorithms = list(dict.fromkeys(options.algorithm or ALGORITHMS))
    for on in chosen:
        for shape in (name for name in algorithms if name in SCHEDULER):
            size = _size(options, shape, on)
            workload = scheduler(shape, size, on)
            for setting in _settings(options, shape):
                yield measure(Row(shape, f"{size:,}", str(on), setting), workload, on, options.repeat)
    wanted = [name for name in algorithms if name in ALGORITHMS]
    for spec in dict.fromkeys(options.graph or _default_graphs(chosen)) if wanted else ():
        host = _make(spec, report)
        say(options, report.graphs[-1])
        source = source_of(spec, host) if options.source is None else options.source
        for on in chosen:
            graph = host.to(on)
            for name in wanted:
                workload = on_graph(name, graph, source, host)
                for setting in _settings(options, name):
                    chosen_options = {**tuned(name, graph), **setting} if options.tuned else setting
                    yield measure(Row(name, spec, str(on), chosen_options), workload, on, options.repeat)


def _default_graphs(chosen: Sequence[Device]) -> tuple[str, str]:
    large = all(on.kind == "cuda" for on in chosen)
    return ("rmat:22:16", "road:4900:0.62") if large else ("rmat:14:16", "road:300:0.62")


def _make(spec: str, report: Report) -> Graph:
    for small in ("rmat:4:4", "road:4"):
        graph_of(small, device="cpu")  # so that compilers are loaded already
    begin = time.perf_counter()
    host, peak = peak_of(lambda: graph_of(spec, device="cpu"))
    seconds = time.perf_counter() - begin
    size = host.indptr.nbytes + host.indices.nbytes
    report.graphs.append(GraphFacts(spec, host.num_vertices, host.num_edges, seconds, size, peak))
    return host


def _settings(options: argparse.Namespace, algorithm: str) -> Iterator[dict[str, Any]]:
    """Yield every combination of what was given and means something to the algorithm."""
    values_of = given(options, *LAUNCH, *OPTIONS.get(algorithm, ()))
    for values in itertools.product(*(list(dict.fromkeys(several)) for several in values_of.values())):
        yield dict(zip(values_of, values, strict=True))
