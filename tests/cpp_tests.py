"""The C++ tests in tests/core, each by its file and its name."""

from __future__ import annotations

import re

from repository import ROOT

FILES = sorted((ROOT / "tests" / "core").glob("*.cpp"))
TESTS = [(file.stem, name) for file in FILES for name in re.findall(r"^TEST\((\w+)\)", file.read_text(), re.M)]
