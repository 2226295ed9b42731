"""Which stream a launch runs on: the one that is named, or the current one of the library whose arrays are there."""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from shared_tasks import again, double_of

import atos_py as atos
from atos_py.arrays.streams import launch_stream
from atos_py.errors import DeviceStuckError, InvalidArgumentError, LaunchTimeoutError, UnsupportedTypeError

CPU = atos.device("cpu")
GPU = atos.Device("cuda", 1)


def protocol(version: int, handle: Any) -> Any:
    """Make an object with ``__cuda_stream__``, as a method."""
    return SimpleNamespace(__cuda_stream__=lambda: (version, handle))


@pytest.mark.parametrize(
    ("stream", "address"),
    [
        (0, 0),
        (1, 1),
        (0x7F00_0000_1230, 0x7F00_0000_1230),
        (np.uint64(2**63), 2**63),
        (protocol(0, 77), 77),
        (SimpleNamespace(__cuda_stream__=(0, 77)), 77),  # an attribute, as cuda.core once had it
        (SimpleNamespace(cuda_stream=5), 5),
        (SimpleNamespace(ptr=6), 6),
        (SimpleNamespace(handle=ctypes.c_void_p(7)), 7),
        (SimpleNamespace(handle=ctypes.c_void_p(None)), 0),
        (SimpleNamespace(__cuda_stream__=(0, 8), ptr=9), 8),
    ],
)
def test_streams_that_are_named(stream, address):
    assert launch_stream(stream, [], GPU) == address


@pytest.mark.parametrize("wrong", ["fast", 1.5, True, object(), [1]])
def test_what_is_no_stream(wrong):
    with pytest.raises(UnsupportedTypeError, match="stream must be an address or a stream of"):
        launch_stream(wrong, [], GPU)


def test_other_versions_of_the_protocol():
    with pytest.raises(UnsupportedTypeError, match="speaks version 1, but only 0"):
        launch_stream(protocol(1, 77), [], GPU)


@pytest.mark.parametrize("wrong", [-1, 2**64])
def test_what_is_no_address(wrong):
    with pytest.raises(InvalidArgumentError, match=r"stream must be from 0 to 18446744073709551615"):
        launch_stream(wrong, [], GPU)


@pytest.fixture
def libraries(monkeypatch):
    """Stand-ins for CuPy and PyTorch that have current streams, 100 and 200 and a bit for the device."""
    current = {"cupy": 100, "torch": 200}
    cupy = SimpleNamespace(get_current_stream=lambda device_id: SimpleNamespace(ptr=current["cupy"] + device_id))
    torch = SimpleNamespace(current_stream=lambda device: SimpleNamespace(cuda_stream=current["torch"] + device))
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=cupy))
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=torch))
    return current


def array_of(library: str | None) -> atos.Array:
    array = atos.zeros(1, device=CPU)
    array.library = library
    return array


def test_the_current_stream_of_the_arguments_library(libraries):
    assert launch_stream(None, [], GPU) == 0
    assert launch_stream(None, [3, None, array_of(None), array_of("jax")], GPU) == 0
    assert launch_stream(None, [3, array_of(None), array_of("cupy")], GPU) == 101
    assert launch_stream(None, [array_of("torch")], GPU) == 201
    graph = atos.Graph(array_of(None), array_of("torch"), None)
    assert launch_stream(None, [graph, array_of(None)], GPU) == 201
    assert launch_stream(5, [array_of("cupy")], GPU) == 5
    assert launch_stream(0, [array_of("cupy")], GPU) == 0


def test_libraries_on_different_streams(libraries):
    both = [array_of("torch"), array_of("cupy")]
    with pytest.raises(InvalidArgumentError, match="current streams differ"):
        launch_stream(None, both, GPU)
    assert launch_stream(7, both, GPU) == 7
    libraries["torch"] = 100
    assert launch_stream(None, both, GPU) == 101


def test_a_cpu_has_no_streams():
    source, target = atos.asarray([1, 2], device=CPU), atos.zeros(2, dtype=np.int64, device=CPU)
    queue = atos.Queue(2, device=CPU)
    queue.push([0, 1])
    queue.launch_thread(double_of, source, target, stream=7)
    assert target.to_numpy().tolist() == [2, 4]


@pytest.mark.gpu
@pytest.mark.parametrize("persistent", [True, False])
def test_a_launch_waits_for_what_cupy_has_begun(persistent):
    """On CuPy's current stream, one that does not block with the default one, without a word about it."""
    cupy = pytest.importorskip("cupy")
    spin = cupy.RawKernel(
        'extern "C" __global__ void spin(long long n) { long long end = clock64() + n; while (clock64() < end); }', "spin"
    )
    n = 1000
    with cupy.cuda.Stream(non_blocking=True) as stream:
        source, target = cupy.zeros(n, dtype=cupy.int64), atos.zeros(n, dtype=np.int64, device="cuda")
        there = atos.asarray(source)
        stream.synchronize()
        queue = atos.Queue(n, device="cuda")
        queue.push(np.arange(n))
        spin((1,), (1,), (100_000_000,))  # some 50 ms
        source += 7
        queue.launch_warp(double_of, there, target, persistent=persistent)
        assert target.to_numpy().tolist() == [14] * n


