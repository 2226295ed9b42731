"""The command line: ``python -m atos_py`` says what there is to run on, ``python -m atos_py demo`` runs it."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from . import __version__, bench, tune_command
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
  python -m atos_py bench --algorithm bfs --graph road:1000:0.62 --fetch 32 128
                                         run time of BFS, every run verified
  python -m atos_py tune --algorithm bfs --graph road:1000:0.62
                                         the best setting, remembered
  python -m atos_py reproduce --out DIR  the tables and figures of the paper, measured on this machine
  ATOS_DEVICE=cpu python program.py      run a program of yours on the CPU although there is a GPU"""

_DEMO = """\
Generates a road-like and a scale-free graph, then runs breadth-first search on every device with every worker (thread, warp,
CTA) in all four schedules, and prints a row for each:

  ms        time of the faster of two launches, by the device's clock
  tasks     how often a vertex was visited
  ratio     tasks for each vertex reached: what speculation costs. With barriers it is 1 or a little more
  verified  whether a certificate over all edges proves the depths right

On a CPU the three workers are the same: one thread each. The command fails (exit code 1) if any row is not verified."""


_REPRODUCE = """\
Runs BFS, PageRank and graph colouring in the variants of Chen et al. 2022 (persistent and discrete, warps and CTAs, and the
bulk-synchronous baseline), verifies every run, and writes run times and speed-ups, tasks run, throughput over time, run
time over worker size and fetch size, and the effect of permuting vertex ids: as CSV, Markdown, and, with matplotlib
installed, PNG. Without --graph a scale-free and a road-like graph are generated: large on a GPU (minutes), small on a CPU."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code: 0, 1 if a result was wrong, 2 if something could not be done."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python -m atos_py", description=_DESCRIPTION, epilog=_EXAMPLES, formatter_class=raw)
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    demo = commands.add_parser("demo", help="run BFS everywhere and verify it", description=_DEMO, formatter_class=raw)
    demo.add_argument("--device", action="append", help="cpu, cuda or cuda:N, once or several times (default: all there are)")
    demo.add_argument("--side", type=int, help="side of the road-like grid (default: 2000 for a GPU, 400 for the CPU)")
    demo.add_argument("--scale", type=int, help="scale of the R-MAT graph (default: 20 for a GPU, 15 for the CPU)")
    title = "measure the paper's tables and figures"
    again = commands.add_parser("reproduce", help=title, description=_REPRODUCE, formatter_class=raw)
    again.add_argument("--out", type=Path, required=True, help="directory for the tables and figures; made if need be")
    again.add_argument("--graph", action="append", type=Path, metavar="FILE", help="graph file, once or several times")
    again.add_argument("--device", help="cpu, cuda or cuda:N (default: the best there is)")
    again.add_argument("--repeat", type=int, default=5, help="counted runs of each setting (default: 5)")
    title = "time algorithms over graphs, devices and settings"
    bench.add_arguments(commands.add_parser("bench", help=title, description=bench.DESCRIPTION, formatter_class=raw))
    title = "find the best setting of an algorithm on a graph"
    tune_command.add_arguments(
        commands.add_parser("tune", help=title, description=tune_command.DESCRIPTION, formatter_class=raw)
    )
    options = parser.parse_args(arguments)
    run: dict[str | None, Callable[[argparse.Namespace], int]] = {
        "demo": _demo,
        "reproduce": _reproduce,
        "bench": bench.command,
        "tune": lambda given: tune_command.command(given, _progress()),
        None: lambda _: _diagnosis(),
    }
    try:
        return run[options.command](options)
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


def _reproduce(options: argparse.Namespace) -> int:
    from .graph import Graph
    from .reproduce import default_graphs, reproduce

    chosen = device(options.device)
    graphs = default_graphs(chosen)
    if options.graph:
        loaded = ((path, Graph.load(path, device=chosen, weights=False)) for path in options.graph)
        graphs = ((path.name.partition(".")[0], graph.to_symmetric()) for path, graph in loaded)
    for path in reproduce(options.out, graphs, repeat=options.repeat, progress=_progress()):
        print(path)
    return 0


def _progress() -> Callable[[Iterable[Any], str, int], Iterable[Any]]:
    """Return a progress bar, or what says each part once where tqdm is not installed."""
    try:
        from tqdm import tqdm
    except ImportError:

        def say(steps: Iterable[Any], description: str, total: int) -> Iterable[Any]:
            print(f"{description} ({total} settings)", file=sys.stderr, flush=True)
            return steps

        return say
    return lambda steps, description, total: tqdm(steps, desc=description, total=total)  # type: ignore[no-any-return]


if __name__ == "__main__":
    sys.exit(main())
