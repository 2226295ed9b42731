"""Indexing and assigning to arrays from the host: as NumPy does, or refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

import atos_py as atos
from atos_py.errors import AtosError, InvalidArgumentError

CPU = atos.device("cpu")
SHAPES = st_numpy.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)
indices = st.integers(-7, 7)
slices = st.builds(slice, *[st.none() | st.integers(-7, 7)] * 2) | st.builds(
    slice, *[st.none() | st.integers(-7, 7)] * 2, st.sampled_from([1, None, 2, -1])
)
keys = st.one_of(
    indices,
    slices,
    st.just(...),
    st.lists(indices | slices | st.just(slice(None)), max_size=5).map(tuple),
    st.just((0, ...)),
    st.just((..., 0)),
)


def is_plain(key: Any, shape: tuple[int, ...]) -> bool:
    """Whether a key is what is promised: indices, then at most one slice, then nothing but whole axes."""
    parts = [part for part in (key if isinstance(key, tuple) else (key,)) if part is not ...]
    if isinstance(key, tuple) and ... in [part for part in key[:-1] if not isinstance(part, slice)]:
        return False
    if len(parts) > len(shape):
        return False
    while parts and not isinstance(parts[0], slice):
        parts.pop(0)
    steps = [part.step in (None, 1) for part in parts if isinstance(part, slice)]
    return all(steps) and len(steps) == len(parts) and all(part == slice(None) for part in parts[1:])


@settings(max_examples=400, deadline=None)
@given(shape=SHAPES, key=keys)
def test_reading_is_as_in_numpy_or_refused(shape, key):
    values = np.arange(np.prod(shape, dtype=int), dtype=np.int32).reshape(shape)
    array = atos.asarray(values, device=CPU)
    try:
        expected = values[key]
    except IndexError:
        with pytest.raises(InvalidArgumentError):
            array[key]
        return
    try:
        found = array[key]
    except AtosError:
        assert not is_plain(key, shape), "a contiguous part was refused"
        return
    assert np.ndim(found) or isinstance(found, np.int32)  # a number, also where NumPy has an array without dimensions
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    assert np.array_equal(found, expected)
    assert not np.shares_memory(found, values)


@settings(max_examples=400, deadline=None)
@given(shape=SHAPES, key=keys, data=st.data())
def test_writing_is_as_in_numpy_or_refused(shape, key, data):
    values = np.arange(np.prod(shape, dtype=int), dtype=np.int32).reshape(shape)
    array = atos.asarray(values.copy(), device=CPU)
    try:
        part = values[key]
    except IndexError:
        with pytest.raises(InvalidArgumentError):
            array[key] = 1
        return
    kind = data.draw(st.sampled_from(["number", "whole", "broadcast", "another type", "array"]))
    new: Any = -1
    if kind != "number":
        new = -1 - np.arange(np.size(part), dtype=np.int64 if kind == "another type" else np.int32).reshape(np.shape(part))
    if kind == "broadcast" and np.ndim(new):
        new = new[..., -1:]
    if kind == "array":
        new = atos.asarray(new, device=CPU)
    try:
        array[key] = new
    except AtosError:
        assert not is_plain(key, shape), "a contiguous part was refused"
        assert np.array_equal(array.to_numpy(), values)
        return
    values[key] = np.asarray(new)
    assert np.array_equal(array.to_numpy(), values)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(shape=SHAPES, key=keys)
def test_reading_and_writing_on_each_device(device, shape, key):
    values = np.arange(np.prod(shape, dtype=int), dtype=np.int64).reshape(shape)
    array = atos.asarray(values, device=device, copy=True)
    try:
        found = array[key]
    except AtosError:
        return
    assert np.array_equal(found, values[key])
    array[key] = found * 2 + 1
    values[key] = found * 2 + 1
    assert np.array_equal(array.to_numpy(), values)


@pytest.mark.parametrize("key", [None, 1.5, "a", (0, None)], ids=repr)
def test_keys_that_are_none(key):
    with pytest.raises((AtosError, TypeError)):
        atos.zeros((2, 2), device=CPU)[key]


def test_booleans_are_no_indices():
    with pytest.raises((AtosError, TypeError)):
        atos.zeros(2, device=CPU)[True]


def test_index_arrays_are_refused():
    array = atos.zeros((3, 3), device=CPU)
    for key in ([0, 1], np.array([0, 1]), np.zeros((3, 3), bool), ([0], [1])):
        with pytest.raises((AtosError, TypeError, AttributeError, ValueError)):
            array[key]


def test_indices_of_numpy():
    array = atos.asarray(np.arange(12).reshape(3, 4), device=CPU)
    assert array[np.int64(1), np.uint8(2)] == 6
    assert array[np.int32(-1)].tolist() == [8, 9, 10, 11]
    assert array[np.int8(1) :].shape == (2, 4)


def test_messages_of_wrong_indices():
    array = atos.zeros((3, 4), device=CPU)
    with pytest.raises(InvalidArgumentError, match=r"index 3 is out of range for axis 0 of length 3"):
        array[3]
    with pytest.raises(InvalidArgumentError, match=r"index -5 is out of range for axis 1 of length 4"):
        array[0, -5]
    with pytest.raises(InvalidArgumentError, match=r"only contiguous parts can be indexed from the host .*to_numpy\(\) first"):
        array[:, 1]
    with pytest.raises(InvalidArgumentError, match=r"does not index an array of shape \(3, 4\)"):
        array[0, 0, 0]


def test_parts_of_the_wrong_shape(device):
    array = atos.zeros((3, 4), dtype=np.int32, device=device)
    with pytest.raises(ValueError, match="shape"):
        array[0] = np.zeros(3, np.int32)
    with pytest.raises(InvalidArgumentError, match=r"shape \(3,\).*to a part of shape \(4,\)"):
        array[0] = atos.zeros(3, dtype=np.int32, device=device)
    with pytest.raises(InvalidArgumentError, match="dtype int64"):
        array[0] = atos.zeros(4, dtype=np.int64, device=device)
    assert array.to_numpy().sum() == 0
