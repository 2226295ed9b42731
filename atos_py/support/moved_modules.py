"""Modules that have moved: their old names still import, so that what was pickled under them loads.

Those of `acc`, `features`, `linalg` and `nx_backend` are public paths, for which there are stubs that tell type checkers.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType

__all__ = ["MOVED", "find_moved_modules"]

#: Where a package or a module is now, by the name under which releases up to 0.2 have it.
MOVED = {
    "atos_py.acc": "atos_py.models.acc",
    "atos_py.algorithms.als": "atos_py.models.learning.als",
    "atos_py.algorithms.belief_propagation": "atos_py.models.learning.belief_propagation",
    "atos_py.algorithms.bfs.direction_over_devices": "atos_py.several.bfs.direction_over_devices",
    "atos_py.algorithms.bfs.over_devices": "atos_py.several.bfs.over_devices",
    "atos_py.algorithms.bfs.over_hosts": "atos_py.several.bfs.over_hosts",
    "atos_py.algorithms.bfs.parents_over_devices": "atos_py.several.bfs.parents_over_devices",
    "atos_py.algorithms.bfs.pushed_levels_over_devices": "atos_py.several.bfs.pushed_levels_over_devices",
    "atos_py.algorithms.components_over_devices": "atos_py.several.components_over_devices",
    "atos_py.algorithms.components_over_hosts": "atos_py.several.components_over_hosts",
    "atos_py.algorithms.dynamic_bfs": "atos_py.models.dynamic.dynamic_bfs",
    "atos_py.algorithms.dynamic_components": "atos_py.models.dynamic.dynamic_components",
    "atos_py.algorithms.label_spreading": "atos_py.models.learning.label_spreading",
    "atos_py.algorithms.linear_certificate": "atos_py.models.learning.linear_certificate",
    "atos_py.algorithms.manifold_ranking": "atos_py.models.learning.manifold_ranking",
    "atos_py.algorithms.over_devices": "atos_py.several.over_devices",
    "atos_py.algorithms.over_hosts": "atos_py.several.over_hosts",
    "atos_py.algorithms.pagerank.over_devices": "atos_py.several.pagerank.over_devices",
    "atos_py.algorithms.pagerank.over_hosts": "atos_py.several.pagerank.over_hosts",
    "atos_py.algorithms.spmm": "atos_py.models.learning.spmm",
    "atos_py.algorithms.sssp.over_devices": "atos_py.several.sssp.over_devices",
    "atos_py.algorithms.sssp.over_hosts": "atos_py.several.sssp.over_hosts",
    "atos_py.features": "atos_py.models.learning.features",
    "atos_py.graph.dynamic_graph": "atos_py.models.dynamic.dynamic_graph",
    "atos_py.graph.row_deletion": "atos_py.models.dynamic.row_deletion",
    "atos_py.graph.row_edits": "atos_py.models.dynamic.row_edits",
    "atos_py.graph.row_keys": "atos_py.models.dynamic.row_keys",
    "atos_py.graph.row_lengths": "atos_py.models.learning.row_lengths",
    "atos_py.graph.row_lists": "atos_py.models.dynamic.row_lists",
    "atos_py.linalg": "atos_py.models.linalg",
    "atos_py.nx_backend": "atos_py.models.nx_backend",
    "atos_py.operators.feature_gather": "atos_py.models.learning.feature_gather",
    "atos_py.runtime.pattern": "atos_py.models.acc.pattern",
}


def _name_now(name: str) -> str | None:
    """Return what a module is called now that has moved, by itself or with the package around it."""
    old, rest = name, ""
    while old not in MOVED:
        old, dot, last = old.rpartition(".")
        if not dot:
            return None
        rest = f".{last}{rest}"
    return MOVED[old] + rest


class _MovedModules:
    """Finder and loader of modules by their old names: the module is the same under both."""

    @staticmethod
    def find_spec(name: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        return ModuleSpec(name, _MovedModules) if _name_now(name) else None  # type: ignore[arg-type]

    @staticmethod
    def create_module(_spec: ModuleSpec) -> ModuleType | None:
        return None

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        sys.modules[module.__name__] = import_module(_name_now(module.__name__) or "")


def find_moved_modules() -> None:
    """Have Python's import find modules by old names, before it takes what is left of a folder for a package."""
    sys.meta_path.insert(0, _MovedModules)  # type: ignore[arg-type]
