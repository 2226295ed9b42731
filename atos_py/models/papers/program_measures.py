"""Measures of programs of `acc` for a paper: each runs programs on graphs with options that differ in one thing.

Every run is verified. Runs of a program are made in turns. The claims of the paper are tested on them; tables and figures are
written as CSV and Markdown, figures also as PNG where matplotlib is installed, after each graph.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...algorithms.bfs import verify_bfs
from ...algorithms.sssp import verify_sssp
from ...arrays.filled import full
from ...errors import InvalidArgumentError
from ...graph.generate import random_weights
from ...graph.graph import Graph
from ...runtime.stats import LaunchStats
from ...runtime.trace import format_digits
from ...support.validation import check_int
from ...tools.tables import write_csv, write_markdown
from ..acc import MIN, Program, ProgramStats, draw_pattern, programs
from ..acc.stats import as_program_stats
from .claim_report import Reproduction, judge_all, write_report
from .claims import Claim, Finding, names_of_runs
from .subjects import choose_source, make_directory
from .turns import GraphFacts, Options, Progress, Samples, middle_of, numbers_of, run_in_turns

__all__ = ["Cell", "Measure", "Paper", "Row", "Run", "Subject", "run_bfs_by_minimum", "run_measures", "run_sssp"]

_BFS_BY_MINIMUM = Program(programs.next_level, MIN)


class Subject(NamedTuple):
    """A graph without loops, also with weights, its copies on the host, and where searches begin."""

    graph: Graph
    weighted: Graph
    host: Graph
    weighted_host: Graph
    source: int


class Measure(NamedTuple):
    """A figure or a table: what it is of, programs, variants of their options, and what these are."""

    title: str
    programs: tuple[str, ...]
    variants: dict[str, dict[str, Any]]
    note: str


def run_bfs_by_minimum(on: Subject, options: dict[str, Any]) -> LaunchStats:
    """Search breadth-first by minima of depths, and prove the result."""
    depth = full(on.graph.num_vertices, 2**32 - 1, dtype=np.uint32, device=on.graph.device)
    depth[on.source] = 0
    stats = _BFS_BY_MINIMUM.run(on.graph, depth, start=on.source, **options)
    verify_bfs(on.host, on.source, depth)
    return stats


def run_sssp(on: Subject, options: dict[str, Any]) -> LaunchStats:
    """Find shortest paths, and prove the result."""
    distance, stats = programs.sssp(on.weighted, on.source, **options)
    verify_sssp(on.weighted_host, on.source, distance)
    return stats


Row = dict[str, Any]
Run = Callable[[Subject, dict[str, Any]], LaunchStats]


def _milliseconds(measure: str, row: Row, first: Row) -> str:
    return format_digits(row["milliseconds"])


class Cell(NamedTuple):
    """A program with the options of a variant, in a measure."""

    measure: str
    program: str
    variant: str

    @property
    def run(self) -> str:
        """The name that claims have for it."""
        return "/".join(self)


class Paper(NamedTuple):
    """Measures, programs and claims of a paper, and the format of its tables."""

    name: str
    title: str  # of the page of claims
    measures: Mapping[str, Measure]
    programs: Mapping[str, Run]
    rounds: str  # the measure whose runs are written and drawn round by round
    claims: Sequence[Claim] = ()
    same_runs: Mapping[str, str] = {}  # of a measure that has no runs of its own
    units: Mapping[str, str] = {}
    format_cell: Callable[[str, Row, Row], str] = _milliseconds  # of a run, and the first one of its line

    def cells(self, runs: Collection[str] | None = None) -> list[Cell]:
        """Return the cells of the measures that have runs of their own; with the names of runs, these alone."""
        every = (
            Cell(measure, program, variant)
            for measure, each in self.measures.items()
            if measure not in self.same_runs
            for program in each.programs
            for variant in each.variants
        )
        return [cell for cell in every if runs is None or cell.run in runs]


def run_measures(paper: Paper, out: Path, graphs: Iterable[tuple[str, Graph]], options: Options) -> Reproduction:
    """Measure everything, or what claims need, test the claims, and write it to a directory."""
    repeat = check_int("repeat", options.repeat, 1, 10**6)
    make_directory(out)
    rows: list[Row] = []
    rounds: list[Row] = []
    files: list[Path] = []
    measured: list[Samples] = []
    findings: list[Finding] = []
    for name, given in graphs:
        if not given.num_vertices:
            raise InvalidArgumentError(f"graph {name!r} has no vertices: give one with some")
        device, subject = given.device, _make_subject(given)
        cells = paper.cells(names_of_runs(paper.claims, device.kind) if options.quick else None)
        results = _run_cells(paper, cells, subject, repeat, options.progress, name)
        of_graph = {"vertices": subject.graph.num_vertices}
        runs = {cell.run: [of_graph | numbers_of(stats) for stats in results[cell]] for cell in cells}
        measured.append(Samples(GraphFacts.of(name, subject.graph), runs, {}))
        findings = judge_all(paper.claims, device.kind, measured)
        report = write_report(out, paper.name, paper.title, options.command, device, measured, findings)
        rows += [_describe(cell, name, results[cell]) for cell in cells]
        if options.quick:
            files = report
            continue
        patterns = {}
        for cell in cells:
            if cell.measure == paper.rounds:
                stats = middle_of(results[cell])
                many = len(paper.measures[cell.measure].variants) > 1
                patterns[", ".join([cell.program, *([cell.variant] if many else []), name])] = stats
                rounds += _describe_rounds(cell, name, stats)
        files = [*report, write_csv(out / "runs.csv", rows)]
        files += [write_csv(out / f"{paper.rounds}.csv", rounds)] if rounds else []
        files += _write_tables(paper, out, rows)
        with contextlib.suppress(ImportError):  # the tables do not need matplotlib
            from ...tools.figures import draw_bars, write_picture

            if patterns:
                write_picture(draw_pattern(patterns), out / f"{paper.rounds}_{re.sub('[^A-Za-z0-9._-]+', '-', name)}.png")
            for measure in {cell.measure for cell in cells} - {paper.rounds}:
                draw_bars(out / f"{measure}.png", paper.measures[measure].title, _rows_of(paper, measure, rows))
    return Reproduction([*files, *sorted(out.glob("*.png"))], findings)


def _make_subject(given: Graph) -> Subject:
    graph = given.with_weights(None).simplify(remove_loops=True)
    weighted = graph.with_weights(random_weights(graph, 1, 64))
    host = graph.to("cpu")
    return Subject(graph, weighted, host, weighted.to("cpu"), choose_source(graph, host))


def _run_cells(
    paper: Paper, cells: Sequence[Cell], subject: Subject, repeat: int, progress: Progress, name: str
) -> dict[Cell, list[ProgramStats]]:
    """Make the runs of cells in turns, program by program; cells of one program with equal options share their runs."""
    shared: dict[Cell, tuple[str, str]] = {}
    families: dict[str, dict[str, Callable[[], ProgramStats]]] = {}
    for cell in cells:
        options = paper.measures[cell.measure].variants[cell.variant]
        run = functools.partial(_run_once, paper.programs[cell.program], subject, options)
        shared[cell] = cell.program, repr(sorted(options.items()))
        families.setdefault(cell.program, {}).setdefault(shared[cell][1], run)
    results = run_in_turns(families, repeat, progress, name)
    return {cell: results[key] for cell, key in shared.items()}


def _run_once(run: Run, subject: Subject, options: dict[str, Any]) -> ProgramStats:
    """Run a program, and prove its result; what is no program in the model of SIMD-X has no log of rounds."""
    return as_program_stats(run(subject, options))


def _describe(cell: Cell, graph: str, results: list[ProgramStats]) -> Row:
    """Return the row of a cell: its median run, and the quartiles of the times."""
    stats = middle_of(results)
    low, high = np.percentile([each.milliseconds for each in results], (25, 75))
    numbers = {"ballots": 0, "sweeps": 0, "pulls": 0} | numbers_of(stats) | {"rounds": len(stats.frontiers)}
    numbers |= {"milliseconds_low": float(low), "milliseconds_high": float(high)}
    numbers["widest"] = max(stats.frontiers, default=0)
    return {**cell._asdict(), "graph": graph, **dict(sorted(numbers.items())), "runs": len(results), "device": stats.device}


def _describe_rounds(cell: Cell, graph: str, stats: ProgramStats) -> list[Row]:
    """Return a row for each round of a run."""
    log = enumerate(zip(stats.filters, stats.directions, stats.frontiers, strict=True))
    keys = ("program", "graph", "variant", "round", "filter", "direction", "frontier")
    return [dict(zip(keys, (cell.program, graph, cell.variant, number, *entry), strict=True)) for number, entry in log]


def _rows_of(paper: Paper, measure: str, rows: list[Row]) -> list[Row]:
    runs = paper.same_runs.get(measure, measure)
    return [row for row in rows if row["measure"] == runs]


def _write_tables(paper: Paper, out: Path, rows: list[Row]) -> list[Path]:
    """Write a page for each measure, by program, graph and variant, and but for that of the rounds its runs."""
    files = []
    for name, measure in paper.measures.items():
        mine = _rows_of(paper, name, rows)
        if name != paper.rounds:
            files.append(write_csv(out / f"{name}.csv", [{**row, "measure": name} for row in mine]))
        lines = []
        for program, graph in dict.fromkeys((row["program"], row["graph"]) for row in mine):
            cells = [row for row in mine if (row["program"], row["graph"]) == (program, graph)]
            lines.append([program, graph, *(paper.format_cell(name, row, cells[0]) for row in cells)])
        unit = paper.units.get(name, "ms")
        files.append(
            write_markdown(
                out / f"{name}.md", measure.title, ["program", f"graph ({unit})", *measure.variants], lines, measure.note
            )
        )
    return files
