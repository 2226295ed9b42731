"""Command ``demo``: BFS on every device, with every worker, in every schedule, each result verified."""

from __future__ import annotations

import argparse
import time
from typing import Any

from ..core.devices import device, devices
from ..tools.demo import HEADING, measure_rows
from .options import add_device, add_file_changes, add_graphs, add_json, check_outputs, file_changes, say, write_json

HELP = "run BFS everywhere and verify it"
DESCRIPTION = """\
Runs breadth-first search on every device with every worker (thread, warp, CTA) in all four schedules. It prints a row for each
combination:

  ms          device's time of the faster of two launches
  tasks       visits of a vertex
  per vertex  visits for each vertex reached, which is the cost of speculation; with barriers 1 or a little more
  verified    yes, if a certificate over all edges proves the depths right

On a CPU the three workers are the same: one thread each."""
EXAMPLES = """\
  atos demo
  atos demo --device cpu --graph road:100 rmat:10"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command to `argparse`."""
    add_graphs(parser, "a road-like and a scale-free one, whose sizes suit the device")
    add_file_changes(parser)
    add_device(parser, several=True, default="all devices")
    add_json(parser)


def command(options: argparse.Namespace) -> int:
    """Run the command; return its exit code."""
    check_outputs(options.json)
    begin = time.perf_counter()
    chosen = [device(spec) for spec in options.device] if options.device else devices()
    say(options, HEADING)
    told: list[dict[str, Any]] = []
    for row in measure_rows(chosen, options.graph, changes=file_changes(options)):
        say(options, row)
        told.append(
            {"graph": row.graph, "tasks_per_vertex": row.per_vertex, "failure": row.failure, "stats": row.stats.to_dict()}
        )
    failed = sum(bool(row["failure"]) for row in told)
    seconds = time.perf_counter() - begin
    say(options, f"{len(told) - failed} of {len(told)} results are right, proved edge by edge ({seconds:.1f} s in all)")
    write_json(options, {"rows": told})
    return 1 if failed else 0
