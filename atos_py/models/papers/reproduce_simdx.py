"""The measures of Liu and Huang 2019 (SIMD-X) on this machine: figures 4, 7, 8a, 8b, 11 and 12, tables 2 and 4.

`program_measures` says how measures run programs (`acc.programs`), and what is written; `claims_simdx` has the claims. Table 2
is of the runs of Figure 12.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ...algorithms.bfs import verify_bfs
from ...algorithms.k_core import verify_k_core
from ...algorithms.pagerank import verify_pagerank
from ...compile.best_links import only_best
from ...errors import VerificationError
from ...graph.graph import Graph
from ...runtime.stats import LaunchStats
from ...runtime.trace import format_digits
from ..acc import programs
from .claim_report import Reproduction
from .claims_simdx import CLAIMS
from .program_measures import Measure, Paper, Row, Run, Subject, run_bfs_by_minimum, run_measures, run_sssp
from .turns import DEFAULTS, Options

__all__ = ["MEASURES", "PROGRAMS", "reproduce_simdx"]

K = 32  # of the k-core; the paper's K counts more edges than that
ROUNDS = 3  # of weighted sums, as in the authors' scripts


def _run_bfs(on: Subject, options: dict[str, Any]) -> LaunchStats:
    depth, stats = programs.bfs(on.graph, on.source, **options)
    verify_bfs(on.host, on.source, depth)
    return stats


def _run_k_core(on: Subject, options: dict[str, Any]) -> LaunchStats:
    members, stats = programs.k_core(on.graph, K, **options)
    verify_k_core(on.host, K, members)
    return stats


def _run_pagerank(on: Subject, options: dict[str, Any]) -> LaunchStats:
    rank, stats = programs.pagerank(on.graph, tolerance=5e-4, **options)
    verify_pagerank(on.host, rank, 1e-3)
    return stats


def _run_weighted_sums(on: Subject, options: dict[str, Any]) -> LaunchStats:
    sums, stats = programs.weighted_sums(on.weighted, np.ones(on.graph.num_vertices), rounds=ROUNDS, **options)
    matrix, expected = on.weighted_host.to_scipy().T, np.ones(on.graph.num_vertices)
    for _ in range(ROUNDS):
        expected = matrix @ expected
    if not np.allclose(sums.to_numpy(), expected, rtol=1e-9):
        raise VerificationError(f"{ROUNDS} weighted sums are not the products with the matrix of weights")
    return stats


PROGRAMS: dict[str, Run] = {
    "BFS": _run_bfs,
    "BFS by minimum": run_bfs_by_minimum,
    "SSSP": run_sssp,
    "k-core": _run_k_core,
    "PageRank": _run_pagerank,
    "weighted sums": _run_weighted_sums,
}


_SEARCHES = ("BFS", "SSSP", "k-core")
_GATHERED = ("PageRank", "weighted sums")  # which pull in every round, whatever the direction
_FUSE = ("none", "direction", "all")
_FUSIONS: dict[str, dict[str, Any]] = {name: {"direction": "auto", "fuse": name} for name in _FUSE}
MEASURES = {
    "figure4": Measure(
        "Combine against atomics (Figure 4)",
        ("BFS", "BFS by minimum", "SSSP"),
        {"push": {"direction": "push"}, "pull": {"direction": "pull"}},
        "Votes against atomic minima: BFS against BFS by minimum. Minima in registers against atomics: pull against push.",
    ),
    "figure7": Measure(
        "Filters by round (Figure 7)", _SEARCHES, {"jit": {"filter": "jit", "threshold": 64}},
        "A ballot sets in where one of 1,024 bins is full, of vertices by their numbers, whatever the number of threads; the "
        "original has a bin for each thread. PageRank and weighted sums gather for all vertices, and filter none.",
    ),
    "figure8a": Measure(
        "Threshold of the online filter (Figure 8a)",
        ("BFS",),
        {str(each): {"filter": "jit", "threshold": each} for each in (0, 1, 4, 16, 64, 256, 1024, 1 << 20)},
        "0 is the ballot filter in each round, with the online filter on; the last never overflows.",
    ),
    "figure8b": Measure(
        "Cost of the online filter where a ballot makes the list (Figure 8b)", _SEARCHES,
        {"off": {"filter": "ballot"}, "on": {"filter": "jit", "threshold": 0}},
        "In percent of the time without it. The online filter writes into bins, and stops when one is full. Here they have "
        "room for nothing, so that it counts each vertex by an atomic, as it does beyond any threshold.",
    ),
    "figure11": Measure(
        "Just-in-time filters against each alone (Figure 11)", _SEARCHES,
        {"jit": {"filter": "jit", "threshold": 64}, "online": {"filter": "online"}, "ballot": {"filter": "ballot"}},
        "Alone, the online filter never overflows here, since the queue grows; so it is right on all graphs.",
    ),
    "figure12": Measure(
        "Fusion of kernels (Figure 12)", _SEARCHES, _FUSIONS,
        "Times are from the start of each kernel to its end: what the host takes between launches is not in them, but in "
        "`call_milliseconds` of the runs.",
    ),
    "figure12-gathered": Measure(
        "Fusion of kernels of programs that only gather (Figure 12)", ("PageRank",), {name: {"fuse": name} for name in _FUSE},
        "As Figure 12; in every round all vertices pull.",
    ),
    "table2": Measure(
        "Registers and launches (Table 2)", _SEARCHES, _FUSIONS,
        "Registers of a thread: the most of all kernels, 0 on the CPU. They are the fewest of 40, 48, 64 or more with "
        "which little is spilled, and each kernel has the function between rounds too.",
    ),
    "table4": Measure(
        "Run times of programs that push, or choose the direction (Table 4)", (*_SEARCHES, "BFS by minimum"),
        {"push": {}, "auto": {"direction": "auto"}},
        f"In the {K}-core each vertex has {K} edges or more; the authors' program keeps vertices with more than {K}.",
    ),
    "table4-gathered": Measure(
        "Run times of programs that only gather (Table 4)", _GATHERED, {"pull": {}},
        "PageRank ends at an error of 5e-4, and not after a number of rounds. What the authors call belief propagation is "
        "weighted sums.",
    ),
}  # fmt: skip


@only_best()
def reproduce_simdx(out: Path, graphs: Iterable[tuple[str, Graph]], options: Options = DEFAULTS) -> Reproduction:
    """Measure everything, test the claims, and write it to a directory."""
    title, same = "The claims of SIMD-X, tested", {"table2": "figure12"}
    paper = Paper("simd-x", title, MEASURES, PROGRAMS, "figure7", CLAIMS, same, _UNITS, _format_cell)
    return run_measures(paper, out, graphs, options)


_UNITS = {"figure7": "ms: rounds, of which ballots", "figure8b": "ms, change", "table2": "registers, launches"}


def _format_cell(measure: str, row: Row, first: Row) -> str:
    text = format_digits(row["milliseconds"])
    if measure == "figure7":
        return f"{text}: {row['rounds']}, {row['ballots']}"
    if measure == "figure8b" and row is not first:
        return f"{text} ({row['milliseconds'] / first['milliseconds'] - 1:+.1%})"
    if measure == "table2":
        return f"{row['registers']}, {row['launches']:,}"
    return text
