"""No public name, signature or command changes by accident: tests/public_names.txt holds them."""

from __future__ import annotations

import difflib
import importlib
import re
from types import ModuleType

import public_names
from repository import ROOT


def test_public_names_are_as_they_were():
    held, found = public_names.FILE.read_text(encoding="utf-8"), public_names.describe_all()
    change = "\n".join(difflib.unified_diff(held.splitlines(), found.splitlines(), "held", "found", lineterm="", n=1))
    assert not change, f"if this change is meant, run `python tests/public_names.py`:\n{change}"


def test_every_public_module_has_a_section():
    reached = {"atos_py"}
    for name in public_names.MODULES:
        module = importlib.import_module(name)
        reached |= {thing.__name__ for each in module.__all__ if isinstance(thing := getattr(module, each), ModuleType)}
    for page in (ROOT / "docs" / "api").glob("*.md"):
        reached |= set(re.findall(r"(?:currentmodule|automodule):: (\S+)", page.read_text()))
    public = {importlib.import_module(name).__name__ for name in public_names.MODULES}
    assert reached - public - set(public_names.MODULES) == set()


def test_the_text_tells_of_kinds_parameters_and_attributes():
    """The forms that a name can have, each by one that has it."""
    text = public_names.describe_all()
    for line in (
        "module linalg = atos_py.models.linalg",
        "data UNREACHED: uint32 = 4294967295",
        "function zeros(shape: int | tuple[int, ...], *, dtype: DTypeLike = numpy.float32) -> Array",
        "    constructor(path: str | Path, reason: str) -> None",
        "    property max_capacity: int, writable",
        "    field barrier: bool",
        "    field reason",
        "    method scratch(self, dtype: Any, count: int | None = None, /) -> Any",
        "    --device DEVICE",
    ):
        assert f"\n{line}\n" in text, line
