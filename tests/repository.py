"""The root of the checkout, for tests that read or run what is in it; they lie in folders of different depth."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
CSRC = ROOT / "csrc"
CXX = shlex.split(os.environ.get("CXX") or "c++")  # the C++ compiler, as setup.py finds it
HAS_CXX = shutil.which(CXX[0]) is not None


def load_example(name: str) -> Any:
    """Return an example as a module, by its name."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
