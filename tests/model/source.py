"""The sources that the model is compiled over: those of csrc, but for a few that it has of its own, in tests/model/csrc."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

CSRC = Path(__file__).parents[2] / "csrc"
OWN = Path(__file__).parent / "csrc"


class Change(NamedTuple):
    """The one place in the sources that a regular expression matches, and what is there instead."""

    old: str
    new: str


class ModelError(Exception):
    """The model cannot be made of csrc as it is."""


def copy_changed(directory: Path, changes: Sequence[Change] = ()) -> None:
    """Copy the headers of csrc, with these changes."""
    for root in (CSRC, OWN):
        shutil.copytree(root, directory, ignore=shutil.ignore_patterns("*.cpp", "*.cu"), dirs_exist_ok=True)
    for old, new in changes:
        texts = {path: path.read_text() for path in directory.rglob("*.*h")}
        found = {path: len(re.findall(old, text, flags=re.S)) for path, text in texts.items()}
        if sum(found.values()) != 1:
            places = {str(path.relative_to(directory)): times for path, times in found.items() if times}
            raise ModelError(f"{old!r} should match one place in csrc, and matches {places or 'none'}")
        path = max(found, key=lambda path: found[path])
        path.write_text(re.sub(old, new, texts[path], flags=re.S))
