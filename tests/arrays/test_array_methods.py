"""Methods of arrays that NumPy's have too, and new arrays of ones and ranges, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import atos_py as atos
from atos_py.errors import InvalidArgumentError, UnsupportedTypeError

VALUES = np.array([[3, -1, 4], [1, 5, -9]])


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint32", "float32", "float64", "bool"])
def test_reductions_and_lists_are_numpys(device, dtype):
    if device.kind == "cuda":
        pytest.importorskip("cupy")
    values = np.abs(VALUES).astype(dtype)
    array = atos.asarray(values, device=device)
    assert array.tolist() == values.tolist()
    assert array.sum() == values.sum()
    assert (array.min(), array.max()) == (values.min(), values.max())


def test_another_type_is_a_copy(device):
    array = atos.asarray(VALUES, device=device, readonly=True)
    for dtype in (VALUES.dtype, np.float32):
        made = array.astype(dtype)
        assert (made.dtype, made.device, made.readonly) == (np.dtype(dtype), array.device, False)
        assert np.array_equal(made.to_numpy(), VALUES)
        made[0, 0] = 0
    assert array[0, 0] == 3
    with pytest.raises(InvalidArgumentError, match="values from -9 to 5 do not fit uint8"):
        array.astype(np.uint8)


@pytest.mark.parametrize("shape", [(6,), (-1,), (3, 2), (3, -1), (1, 2, 3, 1), (-1, 6)])
def test_another_shape_shares_the_memory(device, shape):
    array = atos.asarray(VALUES, device=device, copy=True)
    made = array.reshape(*shape)
    again = array.reshape(shape)
    assert made.shape == again.shape == VALUES.reshape(shape).shape
    assert np.array_equal(made.to_numpy(), VALUES.reshape(shape))
    array[1, 2] = 7
    del array
    assert made.to_numpy().ravel()[-1] == again.to_numpy().ravel()[-1] == 7


def test_shapes_that_do_not_fit(device):
    array = atos.asarray(VALUES, device=device)
    for shape in [(5,), (4, -1), (-1, -1), (-2, -3), ()]:
        with pytest.raises(InvalidArgumentError, match=r"an array of 6 elements has no shape"):
            array.reshape(*shape)
    with pytest.raises(UnsupportedTypeError, match="made of integers"):
        array.reshape(2.0, 3)
    empty = atos.zeros((0, 3), device=device)
    assert empty.reshape(3, 0).shape == (3, 0)
    with pytest.raises(InvalidArgumentError, match="has no shape"):
        empty.reshape(0, -1)


def test_ones_and_ranges(device):
    assert atos.ones((2, 3), device=device).to_numpy().tolist() == np.ones((2, 3)).tolist()
    assert atos.ones(2, dtype=bool, device=device).dtype == bool
    for limits in [(5,), (2, 7), (7, 2, -2), (0, 1, 0.25), (0,)]:
        made, expected = atos.arange(*limits, device=device).to_numpy(), np.arange(*limits)
        assert (made.dtype, made.tolist()) == (expected.dtype, expected.tolist())
    assert atos.arange(3, dtype=np.uint8, device=device).dtype == np.uint8
    for wrong in [(), (1, 2, 3, 4), (0, 5, 0), ("a",)]:
        with pytest.raises(InvalidArgumentError, match="arange"):
            atos.arange(*wrong, device=device)


def test_the_interface_of_numpy_is_for_arrays_on_the_cpu(device):
    array = atos.asarray(VALUES, device=device)
    assert hasattr(array, "__array_interface__") == (device.kind == "cpu")
    assert hasattr(array, "__cuda_array_interface__") == (device.kind == "cuda")
    if device.kind == "cpu":

        class Foreign:
            __array_interface__ = array.__array_interface__
            kept = array

        view = np.asarray(Foreign())
        view[0, 0] = 8
        assert array[0, 0] == 8
        frozen = atos.asarray(VALUES, device=device, readonly=True)
        assert not np.asarray(frozen).flags.writeable
