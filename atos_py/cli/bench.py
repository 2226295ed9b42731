"""Command ``bench``: times algorithms over graphs, devices and settings; every counted run is verified.

A report names its devices. It is compared with another report only if the devices are the same.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..algorithms.registry import Algorithm, find_algorithms
from ..core.devices import Device, device
from ..errors import InvalidArgumentError
from ..graph.graph import Graph
from ..graph.spec import graph_of, source_of
from ..tools.machine import measure_peak, read_device_facts, read_versions
from ..tools.measure import measure
from ..tools.report import GraphFacts, Report, Row, TextTable
from ..tools.tuning_cache import tuned
from ..tools.workloads import SCHEDULER, bind_algorithm, make_scheduler_workload, vertices_of
from .options import (
    LAUNCH,
    add_algorithm_options,
    add_device,
    add_file_changes,
    add_graphs,
    add_json,
    add_launch,
    add_source,
    check_outputs,
    collect_given,
    file_changes,
    name_changed,
    say,
    write_json,
    write_text,
)

HELP = "time algorithms over graphs, devices and settings"
DESCRIPTION = """\
Runs each algorithm on each graph and device in each setting. The settings are all combinations of the given values; options
that are not given keep their defaults. The first run of a setting warms up. The other runs are timed in a row; then a
certificate over all edges verifies each result, unless it equals one that was verified. The command prints a table, and writes
it as JSON and Markdown on request. Its columns:

  ms           median of the device's time, with minimum and maximum
  call ms      median of the time of the whole call on the host
  tasks        tasks run
  M tasks/s    millions of tasks run in a second of the device's time
  overhead MB  device memory that the core took, without graph, arrays and slots of the queue; after a plus that of the driver
  result       numbers from the verification, such as reached vertices and levels
  verified     yes, or what was wrong

The workloads tree and chain measure the scheduler alone: empty tasks of which each pushes two others, or one.
For each graph the command prints the peak of the host's memory while the graph was made."""
EXAMPLES = """\
  atos bench --algorithm bfs --graph road:1000:0.62 --fetch-size 32 128
  atos bench --device cpu cuda --json now.json --against before.json
  atos bench --algorithm tree chain --worker thread warp cta"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command to `argparse`."""
    algorithms = find_algorithms()
    everything = (*algorithms, *SCHEDULER)
    parser.add_argument(
        "--algorithm",
        nargs="+",
        action="extend",
        choices=everything,
        metavar="NAME",
        help=f"one or several of {', '.join(everything)} (default: all but {' and '.join(SCHEDULER)})",
    )
    add_graphs(parser, "a scale-free and a road-like one, whose sizes suit the device")
    add_file_changes(parser)
    add_device(parser, several=True)
    add_source(parser)
    parser.add_argument("--size", type=int, help="tasks of tree and chain (default: 100 million and 100,000; less on a CPU)")
    parser.add_argument("--repeat", type=int, default=7, metavar="N", help="counted runs of each setting (default: 7)")
    add_json(parser)
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table as Markdown")
    parser.add_argument("--against", type=Path, metavar="FILE", help="compare with an earlier --json file of the same device")
    add_algorithm_options(parser, *algorithms.values(), several=True)
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
    report = Report({str(on): read_device_facts(on) for on in chosen}, read_versions())
    old = Report.load(options.against) if options.against else None
    if old:
        list(report.compare(old, options.against))  # refuses before anything is measured
    for name, facts in report.devices.items():
        say(options, f"{name}: {', '.join(map(str, facts.values()))}")
    table, headed = _make_table(options, chosen), -1
    for row in _measure_rows(options, chosen, report):
        if headed != len(report.graphs):  # a heading for the rows of each graph
            headed = len(report.graphs)
            say(options, table.heading)
        report.rows.append(row)
        say(options, table.format(row))
    if old:
        say(options, *report.compare(old, options.against))
    write_json(options, report.to_json())
    if options.markdown:
        write_text(options.markdown, report.to_markdown())
    return 1 if any(row.failure for row in report.rows) else 0


def _make_table(options: argparse.Namespace, chosen: Sequence[Device]) -> TextTable:
    """Return a table wide enough for all rows, but for settings from ``--tuned``."""
    names = _choose_workloads(options)
    shapes = [name for name in names if name in SCHEDULER]
    graphs = [f"{_choose_size(options, shape, on):,}" for shape in shapes for on in chosen]
    if len(shapes) < len(names):
        graphs += [name_changed(options, spec) for spec in options.graph or _choose_graphs(chosen)]
    settings = [setting for name in names for setting in _combine_settings(options, find_algorithms().get(name))]
    return TextTable(names, graphs, [str(on) for on in chosen], settings)


def _choose_workloads(options: argparse.Namespace) -> list[str]:
    return list(dict.fromkeys(options.algorithm or find_algorithms()))


def _choose_size(options: argparse.Namespace, shape: str, on: Device) -> int:
    if options.size is not None:
        return int(options.size)
    return 100_000 if shape == "chain" else 100_000_000 if on.kind == "cuda" else 1_000_000


def _measure_rows(options: argparse.Namespace, chosen: Sequence[Device], report: Report) -> Iterator[Row]:
    names = _choose_workloads(options)
    for on in chosen:
        for shape in (name for name in names if name in SCHEDULER):
            size = _choose_size(options, shape, on)
            workload = make_scheduler_workload(shape, size, on)
            for setting in _combine_settings(options):
                yield measure(Row(shape, f"{size:,}", str(on), setting), workload, on, options.repeat)
    registry = find_algorithms()
    algorithms = [registry[name] for name in names if name in registry]
    for spec in dict.fromkeys(options.graph or _choose_graphs(chosen)) if algorithms else ():
        host = _make_graph(options, spec, report, any(algorithm.weighted for algorithm in algorithms))
        say(options, report.graphs[-1])
        name = name_changed(options, spec)
        source = source_of(spec, host) if options.source is None else vertices_of(host, options.source)
        for on in chosen:
            graph = host.to(on)
            for algorithm in algorithms:
                workload = bind_algorithm(algorithm, graph, source, host)
                for setting in _combine_settings(options, algorithm):
                    chosen_options = {**tuned(algorithm.name, graph), **setting} if options.tuned else setting
                    yield measure(Row(algorithm.name, name, str(on), chosen_options), workload, on, options.repeat)


def _choose_graphs(chosen: Sequence[Device]) -> tuple[str, str]:
    large = all(on.kind == "cuda" for on in chosen)
    return ("rmat:22:16", "road:4900:0.62") if large else ("rmat:14:16", "road:300:0.62")


def _make_graph(options: argparse.Namespace, spec: str, report: Report, weights: bool) -> Graph:
    for small in ("rmat:4:4", "road:4"):
        graph_of(small, device="cpu")  # so that compilers are loaded already
    begin = time.perf_counter()
    host, peak = measure_peak(lambda: graph_of(spec, device="cpu", weights=weights, **file_changes(options)))
    seconds = time.perf_counter() - begin
    size = sum(part.nbytes for part in host if part is not None)
    report.graphs.append(GraphFacts(name_changed(options, spec), host.num_vertices, host.num_edges, seconds, size, peak))
    return host


def _combine_settings(options: argparse.Namespace, algorithm: Algorithm | None = None) -> Iterator[dict[str, Any]]:
    """Yield every combination of the given values of options that a launch or the algorithm has."""
    values_of = collect_given(options, *LAUNCH, *(algorithm.options if algorithm else ()))
    for values in itertools.product(*(list(dict.fromkeys(several)) for several in values_of.values())):
        yield dict(zip(values_of, values, strict=True))
