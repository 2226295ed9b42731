"""Task-parallel irregular work on GPUs: one shared queue, tasks in Python, persistent and discrete launches."""

from __future__ import annotations

import ast
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from . import errors
from .errors import *  # noqa: F403
from .support.moved_modules import find_moved_modules

__version__ = "0.2.0"


def _read_stub() -> dict[str, str | None]:
    """Return which module has each public name, as the stub tells type checkers; None for a name that is itself a module."""
    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    return {each.asname: node.module for node in imports for each in node.names if each.asname}


_MODULES = _read_stub()
find_moved_modules()

__all__ = sorted({*errors.__all__, *_MODULES})


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that a program waits only for the modules that it needs."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__])
    module = _MODULES[name]
    if module is None:
        return import_module(f".{name}", __name__)
    # What `from .module import name` does: the name may be a module, too.
    value = globals()[name] = getattr(__import__(module, globals(), None, [name], 1), name)
    return value


def __dir__() -> list[str]:
    """Return the public names and nothing else."""
    return [*__all__, "__version__"]
