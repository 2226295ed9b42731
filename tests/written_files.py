"""Files that commands write, as tests read them."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path


def rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table, by the names of its columns."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def check_pictures(files: Iterable[Path], names: set[str]) -> None:
    """Check which of the files are pictures, and that they are."""
    pictures = {path.name: path for path in files if path.suffix == ".png"}
    assert set(pictures) == names
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures.values())
