"""A pass over all edges of a graph where that is, by a `gather` (`operators.edge_map`) on a queue of its own."""

from __future__ import annotations

from typing import Any

from ..arrays.array import Array
from ..compile.task import Task
from ..operators.edge_map import THREAD_MAX_DEGREE
from ..operators.ranges import range_items
from ..runtime.queue import Queue

__all__ = ["VERTICES_PER_ITEM", "run_gather"]

VERTICES_PER_ITEM = 128


def run_gather(task: Task, indptr: Array, indices: Array, totals: Array, *args: Any) -> None:
    """Launch a task that `gather` has made on all vertices, with these arguments."""
    device = indices.device
    items = range_items(indptr.size - 1, VERTICES_PER_ITEM)
    queue = Queue(max(len(items), 1), device=device)
    queue.push(items)
    queue.launch_warp(task, VERTICES_PER_ITEM, THREAD_MAX_DEGREE[device.kind], indptr, indices, totals, *args)
