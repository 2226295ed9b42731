"""Calls of public functions with arguments that are right, but for those that a test replaces."""

from __future__ import annotations

from typing import Any

import networkx
import numpy as np

import atos_py as atos
from atos_py.graph.graph import Graph
from atos_py.runtime.queue import Queue


@atos.task
def keep(worker, v, values):
    values[0] = v


def cpu(items: Any = (1,), dtype: Any = np.uint32) -> Queue:
    queue = Queue(10, max_capacity=10, dtype=dtype, device="cpu")
    queue.push(list(items))
    return queue


def array(size: int = 4, **options: Any) -> atos.Array:
    return atos.zeros(size, dtype=np.int32, device="cpu", **options)


def pool(dtype: Any = np.int32) -> atos.Pool:
    return atos.Pool(dtype, 3, max_capacity=10, device="cpu")


def launch(*args: Any, task: Any = keep, **options: Any) -> Any:
    """Launch with an option that is wrong, which must leave the item in the queue."""
    queue = cpu()
    try:
        return queue.launch_cta(task, *(args or (array(),)), **options)
    finally:
        assert queue.peek().tolist() == [1]


def edges(sources: Any = (0,), targets: Any = (1,), weights: Any = None, n: Any = None, **options: Any) -> Graph:
    return Graph.from_edges(sources, targets, weights, n, device="cpu", **options)


def parts() -> atos.Partition:
    return edges().partition(["cpu:0", "cpu:1"], "random")


def lowered() -> atos.LoweredArray:
    return atos.full(2, 1, partition=parts(), combine="min")


def dynamic(**options: Any) -> atos.DynamicGraph:
    return atos.DynamicGraph(3, device="cpu", **options)


def alone(**options: Any) -> None:
    """Be the only process of a group."""
    atos.distributed.init(0, 1, **options).close()


def csr(indptr: Any = (0, 1), indices: Any = (0,), weights: Any = None) -> Graph:
    return Graph.from_csr(indptr, indices, weights, device="cpu")


def weighted(value: Any) -> networkx.Graph[Any]:
    return networkx.Graph([(0, 1, {"weight": value})])


RAGGED = [[1], [1, 2]]
MASKED = np.ma.array([1, 2], mask=[False, True])
