"""Tasks and a search that tests launch over several devices, CPU devices or GPUs."""

from __future__ import annotations

import signal
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import atos_py as atos
from atos_py.errors import LaunchTimeoutError


def degree(v, graph):
    return graph.indptr[v + 1] - graph.indptr[v]


@atos.task(workload=degree)
def visit(worker, v, i, graph, depth):
    """The task of the README."""
    neighbor = graph.indices[graph.indptr[v] + i]
    next_depth = depth[v] + 1
    if atos.atomic_min(depth, neighbor, next_depth) > next_depth:
        worker.push(neighbor)


@atos.task
def count(worker, v, seen):
    if worker.rank == 0:
        atos.atomic_add(seen, v, 1)


@atos.task
def again(worker, v):
    if worker.rank == 0:
        worker.push(v)


def check_interrupt(parts: atos.Partition) -> None:
    """Interrupt a launch that would not end by SIGINT; all its items are in the queue then."""
    queue = atos.Queue(10, owner=parts)
    queue.push(range(5))
    with pytest.raises(LaunchTimeoutError):  # the task is compiled from then on
        queue.launch_cta(again, timeout=0.01)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background of a shell ignores it
    threading.Timer(0.3, signal.raise_signal, [signal.SIGINT]).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            queue.launch_cta(again, timeout=60)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(queue) == 5


def parts_of_path(n: int, devices: Sequence[str], order: str = "random") -> atos.Partition:
    """Return the parts of a path of n vertices."""
    path = atos.Graph.from_edges(range(n - 1), range(1, n), num_vertices=n, symmetrize=True, device="cpu")
    return path.partition(devices, order=order, seed=3)


def search(
    graph: atos.Graph, parts: atos.Partition, source: int, worker: str, capacity: int, **options: Any
) -> atos.LaunchStats:
    """Search the parts of a graph, prove the depths right, and return the statistics."""
    depth = atos.full(graph.num_vertices, atos.UNREACHED, dtype=np.uint32, partition=parts)
    depth[source] = 0
    queue = atos.Queue(capacity=capacity, devices=parts.devices, owner=parts)
    queue.push([source])
    stats: atos.LaunchStats = getattr(queue, f"launch_{worker}")(visit, parts, depth, **options)
    assert len(queue) == 0
    atos.verify_bfs(graph, source, depth.to_numpy())
    return stats
