"""The runs of `make soak`, a line of `tests/soak.csv` for each, and their sums, which a page shows."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).parents[1] / "soak.csv"
MARK = "<!-- the sums of tests/soak.csv -->"  # in a page, on a line of its own


class Run(NamedTuple):
    """A run: what it tried, of which commit, on what machine, from which seed on."""

    date: str
    commit: str
    machine: str
    seed: int
    launches: int
    inputs: int
    steps: int
    minutes: float
    failures: int


def read(file: Path = FILE) -> list[Run]:
    """Return the runs of a file; raise a ValueError if a line is none."""
    with file.open(newline="") as opened:
        lines = csv.DictReader(opened, strict=True)
        if tuple(lines.fieldnames or ()) != Run._fields:
            raise ValueError(f"{file} has the columns {lines.fieldnames}, not {Run._fields}")
        return [_parse(file, lines.line_num, line) for line in lines]


def _parse(file: Path, number: int, line: dict[str, str]) -> Run:
    try:
        texts = [line[name] for name in ("date", "commit", "machine")]
        counts = [int(line[name]) for name in ("seed", "launches", "inputs", "steps")]
        run = Run(*texts, *counts, float(line["minutes"]), int(line["failures"]))
        if None in line or not all(texts) or min(*counts, run.minutes, run.failures) < 0:
            raise ValueError("a field is missing, negative, or one too many")
    except (ValueError, TypeError) as error:
        raise ValueError(f"{file}, line {number}: {error}") from error
    return run


def add(run: Run, file: Path = FILE) -> None:
    """Add a line to a file, which gets its heading if it is new."""
    is_new = not file.exists()
    with file.open("a", newline="") as opened:
        csv.writer(opened, lineterminator="\n").writerows([Run._fields, run] if is_new else [run])


def table(runs: Iterable[Run]) -> str:
    """Return the sums of each machine and of all in Markdown."""
    runs = list(runs)
    lines = ["| machine | runs | launches | inputs of readers | API steps | hours | failures |", "| --- " * 7 + "|"]
    for machine in [*dict.fromkeys(run.machine for run in runs), "all"]:
        of_it = [run for run in runs if machine in (run.machine, "all")]
        counts = [len(of_it), *(sum(run[place] for run in of_it) for place in (4, 5, 6))]
        hours, failures = sum(run.minutes for run in of_it) / 60, sum(run.failures for run in of_it)
        lines.append(f"| {' | '.join([machine, *(f'{count:,}' for count in counts), f'{hours:.1f}', f'{failures:,}'])} |")
    return "\n".join(lines)


def with_sums(page: str, file: Path = FILE) -> str:
    """Return the text of a page that has the sums where it has the mark."""
    return page.replace(MARK, table(read(file))) if MARK in page else page
