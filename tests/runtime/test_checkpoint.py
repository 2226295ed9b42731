"""Checkpoints: what is saved comes back, and nothing damaged is believed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from item_types import all_dtypes, random_items

import atos_py as atos
from atos_py.errors import (
    CheckpointError,
    FileWriteError,
    InvalidArgumentError,
    MissingFileError,
    QueueFullError,
    UnsupportedTypeError,
)
from atos_py.runtime import checkpoint
from atos_py.runtime.checkpoint import _MAGIC


@all_dtypes
def test_items_come_back_in_order(device, path, dtype):
    queue = atos.Queue(100, dtype=dtype, device=device)
    items = random_items(dtype, 73)
    queue.push(items)
    queue.save(path)
    loaded = atos.Queue.load(path, device=device)
    assert (loaded.capacity, loaded.dtype, loaded.device) == (100, dtype, device)
    assert loaded.peek().tolist() == queue.peek().tolist() == items.tolist()
    assert [file.name for file in path.parent.iterdir()] == ["run.atos"]


def test_an_empty_queue_comes_back(device, path):
    atos.Queue(1, device=device).save(path)
    assert len(atos.Queue.load(path, device=device)) == 0


ARRAYS = {
    "bytes": np.arange(-100, 100, dtype=np.int8),
    "flags": np.arange(60).reshape(3, 4, 5) % 3 == 0,
    "floats": np.array([np.nan, np.inf, -0.0, 1e-310]),
    "number": np.array(2**63, np.uint64),
    "empty": np.empty((0, 3), np.float32),
}


def test_arrays_come_back(device, path, monkeypatch):
    monkeypatch.setattr("atos_py.runtime.checkpoint._PIECE_BYTES", 16)  # so that they go in several pieces
    queue = atos.Queue(10, device=device)
    queue.save(path, **{name: atos.asarray(values, device=device, copy=True) for name, values in ARRAYS.items()})
    filled = {name: atos.zeros(values.shape, dtype=values.dtype, device=device) for name, values in ARRAYS.items()}
    atos.Queue.load(path, device=device, **filled)
    for name, values in ARRAYS.items():
        assert filled[name].to_numpy().tobytes() == values.tobytes()


def test_arrays_of_numpy_are_saved_and_filled_in_place(path):
    queue = atos.Queue(10, device="cpu")
    queue.save(path, **ARRAYS)
    filled = {name: np.zeros_like(values) for name, values in ARRAYS.items()}
    atos.Queue.load(path, device="cpu", **filled)
    for name, values in ARRAYS.items():
        assert filled[name].tobytes() == values.tobytes()


@atos.task
def spread(worker, v, ran, last):
    if worker.rank == 0:
        atos.atomic_add(ran, v, 1)
        for child in (2 * v, 2 * v + 1):
            if child < last:
                worker.push(child)


@pytest.mark.parametrize("barrier", [False, True])
def test_a_launch_that_ran_full_goes_on_from_the_file(device, path, barrier):
    """With a queue that holds more than its capacity, and within a level."""
    last = 3000 if str(device) == "cpu" else 1 << 20  # workers of a GPU keep thousands of items to themselves
    ran = atos.zeros(last, dtype=np.int32, device=device)
    queue = atos.Queue(40, max_capacity=40, device=device)
    queue.push(1)
    with pytest.raises(QueueFullError) as full:
        queue.launch_warp(spread, ran, last, barrier=barrier)
    assert len(queue) == full.value.pending > 40
    queue.save(path, ran=ran)
    saved = queue._take_snapshot()
    pushed = queue.tasks_pushed
    ran[:] = 99
    loaded = atos.Queue.load(path, device=device, ran=ran)
    assert loaded.peek().tolist() == saved.items.tolist()
    assert loaded._core.state() == saved.state
    assert loaded.tasks_run == ran.to_numpy().sum() == 1 + pushed - len(loaded)
    loaded.launch_warp(spread, ran, last, barrier=barrier)
    assert ran.to_numpy().tolist() == [0] + [1] * (last - 1)
    assert (loaded.tasks_run, loaded.tasks_pushed) == (last - 1, last - 2)


def test_a_level_goes_on_where_it_was(path):
    """A queue that was stopped within a level knows after loading how many of its items are left of it."""
    queue = atos.Queue(4, device="cpu")
    options, state = checkpoint.QueueOptions(4, queue.dtype), checkpoint.QueueState(4, 3, 10, 13)
    items = np.array([5, 6, 7, 8], np.uint32)
    queue._core.restore(checkpoint.QueueSnapshot(options, items, None, None, np.zeros(4, np.uint8), state))
    queue.save(path)
    loaded = atos.Queue.load(path, device="cpu")
    assert loaded._core.state() == (4, 3, 10, 13)
    assert loaded.launch_warp(spread, np.zeros(9, np.int32), 0, barrier=True).rounds == 2  # 5, 6, 7, and then 8
    assert loaded.tasks_run == 14


@pytest.mark.gpu
@pytest.mark.parametrize(("saved", "loaded"), [("cpu", "cuda"), ("cuda", "cpu")])
def test_from_one_device_to_another(path, saved, loaded):
    queue = atos.Queue(10, device=saved)
    queue.push([3, 4])
    queue.save(path, values=atos.asarray(np.arange(5), device=saved))
    values = atos.zeros(5, dtype=np.int64, device=loaded)
    assert atos.Queue.load(path, device=loaded, values=values).peek().tolist() == [3, 4]
    assert values.to_numpy().tolist() == [0, 1, 2, 3, 4]


def test_items_and_arrays_are_of_one_moment(path, monkeypatch):
    """A launch in another thread while the arrays are written makes save begin again."""
    queue = atos.Queue(10, device="cpu")
    ran = atos.zeros(100, dtype=np.int32, device="cpu")
    queue.push(50)
    pieces = checkpoint._split
    launches = []

    def disturbed(array):
        if not launches:
            thread = threading.Thread(target=queue.launch_warp, args=(spread, ran, 0))
            thread.start()
            thread.join()
            launches.append(thread)
        return pieces(array)

    monkeypatch.setattr(checkpoint, "_split", disturbed)
    queue.save(path, ran=ran)
    monkeypatch.undo()
    ran[:] = 0
    loaded = atos.Queue.load(path, device="cpu", ran=ran)
    assert (len(loaded), loaded.tasks_run, ran.to_numpy().sum()) == (0, 1, 1)


# What is damaged


def saved(path: Path) -> bytes:
    queue = atos.Queue(10, dtype=np.int64, device="cpu")
    queue.push([1, -2, 3])
    queue.save(path, values=np.arange(7, dtype=np.float32))
    return path.read_bytes()


def refused(path: Path) -> CheckpointError:
    """Load a damaged file, which leaves the array as it was."""
    values = np.full(7, 42, np.float32)
    with pytest.raises(CheckpointError) as caught:
        atos.Queue.load(path, device="cpu", values=values)
    assert (values == 42).all()
    assert caught.value.path == str(path)
    assert str(caught.value) == f"{path}: {caught.value.reason}"
    return caught.value


def test_every_truncation_is_noticed(path):
    content = saved(path)
    for length in range(len(content)):
        path.write_bytes(content[:length])
        refused(path)


def test_every_changed_byte_is_noticed(path):
    content = saved(path)
    for at in range(len(content)):
        path.write_bytes(content[:at] + bytes([content[at] ^ 0x10]) + content[at + 1 :])
        refused(path)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda content: b"", "not a checkpoint"),
        (lambda content: b"PK\x03\x04" + content, "not a checkpoint"),
        (lambda content: content[:20], "truncated: 20 bytes"),
        (lambda content: content[:100], "checksum is wrong"),
        (lambda content: content + b"\0", "checksum is wrong"),
        (lambda content: content.replace(b"\r\n", b"\n"), "not a checkpoint"),
        (lambda content: content[:8] + b"\3\0\0\0" + content[12:], "version 3, and this package reads versions 1 and 2"),
    ],
)
def test_reasons(path, change, reason):
    content = saved(path)
    path.write_bytes(change(content))
    assert reason in refused(path).reason


def forged(header: bytes, body: bytes, version: int = 1) -> bytes:
    """Return a file of which the checksum is right, whatever it says."""
    content = _MAGIC + version.to_bytes(4, "little") + len(header).to_bytes(4, "little") + header + body
    return content + hashlib.sha256(content).digest()


GOOD = {
    "capacity": 10,
    "dtype": "<i8",
    "pending": 3,
    "level": 0,
    "tasks_run": 0,
    "tasks_pushed": 0,
    "arrays": [{"name": "values", "dtype": "<f4", "shape": [7]}],
}
BODY = bytes(3 * 8 + 7 * 4)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"pending": 2**60}, r"speaks of 9223372036854775836 bytes"),
        ({"pending": 2**70}, "is no count"),
        ({"pending": -1}, "-1 is no count"),
        ({"pending": 3.0}, "3.0 is no count"),
        ({"pending": True}, "True is no count"),
        ({"level": 4}, "a level of 4 of 3 items"),
        ({"capacity": 0}, "capacity must be from 1"),
        ({"dtype": "O"}, "items are integers"),
        ({"dtype": "<f8"}, "items are integers"),
        ({"dtype": "<u4", "pending": 7}, "speaks of"),
        ({"dtype": "no"}, "makes no sense"),
        ({"dtype": 3}, "makes no sense"),
        ({"dtype": None}, "makes no sense"),
        ({"dtype": {"names": ["a"], "formats": ["O"], "offsets": [0], "itemsize": 8}}, "makes no sense|items are"),
        ({"dtype": {"names": ["a"], "formats": ["<i8"], "offsets": [2**40], "itemsize": 8}}, "makes no sense"),
        ({"dtype": "(1,"}, "is no dtype of a number"),
        ({"dtype": ","}, "is no dtype of a number"),
        ({"dtype": "\ud800"}, "is no dtype of a number"),
        ({"dtype": {"names": ["a"], "formats": ["(1,"], "offsets": [0], "itemsize": 8}}, "is no dtype of a number"),
        ({"dtype": {"names": ["a"], "formats": ["<i8"], "offsets": [2**70], "itemsize": 8}}, "makes no sense"),
        ({"dtype": {"names": ["a"], "formats": ["<i8"], "offsets": [0], "itemsize": 2**70}}, "makes no sense"),
        ({"arrays": [{"name": "values", "dtype": "{", "shape": [7]}]}, "is no dtype of a number"),
        ({"arrays": [{"name": "values", "dtype": "f4,(", "shape": [7]}]}, "is no dtype of a number"),
        ({"arrays": [{"name": "values", "dtype": "<f4", "shape": [2**62, 2**62]}]}, "speaks of"),
        ({"arrays": [{"name": "values", "dtype": "<f4", "shape": [2**62] * 300}]}, "300 dimensions"),
        ({"arrays": [{"name": "values", "dtype": "<f4", "shape": [-7]}]}, "-7 is no count"),
        ({"arrays": [{"name": "values"}]}, "makes no sense"),
        ({"arrays": 5}, "makes no sense"),
        ({"arrays": []}, "speaks of"),
    ],
    ids=str,
)
def test_a_header_that_lies_is_refused(path, change, reason):
    path.write_bytes(forged(json.dumps(GOOD).encode(), BODY))
    atos.Queue.load(path, device="cpu", values=np.zeros(7, np.float32))
    path.write_bytes(forged(json.dumps(GOOD | change).encode(), BODY))
    assert re.search(reason, refused(path).reason)


def file_with_a_join(path: Path, words: list[int], kind: int) -> bytes:
    """Return a checkpoint of tasks a and b, with an array of 7 numbers and a join of these words, whose item is of a kind."""
    joins = atos.Joins(4, device="cpu")
    joins.open(3)
    atos.Queue(10, device="cpu").save(path, values=np.arange(7, dtype=np.float32), joins=joins)
    start = 16 + int.from_bytes(path.read_bytes()[12:16], "little")
    header = json.loads(path.read_bytes()[16:start]) | {"buckets": None, "delta": "auto", "kinds": ["a", "b"]}
    body = bytearray(path.read_bytes()[start:-32])
    assert [each["name"] for each in header["arrays"]] == ["values", "joins.words", "joins.value", "joins.item", "joins.sum"]
    body[28:60] = np.array(words, "<i8").tobytes()
    body[68 + 7] = kind  # the last byte of a stored item of 5 bytes
    return forged(json.dumps(header).encode(), bytes(body), version=2)


OPEN, PUSHING, ITSELF = 1 | 1 << 5, 3 | 1 << 5, 1 << 34 | 1
WRONG_JOINS = [
    *(([3, 0, parent, OPEN], 0, "a join that is not there") for parent in (2, 2**32, 2**31, -(2**31), 2**63 - 1, -1)),
    *(([3, 0, 0, PUSHING], kind, "a kind that is not there") for kind in (2, 255)),
]


@pytest.mark.parametrize(("words", "kind", "reason"), WRONG_JOINS)
def test_a_join_that_would_write_beside_its_arrays_is_refused(path, words, kind, reason):
    """At a parent that is not there, or in the counter of a kind that is not there."""
    path.write_bytes(file_with_a_join(path, words, kind))
    joins, values = atos.Joins(4, device="cpu"), np.full(7, 42, np.float32)
    with pytest.raises(CheckpointError, match=f"'joins'.* {reason}"):
        atos.Queue.load(path, device="cpu", values=values, joins=joins)
    assert (joins.pending, set(values.tolist())) == (0, {42})


@pytest.mark.parametrize(("words", "kind"), [([3, 0, ITSELF, OPEN], 9), ([3, 0, 0, OPEN], 9), ([3, 0, 9, PUSHING], 1)])
def test_a_join_that_keeps_to_its_arrays_is_loaded(path, words, kind):
    """One without an item may have any kind in that place, and one with an item a priority in place of a parent."""
    path.write_bytes(file_with_a_join(path, words, kind))
    joins, values = atos.Joins(4, device="cpu"), np.zeros(7, np.float32)
    atos.Queue.load(path, device="cpu", values=values, joins=joins)
    assert (joins.pending, joins.waiting().missing.tolist(), values.tolist()) == (1, [3], list(range(7)))


def test_joins_beside_the_largest_items(path):
    """Which leave no room for a kind."""
    joins, other = atos.Joins(4, device="cpu"), atos.Joins(4, device="cpu")
    joins.open(2, n=3)
    atos.Queue(10, dtype=np.dtype([(name, "i8") for name in "abcd"]), device="cpu").save(path, joins=joins)
    assert atos.Queue.load(path, device="cpu", joins=other).dtype.itemsize == 32
    assert other.waiting().missing.tolist() == [2, 2, 2]


def test_a_capacity_that_no_memory_holds(path):
    path.write_bytes(forged(json.dumps(GOOD | {"capacity": 2**61}).encode(), BODY))
    with pytest.raises(atos.DeviceMemoryError, match="larger than any memory"):
        atos.Queue.load(path, device="cpu", values=np.zeros(7, np.float32))


def test_a_header_longer_than_the_file(path):
    content = _MAGIC + (1).to_bytes(4, "little") + (2**32 - 1).to_bytes(4, "little")
    path.write_bytes(content + hashlib.sha256(content).digest())
    assert "header cannot have 4294967295 bytes" in refused(path).reason


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([2**31, 2**63, 2**70])
    | st.floats()
    | st.text(max_size=5)
    | st.text("(),:{}[]<>|=0123456789abdefiOUSVM", max_size=8)
    | st.sampled_from(["<i8", "<f4", "O", "values"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "dtype", "shape", "names"]), inner),
    max_leaves=8,
)
numbers = st.sampled_from([0, 4, 8, 16, 2**31, 2**63, 2**70]) | st.integers()
records = st.fixed_dictionaries(
    {
        "names": st.lists(st.text("ab_", max_size=2), max_size=3) | json_values,
        "formats": st.lists(st.text("(),<i48f", max_size=4), max_size=3) | json_values,
        "offsets": st.lists(numbers, max_size=3) | json_values,
        "itemsize": numbers | json_values,
    }
)


@given(
    header=st.one_of(
        st.binary(max_size=60),
        json_values.map(lambda value: json.dumps(value).encode()),
        st.dictionaries(st.sampled_from(sorted(GOOD)), json_values).map(lambda change: json.dumps(GOOD | change).encode()),
        records.map(lambda record: json.dumps(GOOD | {"dtype": record}).encode()),
        json_values.map(lambda dtype: json.dumps(GOOD | {"arrays": [GOOD["arrays"][0] | {"dtype": dtype}]}).encode()),
    ),
    body=st.sampled_from([BODY, b"", BODY[:24], BODY[:28]]),
)
@settings(deadline=None, max_examples=200)
def test_anything_is_loaded_or_refused(tmp_path_factory, header, body):
    path = tmp_path_factory.mktemp("forged") / "run.atos"
    path.write_bytes(forged(header, body))
    with contextlib.suppress(atos.AtosError):
        atos.Queue.load(path, device="cpu", values=np.zeros(7, np.float32))


# What is asked for


@pytest.mark.parametrize(
    ("arrays", "error", "message"),
    [
        ({}, InvalidArgumentError, r"holds these arrays: values; pass one to be filled for each \(got none\)"),
        ({"value": np.zeros(7, np.float32)}, InvalidArgumentError, r"\(got value\)"),
        ({"values": np.zeros(7)}, InvalidArgumentError, r"has shape \(7,\) and dtype float32, but the one .* dtype float64"),
        ({"values": np.zeros(8, np.float32)}, InvalidArgumentError, r"shape \(8,\)"),
        ({"values": np.zeros((7, 1), np.float32)}, InvalidArgumentError, r"shape \(7, 1\)"),
        ({"values": np.zeros(14, np.float32)[::2]}, InvalidArgumentError, "not C-contiguous"),
        ({"values": [0.0] * 7}, UnsupportedTypeError, "'values' must be an array made by atos.asarray, NumPy"),
        ({"values": np.zeros(7, "O")}, UnsupportedTypeError, "object"),
        ({"values": np.frombuffer(bytes(28), np.float32)}, InvalidArgumentError, "'values' is read-only"),
        ({"values": atos.asarray(np.zeros(7, np.float32), device="cpu", readonly=True)}, InvalidArgumentError, "read-only"),
    ],
    ids=str,
)
def test_arrays_that_were_not_saved(path, arrays, error, message):
    saved(path)
    with pytest.raises(error, match=message):
        atos.Queue.load(path, device="cpu", **arrays)


def test_what_cannot_be_saved(path):
    queue = atos.Queue(10, device="cpu")
    before = saved(path)
    with pytest.raises(UnsupportedTypeError, match="'values' must be an array"):
        queue.save(path, values={1: 2})
    for values in (np.zeros(3), atos.zeros(3, device="cpu")):
        with pytest.raises(InvalidArgumentError, match=r"cannot be called 'device'"):
            queue.save(path, device=values)
    assert path.read_bytes() == before


def test_paths(tmp_path):
    queue = atos.Queue(10, device="cpu")
    with pytest.raises(FileWriteError, match=r"cannot write checkpoint .*No such file"):
        queue.save(tmp_path / "nowhere" / "run.atos")
    with pytest.raises(FileWriteError, match="directory"):
        queue.save(tmp_path)
    with pytest.raises(MissingFileError, match=r"cannot read checkpoint .*No such file"):
        atos.Queue.load(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(MissingFileError, match=r"regular file|Is a directory"):
            atos.Queue.load(path)
    with pytest.raises(MissingFileError, match="null byte"):
        atos.Queue.load("a\0b")
