"""Calls of algorithms over the parts of a graph on several devices: each device runs the tasks of the vertices that it owns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..algorithms.launch_sequence import LaunchSequence
from ..arrays.filled import full
from ..arrays.partitioned import PartitionedArray
from ..compile.task import Task
from ..errors import LaunchConfigError
from ..graph.partition import Partition
from ..operators.ranges import VERTICES_PER_ITEM
from ..operators.vertex_map import named
from ..runtime.queue import Queue

__all__ = ["by_owner", "first_of_ranges", "launches_over", "number_of", "refuse_over", "zero_at"]


def refuse_over(name: str, given: Mapping[str, bool], what_of: str = "devices") -> None:
    """Raise if a call over several devices, or hosts, is given what it cannot do yet."""
    for what, is_given in given.items():
        if is_given:
            raise LaunchConfigError(
                f"{name} over several {what_of} has no {what} yet; leave it out, or use the graph on one device"
            )


def launches_over(
    name: str,
    parts: Partition,
    dtype: Any,
    capacity: int | None,
    worker: str | None,
    options: Any,
    tasks: Sequence[Task] = (),
    **order: Any,
) -> LaunchSequence:
    """Return a sequence of launches on a queue whose items go to the device that owns their vertex, maybe with buckets.

    If `tasks` are given, it tells the items of these apart from the start.
    """
    room = max(parts.num_vertices, 64) if capacity is None else capacity
    queue = Queue._of_kinds(tasks, room, dtype=dtype, owner=parts) if tasks else Queue(room, dtype=dtype, owner=parts, **order)
    return LaunchSequence(name, queue, options, worker)


def zero_at(sources: NDArray[Any], parts: Partition, unreached: Any, combine: Literal["min"] | None = None) -> PartitionedArray:
    """Return an array over the parts that is 0 at the sources, and `unreached` elsewhere."""
    made = full(parts.num_vertices, unreached, dtype=unreached.dtype, partition=parts, combine=combine)
    for source in sources.tolist():
        made[source] = 0
    return made


def first_of_ranges(parts: Partition, size: int = VERTICES_PER_ITEM) -> NDArray[Any]:
    """Return the ids of the vertices with which ranges of so many begin, as items: the owner of its first takes a range."""
    first = np.arange(0, parts.num_vertices, size, dtype=np.uint32)
    return first if parts.ownership.ids is None else parts.ownership.ids[first]


def by_owner(vertex_map: Task) -> Task:
    """Return a vertex map whose items are the vertices with which ranges begin, so that they go to their owners."""
    body = vertex_map.body

    def run(worker, v, *args):  # type: ignore[no-untyped-def]
        body(worker, v // VERTICES_PER_ITEM, *args)

    return replace(vertex_map, body=named(run, body))


def number_of(parts: Partition, vertex: int | None) -> int | None:
    """Return the number inside tasks of a vertex."""
    return None if vertex is None else int(parts.ownership.to_numbers(np.array([vertex]))[0])
