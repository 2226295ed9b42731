"""One of several processes that work together: `python member.py CASE` runs a function of this file, as each of them does.

The variable ATOS_TEST_DEVICE names the device of each, such as "cuda".

A check that fails ends its process, and so those of the others that wait for it.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import atos_py as atos
from atos_py.algorithms.bfs import api as driver
from atos_py.algorithms.bfs.tasks import FOLLOWED_DEGREE
from atos_py.core.process_group import current_group
from atos_py.errors import (
    CheckpointError,
    DeviceMemoryError,
    DistributedError,
    FileWriteError,
    InvalidArgumentError,
    LaunchTimeoutError,
    MissingFileError,
    QueueFullError,
    TaskError,
)
from atos_py.runtime.core_queue import CoreQueue
from atos_py.runtime.peer_queues import PeerQueues

LIMIT = 100  # seconds that nothing takes here unless it hangs


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
def grow(worker, v, first, seen):
    """Count a node of a tree, and push its children."""
    atos.atomic_add(seen, v, 1)
    for child in range(first[v], first[v + 1]):
        worker.push(child)


@atos.task
def relax(worker, v, parts, distance):
    """Lower the distances of the neighbors of a vertex, nearer ones first."""
    for edge in range(parts.indptr[v], parts.indptr[v + 1]):
        there = distance[v] + parts.weights[edge]
        worker.push_min(distance, parts.indices[edge], there, priority=there)


@atos.task
def relax_from(worker, v, parts, distance):
    """The same of a vertex that the host has pushed, by the other task."""
    for edge in range(parts.indptr[v], parts.indptr[v + 1]):
        there = distance[v] + parts.weights[edge]
        worker.push_min(distance, parts.indices[edge], there, priority=there, task=relax)


@atos.task
def add(worker, v, total):
    atos.atomic_add(total, 0, v)


@atos.task
def even(worker, v, first, seen):
    """As `grow`, for nodes of even number; others count a thousand times."""
    visit_kind(worker, v, 0, first, seen)


@atos.task
def odd(worker, v, first, seen):
    visit_kind(worker, v, 1, first, seen)


def visit_kind(worker, v, kind, first, seen):
    atos.atomic_add(seen, v, 1 if v % 2 == kind else 1000)
    for child in range(first[v], first[v + 1]):
        if child % 2 == 0:
            worker.push(child, task=even)
        else:
            worker.push(child, task=odd)


@atos.task
def again(worker, v, chunk):
    worker.push((v + chunk) % (2 * chunk))  # of another process


@atos.task
def stop_at_50(worker, v, seen):
    atos.atomic_add(seen, v, 1)
    if v == 50:
        worker.stop()
    worker.push((v + 1) % 100)


@atos.task
def fail_at_7(worker, v, seen):
    assert v != 7
    worker.push(v + 1)


def paths(n: int) -> atos.Partition:
    """The parts of a path of n vertices."""
    return atos.Graph.from_edges(range(n - 1), range(1, n), num_vertices=n, device="cpu").partition()


@atos.task
def shift(worker, v, values, other):
    """Write an element from that of the next vertex, which may be another process's, in each of two arrays in turn."""
    n = values.size
    if worker.round % 2 == 0:
        other[v] = values[(v + 1) % n]
    else:
        values[v] = other[(v + 1) % n]
    if worker.round < 5:
        worker.push(v)


def mirrors(group: atos.distributed.ProcessGroup) -> None:
    """Each process reads its own copy, and writes those of all."""
    parts = paths(50)
    values, other = (atos.full(50, 7, dtype=np.int64, partition=parts, placement="mirrored") for _ in range(2))
    assert (values[:] == 7).all()
    group.barrier()
    if group.rank == 0:
        values[:] = np.arange(50)
    group.barrier()
    queue = atos.Queue(100, owner=parts)
    queue.push(range(50))
    queue.launch_thread(shift, values, other, barrier=True, timeout=LIMIT)
    assert np.array_equal(values[:], np.roll(np.arange(50), -6))
    group.barrier()
    values.fill(3)
    assert (values[:] == 3).all()


def same(group: atos.distributed.ProcessGroup, value: Any) -> None:
    """Check that all processes have the same value."""
    told = group.gather(repr(value).encode())
    assert set(told) == {repr(value).encode()}, told


def raises(kind: type[BaseException], call: Any, *args: Any, **options: Any) -> Any:
    """Return the exception that a call has to raise."""
    try:
        call(*args, **options)
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")


