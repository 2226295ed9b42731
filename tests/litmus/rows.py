"""All programs of the table in `docs/protocol/memory-order.md`, and the table itself."""

from __future__ import annotations

import re
from typing import NamedTuple

from litmus import rows_of_joins, rows_of_launch, rows_of_queue, rows_of_shared_work
from litmus.source import ROOT

ROWS = [*rows_of_queue.ROWS, *rows_of_shared_work.ROWS, *rows_of_launch.ROWS, *rows_of_joins.ROWS]
TABLE = ROOT / "docs" / "protocol" / "memory-order.md"


class Step(NamedTuple):
    """A row of the table: its step, and each function with a fence, with the numbers of the fences that are meant."""

    name: str
    functions: dict[str, tuple[int, ...]]


def steps() -> list[Step]:
    """Return the rows of the table."""
    found = []
    for line in TABLE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and cells[0] not in ("step", "---"):
            named = re.findall(r"`([\w:]+)`(?: \(([\d, ]+)\))?", cells[2])
            found.append(Step(cells[0], {name: tuple(map(int, re.findall(r"\d", numbers))) for name, numbers in named}))
    return found
