"""Command ``tune``: finds the best setting of an algorithm on a graph, and remembers it."""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path
from typing import Any

from ..algorithms.registry import find_algorithms
from ..core.devices import device
from ..errors import VerificationError
from ..graph.spec import graph_of, source_of
from ..tools.measure import measure
from ..tools.report import Row
from ..tools.tune import choose_space, tune
from ..tools.workloads import bind_algorithm, vertices_of
from .options import (
    add_device,
    add_file_changes,
    add_graphs,
    add_json,
    add_source,
    check_outputs,
    file_changes,
    make_progress_bar,
    name_changed,
    say,
    write_json,
)

HELP = "find the best setting of an algorithm on a graph"
DESCRIPTION = """\
Searches for the setting in which an algorithm runs fastest on a graph. The search covers worker size, fetch size, blocks,
persistent, barrier, and the tunable options of the algorithm, such as the direction of BFS on an undirected graph.

The search runs the settings near the default once, the faster half again, and so on. Then it changes single options as long as
that helps. At last the best setting and the defaults run 15 times more, in turns. The best setting is kept if its upper
quartile is below the lower quartile of the defaults; otherwise the defaults stay. The first run of each setting is verified.
The command prints a table of all settings, the kept one first. Then it measures the kept setting and the defaults again, and
verifies every run.

The kept setting is remembered on disk for the algorithm, the device and the signature of the graph: its size, mean degree and
skew of degrees, and whether it is undirected. It is used by --tuned of the other commands, and in Python by
atos.bfs(graph, source, **atos.tuned(atos.bfs, graph))."""
EXAMPLES = """\
  atos tune --algorithm bfs --graph road:1000:0.62
  atos tune --algorithm color --graph rmat:18:16 --budget 60 --draw heat.png"""

_NOTHING = "no setting that was tried is faster than the defaults by more than runs differ"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command to `argparse`."""
    names = list(find_algorithms())
    parser.add_argument("--algorithm", required=True, choices=names, metavar="NAME", help=f"one of {', '.join(names)}")
    add_graphs(parser, "", several=False, required=True)
    add_file_changes(parser)
    add_device(parser)
    add_source(parser)
    parser.add_argument("--budget", type=float, default=120, metavar="S", help="seconds for the search (default: 120)")
    add_json(parser)
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the table as CSV")
    parser.add_argument("--draw", type=Path, metavar="FILE", help="draw run time over worker size and fetch size (matplotlib)")


def command(options: argparse.Namespace) -> int:
    """Run the command; return its exit code."""
    check_outputs(options.json, options.csv, picture=options.draw)
    on = device(options.device)
    algorithm = find_algorithms()[options.algorithm]
    host = graph_of(options.graph, device="cpu", weights=algorithm.weighted, **file_changes(options))
    graph = host.to(on)
    source = source_of(options.graph, host) if options.source is None else vertices_of(host, options.source)
    workload = bind_algorithm(algorithm, graph, source, host)

    verified = set()

    def run(**setting: Any) -> Any:
        result = workload.run(**setting)
        if (key := tuple(setting.items())) not in verified:
            workload.verify(result, setting)
            verified.add(key)
        return result

    # The first setting, which the best has to beat, gives no option at all. Where that means the defaults of a launch, these
    # are not tried a second time.
    skipped = 1 if algorithm.launch_defaults else 0
    space = {name: tuple(dict.fromkeys((None, *values[skipped:]))) for name, values in choose_space(on).items()}
    space |= {name: (None, *values) for name, values in algorithm.tunable(graph).items()}
    try:
        limits = {"budget": options.budget, "space": space, "progress": make_progress_bar()}
        tuning = tune(run, task=options.algorithm, graph=graph, **limits)
    except VerificationError as error:
        say(options, f"a result was wrong: {error}")
        write_json(options, {"failure": str(error)})
        return 1
    say(options, tuning)
    if not tuning.best:
        say(options, _NOTHING if tuning.finished else f"{_NOTHING}, or there was too little time to tell: see --budget")
    failed = False
    medians, rows = [], []
    for name, setting in ("best", tuning.best), ("defaults", {}):
        row = measure(Row(options.algorithm, name_changed(options, options.graph), str(on), setting), workload, on, 7)
        rows.append(row)
        failed |= bool(row.failure)
        medians.append(statistics.median(row.milliseconds or [float("nan")]))
        ratio = f", {medians[1] / medians[0]:.2f} times the best" if name == "defaults" else ""
        say(options, f"{name}: {setting}, {medians[-1]:.3f} ms{ratio}{f', NO: {row.failure}' if failed else ''}")
    again = [{"options": row.options, "milliseconds": row.milliseconds, "failure": row.failure} for row in rows]
    write_json(options, tuning.to_dict() | {"again": dict(zip(("best", "defaults"), again, strict=True))})
    if options.csv:
        tuning.to_csv(options.csv)
    if options.draw:
        tuning.draw(options.draw, options.algorithm, f"{options.graph}, {on}")
    return 1 if failed else 0
