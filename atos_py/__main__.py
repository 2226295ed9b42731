"""The command line: ``python -m atos_py`` says what there is to run on, ``python -m atos_py demo`` runs it."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from . import __version__
from .devices import device, devices
from .errors import AtosError

_DESCRIPTION = """\
atos_py runs many small tasks, which may push more tasks, on a GPU or on CPU threads.

Without a command: says which devices, compilers and packages there are, what the core was built for, where compiled tasks
are kept, and for each thing that is missing the command that mends it. Nothing is changed."""

_EXAMPLES = """\
examples:
  python -m atos_py                      what is there, what is missing, and what to do about it
  python -m atos_py demo                 a minute's tour: BFS on every device in all schedules, verified
  python -m atos_py demo --device cpu    on CPU threads alone
  ATOS_DEVICE=cpu python program.py      run a program of yours on the CPU although there is a GPU"""

_DEMO = """\
Generates a road-like and a scale-free graph, then runs breadth-first search on every device with every worker (thread, warp,
CTA) in all four schedules, and prints a row for each:

  ms        time of the faster of two launches, by the device's clock
  tasks     how often a vertex was visited
  ratio     tasks for each vertex reached: what speculation costs. With barriers it is 1 or a little more
  verified  whether a certificate over all edges proves the depths right

On a CPU the three workers are the same: one thread each. The command fails (exit code 1) if any row is not verified."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code: 0, 1 if a result was wrong, 2 if something could not be done."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python -m atos_py", description=_DESCRIPTION, epilog=_EXAMPLES, formatter_class=raw)
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", metavar="demo")
    demo = commands.add_parser("demo", help="run BFS everywhere and verify it", description=_DEMO, formatter_class=raw)
    demo.add_argument("--device", action="append", help="cpu, cuda or cuda:N, once or several times (default: all there are)")
    demo.add_argument("--side", type=int, help="side of the road-like grid (default: 2000 for a GPU, 400 for the CPU)")
    demo.add_argument("--scale", type=int, help="scale of the R-MAT graph (default: 20 for a GPU, 15 for the CPU)")
    options = parser.parse_args(arguments)
    try:
        return _demo(options) if options.command == "demo" else _diagnosis()
    except AtosError as error:
        print(f"atos_py: {error}".replace("\n", " "), file=sys.stderr)
        return 2


def _diagnosis() -> int:
    from .diagnosis import report

    print(report())
    return 0


def _demo(options: argparse.Namespace) -> int:
    from .demo import HEADING, rows

    begin = time.perf_counter()
    chosen = [device(spec) for spec in options.device] if options.device else devices()
    print(HEADING, flush=True)
    failed = count = 0
    for row in rows(chosen, options.side, options.scale):
        print(row, flush=True)
        count += 1
        failed += bool(row.failure)
    seconds = time.perf_counter() - begin
    print(f"{count - failed} of {count} results are right, proved edge by edge ({seconds:.1f} s in all)")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
