"""The measures of Liu and Huang 2019 (SIMD-X) on this machine: figures 4, 7, 8a, 8b, 11 and 12, tables 2 and 4.

Each measure runs programs (`acc.programs`) with options that differ in one thing, and every run is verified. All are written as
CSV and Markdown, figures, where matplotlib is installed, also as PNG, after each graph. Table 2 is of the runs of Figure 12.
"""

from __future__ import annotations

import contextlib
import re
import statistics
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..acc import MIN, Program, draw_pattern, programs
from ..algorithms.bfs import verify_bfs
from ..algorithms.k_core import verify_k_core
from ..algorithms.pagerank import verify_pagerank
from ..algorithms.sssp import verify_sssp
from ..arrays.filled import full
from ..errors import InvalidArgumentError, VerificationError
from ..graph.generate import random_weights
from ..graph.graph import Graph
from ..runtime.stats import LaunchStats
from ..runtime.trace import format_digits
from ..support.validation import check_int
from .reproduce import Progress, choose_source, make_directory
from .tables import write_csv, write_markdown

__all__ = ["MEASURES", "PROGRAMS", "reproduce_simdx"]

K = 32  # of the k-core; the paper's K counts more edges than that
ROUNDS = 3  # of weighted sums, as in the authors' scripts
_BFS_BY_MINIMUM = Program(programs.next_level, MIN)


class _Subject(NamedTuple):
    """A graph without loops, also with weights, its copies on the host, and where searches begin."""

    graph: Graph
    weighted: Graph
    host: Graph
    weighted_host: Graph
    source: int


def _run_bfs(on: _Subject, options: dict[str, Any]) -> LaunchStats:
    depth, stats = programs.bfs(on.graph, on.source, **options)
    verify_bfs(on.host, on.source, depth)
    return stats


def _run_bfs_by_minimum(on: _Subject, options: dict[str, Any]) -> LaunchStats:
    depth = full(on.graph.num_vertices, 2**32 - 1, dtype=np.uint32, device=on.graph.device)
    depth[on.source] = 0
    stats = _BFS_BY_MINIMUM.run(on.graph, depth, start=on.source, **options)
    verify_bfs(on.host, on.source, depth)
    return stats


def _run_sssp(on: _Subject, options: dict[str, Any]) -> LaunchStats:
    distance, stats = programs.sssp(on.weighted, on.source, **options)
    verify_sssp(on.weighted_host, on.source, distance)
    return stats


def _run_k_core(on: _Subject, options: dict[str, Any]) -> LaunchStats:
    members, stats = programs.k_core(on.graph, K, **options)
    verify_k_core(on.host, K, members)
    return stats


def _run_pagerank(on: _Subject, options: dict[str, Any]) -> LaunchStats:
    rank, stats = programs.pagerank(on.graph, tolerance=5e-4, **options)
    verify_pagerank(on.host, rank, 1e-3)
    return stats


def _run_weighted_sums(on: _Subject, options: dict[str, Any]) -> LaunchStats:
    sums, stats = programs.weighted_sums(on.weighted, np.ones(on.graph.num_vertices), rounds=ROUNDS, **options)
    matrix, expected = on.weighted_host.to_scipy().T, np.ones(on.graph.num_vertices)
    for _ in range(ROUNDS):
        expected = matrix @ expected
    if not np.allclose(sums.to_numpy(), expected, rtol=1e-9):
        raise VerificationError(f"{ROUNDS} weighted sums are not the products with the matrix of weights")
    return stats


PROGRAMS: dict[str, Callable[[_Subject, dict[str, Any]], LaunchStats]] = {
    "BFS": _run_bfs,
    "BFS by minimum": _run_bfs_by_minimum,
    "SSSP": _run_sssp,
    "k-core": _run_k_core,
    "PageRank": _run_pagerank,
    "weighted sums": _run_weighted_sums,
}


class Measure(NamedTuple):
    """A figure or a table: what it is of, programs, variants of their options, and what turned since the paper."""

    title: str
    programs: tuple[str, ...]
    variants: dict[str, dict[str, Any]]
    note: str