def searches(group: atos.distributed.ProcessGroup) -> None:
    """BFS, from several vertices, in each order and schedule, with a queue that has to grow."""
    for order, barrier in itertools.product(("keep", "random"), (False, True)):
        graph = atos.generate.rmat(10, 8, 1, device="cpu")
        parts = graph.partition(order=order)
        assert len(parts.devices) == group.world_size
        depth = atos.full(graph.num_vertices, atos.UNREACHED, dtype=np.uint32, partition=parts)
        source = int(np.argmax(graph.degrees()))
        queue = atos.Queue(capacity=3, devices=parts.devices, owner=parts)
        depth[source] = 0
        queue.push([source])
        assert sum(map(int, group.gather(b"%d" % len(queue)))) == 1
        stats = queue.launch_cta(visit, parts, depth, barrier=barrier, timeout=LIMIT)
        assert len(queue) == 0
        atos.verify_bfs(graph, source, depth.to_numpy())
        same(group, (stats.tasks_run, stats.devices, stats.rounds))
        assert [each.device for each in stats.devices] == [str(device) for device in parts.devices]
        assert all(each.tasks_run > 0 for each in stats.devices)
        assert stats.tasks_run == stats.tasks_pushed + 1 == sum(each.tasks_run for each in stats.devices)
        assert stats.grown > 0
        if barrier:
            reached = depth.to_numpy()[depth.to_numpy() != atos.UNREACHED]
            assert (stats.tasks_run, stats.rounds) == (len(reached), reached.max() + 1)
        group.barrier()  # nobody changes what others still read
        depth.fill(5)
        assert (depth.to_numpy() == 5).all()


def algorithms(group: atos.distributed.ProcessGroup) -> None:
    """Algorithms over the parts, and an array that is none of them."""
    graph = atos.generate.rmat(8, 8, 1, device="cpu").to_symmetric()
    parts = graph.partition(order="random")
    found = atos.bfs(parts, 0, parents=True, timeout=LIMIT)
    atos.verify_bfs(graph, 0, found.depth.to_numpy(), found.parent.to_numpy())
    atos.verify_bfs(graph, 0, atos.bfs(parts, 0, direction="auto", timeout=LIMIT).depth.to_numpy())
    weighted = graph.with_weights(atos.generate.random_weights(graph, 1, 50))
    lengths = atos.sssp(weighted.partition(order="random"), 0, delta=9, timeout=LIMIT).distance.to_numpy()
    atos.verify_sssp(weighted, 0, lengths)
    joined = atos.connected_components(parts)
    atos.verify_connected_components(graph, joined.label.to_numpy(), joined.num_components)
    ranks = atos.pagerank(parts)
    atos.verify_pagerank(graph, ranks.rank.to_numpy(), 1e-4)
    same(group, (joined.num_components, ranks.stats.rounds))
    total, queue = atos.distributed.zeros(1, dtype=np.int64), atos.Queue(10, owner=parts)
    queue.push(range(100))
    queue.launch_thread(add, total)
    assert total[0] == sum(parts.ownership.to_numbers(np.arange(100)).tolist())


def pushed_levels(group: atos.distributed.ProcessGroup) -> None:
    """Searches that push level by level, one of which goes on without rounds."""
    driver.has_many_edges = lambda graph: True  # the process ends after its cases, of which no other searches
    path = np.arange(32 * 3 * len(group.devices))
    long = atos.Graph.from_edges(path[:-1], path[1:], symmetrize=True, device="cpu")
    for graph in (atos.generate.rmat(12, 16, 1, device="cpu").to_symmetric(), long):
        for order in ("keep", "random"):
            found = atos.bfs(graph.partition(order=order), 0, direction="push", timeout=LIMIT)
            atos.verify_bfs(graph, 0, found.depth.to_numpy())
            assert found.stats.launches == (2 if graph is long else 1)
            same(group, (found.num_levels, found.stats.task))


