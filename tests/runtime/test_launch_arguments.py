"""The arguments of a launch: what tasks can take and how it reaches them, and what is refused."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from shared_tasks import launch

import atos_py as atos
from atos_py.errors import InvalidArgumentError, TaskCompileError, UnsupportedTypeError


class Inner(NamedTuple):
    scale: Any
    values: Any
    nothing: Any


class Outer(NamedTuple):
    inner: Inner
    table: Any


@atos.task
def use(worker, v, outer, flag, small, byte, large, single, double, nothing, out):
    """Leave what comes in as arguments in `out`."""
    if worker.rank == 0:
        out[0] = outer.inner.scale * outer.inner.values[v]
        out[1] = outer.table[1, 2] + outer.table.shape[0] * 100 + outer.table.shape[1] * 1000
        out[2] = 1 if flag else 2
        out[3] = small
        out[4] = byte
        out[5] = large
        out[6] = single
        out[7] = double
        out[8] = 1 if nothing is None else 2
        out[9] = 1 if outer.inner.nothing is None else 2
        out[10] = len(outer.inner.values)


class Sized(Inner):
    def __new__(cls, n: int) -> Sized:
        return super().__new__(cls, n, np.zeros(n), None)


def test_a_named_tuple_that_is_made_in_its_own_way():
    @atos.task
    def scale(worker, v, sized):
        sized.values[v] = sized.scale

    sized = Sized(3)
    queue = atos.Queue(3, device="cpu")
    queue.push([0, 2])
    queue.launch_cta(scale, sized)
    assert sized.values.tolist() == [3, 0, 3]


@pytest.mark.parametrize("worker", ["warp"])
def test_arguments_of_every_kind(device, worker):
    inner = Inner(2.5, atos.asarray(np.array([1.0, 4.0]), device=device, readonly=True), None)
    outer = Outer(inner, atos.asarray(np.arange(6, dtype=np.int16).reshape(2, 3), device=device))
    out = atos.zeros(11, dtype=np.float64, device=device)
    queue = atos.Queue(1, device=device)
    queue.push(1)
    launch(queue, worker, use, outer, True, np.int8(-3), np.uint8(200), np.uint64(2**63), np.float32(0.1), -7.25, None, out)
    assert out.to_numpy().tolist() == [10.0, 3205.0, 1, -3, 200, 2.0**63, float(np.float32(0.1)), -7.25, 1, 1, 2]


@atos.task
def write(worker, v, out):
    out[v] = v + 1


def test_numpy_arrays_on_the_cpu_are_written_in_place():
    queue = atos.Queue(10, device="cpu")
    out = np.zeros(10, np.uint16)
    queue.push(np.arange(10))
    queue.launch_cta(write, out)
    assert out.tolist() == list(range(1, 11))
    array = atos.asarray(out, device="cpu")
    queue.push([0])
    out[0] = 0
    queue.launch_cta(write, array)
    assert out[0] == 1
    part = np.zeros((4, 10), np.uint16)
    queue.push([3])
    queue.launch_cta(write, part[2])
    assert part.sum() == part[2, 3] == 4


class Foreign:
    """An array of another library in the memory of the host."""

    def __init__(self, data: np.ndarray) -> None:
        self.data = data

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, **options: Any) -> Any:
        return self.data.__dlpack__(**options)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.data


def test_host_arrays_of_others_are_written_in_place(monkeypatch):
    monkeypatch.setenv("ATOS_DEVICE", "cpu")
    out = Foreign(np.zeros(10, np.int32))
    queue = atos.Queue(10, device="cpu")
    queue.push([4])
    queue.launch_cta(write, out)
    assert out.data.sum() == out.data[4] == 5


def test_host_arrays_of_others_have_to_be_contiguous(monkeypatch):
    monkeypatch.setenv("ATOS_DEVICE", "cpu")
    queue = atos.Queue(10, device="cpu")
    queue.push([4])
    with pytest.raises(InvalidArgumentError, match="contiguous"):
        queue.launch_cta(write, Foreign(np.zeros(20, np.int32)[::2]))


@pytest.mark.gpu
def test_host_arrays_of_others_are_refused_on_a_gpu():
    queue = atos.Queue(10, device="cuda")
    queue.push([4])
    with pytest.raises((InvalidArgumentError, UnsupportedTypeError)):
        queue.launch_cta(write, Foreign(np.zeros(10, np.int32)))


def test_arrays_that_may_not_be_written():
    queue = atos.Queue(10, device="cpu")
    queue.push([4])
    frozen = np.zeros(10, np.int32)
    frozen.flags.writeable = False
    for array in (frozen, atos.zeros(10, dtype=np.int32, device="cpu")):
        if isinstance(array, atos.Array):
            array = atos.asarray(array, readonly=True)
        with pytest.raises(TaskCompileError, match=r"read-only|readonly"):
            queue.launch_cta(write, array)
    assert queue.peek().tolist() == [4]


def test_arguments_have_to_be_contiguous():
    queue = atos.Queue(10, device="cpu")
    for array in (np.zeros((10, 2))[:, 0], np.zeros((3, 4)).T, np.zeros(10)[::-1]):
        with pytest.raises(InvalidArgumentError, match=r"argument 1 is not C-contiguous; pass numpy.ascontiguousarray"):
            queue.launch_cta(use, None, array)


def test_arguments_on_another_device():
    there = atos.Array(1 << 20, (4,), np.dtype(np.int32), atos.Device("cuda", 3), readonly=False, owner=None)
    queue = atos.Queue(10, device="cpu")
    for args in ((there,), (Inner(1, there, None),), (Outer(Inner(1, 2, there), None),)):
        with pytest.raises(
            InvalidArgumentError, match=r"argument 0 is on cuda:3, .*the task runs on cpu; copy it with atos.asarray"
        ):
            queue.launch_cta(write, *args)


@pytest.mark.gpu
def test_arguments_of_the_host_on_a_gpu():
    queue = atos.Queue(10, device="cuda")
    queue.push([4])
    with pytest.raises(
        UnsupportedTypeError, match=r"argument 0 is an array of the host, which a task on cuda:0 cannot reach.*atos.asarray"
    ):
        queue.launch_cta(write, np.zeros(10))
    with pytest.raises(InvalidArgumentError, match=r"argument 0 is on cpu, .*the task runs on cuda:0"):
        queue.launch_cta(write, atos.zeros(10, device="cpu"))
    cpu = atos.Queue(10, device="cpu")
    with pytest.raises(InvalidArgumentError, match=r"argument 0 is on cuda:0, .*the task runs on cpu"):
        cpu.launch_cta(write, atos.zeros(10, device="cuda"))


@pytest.mark.parametrize(
    "value",
    [[1, 2], {"a": 1}, "text", (1, 2), 1j, object(), np.complex64(1), np.float16(1), np.datetime64(1, "s")],
    ids=lambda value: type(value).__name__,
)
def test_arguments_that_tasks_cannot_take(value):
    queue = atos.Queue(10, device="cpu")
    queue.push([4])
    with pytest.raises(UnsupportedTypeError, match=type(value).__name__):
        queue.launch_cta(write, value)
    assert queue.peek().tolist() == [4]


@pytest.mark.parametrize("dtype", ["float16", "complex128", "O", "S3", ">i4", "i4,i4"])
def test_arrays_that_tasks_cannot_take(dtype):
    queue = atos.Queue(10, device="cpu")
    with pytest.raises(UnsupportedTypeError, match="arrays hold integers of 8 to 64 bits, float32, float64 or bool"):
        queue.launch_cta(write, np.zeros(3, dtype))


def test_integers_beyond_64_bits():
    queue = atos.Queue(10, device="cpu")
    queue.push([4])
    with pytest.raises(InvalidArgumentError, match=r"argument 9223372036854775808 does not fit a signed 64-bit integer"):
        queue.launch_cta(atos.task(lambda worker, v, x: None), 2**63)


def test_more_arguments_than_there_is_room_for():
    many = NamedTuple("many", [(f"x{i}", int) for i in range(257)])  # type: ignore[misc]
    queue = atos.Queue(10, device="cpu")
    with pytest.raises(InvalidArgumentError, match=r"the arguments take 257 words of 8 bytes, .*\b256\b"):
        queue.launch_cta(atos.task(lambda worker, v, x: None), many(*range(257)))
    queue.push(1)
    assert queue.launch_cta(atos.task(lambda worker, v, x, y: None), many(*range(257))[0], 1).tasks_run == 1


def scaled(item, *args):
    """Return as many iterations as the last argument says, and the item times the first."""
    return args[-1], item * args[0]


@atos.task(workload=scaled)
def add_to(worker, item, i, value, factor, *rest):
    atos.atomic_add(rest[0], item, value + i)


@atos.task
def add_all(worker, item, *args):
    if worker.rank == 0:
        atos.atomic_add(args[0], item, len(args))


@atos.task
def beyond(worker, item, *rest):
    rest[1][7] = 1


def test_tasks_that_take_any_number_of_arguments(device, worker):
    """As operators are made from, whose user's functions take what they like."""
    for extra in ((), (2.5,), (None, 7)):
        sums = atos.zeros(5, dtype=np.int64, device=device)
        launch_with(worker, device, add_all, sums, *extra)
        assert sums.to_numpy().tolist() == [1 + len(extra)] * 5
    sums = atos.zeros(5, dtype=np.int64, device=device)
    launch_with(worker, device, add_to, 10, sums, 3)
    assert sums.to_numpy().tolist() == [30 * v + 3 for v in range(5)]
    with pytest.raises(atos.TaskCompileError, match="takes 4 arguments, but this launch gives it 3"):
        launch_with(worker, device, atos.task(lambda worker, item, a, b, *rest: None), 1)
    with pytest.raises(atos.TaskError, match=r"rest\[1\]"):
        launch_with(
            worker, device, beyond, 1, np.zeros(3) if device.kind == "cpu" else atos.zeros(3, device=device), debug=True
        )


def launch_with(worker, device, task, *args, **options):
    queue = atos.Queue(8, device=device)
    queue.push(range(5))
    getattr(queue, f"launch_{worker}")(task, *args, **options)
