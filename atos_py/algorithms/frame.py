"""The frame of every algorithm that users call: checks of a call, the library of its result, errors for want of memory."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, TypeVar, cast

from ..arrays.array import Array, asarray
from ..arrays.array_library import as_library
from ..arrays.ownership import Ownership
from ..arrays.partitioned import PartitionedArray
from ..graph.graph import Graph
from ..graph.partition import Partition
from ..runtime.stats import DeviceStats, LaunchStats
from ..support.host_memory import host_memory_for
from .arguments import check_call
from .docstrings import document_algorithm, document_verifier

__all__ = ["algorithm", "verifier"]

_F = TypeVar("_F", bound=Callable[..., Any])


def algorithm(*, rounds: bool = False, over_devices: bool = False) -> Callable[[_F], _F]:
    """Make a function of a graph and of options an algorithm that users call.

    ``function(graph, ..., *, worker=None, **launch_options)`` is called only with a graph, a worker and options that there are,
    and returns a dataclass. Arrays of that are then of the library that the graph's arrays came from. Too little memory on the
    host is a `DeviceMemoryError` that names the algorithm. Its docstring is completed (`docstrings`).

    Parameters
    ----------
    rounds : bool
        Whether the algorithm proceeds in rounds with a function between them, so that a launch without is refused.
    over_devices : bool
        Whether the graph may be the parts of one. Parts that one device has, as ``devices="auto"`` makes of a graph that fits
        one GPU, are the graph itself, and run as fast: the vertices have their ids there. The result has arrays over the
        parts, as from several devices.
    """

    def decorate(function: _F) -> _F:
        document_algorithm(function, rounds)

        @host_memory_for(f"atos.{function.__name__}")
        @functools.wraps(function)
        def call(graph: Any, *args: Any, **options: Any) -> Any:
            if over_devices and isinstance(graph, Partition) and graph.ownership.is_alone:
                rows = Graph._make((graph.indptr, graph.indices, graph.weights))
                return _as_parts(call(rows, *args, **options), graph.ownership)
            check_call(function, graph, options, rounds, over_devices)
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


def _as_parts(result: Any, ownership: Ownership) -> Any:
    """Return the result of a graph as that of its parts on one device."""
    changed: dict[str, Any] = {}
    for field in fields(result):
        value = getattr(result, field.name)
        if isinstance(value, LaunchStats):
            of_device = value.tasks_run, value.tasks_pushed, value.num_workers, value.grown, value.trace
            changed[field.name] = replace(value, devices=(DeviceStats(str(ownership.local), *of_device),))
        elif getattr(value, "shape", None) == (ownership.size,):
            changed[field.name] = PartitionedArray._of_one(asarray(value), ownership)
    return replace(result, **changed)
