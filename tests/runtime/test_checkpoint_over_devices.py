"""Checkpoints of queues over several devices: a search that was stopped goes on, on as many devices, on others, or on one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import atos_py as atos
from atos_py.errors import InvalidArgumentError

GPUS = [str(device) for device in atos.devices() if device.kind == "cuda"]
KINDS = ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(not GPUS, reason="needs a GPU")])]


def devices(count: int, kind: str = "cpu") -> list[str]:
    return [f"cpu:{k}" for k in range(count)] if kind == "cpu" else GPUS[:1] * count


@atos.task
def search(worker, v, graph, depth, left):
    """Lower the depths of neighbors, until so many vertices have run: then the launch stops."""
    if worker.rank == 0 and atos.atomic_add(left, 0, -1) == 1:
        worker.stop()
    for edge in worker.split(range(graph.indptr[v], graph.indptr[v + 1])):
        worker.push_min(depth, graph.indices[edge], depth[v] + 1)


@atos.task
def even(worker, v, seen):
    pass_on(worker, v, 0, seen)


@atos.task
def odd(worker, v, seen):
    pass_on(worker, v, 1, seen)


def pass_on(worker, v, kind, seen):
    """Count a vertex, a thousand times by the wrong task, and push its children in a binary tree, until one stops all."""
    if worker.rank > 0:
        return
    atos.atomic_add(seen, v, 1 if v % 2 == kind else 1000)
    if v == 20:
        worker.stop()
    for child in (2 * v + 1, 2 * v + 2):
        if child < seen.size:
            if child % 2 == 0:
                worker.push(child, task=even)
            else:
                worker.push(child, task=odd)


def run(queue: atos.Queue, graph: Any, depth: Any, limit: int, **options: Any) -> atos.LaunchStats:
    left = atos.zeros(1, dtype=np.int64, device=queue.device)
    left[0] = limit
    return queue.launch_warp(search, graph, depth, left, timeout=60, **options)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("barrier", [False, True], ids=["relaxed", "barrier"])
@pytest.mark.parametrize("order", ["keep", "random"])
@pytest.mark.parametrize(("before", "after"), [(2, 2), (3, 2), (2, None), (None, 3)])
def test_a_search_goes_on(tmp_path, kind, barrier, order, before, after):
    graph = atos.generate.road(30, 0.9, device=devices(1, kind)[0])

    def place(count: int | None) -> tuple[Any, dict[str, Any], dict[str, Any]]:
        if count is None:
            return graph, {"device": graph.device}, {"device": graph.device}
        parts = graph.partition(devices(count, kind), order)
        return parts, {"partition": parts}, {"owner": parts}

    where, of_array, of_queue = place(before)
    depth = atos.full(graph.num_vertices, atos.UNREACHED, dtype=np.uint32, **of_array)
    depth[450] = 0
    queue = atos.Queue(5000, **of_queue)
    queue.push(450)
    first = run(queue, where, depth, 200, barrier=barrier)
    assert first.stopped
    waiting = np.sort(queue.peek())
    queue.save(tmp_path / "run.atos", depth=depth)

    where, of_array, of_queue = place(after)
    depth = atos.full(graph.num_vertices, 7, dtype=np.uint32, **of_array)
    queue = atos.Queue.load(tmp_path / "run.atos", **of_queue, depth=depth)
    assert np.array_equal(np.sort(queue.peek()), waiting)
    assert (queue.tasks_run, queue.tasks_pushed) == (first.tasks_run, first.tasks_pushed)
    second = run(queue, where, depth, -1, barrier=barrier)
    assert not second.stopped
    atos.verify_bfs(graph, 450, depth.to_numpy())
    if barrier:  # level by level to the end, the rest of the interrupted one first
        assert first.tasks_run + second.tasks_run == graph.num_vertices


@given(st.integers(1, 4), st.integers(1, 4), st.sampled_from(["keep", "random"]))
@settings(deadline=None, max_examples=20)
def test_items_keep_their_tasks(tmp_path_factory, before, after, order):
    path = tmp_path_factory.mktemp("kinds") / "run.atos"
    graph = atos.Graph.from_edges([], [], num_vertices=60, device="cpu")
    parts = graph.partition(devices(before), "keep")  # the tasks compute with ids
    seen = atos.full(60, 0, dtype=np.int32, partition=parts)
    queue = atos.Queue(100, owner=parts)
    queue.push(0)
    assert queue.launch_cta((even, odd), seen).stopped
    queue.save(path, seen=seen)
    parts = graph.partition(devices(after), "keep")
    seen = atos.full(60, 0, dtype=np.int32, partition=parts)
    queue = atos.Queue.load(path, owner=parts, seen=seen)
    while len(queue):
        queue.launch_cta((even, odd), seen)
    assert (seen[:] == 1).all()


def test_records_and_wide_arrays(tmp_path):
    graph = atos.generate.road(3, 1.0, device="cpu")
    kind = np.dtype([("vertex", "u4"), ("weight", "f4")])
    for order in ("keep", "random"):
        parts = graph.partition(devices(2), order)
        wide = atos.full((9, 3), 0.5, partition=parts)
        wide[4] = [1, 2, 3]
        mirrored = atos.full(9, 4, partition=parts, placement="mirrored")
        queue = atos.Queue(10, dtype=kind, owner=parts)
        items = np.array([(8, 0.5), (0, 1.5), (4, 2.5)], kind)
        queue.push(items)
        queue.save(tmp_path / "run.atos", wide=wide, mirrored=mirrored)
        parts = graph.partition(devices(3), "random", seed=5)
        again, copies = atos.full((9, 3), 0.0, partition=parts), atos.full(9, 0, partition=parts, placement="mirrored")
        loaded = atos.Queue.load(tmp_path / "run.atos", owner=parts, wide=again, mirrored=copies)
        assert np.array_equal(again[:], wide[:])
        assert np.array_equal(copies[:], mirrored[:])
        assert sorted(loaded.peek().tolist()) == sorted(items.tolist())


def test_what_does_not_fit_is_refused(tmp_path):
    graph = atos.generate.road(3, 1.0, device="cpu")
    parts = graph.partition(devices(2))
    queue = atos.Queue(10, device="cpu")
    queue.push([100])
    queue.save(tmp_path / "other.atos")
    with pytest.raises(InvalidArgumentError, match=r"of which there are 9 \(got 100\)"):
        atos.Queue.load(tmp_path / "other.atos", owner=parts)
    with pytest.raises(InvalidArgumentError, match="a device or an owner, and not both"):
        atos.Queue.load(tmp_path / "other.atos", owner=parts, device="cpu")
    with pytest.raises(InvalidArgumentError, match="cannot be called 'owner'"):
        queue.save(tmp_path / "other.atos", owner=np.zeros(3))
