"""Items with vectors among their fields: pushed from the host and from tasks, read in tasks, kept in files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shared_tasks import launch

import atos_py as atos
from atos_py.errors import InvalidArgumentError, TaskCompileError, TaskError, UnsupportedTypeError
from atos_py.runtime.items import as_items

RAY = np.dtype([("at", "f4", 3), ("depth", "u1"), ("to", "i2", (2,)), ("weight", "f8")])
PACKED = np.dtype([("flags", "?", 3), ("keys", "u4", 2), ("one", "f8", (1,)), ("last", "u8")])


@atos.task
def step(worker, ray, out, used):
    """Write the ray down, and push the next one."""
    x, y, z = ray.at
    if worker.rank == 0:
        k = atos.atomic_add(used, 0, 1)
        for i in range(3):
            out[k, i] = ray.at[i]
        out[k, 3], out[k, 4], out[k, 5], out[k, 6] = ray.depth, ray.to[0], ray.to[1], ray.weight
        if ray.depth < 3:
            worker.push(((x + 1, 2 * y, z - 1), ray.depth + 1, (ray.to[1], ray.to[0]), ray.weight / 2))


def path(x: float, y: float, z: float, depth: int, a: int, b: int, weight: float) -> list[tuple[float, ...]]:
    rows = [(x, y, z, depth, a, b, weight)]
    while depth < 3:
        x, y, z, depth, a, b, weight = x + 1, 2 * y, z - 1, depth + 1, b, a, weight / 2
        rows.append((x, y, z, depth, a, b, weight))
    return rows


@pytest.mark.parametrize("debug", [False, True])
def test_a_tree_of_records(device, worker, debug):
    queue = atos.Queue(100, dtype=RAY, device=device)
    queue.push(((1, 2, 3), 0, (7, -8), 16.0))
    queue.push([((1.5, 2, -3), 2, [-32768, 32767], 1e300), (np.array([0, 0, 1]), 3, np.array([1, 2]), -1.0)])
    assert len(queue) == 3
    out, used = atos.zeros((16, 7), dtype=np.float64, device=device), atos.zeros(1, dtype=np.int64, device=device)
    stats = launch(queue, worker, step, out, used, debug=debug)
    expected = [*path(1, 2, 3, 0, 7, -8, 16.0), *path(1.5, 2, -3, 2, -32768, 32767, 1e300), *path(0, 0, 1, 3, 1, 2, -1.0)]
    assert stats.tasks_run == used[0] == len(expected)
    assert sorted(map(tuple, out[: len(expected)].tolist())) == sorted(expected)


@atos.task
def copy(worker, item, flags, keys, one, last):
    if worker.rank == 0:
        for i in range(3):
            flags[0, i] = item.flags[i]
        keys[0, 0], keys[0, 1] = item.keys[0], item.keys[1]
        one[0], last[0] = item.one[0], item.last


@settings(deadline=None, max_examples=30)
@given(
    st.tuples(*[st.booleans()] * 3),
    st.tuples(*[st.integers(0, 2**32 - 1)] * 2),
    st.floats(allow_nan=False),
    st.integers(0, 2**64 - 1),
)
def test_every_number_is_where_it_belongs(flags, keys, one, last):
    """Of an unaligned record of 27 bytes, through the queue and a task."""
    queue = atos.Queue(2, dtype=PACKED, device="cpu")
    queue.push((flags, keys, (one,), last))
    (back,) = queue.peek()
    assert (*back["flags"].tolist(), *back["keys"].tolist(), *back["one"].tolist(), back["last"]) == (*flags, *keys, one, last)
    outs: list[Any] = [atos.zeros(shape, dtype=kind, device="cpu") for shape, kind in (((1, 3), bool), ((1, 2), "u4"))]
    outs += [atos.zeros(1, dtype=kind, device="cpu") for kind in ("f8", "u8")]
    queue.launch_thread(copy, *outs)
    assert outs[0].tolist() == [list(flags)]
    assert outs[1].tolist() == [list(keys)]
    assert (outs[2][0], outs[3][0]) == (one, last)


def test_pushed_as_arrays_and_kept_in_files(device, tmp_path):
    queue = atos.Queue(100, dtype=RAY, device=device)
    items = np.zeros(5, RAY)
    items["at"], items["to"], items["depth"] = np.arange(15).reshape(5, 3), np.arange(10).reshape(5, 2) - 5, range(5)
    queue.push(items)
    queue.push(items[:2].astype([("at", "f8", 3), ("depth", "i8"), ("to", "i8", 2), ("weight", "f4")]))
    queue.push([])
    queue.push(np.zeros(0, RAY))
    found = queue.peek()
    assert found.dtype == RAY
    assert found.tobytes() == np.concatenate([items, items[:2]]).tobytes()
    queue.save(tmp_path / "rays")
    loaded = atos.Queue.load(tmp_path / "rays", device=device)
    assert loaded.dtype == RAY
    assert loaded.peek().tobytes() == found.tobytes()


@pytest.mark.parametrize(
    ("item", "kind"),
    [
        (((1, 2), 0, (1, 2), 0.0), UnsupportedTypeError),  # a number is missing
        ((1, 0, (1, 2), 0.0), UnsupportedTypeError),
        (((1, 2, 3), (0,), (1, 2), 0.0), UnsupportedTypeError),
        (((1, 2, 3), 0, (1, 2.5), 0.0), InvalidArgumentError),
        (((1, 2, 3), 0, (1, 2**15), 0.0), InvalidArgumentError),
        (((1, 2, 3), 256, (1, 2), 0.0), InvalidArgumentError),
        (((1, 2, "a"), 0, (1, 2), 0.0), UnsupportedTypeError),
        (np.zeros(3, [("at", "f4", 2), ("depth", "u1"), ("to", "i2", 2), ("weight", "f8")]), UnsupportedTypeError),
        (np.zeros(3, [("at", "f4"), ("depth", "u1"), ("to", "i2", 2), ("weight", "f8")]), UnsupportedTypeError),
    ],
)
def test_items_that_do_not_fit(item, kind):
    with pytest.raises(kind):
        as_items(item, RAY)


@pytest.mark.parametrize(
    "fields", [[("a", "f4", (2, 2))], [("a", "f4", (0,))], [("a", "f2", 2)], [("a", "f4", 9)], [("a", "S2", 2)]]
)
def test_dtypes_that_items_cannot_have(fields):
    with pytest.raises(UnsupportedTypeError, match="records of numbers and vectors of at most 32 bytes"):
        atos.Queue(4, dtype=np.dtype(fields), device="cpu")


@pytest.mark.parametrize(
    ("pushed", "message"),
    [
        (lambda worker, ray: worker.push(((1, 2), 0, (1, 2), 0.0)), "a tuple of 3 numbers for a vector among the fields"),
        (lambda worker, ray: worker.push((1, 0, (1, 2), 0.0)), "a tuple of 3 numbers for a vector"),
        (lambda worker, ray: worker.push((ray.at, (0,), (1, 2), 0.0)), "a tuple of numbers"),
        (lambda worker, ray: worker.push((ray.at, 0, ((1,), 2), 0.0)), "a tuple of numbers"),
    ],
)
def test_pushes_that_do_not_fit(pushed, message):
    queue = atos.Queue(4, dtype=RAY, device="cpu")
    queue.push(((1, 2, 3), 0, (1, 2), 0.0))
    with pytest.raises(TaskCompileError, match=message):
        queue.launch_thread(atos.task(pushed))


def test_checks_see_what_a_vector_does_not_hold(device):
    queue = atos.Queue(4, dtype=RAY, device=device)
    queue.push(((1, 2, 3), 0, (1, 2), 0.0))
    with pytest.raises(TaskError, match="32768"):
        queue.launch_thread(atos.task(lambda worker, ray: worker.push((ray.at, 1, (ray.to[0] + 32767, 0), 0.0))), debug=True)


def workload(ray, out):
    return ray.depth, ray.at[2]


@atos.task(workload=workload)
def fill(worker, ray, i, z, out):
    out[i] = z + ray.to[i % 2]


def test_nested_tasks(device, worker):
    queue, out = atos.Queue(4, dtype=RAY, device=device), atos.zeros(5, dtype=np.float64, device=device)
    queue.push(((1, 2, 3.5), 5, (10, 20), 0.0))
    launch(queue, worker, fill, out)
    assert out.tolist() == [13.5, 23.5, 13.5, 23.5, 13.5]
