"""Modules that have moved: their old names still import, so that what was pickled under them loads."""

from __future__ import annotations

import sys
from functools import partial
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType

__all__ = ["MOVED", "find_moved_modules"]

#: Where a package or a module is now, by the name under which releases up to 0.2 have it.
MOVED = {
    "atos_py.acc": "atos_py.models.acc",
    "atos_py.algorithms.dynamic_bfs": "atos_py.models.dynamic.dynamic_bfs",
    "atos_py.algorithms.dynamic_components": "atos_py.models.dynamic.dynamic_components",
    "atos_py.graph.dynamic_graph": "atos_py.models.dynamic.dynamic_graph",
    "atos_py.graph.row_deletion": "atos_py.models.dynamic.row_deletion",
    "atos_py.graph.row_edits": "atos_py.models.dynamic.row_edits",
    "atos_py.graph.row_keys": "atos_py.models.dynamic.row_keys",
    "atos_py.graph.row_lists": "atos_py.models.dynamic.row_lists",
    "atos_py.nx_backend": "atos_py.models.nx_backend",
    "atos_py.runtime.pattern": "atos_py.models.acc.pattern",
}


def _name_now(name: str) -> str | None:
    """Return what a module is called now that has moved by itself, or with the package around it."""
    return next((now + name[len(old) :] for old, now in MOVED.items() if f"{name}.".startswith(f"{old}.")), None)


class _MovedModules:
    """Finder and loader of modules by their old names.

    A module is the same under both. The old name of a package stands for a module that has all names of the package, but no
    files: what it has there would be loaded once more.
    """

    @staticmethod
    def find_spec(name: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        return ModuleSpec(name, _MovedModules, is_package=True) if _name_now(name) else None  # type: ignore[arg-type]

    @staticmethod
    def create_module(_spec: ModuleSpec) -> ModuleType | None:
        return None

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        now = import_module(_name_now(module.__name__) or "")
        if hasattr(now, "__path__"):
            module.__getattr__ = partial(getattr, now)  # type: ignore[method-assign]
        else:
            sys.modules[module.__name__] = now


def find_moved_modules() -> None:
    """Have Python's import find modules by their old names, after all that are where their names say."""
    sys.meta_path.append(_MovedModules)  # type: ignore[arg-type]
