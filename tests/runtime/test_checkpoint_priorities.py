"""Checkpoints of queues with buckets: priorities come back too, and a damaged file of them is refused."""

from __future__ import annotations

import contextlib
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from item_types import DTYPES, random_items
from test_checkpoint import BODY, GOOD, forged, json_values, refused

import atos_py as atos
from atos_py.errors import LaunchTimeoutError, QueueFullError

PRIORITIES = np.array([3, -1.5, np.inf, 0, -np.inf, 1e30, 2, 2])


@pytest.mark.parametrize("name", ["uint32", "int64", "12 bytes, unaligned"])
@pytest.mark.parametrize("delta", ["auto", 2.5])
def test_priorities_come_back(device, path, name, delta):
    queue = atos.Queue(100, dtype=DTYPES[name], device=device, buckets=8, delta=delta)
    items = random_items(DTYPES[name], len(PRIORITIES))
    queue.push(items, PRIORITIES)
    queue.save(path)
    loaded = atos.Queue.load(path, device=device)
    assert (loaded.capacity, loaded.buckets, loaded.delta, loaded.dtype) == (100, 8, delta, DTYPES[name])
    assert loaded.peek().tolist() == queue.peek().tolist() == items[np.argsort(PRIORITIES, kind="stable")].tolist()
    assert loaded._take_snapshot().priorities == pytest.approx(np.sort(PRIORITIES))
    loaded.save(path)
    assert atos.Queue.load(path, device=device).peek().tolist() == queue.peek().tolist()


def test_an_empty_queue_comes_back(device, path):
    atos.Queue(5, device=device, buckets=4).save(path)
    loaded = atos.Queue.load(path, device=device)
    assert (len(loaded), loaded.buckets, loaded.delta) == (0, 4, "auto")


def test_a_queue_without_buckets_is_written_as_before(path):
    atos.Queue(5, device="cpu").save(path)
    content = path.read_bytes()
    assert content[8:12] == b"\1\0\0\0"
    assert b"buckets" not in content
    assert atos.Queue.load(path, device="cpu").buckets is None


@atos.task
def spread(worker, v, ran, last, pause):
    if worker.rank == 0:
        for _ in range(pause):
            atos.atomic_add(ran, 0, 1)
        atos.atomic_add(ran, v, 1)
        for child in (2 * v, 2 * v + 1):
            if child < last:
                worker.push(child, child % 7)


@pytest.mark.parametrize("barrier", [False, True])
def test_a_stopped_launch_goes_on_from_the_file(device, path, barrier):
    last = 1 << 13
    ran = atos.zeros(last, dtype=np.int32, device=device)
    queue = atos.Queue(last, device=device, buckets=4, delta=2)
    queue.push(1)
    queue.save(path, ran=ran)
    seconds, stops = 0.002, 0
    while len(queue):
        with contextlib.suppress(LaunchTimeoutError):
            queue.launch_thread(spread, ran, last, 3000, timeout=seconds, num_blocks=1, num_threads=32, barrier=barrier)
        stops += len(queue) > 0
        seconds *= 2
        queue.save(path, ran=ran)
        before = queue._take_snapshot()
        ran[:] = 99
        queue = atos.Queue.load(path, device=device, ran=ran)
        after = queue._take_snapshot()
        assert (after.items.tolist(), after.state) == (before.items.tolist(), before.state)
        assert after.priorities == pytest.approx(before.priorities)
    assert stops > 0
    assert (ran.to_numpy()[1:] == 1).all()
    assert (queue.tasks_run, queue.tasks_pushed) == (last - 1, last - 2)


def test_a_queue_that_holds_more_than_its_capacity(device, path):
    last = 1 << 14
    ran = atos.zeros(last, dtype=np.int32, device=device)
    queue = atos.Queue(16, max_capacity=16, device=device, buckets=4, delta=2)
    queue.push(1)
    with pytest.raises(QueueFullError):
        queue.launch_thread(spread, ran, last, 0, barrier=True)
    assert len(queue) > 16
    queue.save(path, ran=ran)
    loaded = atos.Queue.load(path, device=device, ran=ran)
    assert loaded.peek().tolist() == queue.peek().tolist()
    loaded.launch_thread(spread, ran, last, 0)
    assert (ran.to_numpy()[1:] == 1).all()


# What is damaged

GOOD_2 = GOOD | {"buckets": 4, "delta": 2.5, "kinds": None}
BODY_2 = bytes(3 * 8) + np.array([0.0, 1.0, np.nan]).tobytes() + bytes(7 * 4)


def test_every_truncation_and_changed_byte_is_noticed(path):
    queue = atos.Queue(10, dtype=np.int64, device="cpu", buckets=4)
    queue.push([1, -2, 3], [3, 2, 1])
    queue.save(path, values=np.arange(7, dtype=np.float32))
    content = path.read_bytes()
    for at in range(len(content)):
        path.write_bytes(content[:at])
        refused(path)
        path.write_bytes(content[:at] + bytes([content[at] ^ 0x10]) + content[at + 1 :])
        refused(path)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"buckets": 3}, "power of two"),
        ({"buckets": 0}, "buckets must be from 2"),
        ({"buckets": 2**40}, "buckets must be from 2"),
        ({"buckets": -1}, "-1 is no count"),
        ({"buckets": None}, "bytes of items and arrays"),
        ({"buckets": 4.0}, "4.0 is no count"),
        ({"delta": 0}, "delta must be"),
        ({"delta": -1}, "delta must be"),
        ({"delta": float("nan")}, "delta must be"),
        ({"delta": "wide"}, "delta must be"),
        ({"delta": None}, "delta must be"),
        ({"delta": [1]}, "delta must be"),
        ({"pending": 4}, "speaks of"),
        ({"dtype": "<i4"}, "speaks of"),
    ],
    ids=str,
)
def test_a_header_that_lies_is_refused(path, change, reason):
    path.write_bytes(forged(json.dumps(GOOD_2).encode(), BODY_2, version=2))
    assert len(atos.Queue.load(path, device="cpu", values=np.zeros(7, np.float32))) == 3
    path.write_bytes(forged(json.dumps(GOOD_2 | change).encode(), BODY_2, version=2))
    assert reason in refused(path).reason


@pytest.mark.parametrize("missing", ["buckets", "delta"])
def test_a_header_without_one_of_them_is_refused(path, missing):
    header = {name: value for name, value in GOOD_2.items() if name != missing}
    path.write_bytes(forged(json.dumps(header).encode(), BODY_2, version=2))
    assert "makes no sense" in refused(path).reason


def test_priorities_that_are_missing_are_noticed(path):
    path.write_bytes(forged(json.dumps(GOOD_2).encode(), BODY, version=2))
    assert "speaks of" in refused(path).reason


@given(
    change=st.dictionaries(st.sampled_from(["buckets", "delta", "pending", "level", "dtype"]), json_values),
    body=st.sampled_from([BODY_2, BODY, b""]) | st.binary(min_size=len(BODY_2), max_size=len(BODY_2)),
)
@settings(deadline=None, max_examples=100)
def test_anything_is_loaded_or_refused(tmp_path_factory, change, body):
    path = tmp_path_factory.mktemp("forged") / "run.atos"
    path.write_bytes(forged(json.dumps(GOOD_2 | change).encode(), body, version=2))
    with contextlib.suppress(atos.AtosError):
        atos.Queue.load(path, device="cpu", values=np.zeros(7, np.float32))