_SEARCHES = ("BFS", "SSSP", "k-core")
_FUSIONS: dict[str, dict[str, Any]] = {name: {"direction": "auto", "fuse": name} for name in ("none", "direction", "all")}
MEASURES = {
    "figure4": Measure(
        "Combine against atomics (Figure 4)",
        ("BFS", "BFS by minimum", "SSSP"),
        {"push": {"direction": "push"}, "pull": {"direction": "pull"}},
        "Votes against atomic minima: BFS against BFS by minimum. Minima in registers against atomics: pull against push. "
        "Since the K40 atomics became many times faster, and pull looks at more edges: it need not win.",
    ),
    "figure7": Measure(
        "Filters by round (Figure 7)", tuple(name for name in PROGRAMS if name != "BFS by minimum"), {"jit": {}},
        "A ballot sets in beyond 1,024 times the threshold, whatever the number of threads, and not where the bin of one "
        "thread is full. PageRank and weighted sums gather for all vertices in every round, which counts as a ballot.",
    ),
    "figure8a": Measure(
        "Threshold of the online filter (Figure 8a)",
        ("BFS",),
        {str(threshold): {"threshold": threshold} for threshold in (0, 1, 4, 16, 64, 256, 1024, 1 << 20)},
        "0 is the ballot filter in each round, with the online filter on; the last never overflows.",
    ),
    "figure8b": Measure(
        "Cost of the online filter where a ballot makes the list (Figure 8b)", _SEARCHES,
        {"off": {"filter": "ballot"}, "on": {"threshold": 0}},
        "In percent of the time without it. The online filter of the paper writes into a bin of the thread, and stops when "
        "that is full. Here it pushes into the queue, and the items are taken from it and dropped.",
    ),
    "figure11": Measure(
        "Just-in-time filters against each alone (Figure 11)", _SEARCHES,
        {name: {"filter": name} for name in ("jit", "online", "ballot")},
        "Alone, the online filter never overflows here, since the queue grows; so it is right on all graphs. A scan of "
        "all metadata takes microseconds on a GPU of today.",
    ),
    "figure12": Measure(
        "Fusion of kernels (Figure 12)", (*_SEARCHES, "PageRank"), _FUSIONS,
        "Times are from the start of each kernel to its end: what the host takes between launches is not in them.",
    ),
    "table2": Measure(
        "Registers and launches (Table 2)", (*_SEARCHES, "PageRank"), _FUSIONS,
        "Registers of a thread: the most of all kernels, 0 on the CPU. They are the fewest of 40, 48, 64 or more with which "
        "nothing is spilled, and each kernel has the function between rounds too.",
    ),
    "table4": Measure(
        "Run times (Table 4)", tuple(PROGRAMS), {"push": {}, "auto": {"direction": "auto"}},
        f"In the {K}-core each vertex has {K} edges or more; the authors' program keeps vertices with more than {K}. "
        "PageRank ends at an error of 5e-4, and not after a number of rounds. What the authors call belief propagation is "
        "weighted sums.",
    ),
}  # fmt: skip


