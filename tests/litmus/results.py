"""What the programs did on a chip: the rows of `results.csv`, one for each program, each variant and each published test.

A row has a digest of the instructions that ran. Where a program has changed since, its row counts for nothing, and the program
was not run. A row without instances says why.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from litmus.axioms import counterexample
from litmus.form import Program
from litmus.literature import ALL
from litmus.row import variants
from litmus.rows import ROWS

FILE = Path(__file__).with_name("results.csv")
SAFE, LEFT_OUT, PUBLISHED = "safe", "left out", "published"
ALLOWED, FORBIDDEN = "allowed", "forbidden"


class Entry(NamedTuple):
    """A program that is to run: safe as written, with something left out, or published."""

    kind: str
    name: str
    left_out: str
    program: Program

    @property
    def key(self) -> tuple[str, str, str]:
        return self.kind, self.name, self.left_out

    @property
    def verdict(self) -> str:
        """What the axioms say of the condition of the program."""
        return verdict_of(self.program)

    @property
    def digest(self) -> str:
        """A digest of instructions, places and conditions; names and labels do not count."""
        lines = [f"never {self.program.never}", *(f"{place} = {value}" for place, value in sorted(self.program.init.items()))]
        for thread in self.program.threads:
            lines += [f"block {thread.block} of GPU {thread.gpu}", *(line.text for line in thread.instructions)]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]

    @property
    def needs(self) -> str:
        """What the program needs beside one GPU."""
        gpus = {thread.gpu for thread in self.program.threads}
        return "needs the host" if -1 in gpus else "needs two GPUs" if len(gpus) > 1 else ""


@cache
def verdict_of(program: Program) -> str:
    return ALLOWED if counterexample(program) else FORBIDDEN


class Result(NamedTuple):
    """A row of the file. `met` counts instances in which no `need` ended a thread; `seen` those that should never be."""

    kind: str
    program: str
    left_out: str
    verdict: str
    digest: str
    instances: int
    met: int
    seen: int
    card: str
    cuda: str
    why_not: str

    @property
    def key(self) -> tuple[str, str, str]:
        return self.kind, self.program, self.left_out


@cache
def entries() -> list[Entry]:
    """Return all programs, in the order of the file."""
    found = []
    for row in ROWS:
        found.append(Entry(SAFE, row.program.name, "", row.program))
        found += [Entry(LEFT_OUT, row.program.name, name, program) for name, program in variants(row)]
    return [*found, *(Entry(PUBLISHED, test.program.name, "", test.program) for test in ALL)]


def not_run(entry: Entry, why: str) -> Result:
    return Result(*entry.key, entry.verdict, entry.digest, 0, 0, 0, "", "", why)


def read(path: Path = FILE) -> dict[tuple[str, str, str], Result]:
    """Return the rows of a file by kind, program and what is left out; none without the file."""
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        rows = [
            Result(**{**row, **{name: int(row[name]) for name in ("instances", "met", "seen")}}) for row in csv.DictReader(file)
        ]
    return {row.key: row for row in rows}


def write(path: Path, rows: Mapping[tuple[str, str, str], Result]) -> None:
    """Write a row for each program, in their order: as given, or that the program was not run."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Result._fields)
        for entry in entries():
            row = rows.get(entry.key)
            writer.writerow(row if row and row.digest == entry.digest else not_run(entry, entry.needs or "not run"))


def counted(entry: Entry, rows: Mapping[tuple[str, str, str], Result]) -> Result:
    """Return the row of a program as it is now."""
    row = rows.get(entry.key)
    return row if row and row.digest == entry.digest else not_run(entry, entry.needs)
