"""Values and ids packed into words: the order of the words is that of the values, and then of the ids, on all devices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shared_tasks import launch

import atos_py as atos
from atos_py.errors import InvalidArgumentError, UnsupportedTypeError

DTYPES = ["uint32", "int32", "float32"]
IDS = st.integers(0, 2**32 - 1)
VALUES = {
    "uint32": st.integers(0, 2**32 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "float32": st.floats(width=32) | st.sampled_from([0.0, -0.0, math.inf, -math.inf, 1e-45, -1e-45]),
}


def rank(value: Any) -> tuple[bool, Any]:
    """Return what sorts as documented: NaN after everything, -0.0 with 0.0."""
    is_nan = bool(np.isnan(value))
    return is_nan, 0 if is_nan else value


@pytest.mark.parametrize("dtype", DTYPES)
@given(data=st.data())
def test_words_are_in_the_order_of_values_and_ids(dtype, data):
    (x, i), (y, j) = (data.draw(st.tuples(VALUES[dtype], IDS)) for _ in range(2))
    first, second = atos.pack(x, i, dtype), atos.pack(y, j, dtype)
    assert first.dtype == np.uint64
    assert (first < second) == ((rank(x), i) < (rank(y), j))
    value, number = atos.unpack(first, dtype)
    assert (value.dtype, number.dtype, int(number)) == (np.dtype(dtype), np.uint32, i)
    assert np.array_equal(value, np.dtype(dtype).type(x), equal_nan=dtype == "float32")
    assert not (value == 0 and np.signbit(float(value)))


@pytest.mark.parametrize("dtype", DTYPES)
@given(data=st.data())
def test_arrays_are_packed_like_their_elements(dtype, data):
    pairs = data.draw(st.lists(st.tuples(VALUES[dtype], IDS), max_size=20))
    values, ids = np.array([x for x, _ in pairs], dtype), np.array([i for _, i in pairs], np.uint32)
    words = atos.pack(values, ids)  # whose dtype says all
    assert words.tolist() == [int(atos.pack(x, i, dtype)) for x, i in pairs]
    unpacked, numbers = atos.unpack(words, dtype)
    assert np.array_equal(unpacked, values, equal_nan=dtype == "float32")
    assert np.array_equal(numbers, ids)


def test_the_lowest_value_of_every_type_unpacks():
    """A word that no pack has made is a value and an id too, such as the start of a minimum."""
    assert atos.unpack(np.uint64(2**64 - 1), np.uint32) == (2**32 - 1, 2**32 - 1)
    assert atos.unpack(2**64 - 1, np.int32) == (2**31 - 1, 2**32 - 1)
    assert math.isnan(atos.unpack(2**64 - 1, np.float32)[0])
    assert atos.unpack(0, np.int32) == (-(2**31), 0)


@atos.task
def extremes(worker, v, values, ids, words, least, most, out, numbers):
    dtype = values.dtype
    if worker.rank == 0:
        word = atos.pack(values[v], ids[v], dtype)
        words[v] = word
        atos.atomic_min(least, 0, word)
        atos.atomic_max(most, 0, word)
        value, number = atos.unpack(word, dtype)
        out[v] = value
        numbers[v] = number


@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_tasks_pack_what_the_host_packs(device, worker, dtype, data):
    pairs = data.draw(st.lists(st.tuples(VALUES[dtype], IDS), min_size=1, max_size=30))
    values, ids = np.array([x for x, _ in pairs], dtype), np.array([i for _, i in pairs], np.uint32)
    words = atos.zeros(len(pairs), dtype=np.uint64, device=device)
    least, most = (atos.full(1, value, dtype=np.uint64, device=device) for value in (2**64 - 1, 0))
    out, numbers = (atos.zeros(len(pairs), dtype=kind, device=device) for kind in (dtype, np.uint32))
    given = [atos.asarray(part, device=device) for part in (values, ids)]
    queue = atos.Queue(len(pairs), device=device)
    queue.push(np.arange(len(pairs)))
    launch(queue, worker, extremes, *given, words, least, most, out, numbers)
    expected = atos.pack(values, ids)
    assert np.array_equal(words.to_numpy(), expected)
    assert (least[0], most[0]) == (expected.min(), expected.max())
    assert np.array_equal(out.to_numpy(), values, equal_nan=dtype == "float32")
    assert np.array_equal(numbers.to_numpy(), ids)


@atos.task
def pack_by_type(worker, v, given, words):
    words[0] = atos.pack(given[v], v)
    words[1] = atos.pack(np.uint32(v), v)
    words[2] = atos.pack(0.5 * v, v)
    words[3] = atos.pack(v, v, np.float32)
    value, number = atos.unpack(words[0], np.int32)
    words[4] = value - number + 5  # signed, as numbers of a task are


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32"])
def test_the_type_of_the_value_says_what_it_is_packed_as(device, dtype):
    given, words = (atos.zeros(5, dtype=kind, device=device) for kind in (dtype, np.uint64))
    given[3] = -4
    queue = atos.Queue(1, device=device)
    queue.push(3)
    queue.launch_thread(pack_by_type, given, words)
    expected = [(np.int32(-4), 3), (np.uint32(3), 3), (np.float32(1.5), 3), (3, 3, np.float32)]
    assert words.to_numpy().tolist() == [*(int(atos.pack(*arguments)) for arguments in expected), 2**64 - 2]


def test_what_is_refused():
    with pytest.raises(UnsupportedTypeError, match=r"int64 as uint32 or as int32, .* as in pack\(value, id, np.int32\)"):
        atos.pack(5, 0)
    with pytest.raises(UnsupportedTypeError, match="takes a dtype of uint32, int32 or float32, not float64"):
        atos.pack(5, 0, np.float64)
    with pytest.raises(UnsupportedTypeError, match="would cut off a float64 to int32"):
        atos.pack(0.5, 0, np.int32)
    with pytest.raises(UnsupportedTypeError, match="an id of integers, not float64"):
        atos.pack(0.5, 1.0)
    with pytest.raises(UnsupportedTypeError, match="a value of numbers, not bool"):
        atos.pack(True, 1)
    with pytest.raises(InvalidArgumentError, match="do not fit uint32"):
        atos.pack(-1, 0, np.uint32)
    with pytest.raises(InvalidArgumentError, match="do not fit uint32"):
        atos.pack(0.5, 2**32)
    with pytest.raises(InvalidArgumentError, match="do not fit float32"):
        atos.pack(1e300, 0)
    with pytest.raises(InvalidArgumentError, match="pack is given arrays whose shapes do not go together"):
        atos.pack(np.zeros(3), np.arange(2))
    with pytest.raises(UnsupportedTypeError, match="a word of uint64, not float64"):
        atos.unpack(0.5, np.int32)
    with pytest.raises(UnsupportedTypeError, match="takes a dtype of uint32, int32 or float32, not int64"):
        atos.unpack(5, np.int64)