def reproduce_simdx(
    out: Path,
    graphs: Iterable[tuple[str, Graph]],
    *,
    repeat: int = 5,
    progress: Progress = lambda steps, _description, _total: steps,
) -> list[Path]:
    """Measure everything and write it to a directory; parameters are those of `reproduce`."""
    repeat = check_int("repeat", repeat, 1, 10**6)
    make_directory(out)
    rows: list[dict[str, Any]] = []
    rounds: list[dict[str, Any]] = []
    files: list[Path] = []
    for name, given in graphs:
        if not given.num_vertices:
            raise InvalidArgumentError(f"graph {name!r} has no vertices: give one with some")
        patterns: dict[str, LaunchStats] = {}
        subject = _make_subject(given)
        cells = [(m, p, v) for m, each in MEASURES.items() if m != "table2" for p in each.programs for v in each.variants]
        for measure, program, variant in progress(cells, name, len(cells)):
            options = MEASURES[measure].variants[variant]
            if program in ("PageRank", "weighted sums") and options.get("direction") == "auto":
                options = {key: value for key, value in options.items() if key != "direction"}
            stats = _run_median(PROGRAMS[program], subject, repeat, options)
            rows.append(_describe(measure, program, name, variant, stats))
            if measure == "figure7":
                patterns[f"{program}, {name}"] = stats
                log = enumerate(zip(stats.filters, stats.directions, stats.frontiers, strict=True))
                keys = ("program", "graph", "round", "filter", "direction", "frontier")
                rounds += [dict(zip(keys, (program, name, number, *entry), strict=True)) for number, entry in log]
        files = [write_csv(out / "runs.csv", rows), write_csv(out / "figure7.csv", rounds), *_write_tables(out, rows)]
        with contextlib.suppress(ImportError):  # the tables do not need matplotlib
            from .figures import draw_bars, write_picture

            write_picture(draw_pattern(patterns), out / f"figure7_{re.sub('[^A-Za-z0-9._-]+', '-', name)}.png")
            for measure in set(MEASURES) - {"figure7", "table2"}:
                shown = _rows_of(measure, rows)
                draw_bars(out / f"{measure}.png", MEASURES[measure].title, shown)
    return [*files, *sorted(out.glob("*.png"))]


def _make_subject(given: Graph) -> _Subject:
    graph = given.with_weights(None).simplify(remove_loops=True)
    weighted = graph.with_weights(random_weights(graph, 1, 64))
    host = graph.to("cpu")
    return _Subject(graph, weighted, host, weighted.to("cpu"), choose_source(graph, host))


def _run_median(
    run: Callable[[_Subject, dict[str, Any]], LaunchStats], subject: _Subject, repeat: int, options: dict[str, Any]
) -> LaunchStats:
    run(subject, options)
    results = [run(subject, options) for _ in range(repeat)]
    middle = statistics.median_low([stats.milliseconds for stats in results])
    return next(stats for stats in results if stats.milliseconds == middle)


def _describe(measure: str, program: str, graph: str, variant: str, stats: LaunchStats) -> dict[str, Any]:
    return {
        "measure": measure,
        "program": program,
        "graph": graph,
        "variant": variant,
        "milliseconds": stats.milliseconds,
        "rounds": len(stats.frontiers),
        "ballots": stats.filters.count("ballot"),
        "pulls": stats.directions.count("pull"),
        "launches": stats.launches,
        "registers": stats.registers,
        "tasks_run": stats.tasks_run,
        "device": stats.device,
    }


def _rows_of(measure: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    runs = "figure12" if measure == "table2" else measure
    return [row for row in rows if row["measure"] == runs]


def _write_tables(out: Path, rows: list[dict[str, Any]]) -> list[Path]:
    """Write a page for each measure, by program, graph and variant, and but for Figure 7 its runs."""
    files = []
    for name, measure in MEASURES.items():
        mine = _rows_of(name, rows)
        if name != "figure7":
            files.append(write_csv(out / f"{name}.csv", [{**row, "measure": name} for row in mine]))
        lines = []
        for program, graph in dict.fromkeys((row["program"], row["graph"]) for row in mine):
            cells = [row for row in mine if (row["program"], row["graph"]) == (program, graph)]
            lines.append([program, graph, *(_format_cell(name, row, cells[0]) for row in cells)])
        unit = _UNITS.get(name, "ms")
        files.append(
            write_markdown(
                out / f"{name}.md", measure.title, ["program", f"graph ({unit})", *measure.variants], lines, measure.note
            )
        )
    return files


_UNITS = {"figure7": "ms: rounds, of which ballots", "figure8b": "ms, change", "table2": "registers, launches"}


def _format_cell(measure: str, row: dict[str, Any], first: dict[str, Any]) -> str:
    text = format_digits(row["milliseconds"])
    if measure == "figure7":
        return f"{text}: {row['rounds']}, {row['ballots']}"
    if measure == "figure8b" and row is not first:
        return f"{text} ({row['milliseconds'] / first['milliseconds'] - 1:+.1%})"
    if measure == "table2":
        return f"{row['registers']}, {row['launches']:,}"
    return text
