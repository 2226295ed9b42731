"""Measures of programs of `acc` for a paper: each runs programs on graphs with options that differ in one thing.

Every run is verified. All are written as CSV and Markdown, figures also as PNG where matplotlib is installed, after each graph.
"""

from __future__ import annotations

import contextlib
import re
import statistics
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...algorithms.bfs import verify_bfs
from ...algorithms.sssp import verify_sssp
from ...arrays.filled import full
from ...errors import InvalidArgumentError
from ...graph.generate import random_weights
from ...graph.graph import Graph
from ...runtime.stats import COUNTED, LaunchStats
from ...runtime.trace import format_digits
from ...support.validation import check_int
from ...tools.tables import write_csv, write_markdown
from ..acc import MIN, Program, ProgramStats, draw_pattern, programs
from ..acc.stats import as_program_stats
from .reproduce import Progress, choose_source, make_directory

__all__ = ["Measure", "Paper", "Row", "Run", "Subject", "run_bfs_by_minimum", "run_measures", "run_sssp"]

_BFS_BY_MINIMUM = Program(programs.next_level, MIN)


class Subject(NamedTuple):
    """A graph without loops, also with weights, its copies on the host, and where searches begin."""

    graph: Graph
    weighted: Graph
    host: Graph
    weighted_host: Graph
    source: int


class Measure(NamedTuple):
    """A figure or a table: what it is of, programs, variants of their options, and what turned since the paper."""

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


class Paper(NamedTuple):
    """Measures and programs of a paper, and the format of its tables."""

    measures: Mapping[str, Measure]
    programs: Mapping[str, Run]
    rounds: str  # the measure whose runs are written and drawn round by round
    same_runs: Mapping[str, str] = {}  # of a measure that has no runs of its own
    units: Mapping[str, str] = {}
    format_cell: Callable[[str, Row, Row], str] = _milliseconds  # of a run, and the first one of its line


def run_measures(paper: Paper, out: Path, graphs: Iterable[tuple[str, Graph]], repeat: int, progress: Progress) -> list[Path]:
    """Measure everything and write it to a directory; parameters are those of `reproduce`."""
    repeat = check_int("repeat", repeat, 1, 10**6)
    make_directory(out)
    rows: list[Row] = []
    rounds: list[Row] = []
    files: list[Path] = []
    for name, given in graphs:
        if not given.num_vertices:
            raise InvalidArgumentError(f"graph {name!r} has no vertices: give one with some")
        patterns: dict[str, ProgramStats] = {}
        subject = _make_subject(given)
        own = {measure: each for measure, each in paper.measures.items() if measure not in paper.same_runs}
        cells = [(measure, p, v) for measure, each in own.items() for p in each.programs for v in each.variants]
        for measure, program, variant in progress(cells, name, len(cells)):
            stats = _run_median(paper.programs[program], subject, repeat, own[measure].variants[variant])
            rows.append(_describe(measure, program, name, variant, stats))
            if measure == paper.rounds:
                patterns[", ".join([program, *([variant] if len(own[measure].variants) > 1 else []), name])] = stats
                log = enumerate(zip(stats.filters, stats.directions, stats.frontiers, strict=True))
                keys = ("program", "graph", "variant", "round", "filter", "direction", "frontier")
                rounds += [dict(zip(keys, (program, name, variant, number, *entry), strict=True)) for number, entry in log]
        files = [write_csv(out / "runs.csv", rows), write_csv(out / f"{paper.rounds}.csv", rounds)]
        files += _write_tables(paper, out, rows)
        with contextlib.suppress(ImportError):  # the tables do not need matplotlib
            from ...tools.figures import draw_bars, write_picture

            write_picture(draw_pattern(patterns), out / f"{paper.rounds}_{re.sub('[^A-Za-z0-9._-]+', '-', name)}.png")
            for measure in set(own) - {paper.rounds}:
                draw_bars(out / f"{measure}.png", own[measure].title, _rows_of(paper, measure, rows))
    return [*files, *sorted(out.glob("*.png"))]


def _make_subject(given: Graph) -> Subject:
    graph = given.with_weights(None).simplify(remove_loops=True)
    weighted = graph.with_weights(random_weights(graph, 1, 64))
    host = graph.to("cpu")
    return Subject(graph, weighted, host, weighted.to("cpu"), choose_source(graph, host))


def _run_median(run: Run, subject: Subject, repeat: int, options: dict[str, Any]) -> ProgramStats:
    """Return the statistics of one of several runs; what is no program in the model of SIMD-X has no log of rounds."""
    run(subject, options)
    results = [as_program_stats(run(subject, options)) for _ in range(repeat)]
    middle = statistics.median_low([stats.milliseconds for stats in results])
    return next(stats for stats in results if stats.milliseconds == middle)


def _describe(measure: str, program: str, graph: str, variant: str, stats: ProgramStats) -> dict[str, Any]:
    return {
        "measure": measure,
        "program": program,
        "graph": graph,
        "variant": variant,
        "milliseconds": stats.milliseconds,
        "rounds": len(stats.frontiers),
        "ballots": stats.filters.count("ballot"),
        "sweeps": stats.filters.count("none"),
        "pulls": stats.directions.count("pull"),
        "launches": stats.launches,
        "registers": stats.registers,
        "tasks_run": stats.tasks_run,
        **{name: getattr(stats, name) for name in COUNTED},
        "device": stats.device,
    }


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
