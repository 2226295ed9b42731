"""Calls of algorithms over parts that one device has: these are the graph itself, and run as fast."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, TypeVar, cast

from ..arrays.array import asarray
from ..arrays.ownership import Ownership
from ..arrays.partitioned import PartitionedArray
from ..graph.graph import Graph
from ..graph.partition import Partition
from ..runtime.stats import DeviceStats, LaunchStats

__all__ = ["as_graph_on_one_device"]

_F = TypeVar("_F", bound=Callable[..., Any])


def as_graph_on_one_device(algorithm: _F) -> _F:
    """Decorate an algorithm that takes the parts of a graph, so that it takes those that one device has as the graph.

    They are what ``devices="auto"`` makes of a graph that fits one GPU. The vertices have their ids there. Arrays of the result
    are arrays over the parts, as from several devices.
    """

    @functools.wraps(algorithm)
    def call(graph: Any, *args: Any, **options: Any) -> Any:
        if not isinstance(graph, Partition) or not graph.ownership.is_alone:
            return algorithm(graph, *args, **options)
        rows = Graph._make((graph.indptr, graph.indices, graph.weights))
        return _as_parts(algorithm(rows, *args, **options), graph.ownership)

    return cast(_F, call)


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