def meshes(group: atos.distributed.ProcessGroup) -> None:
    """Searches in which groups of threads follow paths, and distances that fit 32 bits, or do not."""
    FOLLOWED_DEGREE["cpu"] = FOLLOWED_DEGREE["cuda"]  # the process ends after its cases
    graph = atos.generate.road(40, 0.9, device="cpu")
    for longest, order in itertools.product((1, 2**30), ("keep", "random")):
        weights = np.full(graph.num_edges, longest, np.int64)
        weights[0] = weights[graph.indices[:] == 0] = 2**30
        weighted = graph.with_weights(weights)
        parts = weighted.partition(order=order)
        found = atos.bfs(parts, 820, timeout=LIMIT)
        atos.verify_bfs(graph, 820, found.depth.to_numpy())
        paths = atos.sssp(parts, 820, timeout=LIMIT)
        atos.verify_sssp(weighted, 820, paths.distance.to_numpy())
        assert paths.distance.dtype == np.int64
        same(group, (found.stats.task, paths.stats.task, paths.stats.rounds))
        assert (found.stats.task, paths.stats.task) == ("visit_along", "relax_along")
        assert paths.stats.rounds == (2 if longest == 1 else 3)


def trees(group: atos.distributed.ProcessGroup) -> None:
    """Random trees: each node runs once, on its owner, however queues grow and fill and launches are stopped."""
    random, stops = np.random.default_rng(7), 0
    for _ in range(int(os.environ["TREES"])):
        nodes = int(random.integers(1, 2000))
        children = random.integers(0, 4, nodes)
        first = np.minimum(1 + np.concatenate([[0], np.cumsum(np.maximum(children, 1))]), nodes)
        graph = atos.Graph.from_edges([], [], num_vertices=nodes, device="cpu")
        parts = graph.partition()
        seen = atos.full(nodes, 0, dtype=np.int32, partition=parts)
        offsets = atos.asarray(first.astype(np.uint32), device=group.device, readonly=True)
        capacity = int(random.integers(1, 50))
        queue = atos.Queue(capacity, max_capacity=int(random.choice([capacity, 4 * nodes + capacity])), owner=parts)
        options = {"barrier": bool(random.integers(2)), "num_blocks": int(random.integers(1, 3))}
        options["fetch_size"] = int(random.integers(1, 40))
        timeout = float(random.choice([LIMIT, 0.001]))
        queue.push([0])
        while True:
            try:
                queue.launch_thread(grow, offsets, seen, timeout=timeout, **options)
                break
            except (LaunchTimeoutError, QueueFullError) as error:
                stopped = error
            stops += 1
            same(group, str(stopped))
            if isinstance(stopped, LaunchTimeoutError):
                timeout = LIMIT
            else:
                queue.resize(max(len(queue), 2 * queue.capacity))
        ran = sum(int(each) for each in group.gather(b"%d" % queue.tasks_run))
        assert (ran, len(queue)) == (nodes, 0), (ran, nodes, len(queue))
        assert (seen.to_numpy() == 1).all()
    print(stops)


