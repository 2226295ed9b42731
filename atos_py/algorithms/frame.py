"""The frame of every algorithm that users call: checks of a call, the library of its result, errors for want of memory."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, TypeVar, cast

from ..arrays.array import Array
from ..arrays.array_library import as_library
from ..graph.graph import Graph
from ..graph.graph_arrays import check_graph
from ..support.host_memory import host_memory_for
from .arguments import check_options
from .docstrings import document_algorithm, document_verifier
from .forms import find_form

__all__ = ["algorithm", "verifier"]

_F = TypeVar("_F", bound=Callable[..., Any])


def algorithm(*, rounds: bool = False, in_parts: bool = False) -> Callable[[_F], _F]:
    """Make a function of a graph and of options an algorithm that users call.

    ``function(graph, ..., *, worker=None, **launch_options)`` is called only with a graph, a worker and options that there are,
    and returns a dataclass. Arrays of that are then of the library that the graph's arrays came from. Too little memory on the
    host is a `DeviceMemoryError` that names the algorithm. Its docstring is completed (`docstrings`).

    Parameters
    ----------
    rounds : bool
        Whether the algorithm proceeds in rounds with a function between them, so that a launch without is refused.
    in_parts : bool
        Whether the graph may be another than a `Graph`, with a form of the algorithm for its type (`forms`).
    """

    def decorate(function: _F) -> _F:
        document_algorithm(function, rounds)

        @host_memory_for(f"atos.{function.__name__}")
        @functools.wraps(function)
        def call(graph: Any, *args: Any, **options: Any) -> Any:
            if in_parts and not isinstance(graph, Graph) and (form := find_form(function.__name__, graph)):
                return form(graph, *args, **options)
            check_graph(graph)
            check_options(function, options, rounds)
            if isinstance(graph, Graph) and graph._edge_arrays:
                graph = graph._bare()  # which graphs that the algorithm makes of this one need not carry
            result = function(graph, *args, **options)
            library = graph.library if isinstance(graph, Graph) else None
            return result if library is None else _in_library(result, library)

        return cast(_F, call)

    return decorate


def verifier(function: _F) -> _F:
    """Make a function that proves a result one that users call: short memory names it, and its docstring is completed."""
    document_verifier(function)
    return cast(_F, host_memory_for(f"atos.{function.__name__}")(function))


def _in_library(result: Any, library: str) -> Any:
    """Return a result whose arrays are of a library."""
    values = {field.name: getattr(result, field.name) for field in fields(result)}
    arrays = {name: as_library(value, library) for name, value in values.items() if isinstance(value, Array)}
    return replace(result, **arrays)