@pytest.mark.gpu
def test_an_array_waits_for_its_stream():
    """Taking an array waits for what its producer has begun, also on a stream that does not block with the default one."""
    cupy = pytest.importorskip("cupy")
    spin = cupy.RawKernel(
        'extern "C" __global__ void spin(long long n) { long long end = clock64() + n; while (clock64() < end); }', "spin"
    )

    class OnlyDLPack:
        def __init__(self, array: Any) -> None:
            self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__

    for wrap in (lambda array: array, OnlyDLPack):
        with cupy.cuda.Stream(non_blocking=True):
            values = cupy.zeros(10, dtype=cupy.int64)
            spin((1,), (1,), (100_000_000,))
            values += 3
            assert atos.asarray(wrap(values)).to_numpy().tolist() == [3] * 10


@atos.task
def quadruple_of(worker, v, source, target):
    target[v] = 4 * source[v]


@pytest.mark.gpu
def test_a_run_in_its_own_stream_begins_when_its_queue_has_been_cleared():
    """A queue that gets its form at the start is cleared in the default stream, where another launch goes on meanwhile."""
    core = pytest.importorskip("cuda.core")
    gpu = core.Device()
    gpu.set_current()
    stream = gpu.create_stream()
    source, target = atos.asarray(np.arange(100), device="cuda"), atos.zeros(100, dtype=np.int64, device="cuda")
    begun = threading.Event()

    def run() -> int:
        queue = atos.Queue(1000, device="cuda")
        with queue.start((double_of, quadruple_of), source, target, worker="thread", num_blocks=2, stream=stream) as started:
            started.push(range(50))
            started.push(range(50, 100), task=quadruple_of)
        return started.wait().tasks_run

    def hold() -> None:
        queue = atos.Queue(10, device="cuda")
        queue.push(1)
        with pytest.raises(LaunchTimeoutError):
            queue.launch(again, timeout=1, num_blocks=1, progress=lambda *numbers: begun.set())

    assert run() == 100  # so that all is compiled
    holds = threading.Thread(target=hold, daemon=True)
    holds.start()
    assert begun.wait(60)
    assert run() == 100
    holds.join()
    assert target.to_numpy().tolist() == [(2 if v < 50 else 4) * v for v in range(100)]


@contextmanager
def launched_elsewhere(seconds: float) -> Iterator[None]:
    """Another thread's launch in the default stream, which has begun and goes on for a time."""
    begun = threading.Event()

    def hold() -> None:
        queue = atos.Queue(10, device="cuda")
        queue.push(1)
        with pytest.raises(LaunchTimeoutError):
            queue.launch(again, timeout=seconds, num_blocks=1, progress=lambda *numbers: begun.set())

    holds = threading.Thread(target=hold, daemon=True)
    holds.start()
    assert begun.wait(60)
    yield
    assert holds.is_alive()
    holds.join()


def waiting_in(queue: atos.Queue) -> list[int]:
    """Return the items of a queue, as soon as a launch that was stopped before it began has ended."""
    until = time.monotonic() + 20
    while True:
        try:
            return sorted(queue.peek())
        except DeviceStuckError:
            assert time.monotonic() < until
            time.sleep(0.01)


SCHEDULES = pytest.mark.parametrize("schedule", [{}, {"persistent": False}, {"persistent": False, "barrier": True}], ids=str)


@pytest.mark.gpu
@SCHEDULES
def test_a_launch_that_does_not_begin_in_time_holds_its_queue_alone(schedule):
    """The default stream is behind another thread's launch."""
    source, target = atos.asarray(np.arange(100), device="cuda"), atos.zeros(100, dtype=np.int64, device="cuda")
    queue = atos.Queue(1000, device="cuda")
    queue.push(1)
    queue.launch(double_of, source, target, worker="thread", **schedule)
    queue.push(range(100))
    with launched_elsewhere(4):
        with pytest.raises(LaunchTimeoutError, match="has not begun, since other launches or processes hold") as stopped:
            queue.launch(double_of, source, target, worker="thread", timeout=0.2, **schedule)
        assert (stopped.value.pending, stopped.value.stuck) == (None, True)
        with pytest.raises(DeviceStuckError, match="has not begun"):
            queue.peek()
        made = atos.zeros(1 << 20, dtype=np.int64, device="cuda")
    assert not made.to_numpy().any()
    assert waiting_in(queue) == list(range(100))
    assert queue.launch(double_of, source, target, worker="thread", **schedule).tasks_run == 100
    assert target.to_numpy().tolist() == [2 * v for v in range(100)]


@pytest.mark.gpu
@SCHEDULES
def test_a_stop_waits_for_no_launch_of_another_thread(schedule):
    """The other launch is next in the default stream."""
    queue = atos.Queue(200_000, device="cuda")
    queue.push(range(1000))
    begun, ends = threading.Event(), []

    def stopped() -> None:
        options = {"timeout": 1, "num_blocks": 1, "progress": lambda *numbers: begun.set(), **schedule}
        with pytest.raises(LaunchTimeoutError) as late:
            queue.launch(again, **options)
        ends.append((time.monotonic(), late.value.pending))

    begin = time.monotonic()
    first = threading.Thread(target=stopped, daemon=True)
    first.start()
    assert begun.wait(60)
    other = atos.Queue(10, device="cuda")
    other.push(1)
    with pytest.raises(LaunchTimeoutError):
        other.launch(again, timeout=6, num_blocks=1)
    first.join()
    end = time.monotonic()
    assert ends[0][0] < end - 2, (ends[0][0] - begin, end - begin)
    assert ends[0][1] == (None if schedule.get("barrier") else 1000)  # a kernel for each round: the next one has not begun
    assert waiting_in(queue) == list(range(1000))