def kinds(group: atos.distributed.ProcessGroup) -> None:
    """Items of two tasks: those that waited before the queue told kinds apart, and a task that a launch lacks."""
    nodes = 500
    first = np.minimum(1 + 2 * np.arange(nodes + 1), nodes)
    parts = atos.Graph.from_edges([], [], num_vertices=nodes, device="cpu").partition()
    offsets = atos.asarray(first.astype(np.uint32), device=group.device, readonly=True)
    for task in (None, even):
        seen = atos.full(nodes, 0, dtype=np.int32, partition=parts)
        queue = atos.Queue(4, owner=parts)
        queue.push([0], task=task)
        stats = queue.launch_thread((even, odd), offsets, seen, timeout=LIMIT)
        assert (seen.to_numpy() == 1).all()
        assert stats.tasks_run_by == {"even": nodes // 2, "odd": nodes // 2}
        same(group, stats.tasks_run_by)
    queue.push([nodes - 1], task=odd)
    error = raises(InvalidArgumentError, queue.launch_thread, even, offsets, seen)
    assert "lacks (of 'odd')" in str(error)  # also where none waits
    group.barrier()
    assert queue.launch_thread((odd, even), offsets, seen).tasks_run_by == {"odd": 1, "even": 0}
    assert sum(int(each) for each in group.gather(b"%d" % queue.tasks_run)) == nodes + 1


def set_mode_of_next(worker, first, seen):
    """Between rounds: the mode is the number of the round, and a vertex in the middle is pushed in the third."""
    worker.set_mode(worker.round + 1)
    if worker.round == 2:
        worker.push(200)


@atos.task
def step_in_rounds(worker, v, first, seen):
    atos.atomic_add(seen, v, 1 if worker.mode == worker.round else 1000)
    if v % 100 < 99:
        worker.push(v + 1)


def rounds(group: atos.distributed.ProcessGroup) -> None:
    """A function between rounds, which one worker of all processes runs."""
    parts = paths(300)
    seen = atos.full(300, 0, dtype=np.int32, partition=parts)
    queue = atos.Queue(4, owner=parts)
    queue.push([50])
    stats = queue.launch_thread(step_in_rounds, 0, seen, barrier=True, each_round=set_mode_of_next, timeout=LIMIT)
    assert seen.to_numpy().tolist() == [0] * 50 + [1] * 50 + [0] * 100 + [1] * 100
    assert (stats.rounds, stats.tasks_run) == (103, 150)
    same(group, stats.devices)
    error = raises(
        DistributedError,
        queue.launch_thread,
        step_in_rounds,
        0,
        seen,
        barrier=True,
        each_round=set_mode_of_next if group.rank else lambda worker, first, seen: None,
    )
    assert "set_mode_of_next between rounds" in str(error)


def buckets(group: atos.distributed.ProcessGroup) -> None:
    """Priorities, of items of one task and of two."""
    graph = atos.generate.road(40, device="cpu")
    graph = graph.with_weights(atos.generate.random_weights(graph, 1, 99))
    parts = graph.partition(order="random")
    for tasks, barrier, delta in itertools.product([(relax,), (relax_from, relax)], [False, True], ["auto", 100]):
        distance = atos.full(graph.num_vertices, atos.UNREACHED, dtype=np.uint32, partition=parts)
        distance[0] = 0
        queue = atos.Queue(20, owner=parts, buckets=16, delta=delta)
        queue.push([0], priority=5)
        group.barrier()
        stats = queue.launch_cta(tasks, parts, distance, barrier=barrier, timeout=LIMIT)
        assert stats.tasks_run >= graph.num_vertices
        atos.verify_sssp(graph, 0, distance.to_numpy())
        same(group, stats.devices)
    raises(DistributedError, atos.Queue, 20, owner=parts, buckets=16, delta=1 + group.rank)


@atos.task
def toil(worker, v, sums, times):
    """Take a while."""
    x = np.uint32(v)
    for _ in range(times):
        x ^= x << np.uint32(13)
        x ^= x >> np.uint32(17)
    sums[v] = x


def shown(group: atos.distributed.ProcessGroup) -> None:
    """The trace has all devices in every process, and the process that asks for the progress is told that of all."""
    parts = paths(3000)
    sums, queue, told = atos.full(3000, 0, dtype=np.uint32, partition=parts), atos.Queue(3000, owner=parts), []
    on_gpu = group.device.kind == "cuda"
    times, few = (1_000_000, {"num_blocks": 1, "num_threads": 128}) if on_gpu else (50_000, {})
    for options in (few, {**few, "trace": 50}):
        told.clear()
        queue.push(range(3000))
        watch = {"progress": lambda *now: told.append(now)} if group.rank == 0 else {}
        stats = queue.launch_thread(toil, sums, times, **watch, **options, timeout=LIMIT)
        assert stats.tasks_run == 3000
        if group.rank == 0:
            ran, _, waiting = zip(*told, strict=True)
            assert list(ran) == sorted(ran)
            assert 0 < ran[-1] <= 3000
            assert 0 < max(waiting) <= 3000
        if "trace" in options:
            traces = [each.trace for each in stats.devices]
            assert len(stats.trace) == sum(map(len, traces))
            assert stats.trace["tasks_run"][-1] == sum(trace["tasks_run"][-1] for trace in traces) > 2000
            assert stats.trace["milliseconds"][0] == 0
            same(group, stats.trace.tolist())


def stops(group: atos.distributed.ProcessGroup) -> None:
    """A timeout, worker.stop(), a failed check, a full queue and Ctrl-C of one process end the launch in all of them."""
    parts, chunk = paths(2 * group.world_size), group.world_size
    for barrier in (False, True):
        queue = atos.Queue(10, owner=parts)
        queue.push([0])
        error = raises(LaunchTimeoutError, queue.launch_thread, again, chunk, barrier=barrier, timeout=0.1)
        assert (error.pending, error.stuck) == (1, False)
        assert "longer than its timeout" in str(error)
        assert sum(map(int, group.gather(b"%d" % len(queue)))) == 1
        if group.rank == 1:
            threading.Timer(0.3, signal.raise_signal, [signal.SIGINT]).start()
            raises(KeyboardInterrupt, queue.launch_thread, again, chunk, barrier=barrier, timeout=LIMIT)
        else:
            error = raises(LaunchTimeoutError, queue.launch_thread, again, chunk, barrier=barrier, timeout=LIMIT)
            assert "another process was interrupted" in str(error), error
        assert sum(map(int, group.gather(b"%d" % len(queue)))) == 1
        queue.clear()
    parts = paths(100)
    seen = atos.full(100, 0, dtype=np.int32, partition=parts)
    queue = atos.Queue(10, max_capacity=10, owner=parts)
    queue.push([0])
    stats = queue.launch_thread(stop_at_50, seen, num_blocks=1)
    assert stats.stopped
    same(group, stats.devices)
    ran = int(seen.to_numpy().sum())  # a GPU has other workers, which may see it a little later
    assert ran == 51 if group.device.kind == "cpu" else 51 <= ran < 100
    assert seen.to_numpy().tolist() == [1] * ran + [0] * (100 - ran)
    assert sum(map(int, group.gather(b"%d" % len(queue)))) == 1
    queue.clear()
    queue.push([0])
    error = raises(TaskError, queue.launch_thread, fail_at_7, seen, debug=True)
    assert error.item == 7
    queue.push(range(10))  # all of one device
    assert len(queue) == (10 if group.rank == 0 else 0)
    if group.rank == 0:
        raises(QueueFullError, queue.push, [0])


def refusals(group: atos.distributed.ProcessGroup) -> None:
    """Refusals of what processes cannot do or do differently: an error in all of them, after which they go on together."""
    graph = atos.generate.uniform(100, 300, group.rank, device="cpu")
    error = raises(DistributedError, graph.partition)
    assert "checksum" in str(error)
    assert "all processes make the same calls" in str(error)
    parts = paths(10)
    error = raises(DistributedError, group.barrier if group.rank else lambda: atos.full(10, 1, partition=parts))
    assert "a barrier" in str(error)
    assert "an array of shape (10,)" in str(error)
    queue = atos.Queue(10, owner=parts)
    seen = atos.zeros(10, dtype=np.int32, device=group.device)
    error = raises(InvalidArgumentError, queue.launch_thread, stop_at_50, seen)
    assert "an array of this process alone" in str(error)
    shared = atos.full(10, 0, dtype=np.int32, partition=parts)
    error = raises(DistributedError, queue.launch_thread, stop_at_50, shared, fetch_size=1 + group.rank)
    assert "a launch of stop_at_50" in str(error)
    error = raises(DistributedError, queue.launch_thread, stop_at_50, shared, trace=1 + group.rank)
    assert "a launch of stop_at_50" in str(error)
    raises(InvalidArgumentError, atos.distributed.init)
    with_devices = atos.Graph.from_edges([0], [1], device="cpu").partition(["cpu:0", "cpu:1"])
    assert with_devices.ownership.group is None  # of this process alone
    assert queue.launch_thread(stop_at_50, shared).tasks_run == 0


@atos.task
def search(worker, v, parts, depth, left):
    """Lower the depths of neighbors, until so many vertices have run: then the launch stops."""
    if atos.atomic_add(left, 0, -1) == 1:
        worker.stop()
    for edge in range(parts.indptr[v], parts.indptr[v + 1]):
        worker.push_min(depth, parts.indices[edge], depth[v] + 1)


def told_by(group: atos.distributed.ProcessGroup | None, value: Any) -> list[Any]:
    """Return the messages of all processes, or that of this one without others."""
    own = json.dumps(value).encode()
    return [json.loads(each) for each in ([own] if group is None else group.gather(own))]


def all_waiting(group: atos.distributed.ProcessGroup | None, queue: atos.Queue) -> list[Any]:
    """The items that wait in all processes, by number; of each the task, and whether it is of an interrupted level."""
    (items, names), level = queue.peek(kinds=True), queue._core.state().level
    own = [[item, name or "", place < level] for place, (item, name) in enumerate(zip(items.tolist(), names, strict=True))]
    return sorted(itertools.chain.from_iterable(told_by(group, own)))


def counts_of(group: atos.distributed.ProcessGroup | None, queue: atos.Queue) -> list[int]:
    """The tasks that ran and were pushed in all processes."""
    return [sum(counts) for counts in zip(*told_by(group, [queue.tasks_run, queue.tasks_pushed]), strict=True)]


def place_search(group: atos.distributed.ProcessGroup | None, seed: int, combine: str | None) -> tuple[Any, ...]:
    """A graph, its parts and where they are, depths, and a number that all processes have in common."""
    parts = graph = atos.generate.road(30, 0.9, device="cpu")
    if group is not None:
        parts = graph.partition(order="random", seed=seed)
    of_depth = {"device": "cpu"} if group is None else {"partition": parts, "combine": combine}
    depth = atos.full(graph.num_vertices, atos.UNREACHED, dtype=np.uint32, **of_depth)
    left = atos.zeros(1, dtype=np.int64, device="cpu") if group is None else atos.distributed.zeros(1, dtype=np.int64)
    return graph, parts, {"device": "cpu"} if group is None else {"owner": parts}, depth, left


def stop_and_save(group: atos.distributed.ProcessGroup | None, path: Path, barrier: bool, combine: str | None) -> None:
    """Stop a search in its first level, save it, note how it stood, and then let it go on."""
    graph, parts, where, depth, left = place_search(group, 1, combine)
    own = np.full(3, 5.0 + (group.rank if group else 0))
    depth[:450], left[0] = 0, 100
    queue = atos.Queue(5, **where)
    queue.push(range(449, -1, -1))  # those beside the next level first
    if group is not None:
        group.barrier()
    # On a GPU so few workers that they cannot run the whole level before they see the stop.
    few = {"num_blocks": 1, "num_threads": 32} if group is not None and group.device.kind == "cuda" else {}
    assert queue.launch_thread(search, parts, depth, left, barrier=barrier, timeout=LIMIT, **few).stopped
    known = {"waiting": all_waiting(group, queue), "counts": counts_of(group, queue), "barrier": barrier, "combine": combine}
    assert any(of_level for _, _, of_level in known["waiting"]) == barrier
    queue.save(path, depth=depth, left=left, own=own)
    assert path.exists()  # in all processes
    assert all_waiting(group, queue) == known["waiting"]
    if group is None or group.rank == 0:
        path.with_suffix(".json").write_text(json.dumps(known))
    queue.launch_thread(search, parts, depth, left, barrier=barrier, timeout=LIMIT)
    atos.verify_bfs(graph, range(450), depth.to_numpy())


def go_on(group: atos.distributed.ProcessGroup | None, path: Path) -> None:
    """Load a search that was stopped, whoever saved it, and run it to its end."""
    known = json.loads(path.with_suffix(".json").read_text())
    graph, parts, where, depth, left = place_search(group, 2, known["combine"])
    own = np.zeros(3)
    queue = atos.Queue.load(path, **where, depth=depth, left=left, own=own)
    assert all_waiting(group, queue) == known["waiting"]
    assert counts_of(group, queue) == known["counts"]
    assert (left[0] <= 0, own.tolist()) == (True, [5, 5, 5])
    ran = queue.launch_thread(search, parts, depth, left, barrier=known["barrier"], timeout=LIMIT).tasks_run
    atos.verify_bfs(graph, range(450), depth.to_numpy())
    assert not known["barrier"] or known["counts"][0] + ran == graph.num_vertices


def saved(group: atos.distributed.ProcessGroup) -> None:
    """Searches that a task stops are saved, and go on in the same processes."""
    for barrier, combine in itertools.product((False, True), (None, "min")):
        path = Path(os.environ["FOLDER"]) / f"{barrier}-{combine}.atos"
        stop_and_save(group, path, barrier, combine)
        group.barrier()
        go_on(group, path)


def resumed(group: atos.distributed.ProcessGroup) -> None:
    """The same where others have saved them: more or fewer processes, or one that has one device."""
    found = sorted(Path(os.environ["FOLDER"]).glob("*.atos"))
    assert found
    for path in found:
        go_on(group, path)


RECORD = np.dtype([("vertex", "u4"), ("weight", "f4"), ("more", "u4")])  # which has room for a kind; four bytes have not


def priorities_of(queue: atos.Queue) -> list[float]:
    return queue._core._cores[0].priorities(len(queue)).tolist()  # type: ignore[union-attr]


def kept(group: atos.distributed.ProcessGroup) -> None:
    """Items of several tasks, with priorities and without, and the options of their queue are as they were."""
    nodes = 60
    first = np.minimum(1 + 2 * np.arange(nodes + 1), nodes)
    parts = atos.Graph.from_edges([], [], num_vertices=nodes, device="cpu").partition()
    offsets, folder = atos.asarray(first.astype(np.uint32), device=group.device, readonly=True), Path(os.environ["FOLDER"])
    for dtype, options in itertools.product((np.dtype(np.uint32), RECORD), ({}, {"buckets": 8, "delta": 2.5})):
        for tasks in ((None,), (None, even, odd)):
            queue = atos.Queue(100, owner=parts, dtype=dtype, **options)
            for task, vertices in zip(tasks, (range(1, 40, 3), range(0, 60, 2), [41]), strict=False):
                items = np.zeros(len(vertices), dtype)
                (items if dtype.names is None else items["vertex"])[:] = vertices
                queue.push(items, 10 - np.arange(len(items)) / 3 if options else None, task=task)
            before, path = queue.peek(kinds=True), folder / f"{dtype.itemsize}-{len(options)}-{len(tasks)}"
            queue.save(path)
            loaded = atos.Queue.load(path, owner=parts)
            assert [each.tolist() for each in loaded.peek(kinds=True)] == [each.tolist() for each in before]
            assert (loaded.buckets, loaded.delta, loaded.dtype) == (queue.buckets, queue.delta, dtype)
            assert loaded.tasks_run == 0
            if options:
                assert priorities_of(loaded) == priorities_of(queue)
            loaded.push(np.zeros(1, dtype))
            assert sum(map(int, group.gather(b"%d" % len(loaded)))) == len(all_waiting(group, queue)) + 1
    seen, queue = atos.full(nodes, 0, dtype=np.int32, partition=parts), atos.Queue(4, owner=parts)
    queue.push([0], task=even)
    queue.save(folder / "tree", seen=seen)
    queue = atos.Queue.load(folder / "tree", owner=parts, seen=seen)
    queue.launch_thread((odd, even), offsets, seen, timeout=LIMIT)
    assert (seen.to_numpy() == 1).all()


def unsaved(group: atos.distributed.ProcessGroup) -> None:
    """An error of one process in a checkpoint is raised there, and another in the others; they go on together."""
    home = Path(os.environ["FOLDER"]) / str(group.rank)  # each process has files of its own, by the same names
    home.mkdir()
    os.chdir(home)
    parts = paths(20)
    seen, queue = atos.full(20, 3, dtype=np.int32, partition=parts), atos.Queue(100, owner=parts)
    queue.push(range(10))
    first, last = group.rank == 0, group.rank == group.world_size - 1
    lack = mock.Mock(side_effect=MemoryError)

    def fails(is_here: bool, kind: type[BaseException], text: str, call: Any, *args: Any, **options: Any) -> None:
        error = raises(kind if is_here else DistributedError, call, *args, **options)
        assert text in str(error), error
        assert is_here or f"process {0 if call == queue.save else group.world_size - 1}: " in str(error), error
        group.barrier()

    fails(first, FileWriteError, "cannot write checkpoint 'no/run.atos'", queue.save, "no/run.atos", seen=seen)
    with mock.patch.object(PeerQueues, "_merge", lack) if first else contextlib.nullcontext():
        fails(first, DeviceMemoryError, "", queue.save, "run.atos", seen=seen)
    error = raises(DistributedError, queue.save, f"run{group.rank}.atos", seen=seen)
    assert "a checkpoint to be written to 'run0.atos', with arrays ['seen']" in str(error)
    raises(DistributedError, queue.save, "run.atos", **{f"seen{group.rank}": seen})
    group.barrier()
    assert os.listdir() == []
    queue.save("run.atos", seen=seen)
    queue.push([11])
    queue.save("other.atos", seen=seen)
    assert (sorted(os.listdir()) == ["other.atos", "run.atos"]) == first
    group.barrier()
    for name in ("run", "other"):
        shutil.copy(f"../0/{name}.atos", f"{name}.copy")
    seen[:] = 5
    group.barrier()
    for damage in (lambda data: data[:-1], lambda data: data[:-1] + bytes([data[-1] ^ 1]), lambda data: b""):
        Path("run.copy").write_bytes(damage(Path("../0/run.atos").read_bytes()) if last else Path("../0/run.atos").read_bytes())
        fails(last, CheckpointError, "run.copy: ", atos.Queue.load, "run.copy", owner=parts, seen=seen)
    if last:
        os.unlink("run.copy")
    fails(last, MissingFileError, "cannot read checkpoint 'run.copy'", atos.Queue.load, "run.copy", owner=parts, seen=seen)
    shutil.copy("other.copy" if last else "../0/run.atos", "run.copy")
    error = raises(DistributedError, atos.Queue.load, "run.copy", owner=parts, seen=seen)
    assert "a checkpoint whose checksum is" in str(error)
    group.barrier()
    shutil.copy("../0/run.atos", "run.copy")
    given = np.zeros(3) if last else seen
    fails(last, InvalidArgumentError, "has shape (20,)", atos.Queue.load, "run.copy", owner=parts, seen=given)
    with mock.patch.object(CoreQueue, "restore", lack) if last else contextlib.nullcontext():
        fails(last, DeviceMemoryError, "", atos.Queue.load, "run.copy", owner=parts, seen=seen)
    assert (seen[:] == 5).all()  # nothing was written
    group.barrier()
    loaded = atos.Queue.load("run.copy", owner=parts, seen=seen)
    assert (seen[:] == 3).all()
    assert all_waiting(group, loaded) == [[v, "", False] for v in range(10)]
    assert loaded.launch_thread(add, atos.distributed.zeros(1, dtype=np.int64), timeout=LIMIT).tasks_run == 10
    alone = atos.Graph.from_edges([0], [1], device="cpu").partition(["cpu:0", "cpu:1"])  # of this process
    if last:
        queue = atos.Queue(10, owner=alone)
        queue.push([0, 1])
        queue.save("alone.atos")
        assert len(atos.Queue.load("alone.atos", owner=alone)) == 2


@atos.task
def hang(worker, v, flag):
    if v == 1:
        while atos.atomic_add(flag, 1, 0) == 0:
            pass
    worker.push(v)


def stuck(group: atos.distributed.ProcessGroup) -> None:
    """A task that does not stop in one process is told in all of them."""
    parts = paths(2)
    flag, queue = atos.full(2, 0, dtype=np.int32, partition=parts), atos.Queue(10, owner=parts)
    queue.push([1])
    error = raises(LaunchTimeoutError, queue.launch_thread, hang, flag, timeout=0.5)
    assert error.stuck
    assert ("in process 1" in str(error)) == (group.rank != 1)
    raises(DistributedError, len, queue)


def killed(group: atos.distributed.ProcessGroup) -> None:
    """A process that is killed in a launch gives the others an error, and what they made together is of no use."""
    parts, chunk = paths(2 * group.world_size), group.world_size
    queue = atos.Queue(10, owner=parts)
    queue.push([0])
    barrier = os.environ["BARRIER"] == "1"
    raises(LaunchTimeoutError, queue.launch_thread, again, chunk, barrier=barrier, timeout=0.01)  # it is compiled from then on
    if group.rank == 1:
        threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGKILL]).start()
    begin, threads = time.monotonic(), len(os.listdir("/proc/self/task"))
    error = raises(DistributedError, queue.launch_thread, again, chunk, barrier=barrier)
    assert "process 1" in str(error) or "processes" in str(error), error
    assert time.monotonic() - begin < LIMIT
    own = atos.Queue(10, device=group.device)  # which others do not know
    own.launch_thread(again, chunk, num_blocks=1, tier="best")  # so that no thread waits for a link
    assert len(os.listdir("/proc/self/task")) <= threads  # no worker was left behind
    raises(DistributedError, len, queue)
    raises(DistributedError, group.barrier)
    raises(DistributedError, atos.Queue, 10, owner=parts)
    print("told")


