"""Calls of algorithms over several hosts: rounds in which values are lowered along edges, from vertices on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..algorithms.arguments import check_sources
from ..algorithms.launch_sequence import LaunchSequence
from ..arrays.filled import full
from ..arrays.over_hosts import HostArray
from ..compile.task import Task
from ..errors import InvalidArgumentError
from ..graph.host_partition import HostPartition
from ..runtime.queue import Queue
from ..runtime.stats import LaunchStats
from .over_devices import refuse_over

__all__ = ["Found", "check_undirected", "edges_with_value", "lower_along_edges", "refuse_over_hosts", "search_over_hosts"]

Found = tuple[HostArray, LaunchStats]


def edges_with_value(v, parts, values):  # type: ignore[no-untyped-def]
    """Return how many edges a vertex has, the first, and the value of the vertex."""
    first = parts.indptr[v]
    return parts.indptr[v + 1] - first, first, values[v]


def refuse_over_hosts(name: str, given: dict[str, bool]) -> None:
    """Raise if a call over several hosts is given what it cannot do."""
    refuse_over(name, given, "hosts")


def check_undirected(name: str, parts: HostPartition) -> None:
    """Raise unless every edge has its reverse."""
    if not parts.whole.is_symmetric:
        raise InvalidArgumentError(
            f"{name} over several hosts is for graphs in which every edge has its reverse, and here some edge has none:"
            " partition graph.to_symmetric(), or use the graph on one host"
        )


def lower_along_edges(
    name: str, parts: HostPartition, values: HostArray, task: Task, items: Any, worker: Any, options: Any
) -> Found:
    """Run a task that lowers values along edges, from vertices on, until none can be lowered."""
    launches = LaunchSequence(name, Queue(max(parts.num_vertices, 64), owner=parts), options, worker)
    launches.launch(np.asarray(items, np.uint32), task, parts, values)
    return values, launches.total()


def search_over_hosts(
    name: str, parts: HostPartition, source: ArrayLike, task: Task, unreached: Any, worker: Any, options: Any
) -> Found:
    """Return the values that a task lowers, from 0 at the sources; `unreached` is that of others."""
    sources = check_sources(source, parts.num_vertices)
    values = full(parts.num_vertices, unreached, dtype=unreached.dtype, partition=parts, combine="min")
    for each in sources.tolist():
        values[each] = 0
    return lower_along_edges(name, parts, values, task, sources, worker, options)
