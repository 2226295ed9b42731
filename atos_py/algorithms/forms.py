"""Forms of algorithms for graphs in parts, by the type of the graph: the one door to the package `several`.

For example, ``find_form("bfs", parts)`` is the breadth-first search over the parts of a graph on several devices.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

__all__ = ["add_form", "find_form"]

_forms: dict[tuple[str, type], Callable[..., Any]] = {}


def add_form(name: str, of: type, form: Callable[..., Any]) -> None:
    """Register what an algorithm does with a graph of a type: ``form(graph, ..., **options)`` returns its result."""
    _forms[name, of] = form


def find_form(name: str, graph: Any) -> Callable[..., Any] | None:
    """Return the form of an algorithm for the type of a graph, or None if it has none."""
    import_module("atos_py.several")  # which registers its forms when it is first loaded
    return next((_forms[name, of] for of in type(graph).__mro__ if (name, of) in _forms), None)