def ended(group: atos.distributed.ProcessGroup) -> None:
    """The same of one that ends before the others need it, in whatever they wait."""
    if group.rank == 1:
        os._exit(0)
    parts = raises(DistributedError, paths, 10)
    assert "process 1 of the group of 3 has ended" in str(parts) or "processes" in str(parts), parts
    print("told")


def forked(group: atos.distributed.ProcessGroup) -> None:
    """A child is no member, and does not keep others waiting for its parent."""
    child = os.fork()
    if child == 0:
        assert current_group() is None
        raises(DistributedError, group.barrier)
        os.closerange(1, 3)
        time.sleep(LIMIT if group.rank == 1 else 0)
        os._exit(0)
    group.barrier()
    if group.rank == 1:
        print(child, flush=True)
        os._exit(0)
    raises(DistributedError, group.barrier)
    os.waitpid(child, 0)


if __name__ == "__main__":
    explicit = (
        {"rank": int(os.environ["MY_RANK"]), "world_size": 2, "job": os.environ["MY_JOB"]} if "MY_JOB" in os.environ else {}
    )
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background of a shell ignores it
    members = atos.distributed.init(**explicit, device=os.environ.get("ATOS_TEST_DEVICE"), timeout=LIMIT)
    for case in sys.argv[1:]:
        globals()[case](members)
        if case not in ("killed", "ended", "forked"):
            members.barrier()
