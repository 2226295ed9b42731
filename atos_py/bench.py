"""``python -m atos_py bench``: times algorithms over graphs, devices and settings; every counted run is verified.

Figures of different machines are never put side by side: a report names its devices, and is compared with another only if they
are the same.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from .devices import Device, device
from .errors import InvalidArgumentError, LaunchConfigError, QueueFullError, VerificationError
from .graph import Graph
from .graph_spec import SPEC_HELP, graph_of, source_of
from .machine import device_facts, peak_of, versions
from .program import WORKERS
from .report import GraphFacts, Report, Row
from .stats import stats_of
from .tuned import tuned
from .workloads import ALGORITHMS, OPTIONS, SCHEDULER, Workload, on_graph, scheduler

__all__ = ["DESCRIPTION", "add_arguments", "command", "measure"]

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
The command fails (exit code 1) if any run is wrong. Of each graph it says what making it took of the host's memory, at most."""

_LAUNCH = {"fetch": "fetch_size", "blocks": "num_blocks", "threads": "num_threads"}
_SWITCHES = ("persistent", "barrier")


def measure(row: Row, workload: Workload, on: Device, repeat: int) -> Row:
    """Fill in a row: one run that warms up, then `repeat` runs, each of them timed and verified."""
    free = on.memory[0] if on.kind == "cuda" else None
    try:
        for counted in range(repeat + 1):
            begin = time.perf_counter()
            result = workload.run(**row.options)
            seconds = time.perf_counter() - begin
            if counted:
                stats = stats_of(result)
                row.milliseconds.append(stats.milliseconds)
                row.call_milliseconds.append(seconds * 1e3)
                row.launch = {name: value for name, value in stats.to_dict().items() if name != "trace"}
                row.result = workload.verify(result, row.options)
            del result
    except LaunchConfigError as error:
        row.skipped = str(error)
    except (VerificationError, QueueFullError) as error:
        row.failure = str(error)
    if free is not None:
        row.driver_bytes = max(free - on.memory[0], 0)
    return row


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command to `argparse`."""

    def several(name: str, kind: Callable[[str], Any], text: str, **more: Any) -> None:
        parser.add_argument(f"--{name}", nargs="+", action="extend", type=kind, help=text, **more)

    everything = (*ALGORITHMS, *SCHEDULER)
    several("algorithm", str, "what to run (default: the three algorithms)", choices=everything, metavar="NAME")
    several("graph", str, f"{SPEC_HELP} (default: one of each, as large as suits the device)")
    several("device", str, "cpu, cuda or cuda:N (default: the best there is)")
    several("worker", str, "thread, warp, cta", choices=WORKERS)
    several("fetch", int, "items that a worker takes at once, at most")
    several("threads", int, "threads of a block")
    several("blocks", int, "blocks; on the CPU, threads")
    several("persistent", _switch, "1: one resident kernel; 0: kernel after kernel")
    several("barrier", _switch, "1: level after level; 0: none")
    several("tolerance", float, "pagerank: relative error (default: 5e-4)")
    several("dtype", str, "pagerank: float32, float64")
    several("find", str, "pagerank: how vertices with work are found")
    several("order", str, "color: natural, random, degree")
    several("window", int, "color: vertices under way at once")
    several("patience", int, "color: how often a vertex waits for another")
    parser.add_argument("--tuned", action="store_true", help="take what `tune` found for what is not given")
    parser.add_argument("--source", type=int, help="where BFS begins (default: a vertex of largest degree, a grid's middle)")
    parser.add_argument("--size", type=int, help="tasks of tree and chain (default: 100 million and 100,000; less on a CPU)")
    parser.add_argument("--repeat", type=int, default=7, help="counted runs of each setting (default: 7)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything there")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write tables there")
    parser.add_argument("--against", type=Path, metavar="FILE", help="compare with an earlier --json of the same device")


def _switch(text: str) -> bool:
    if text not in ("0", "1"):
        raise argparse.ArgumentTypeError(f"0 or 1 (got {text!r})")
    return text == "1"


def command(options: argparse.Namespace) -> int:
    """Run the command; return its exit code."""
    if options.repeat < 1:
        raise InvalidArgumentError(f"--repeat must be at least 1 (got {options.repeat})")
    chosen = [device(name) for name in dict.fromkeys(options.device or [None])]
    report = Report({str(on): device_facts(on) for on in chosen}, versions())
    old = Report.load(options.against) if options.against else None
    if old:
        list(report.against(old, options.against))  # refuses before anything is measured
    for name, facts in report.devices.items():
        print(f"{name}: {', '.join(map(str, facts.values()))}", flush=True)
    for row in _rows(options, chosen, report):
        report.rows.append(row)
        print("  ".join(cell for cell in row.cells() if cell), flush=True)
    if old:
        print(*report.against(old, options.against), sep="\n")
    if options.json:
        options.json.write_text(report.to_json(), encoding="utf-8")
    if options.markdown:
        options.markdown.write_text(report.to_markdown(), encoding="utf-8")
    return 1 if any(row.failure for row in report.rows) else 0


def _rows(options: argparse.Namespace, chosen: Sequence[Device], report: Report) -> Iterator[Row]:
    algorithms = list(dict.fromkeys(options.algorithm or ALGORITHMS))
    for on in chosen:
        for shape in (name for name in algorithms if name in SCHEDULER):
            size = options.size or (100_000 if shape == "chain" else 100_000_000 if on.kind == "cuda" else 1_000_000)
            workload = scheduler(shape, size, on)
            for setting in _settings(options, shape):
                yield measure(Row(shape, f"{size:,}", str(on), setting), workload, on, options.repeat)
    wanted = [name for name in algorithms if name in ALGORITHMS]
    for spec in dict.fromkeys(options.graph or _default_graphs(chosen)) if wanted else ():
        host = _make(spec, report)
        source = source_of(spec, host) if options.source is None else options.source
        for on in chosen:
            graph = host.to(on)
            for name in wanted:
                workload = on_graph(name, graph, source, host)
                for setting in _settings(options, name):
                    given = {**tuned(name, graph), **setting} if options.tuned else setting
                    yield measure(Row(name, spec, str(on), given), workload, on, options.repeat)


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
    print(report.graphs[-1], flush=True)
    return host


def _settings(options: argparse.Namespace, algorithm: str) -> Iterator[dict[str, Any]]:
    """Yield every combination of what was given and means something to the algorithm."""
    names = ("worker", *_LAUNCH, *_SWITCHES, *OPTIONS.get(algorithm, ()))
    given = {_LAUNCH.get(name, name): getattr(options, name) for name in names}
    given = {name: list(dict.fromkeys(values)) for name, values in given.items() if values}
    for values in itertools.product(*given.values()):
        yield dict(zip(given, values, strict=True))
