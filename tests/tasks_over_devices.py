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
    stats = queue.launch(visit, parts, depth, worker=worker, **options)
    assert len(queue) == 0
    atos.verify_bfs(graph, source, depth.to_numpy())
    return stats


@atos.task
def toil(worker, v, length, chain, sums):
    """Take a while, then push the next of a chain of so many vertices."""
    if worker.rank == 0:
        x = np.uint32(v)
        for _ in range(length):
            x ^= x << np.uint32(13)
            x ^= x >> np.uint32(17)
            x ^= x << np.uint32(5)
        sums[v] = x
        if v % chain < chain - 1:
            worker.push(v + 1)


def check_traces(parts: atos.Partition, barrier: bool) -> None:
    """Trace chains of 1,000 and 500 vertices, on two devices that have 1,000 each."""
    queue, sums = atos.Queue(10, owner=parts), atos.full(2000, 0, dtype=np.uint32, partition=parts)
    for turn in range(2):  # counts begin anew
        queue.push([0, 1500])
        stats = queue.launch_thread(toil, 20_000, 1000, sums, trace=20, num_blocks=1, barrier=barrier)
        assert stats.tasks_run == 1500
        of_all, parts_of_it = stats.trace, [each.trace for each in stats.devices]
        assert [0 < trace["tasks_run"][-1] <= ran for trace, ran in zip(parts_of_it, (1000, 500), strict=True)] == [True] * 2
        assert len(of_all) == sum(map(len, parts_of_it))
        assert of_all["tasks_run"][-1] == sum(trace["tasks_run"][-1] for trace in parts_of_it)
        assert of_all["milliseconds"][0] == 0 == min(trace["milliseconds"][0] for trace in parts_of_it)
        for trace in (of_all, *parts_of_it):
            assert np.all(np.diff(trace["milliseconds"]) >= 0)
            assert trace["milliseconds"][-1] <= 1.1 * stats.milliseconds + 10  # beside other programs, the host looks late
            assert np.all(np.diff(trace["tasks_run"]) >= 0)
            assert np.isnan(trace["idle"]).all() == barrier
        assert barrier or of_all["idle"][0] >= 0.5 or turn  # the other device has run nothing yet, or shared a core
        told = stats.to_dict()
        assert told["devices"][1]["trace"]["tasks_run"] == parts_of_it[1]["tasks_run"].tolist()
    assert all(each.trace is None for each in atos.LaunchStats.total([stats, stats]).devices)


def check_progress(parts: atos.Partition, length: int, options: dict[str, Any]) -> None:
    """Follow the progress of 3,000 tasks of that length."""
    told: list[Any] = []
    queue, sums = atos.Queue(3000, owner=parts), atos.full(3000, 0, dtype=np.uint32, partition=parts)
    for _ in range(2):
        told.clear()
        queue.push(range(3000))
        stats = queue.launch_thread(toil, length, 1, sums, progress=lambda *now: told.append(now), num_blocks=1, **options)
        ran, rates, waiting = zip(*told, strict=True)
        assert list(ran) == sorted(ran)
        assert 0 < ran[-1] <= stats.tasks_run == 3000
        assert max(rates) > 0
        assert 0 < max(waiting) <= 3000
        assert (stats.trace is not None) == bool(options)
