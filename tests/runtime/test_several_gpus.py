"""Queues and launches on two GPUs of one machine: beside each other, and from one to the other."""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from fake_arrays import OnlyDLPack
from shared_tasks import again, double_of, every_schedule

import atos_py as atos
from atos_py.errors import ExportError, InvalidArgumentError, LaunchConfigError, LaunchTimeoutError

GPUS = ("cuda:0", "cuda:1")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(sum(device.kind == "cuda" for device in atos.devices()) < 2, reason="needs two GPUs"),
]


@pytest.fixture(scope="module")
def graphs() -> list[atos.Graph]:
    """A graph on each GPU: the same one, so that depths can be compared."""
    first = atos.generate.rmat(14, 16, 1, device=GPUS[0])
    second = first.to(GPUS[1])
    assert [str(graph.device) for graph in (first, second)] == list(GPUS)
    return [first, second]


def search(graph: atos.Graph, **options: object) -> np.ndarray:
    """Return the depths of all vertices from the one with most edges, verified."""
    source = int(np.argmax(graph.degrees()))
    result = atos.bfs(graph, source, **options)
    assert result.depth.device == graph.device
    assert result.stats.device == str(graph.device)
    atos.verify_bfs(graph, source, result.depth)
    return result.depth.to_numpy()


@every_schedule
def test_bfs_on_both(graphs, worker, persistent, barrier):
    """One after the other, then both at the same time."""
    options = {"worker": worker, "persistent": persistent, "barrier": barrier}
    expected = search(graphs[0], **options)
    assert np.array_equal(search(graphs[1], **options), expected)
    with ThreadPoolExecutor(2) as pool:
        for depths in pool.map(lambda graph: [search(graph, **options) for _ in range(10)], graphs):
            assert all(np.array_equal(depth, expected) for depth in depths)


def test_an_array_of_the_other_gpu_is_refused(graphs):
    queue = atos.Queue(10, device=GPUS[1])
    queue.push([1])
    here, there = (atos.zeros(10, dtype=np.int64, device=gpu) for gpu in GPUS)
    with pytest.raises(InvalidArgumentError, match="argument 0 is on cuda:0, the task runs on cuda:1; copy it with"):
        queue.launch_warp(double_of, here, there)
    with pytest.raises(LaunchConfigError, match="the queue is on cuda:1 and cannot run on cuda:0"):
        queue.launch_warp(double_of, there, there, device=GPUS[0])
    assert queue.peek().tolist() == [1]


def test_arrays_go_from_one_to_the_other():
    values = np.arange(1_000_000)
    first = atos.asarray(values, device=GPUS[0])
    second = atos.asarray(first, device=GPUS[1])
    third = atos.zeros(values.shape, dtype=values.dtype, device=GPUS[0])
    third[:] = second
    assert [str(array.device) for array in (first, second, third)] == ["cuda:0", "cuda:1", "cuda:0"]
    assert len({array.pointer for array in (first, second, third)}) == 3
    assert np.array_equal(second.to_numpy(), values)
    assert np.array_equal(third.to_numpy(), values)


@pytest.mark.parametrize("number", [0, 1])
def test_protocols_keep_the_device(number):
    """Whatever device is current."""
    array = atos.full(10, 5, dtype=np.int64, device=GPUS[number])
    assert array.__dlpack_device__() == (2, number)
    with pytest.raises(ExportError, match="without a copy"):
        array.__dlpack__(dl_device=(2, 1 - number))
    cupy = pytest.importorskip("cupy")
    with cupy.cuda.Device(number):
        views = [cupy.asarray(array), cupy.from_dlpack(array)]
    for view in [*views, OnlyDLPack(views[0])]:
        for current in (0, 1):
            with cupy.cuda.Device(current):
                there = atos.asarray(view)
            assert (str(there.device), there.pointer) == (GPUS[number], array.pointer)
            assert there.to_numpy().tolist() == [5] * 10


def test_a_queue_is_saved_on_one_and_loaded_on_the_other(tmp_path):
    source, target = atos.asarray(np.arange(100), device=GPUS[0]), atos.zeros(100, dtype=np.int64, device=GPUS[1])
    queue = atos.Queue(100, device=GPUS[0])
    queue.push(range(50, 100))
    queue.save(tmp_path / "queue", source=source)
    there = atos.zeros(100, dtype=np.int64, device=GPUS[1])
    other = atos.Queue.load(tmp_path / "queue", device=GPUS[1], source=there)
    assert str(other.device) == "cuda:1"
    assert other.launch_warp(double_of, there, target).tasks_run == 50
    assert target.to_numpy().tolist() == [0] * 50 + list(range(100, 200, 2))
    assert len(queue) == 50


def test_a_timeout_on_one_leaves_the_other_alone(graphs):
    expected = search(graphs[1])
    queue = atos.Queue(100, device=GPUS[0])
    queue.push(range(50))
    with ThreadPoolExecutor(1) as pool:
        stopped = pool.submit(queue.launch_warp, again, timeout=2)
        searches = 0
        while not stopped.done():
            assert np.array_equal(search(graphs[1]), expected)
            searches += 1
        with pytest.raises(LaunchTimeoutError, match="50 tasks are unfinished"):
            stopped.result()
    assert searches > 0
    assert np.sort(queue.peek()).tolist() == list(range(50))
    assert np.array_equal(search(graphs[0]), expected)  # whose GPU goes on as well


def current_context() -> int | None:
    context = ctypes.c_void_p()
    assert ctypes.CDLL("libcuda.so.1").cuCtxGetCurrent(ctypes.byref(context)) == 0
    return context.value


def test_what_is_current_stays_current(graphs):
    before = current_context()
    for graph in graphs:
        search(graph)
        assert current_context() == before
    cupy = pytest.importorskip("cupy")
    queue = atos.Queue(10, device=GPUS[1])
    for current in (0, 1):
        with cupy.cuda.Device(1):
            source, target = cupy.arange(10), cupy.zeros(10, dtype=cupy.int64)
        with cupy.cuda.Device(current):
            here = cupy.arange(10)
            before = current_context()
            search(graphs[1 - current])
            queue.push(range(10))
            queue.launch_cta(double_of, source, target)
            assert (current_context(), cupy.cuda.runtime.getDevice()) == (before, current)
            assert (here + 1).device.id == current
        assert cupy.asnumpy(target).tolist() == list(range(0, 20, 2))
