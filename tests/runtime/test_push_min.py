"""`worker.push_min` lowers an element and pushes its index, once for each time that it did, on one device and on several."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import CASES
from cpu_harness import Harness
from fake_arrays import FakeArray
from shared_tasks import every_schedule, launch

import atos_py as atos
from atos_py.compile.arguments import describe
from atos_py.compile.codegen import lower_atomics
from atos_py.compile.codegen.target_cpu import compile_cpu
from atos_py.compile.spec import ProgramSpec
from atos_py.errors import InvalidArgumentError, TaskCompileError, TaskError

NUMBERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"]
TWO, FIVE = ["cpu:0", "cpu:1"], [f"cpu:{i}" for i in range(5)]


def degree(v, graph, *args):
    return graph.indptr[v + 1] - graph.indptr[v]


@atos.task(workload=degree)
def visit(worker, v, i, graph, depth):
    worker.push_min(depth, graph.indices[graph.indptr[v] + i], depth[v] + 1)


@atos.task(workload=degree)
def visit_and_count(worker, v, i, graph, depth, tried, lowered):
    u = graph.indices[graph.indptr[v] + i]
    atos.accumulate(tried, u, 1)
    if worker.push_min(depth, u, depth[v] + 1):
        atos.accumulate(lowered, u, 1)


@every_schedule
def test_bfs(device, worker, persistent, barrier):
    graph = atos.generate.rmat(10, 8, 1, device=device)
    source = int(np.argmax(graph.degrees()))
    depth = atos.full(graph.num_vertices, atos.UNREACHED, dtype=np.uint32, device=device)
    depth[source] = 0
    queue = atos.Queue(100, device=device)
    queue.push(source)
    stats = launch(queue, worker, visit, graph, depth, persistent=persistent, barrier=barrier)
    atos.verify_bfs(graph, source, depth.to_numpy())
    if barrier:  # each vertex once
        assert stats.tasks_run == np.count_nonzero(depth.to_numpy() != atos.UNREACHED)


@pytest.mark.parametrize("worker", ["thread", "warp", "cta"])
@pytest.mark.parametrize("order", ["keep", "random"])
@pytest.mark.parametrize("devices", [["cpu"], TWO, FIVE], ids=["one", "two", "five"])
@pytest.mark.parametrize("barrier", [False, True], ids=["relaxed", "barrier"])
def test_bfs_over_devices(worker, order, devices, barrier):
    """Every time that a depth was lowered, and then alone, its vertex was pushed, to its owner."""
    graph = atos.generate.rmat(10, 8, 1, device="cpu")
    parts = graph.partition(devices, order=order)
    depth = atos.full(graph.num_vertices, atos.UNREACHED, dtype=np.uint32, partition=parts)
    tried, lowered = (atos.full(graph.num_vertices, 0, dtype=np.int64, partition=parts) for _ in range(2))
    source = int(np.argmax(graph.degrees()))
    depth[source] = 0
    queue = atos.Queue(50, owner=parts)
    queue.push(source)
    stats = launch(queue, worker, visit_and_count, parts, depth, tried, lowered, barrier=barrier)
    atos.verify_bfs(graph, source, depth.to_numpy())
    assert stats.tasks_pushed == lowered.to_numpy().sum()
    assert stats.tasks_run == stats.tasks_pushed + 1
    found = depth.to_numpy() != atos.UNREACHED
    if barrier:
        assert np.array_equal(lowered.to_numpy(), found & (np.arange(graph.num_vertices) != source))
        into = np.bincount(graph.indices.to_numpy()[np.repeat(found, graph.degrees())], minlength=graph.num_vertices)
        assert np.array_equal(tried.to_numpy(), into)


def test_random_searches_over_devices():
    random = np.random.default_rng(7)
    for seed in range(CASES // 4):
        devices = [f"cpu:{i}" for i in range(random.integers(2, 9))]
        graph = atos.generate.uniform(int(random.integers(60, 400)), int(random.integers(1, 1200)), seed, device="cpu")
        parts = graph.partition(devices, order="random", seed=seed)
        depth = atos.full(graph.num_vertices, atos.UNREACHED, dtype=np.uint32, partition=parts)
        source = int(random.integers(graph.num_vertices))
        depth[source] = 0
        queue = atos.Queue(int(random.integers(1, 50)), owner=parts)
        queue.push(source)
        queue.launch_cta(visit, parts, depth, num_blocks=int(random.integers(1, 3)), timeout=60, barrier=bool(seed % 2))
        atos.verify_bfs(graph, source, depth.to_numpy())


def one_by_one(worker, item, array, places, values, lowered):
    """Lower elements in turn."""
    for k in range(len(places)):
        lowered[k] = worker.push_min(array, places[k], values[k])


@pytest.mark.parametrize("in_words", [False, True], ids=["", "in words"])
@pytest.mark.parametrize("checked", [False, True], ids=["", "checked"])
@pytest.mark.parametrize("dtype", NUMBERS)
def test_elements_of_every_type(monkeypatch, dtype, checked, in_words):
    """The elements, what is returned and what is pushed are as in NumPy, with the words of GPUs for small elements too."""
    if in_words:
        if np.dtype(dtype).itemsize > 2:
            pytest.skip("for small elements")
        monkeypatch.setattr(lower_atomics, "_in_words", lambda context, pointer: True)
    rng, size, steps = np.random.default_rng(1), 5, 200
    if np.dtype(dtype).kind == "f":
        values, start = (rng.choice([-np.inf, -2.5, -0.0, 0.0, 0.5, np.nan, np.inf], n).astype(dtype) for n in (steps, size))
        start[:] = np.inf
    else:
        limits = np.iinfo(dtype)
        values = np.sort(rng.integers(limits.min, limits.max, steps, dtype, endpoint=True))[::-1].copy()
        start = np.full(size, limits.max, dtype)
        values = values[np.argsort(np.arange(steps) + rng.uniform(0, 30, steps))]  # falling, but for some
    places = rng.integers(0, size, steps)
    kinds = tuple(describe(FakeArray(np.zeros(1, kind))) for kind in (dtype, "i8", dtype, "?"))
    code = compile_cpu(ProgramSpec(atos.task(one_by_one), None, kinds, np.dtype("i8"), debug=checked))
    array, lowered, harness = start.copy(), np.zeros(steps, bool), Harness(np.int64)
    harness.run(code, [0], *map(FakeArray, (array, places, values, lowered)))
    expected = []
    for at, value in zip(places, values, strict=True):
        expected.append(bool(value < start[at]))
        start[at] = value if expected[-1] else start[at]
    assert 5 < sum(expected) < steps or np.dtype(dtype).kind == "f"
    assert array.tolist() == start.tolist()
    assert lowered.tolist() == expected
    assert harness.pushed == places[expected].tolist()


@atos.task(workload=lambda v, n, *args: 0 if v < 3 else n)
def contend(worker, v, i, n, lowest, returned):
    if worker.push_min(lowest, i % 3, 1000 - v):
        atos.accumulate(returned, i % 3, 1)


@pytest.mark.parametrize("dtype", NUMBERS[2:])
def test_one_of_all_that_give_the_same_value_lowers(device, worker, dtype):
    lowest, returned = atos.full(3, 1001, dtype=dtype, device=device), atos.zeros(3, dtype=np.int64, device=device)
    queue = atos.Queue(1000, device=device)
    queue.push(np.arange(900, 1000))
    stats = launch(queue, worker, contend, 300, lowest, returned)
    assert lowest.to_numpy().tolist() == [1] * 3
    assert stats.tasks_pushed == returned.to_numpy().sum()
    assert 3 <= stats.tasks_pushed <= 300


@atos.task(workload=degree)
def relax(worker, v, i, graph, distance):
    edge = graph.indptr[v] + i
    through = distance[v] + graph.weights[edge]
    worker.push_min(distance, graph.indices[edge], through, priority=through)


def test_priorities(device, worker):
    graph = atos.generate.road(20, 0.9, device=device)
    graph = graph.with_weights(np.random.default_rng(2).integers(1, 50, graph.num_edges, np.uint32))
    distance = atos.full(graph.num_vertices, atos.UNREACHED, dtype=np.uint32, device=device)
    distance[0] = 0
    queue = atos.Queue(500, device=device, buckets=4, delta=20)
    queue.push(0, priority=0)
    launch(queue, worker, relax, graph, distance)
    assert np.array_equal(distance.to_numpy(), atos.sssp(graph, 0).distance.to_numpy())


@atos.task
def mark(worker, v, lowest, marks):
    if worker.rank == 0:
        atos.accumulate(marks, v, 1)


@atos.task
def lower_and_mark(worker, v, lowest, marks):
    if worker.rank == 0:
        worker.push_min(lowest, v // 2, v, task=mark)


def test_tasks_of_a_launch(device, worker):
    lowest, marks = (atos.full(10, value, device=device) for value in (100, 0))
    queue = atos.Queue(100, device=device)
    queue.push(range(20))
    stats = launch(queue, worker, (lower_and_mark, mark), lowest, marks)
    assert stats.tasks_run_by["lower_and_mark"] == 20
    assert stats.tasks_run_by["mark"] == marks.to_numpy().sum() >= 10
    assert lowest.to_numpy().tolist() == list(range(0, 20, 2))


def test_idle_functions(device):
    """They lower and push as tasks do, and the launch ends when they no longer can."""

    @atos.task
    def nothing(worker, v, lowest):
        pass

    def lower(worker, lowest):
        if worker.rank == 0:
            worker.push_min(lowest, 3, max(5, lowest[3] - 1))

    lowest, queue = atos.full(4, 9, device=device), atos.Queue(10, device=device)
    queue.push(0)
    stats = queue.launch_warp(nothing, lowest, idle=lower)
    assert lowest.to_numpy().tolist() == [9, 9, 9, 5]
    assert stats.tasks_run == 5


@atos.task
def beyond(worker, v, depth, value):
    worker.push_min(depth, v, value)


@pytest.mark.parametrize("devices", [["cpu"], TWO], ids=["one", "two"])
def test_checks(devices):
    path = atos.Graph.from_edges([0, 1], [1, 2], device="cpu")
    queue = atos.Queue(10, owner=path.partition(devices))
    depth = np.zeros(2, np.uint8)
    queue.push(2)
    with pytest.raises(TaskError, match="index 2 is out of range for array 'depth' of length 2"):
        queue.launch_thread(beyond, depth, 1, debug=True)
    queue.clear()
    queue.push(1)
    with pytest.raises(TaskError, match="-1"):
        queue.launch_thread(beyond, depth, -1, debug=True)
    queue.clear()
    queue.push(1)
    assert queue.launch_thread(beyond, depth, 256, debug=True).tasks_pushed == 0  # lowers nothing


def compiled(task: Any, array: np.ndarray, dtype: Any = np.uint32, readonly: bool = False) -> Any:
    return compile_cpu(ProgramSpec(atos.task(task), None, (describe(FakeArray(array, readonly)),), np.dtype(dtype)))


ONE = np.zeros(2, np.int32)
NOT = {
    "takes (array, index, value) by position, and priority= and task= by name": [
        (lambda worker, v, x: worker.push_min(x, v), ONE),
        (lambda worker, v, x: worker.push_min(x, v, 1, 2), ONE),
        (lambda worker, v, x: worker.push_min(x, v, value=1), ONE),
    ],
    "takes a priority only if the queue has buckets": [(lambda worker, v, x: worker.push_min(x, v, 1, priority=1), ONE)],
    "takes a task made with @atos.task as task=": [(lambda worker, v, x: worker.push_min(x, v, 1, task=3), ONE)],
    "works on integers and floats of 32 and 64 bits, not on bool": [
        (lambda worker, v, x: worker.push_min(x, v, True), np.zeros(2, bool))
    ],
    "of an array of one dimension": [
        (lambda worker, v, x: worker.push_min(x, v, 1), np.zeros((2, 2))),
        (lambda worker, v, x: worker.push_min(x, (v, 1), 1), np.zeros((2, 2))),
    ],
    "not on int64": [(lambda worker, v, x: worker.push_min(v, v, 1), ONE)],
    "an array is indexed by float64": [(lambda worker, v, x: worker.push_min(x, v * 0.5, 1), ONE)],
    "an element of type int32 is given a float64": [(lambda worker, v, x: worker.push_min(x, v, 0.5), ONE)],
}


@pytest.mark.parametrize(("reason", "task", "array"), [(reason, *case) for reason, cases in NOT.items() for case in cases])
def test_what_does_not_compile(reason, task, array):
    with pytest.raises(TaskCompileError) as caught:
        compiled(task, array)
    assert reason in str(caught.value)
    assert "worker.push_min" in str(caught.value)


def test_queues_of_records_and_arrays_that_are_read_only():
    def lower(worker, item, x):
        worker.push_min(x, 1, 1)

    with pytest.raises(TaskCompileError, match=r"worker\.push_min pushes an index, and the items of this queue are records"):
        compiled(lower, ONE, [("vertex", "u4"), ("x", "u4")])
    with pytest.raises(TaskCompileError, match=r"worker\.push_min is used on a read-only array"):
        compiled(lower, ONE, readonly=True)


def test_an_array_of_another_partition_is_refused():
    path = atos.Graph.from_edges([0, 1], [1, 2], device="cpu")
    depth = atos.full(3, 9, dtype=np.uint32, partition=path.partition(TWO))
    with pytest.raises(InvalidArgumentError, match="the queue has another partition"):
        atos.Queue(10, owner=path.partition(TWO)).launch_cta(beyond, depth, 1)
