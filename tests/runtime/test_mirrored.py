"""Mirrored arrays: a copy on each device, of which tasks read that of their device and write all."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import atos_py as atos
from atos_py.errors import InvalidArgumentError, TaskCompileError, UnsupportedTypeError

GPUS = [str(device) for device in atos.devices() if device.kind == "cuda"]
DEVICES = {
    "cpu": ["cpu:0", "cpu:1", "cpu:2"],
    "cuda": (GPUS[:2] if len(GPUS) > 1 else GPUS * 2) * 2,
}
KINDS = ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(not GPUS, reason="needs a GPU")])]


class Values(NamedTuple):
    """A mirrored array among others, in a named tuple."""

    seen: Any
    values: Any


def parts_of(n: int, devices: list[str], order: str = "keep") -> atos.Partition:
    return atos.Graph.from_edges([], [], num_vertices=n, device="cpu").partition(devices, order=order)


@atos.task
def read(worker, v, values, seen):
    """Read an element as the device of v has it."""
    if worker.rank == 0:
        seen[v] = values[v]


@atos.task
def shift(worker, v, rounds, both, other):
    """Write an element from that of the next vertex of the round before, which may be of another device."""
    if worker.rank > 0:
        return
    n = both.values.size
    even = worker.round % 2 == 0
    value = both.values[(v + 1) % n] if even else other[(v + 1) % n]
    if even:
        other[v] = value
    else:
        both.values[v] = value
    both.seen[v] += 1
    if worker.round + 1 < rounds:
        worker.push(v)


@atos.task
def add(worker, v, values):
    atos.atomic_add(values, v, 1)


@atos.task
def lower(worker, v, values):
    worker.push_min(values, v, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_task_reads_the_copy_of_its_device(kind):
    devices = DEVICES[kind]
    parts = parts_of(10, devices)
    values = atos.full(10, 0, dtype=np.int32, partition=parts, placement="mirrored")
    for k, copy in enumerate(values._copies):
        copy[...] = k
    seen = atos.full(10, -1, dtype=np.int32, partition=parts)
    queue = atos.Queue(10, owner=parts)
    queue.push(range(10))
    queue.launch_warp(read, values, seen)
    chunk = -(-10 // len(devices))
    assert seen[:].tolist() == [v // chunk for v in range(10)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("worker", ["thread", "warp", "cta"])
@pytest.mark.parametrize("dtype", ["u1", "i2", "u4", "f4", "i8", "f8"])
@pytest.mark.parametrize("order", ["keep", "random"])
def test_a_store_reaches_all_copies(kind, worker, dtype, order):
    n, rounds = 97, 6
    parts = parts_of(n, DEVICES[kind], order)
    first = np.arange(n).astype(dtype)
    values, other = (atos.full(n, 0, dtype=dtype, partition=parts, placement="mirrored") for _ in range(2))
    values[:] = first
    seen = atos.full(n, 0, dtype=np.int32, partition=parts)
    queue = atos.Queue(n, owner=parts)
    queue.push(range(n))
    getattr(queue, f"launch_{worker}")(shift, rounds, Values(seen, values), other, barrier=True)
    assert seen[:].tolist() == [rounds] * n
    ids = np.arange(n) if parts.ownership.ids is None else parts.ownership.ids
    expected = np.empty_like(first)
    expected[ids] = np.roll(first[ids], -rounds)
    for array in (values, values.to_numpy()):
        assert np.array_equal(array[:], expected)
    for copy in values._copies:
        assert np.array_equal(copy.to_numpy(), expected[ids])


@given(st.data())
@settings(deadline=None, max_examples=60)
def test_the_host_writes_all_copies(data):
    n, width = data.draw(st.integers(1, 20)), data.draw(st.sampled_from([None, 3]))
    parts = parts_of(
        n, [f"cpu:{k}" for k in range(data.draw(st.integers(1, 4)))], data.draw(st.sampled_from(["keep", "random"]))
    )
    array = atos.full(n if width is None else (n, width), 5, dtype=np.int64, partition=parts, placement="mirrored")
    like = array.to_numpy()
    assert (like == 5).all()
    for _ in range(3):
        key = data.draw(st.one_of(st.integers(-n, n - 1), st.builds(slice, st.integers(0, n), st.integers(0, n))))
        array[key] = like[key] = data.draw(st.integers(-9, 9))
        assert np.array_equal(array[key], like[key])
    for copy in array._copies:
        ids = slice(None) if parts.ownership.ids is None else parts.ownership.ids
        assert np.array_equal(copy.to_numpy(), like[ids])
    array.fill(2)
    assert all((copy.to_numpy() == 2).all() for copy in array._copies)
    assert repr(array).startswith("<atos array shape=")
    assert isinstance(array, atos.MirroredArray)


def test_arrays_of_nothing():
    parts = parts_of(0, ["cpu:0", "cpu:1"])
    assert atos.full(0, 1.0, partition=parts, placement="mirrored").to_numpy().size == 0


@pytest.mark.parametrize(("task", "word"), [(add, "atomic_add"), (lower, "push_min")])
def test_atomics_are_refused(task, word):
    parts = parts_of(4, ["cpu:0", "cpu:1"])
    queue = atos.Queue(4, owner=parts)
    queue.push([0])
    with pytest.raises(TaskCompileError, match=f"{word} is used on a mirrored array.* store to elements as they are"):
        queue.launch_warp(task, atos.full(4, 1, partition=parts, placement="mirrored"))


def test_checks_know_it():
    """With debug=True indices are checked, and the message names the argument."""
    parts = parts_of(4, ["cpu:0", "cpu:1"])
    queue = atos.Queue(8, owner=parts)
    queue.push([0])

    @atos.task
    def beyond(worker, v, seen, values):
        values[v + 4] = seen[v]

    arrays = [atos.full(4, 1, partition=parts, placement=each) for each in ("partitioned", "mirrored")]
    with pytest.raises(atos.TaskError, match="index 4 is out of range for array 'values' of length 4"):
        queue.launch_warp(beyond, *arrays, debug=True)


def test_wrong_placements():
    parts = parts_of(4, ["cpu:0", "cpu:1"])
    with pytest.raises(InvalidArgumentError, match="placement must be one of partitioned, mirrored, owned"):
        atos.full(4, 1, partition=parts, placement="copied")
    with pytest.raises(InvalidArgumentError, match="pass partition= as well"):
        atos.full(4, 1, placement="mirrored")
    with pytest.raises(InvalidArgumentError, match="for each of its 4 vertices"):
        atos.full(5, 1, partition=parts, placement="mirrored")
    array = atos.full(4, 1, partition=parts, placement="mirrored")
    with pytest.raises(UnsupportedTypeError, match="to_numpy"):
        array.__reduce__()
    queue = atos.Queue(4, device="cpu")
    queue.push([0])
    with pytest.raises(InvalidArgumentError, match="owner="):
        queue.launch_warp(read, array, array)


def test_no_more_than_sixteen():
    parts = parts_of(4, ["cpu:0", "cpu:1"])
    queue = atos.Queue(4, owner=parts)
    queue.push([0])
    many = [atos.full(4, 1, partition=parts, placement="mirrored") for _ in range(17)]

    @atos.task
    def nothing(worker, v, *arrays):
        pass

    with pytest.raises(InvalidArgumentError, match=r"at most 16 mirrored arrays, .* \(got 17\)"):
        queue.launch_warp(nothing, *many)
