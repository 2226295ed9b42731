"""Tables and figures of the paper, made from the runs of `reproduce`."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..runtime.trace import compute_throughput, format_digits

__all__ = [
    "COUNTED",
    "Measured",
    "compute_overwork",
    "compute_overwork_of_trace",
    "count_least_tasks",
    "write_csv",
    "write_markdown",
    "write_tables",
    "write_throughput",
]

#: The algorithms whose tasks are vertices, with the names of their figures.
COUNTED = {"BFS": "figure1_BFS", "PageRank by vertex": "figure2_PageRank", "coloring": "figure3_coloring"}
_ON_THE_CPU = "On the CPU a worker is one thread: warps and CTAs differ in what they fetch at once alone, 32 items or 128."


class Measured(NamedTuple):
    """Measurements as rows of tables; all rows have a graph, and all but those of `permutation` an algorithm."""

    runs: list[dict[str, Any]]
    traces: list[dict[str, Any]]
    heat: list[dict[str, Any]]
    permutation: list[dict[str, Any]]

    def run(self, algorithm: str, graph: str, variant: str) -> dict[str, Any]:
        """Return the row of a run."""
        return next(r for r in self.runs if (r["algorithm"], r["graph"], r["variant"]) == (algorithm, graph, variant))


def compute_overwork(measured: Measured, run: dict[str, Any]) -> float:
    """Return tasks run relative to the BSP variant; for coloring to what is needed if no neighbors clash (Table 4)."""
    if run["algorithm"] == "coloring":
        return float(run["tasks_run"] / count_least_tasks(run))
    return float(run["tasks_run"] / measured.run(run["algorithm"], run["graph"], "BSP")["tasks_run"])


def count_least_tasks(run: dict[str, Any]) -> int:
    """Return the tasks of a coloring without clashes: assign and check; a vertex without neighbors needs no check."""
    return int(2 * run["vertices"] - run["isolated"])


def write_csv(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    """Write rows that have the same keys."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def write_markdown(path: Path, title: str, header: Sequence[str], rows: Sequence[Sequence[str]], note: str = "") -> Path:
    """Write a page with a table."""
    lines = [f"# {title}", "", *([note, ""] if note else []), "| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_tables(out: Path, measured: Measured) -> list[Path]:
    """Write run times, tasks and the effect of permuted ids as Markdown, and all figures behind them as CSV."""
    pairs = list(dict.fromkeys((r["algorithm"], r["graph"]) for r in measured.runs))
    variants = list(dict.fromkeys(r["variant"] for r in measured.runs))
    times, ratios = [], []
    for algorithm, graph in pairs:
        cells = [measured.run(algorithm, graph, variant) for variant in variants]
        base = measured.run(algorithm, graph, "BSP")["milliseconds"]
        times.append(
            [algorithm, graph, *(f"{format_digits(c['milliseconds'])} (x{base / c['milliseconds']:.2f})" for c in cells)]
        )
        if algorithm in COUNTED:
            ratios.append([algorithm, graph, *(f"{compute_overwork(measured, c):.2f}" for c in cells)])
    table1 = "Run time in ms, and speed-up over BSP (Table 1)"
    table4 = "Tasks run, relative to BSP; for coloring to those of a run without clashes (Table 4)"
    moved = [
        [
            p["graph"],
            p["variant"],
            *(f"{format_digits(p[key])} → {format_digits(p[key + '_permuted'])}" for key in ("ms", "workload")),
        ]
        for p in measured.permutation
    ]
    note = _ON_THE_CPU if measured.runs[0]["device"] == "cpu" else ""
    header = ["graph", "variant", "ms, ids as they are → permuted", "tasks, to those without clashes"]
    sheets = {"runs": measured.runs, "heatmap": measured.heat, "permutation": measured.permutation}
    return [
        *(write_csv(out / f"{name}.csv", rows) for name, rows in sheets.items() if rows),
        write_markdown(out / "table1.md", table1, ["algorithm", "graph", *variants], times, note),
        write_markdown(out / "table4.md", table4, ["algorithm", "graph", *variants], ratios),
        write_markdown(out / "permutation.md", "Coloring with permuted vertex ids (Section 6.4)", header, moved),
    ]


def write_throughput(out: Path, measured: Measured) -> list[Path]:
    """Write throughput over time, absolute and normalized by overwork, as CSV."""
    rows = []
    for entry in measured.traces:
        factor = compute_overwork_of_trace(measured, entry)
        for ms, rate in zip(*compute_throughput(entry["trace"]), strict=True):
            rows.append(
                {
                    "algorithm": entry["algorithm"],
                    "graph": entry["graph"],
                    "variant": entry["variant"],
                    "ms": round(float(ms), 5),
                    "mtasks_per_s": round(float(rate), 3),
                    "normalized": round(float(rate / factor), 3),
                }
            )
    return [write_csv(out / "throughput.csv", rows)] if rows else []


def compute_overwork_of_trace(measured: Measured, trace: dict[str, Any]) -> float:
    """Return the overwork of the run that a trace is of."""
    return compute_overwork(measured, measured.run(trace["algorithm"], trace["graph"], trace["variant"]))
