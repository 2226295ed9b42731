"""Command ``reproduce``: the claims, tables and figures of a paper, measured on this machine."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ..core.devices import device
from ..errors import InvalidArgumentError
from ..graph.spec import names_of
from .options import (
    add_device,
    add_file_changes,
    add_graphs,
    add_json,
    check_outputs,
    file_changes,
    make_progress_bar,
    say,
    write_json,
)

Progress = Callable[[Iterable[Any], str, int], Iterable[Any]]
PAPERS = "atos", "onyx", "simd-x", "worklists"
HELP = "test a paper's claims, and measure its tables and figures"
DESCRIPTION = """\
Tests the claims of a paper: for each it writes what the paper says, what was measured here, and whether the claim holds, has
turned, is not decided or not applicable. A claim compares runs that are made in turns. The files are PAPER.md, PAPER-claims.csv
and PAPER-runs.csv. Without --quick it then writes the tables and figures.

For atos it runs BFS, PageRank and graph coloring in the variants of Chen et al. 2022: persistent and discrete, warps and CTAs,
and the bulk-synchronous baseline. It verifies every run. It writes run times and speed-ups, tasks run, throughput over time,
run time over worker size and fetch size, and the effect of permuted vertex ids. The files are CSV and Markdown, and PNG if
matplotlib is installed. An edge without its reverse gets one.

With --paper simd-x it runs programs in the model of Liu and Huang 2019: combine against atomics, filters by round, thresholds,
filters alone, fusion of kernels with their registers and launches, and run times. With --paper onyx it runs five algorithms on
features, with and without feature-aware mapping, and driven by changes or not; on a GPU with Nsight Compute it counts their
atomic transactions and loads. With --paper worklists it runs programs data-driven and topology-driven, as Nasre et al. 2013
did: policies, rounds, kinds of worklists, unrolling, hybrids, and growth."""
EXAMPLES = """\
  atos reproduce --out paper
  atos reproduce --paper onyx --quick --out onyx
  atos reproduce --out paper --graph roads.gr.gz rmat:18:16 --repeat 10
  atos reproduce --paper simd-x --out simd-x"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command to `argparse`."""
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="directory of the files; made if it does not exist"
    )
    parser.add_argument("--paper", choices=PAPERS, default="atos", help="which paper (default: atos)")
    add_graphs(
        parser, "a scale-free and a road-like one, whose sizes suit paper and device: at most 40 minutes on two CPU cores"
    )
    add_file_changes(parser)
    add_device(parser)
    text = "counted runs of each setting, in turns; fewer than 10 decide no claim (default: 20)"
    parser.add_argument("--repeat", type=int, default=20, metavar="N", help=text)
    text = "run only what claims need, on smaller graphs, and write no tables and figures"
    parser.add_argument("--quick", action="store_true", help=text)
    add_json(parser)


def _number_graphs(names: list[str]) -> Progress:
    """Return a progress bar that also says which graph of how many it is about."""
    bar = make_progress_bar()

    def progress(steps: Iterable[Any], description: str, total: int) -> Iterable[Any]:
        place = max((len(name), number) for number, name in enumerate(names, 1) if description.startswith(name))[1]
        return bar(steps, f"graph {place} of {len(names)}, {description}", total)

    return progress


def command(options: argparse.Namespace) -> int:
    """Run the command; return its exit code."""
    check_outputs(options.json)
    # Models are imported when they are first used.
    from ..models.papers.claim_report import summarize
    from ..models.papers.reproduce import reproduce
    from ..models.papers.reproduce_onyx import reproduce_onyx
    from ..models.papers.reproduce_simdx import reproduce_simdx
    from ..models.papers.reproduce_worklists import reproduce_worklists
    from ..models.papers.subjects import default_specs, make_graphs
    from ..models.papers.turns import Options

    changes = file_changes(options)
    if changes and not options.graph:
        raise InvalidArgumentError(f"--{next(iter(changes))} is for graph files: name them after --graph")
    measures = dict(zip(PAPERS, (reproduce, reproduce_onyx, reproduce_simdx, reproduce_worklists), strict=True))
    chosen = device(options.device)
    specs = tuple(dict.fromkeys(options.graph or default_specs(options.paper, chosen, options.quick)))
    words = ["atos reproduce --paper", options.paper, *(["--quick"] if options.quick else []), "--graph", *specs]
    words += [f"--{name}" for name in changes]
    how = Options(
        repeat=options.repeat,
        progress=_number_graphs(names_of(specs)),
        quick=options.quick,
        command=" ".join([*words, f"--repeat {options.repeat} --out DIR"]),
    )
    done = measures[options.paper](options.out, make_graphs(specs, chosen, **changes), how)
    files = [str(path) for path in done.files]
    say(options, *files)
    for finding in done.findings:
        say(options, f"{finding.verdict:14}  {finding.claim.key}{finding.graph and f' on {finding.graph}'}: {finding.reason}")
    say(options, summarize(done.findings))
    verdicts = [
        {"claim": finding.claim.key, "graph": finding.graph, "verdict": finding.verdict, "reason": finding.reason}
        for finding in done.findings
    ]
    write_json(options, {"files": files, "findings": verdicts})
    return 0
