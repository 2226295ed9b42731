"""Operations on whole arrays: what NumPy says, on every device and for every dtype; fill and copy."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import atos_py as atos
from atos_py.errors import InvalidArgumentError, MissingPackageError, UnsupportedTypeError

DTYPES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"]


@pytest.fixture
def library(device):
    """Skip where a GPU's operations have no library."""
    if device.kind == "cuda":
        pytest.importorskip("cupy")


def values_of(dtype: str, n: int = 1000) -> np.ndarray:
    """Return many equal values, zeros, both ends of an integer's range, and a float's NaN, infinities and negative zero."""
    random = np.random.default_rng(7)
    kind = np.dtype(dtype)
    values = random.integers(0, 2 if kind.kind == "b" else 50, n).astype(kind)
    if kind.kind in "iu":
        values[:2] = np.iinfo(kind).min, np.iinfo(kind).max
    if kind.kind == "f":
        values[3:6] = np.nan, -np.inf, -0.0
        values[500] = np.nan
    return values


def same(found: atos.Array, expected: np.ndarray, device: atos.Device) -> None:
    assert isinstance(found, atos.Array)
    assert (found.device, found.dtype, found.readonly) == (device, expected.dtype, False)
    np.testing.assert_array_equal(found.to_numpy(), expected)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [0, 1, 1000])
def test_results_are_those_of_numpy(device, dtype, size):
    values = values_of(dtype)[1000 - size :]
    array = atos.asarray(values, device=device)
    same(atos.nonzero(array), np.flatnonzero(values), device)
    same(atos.nonzero(array, dtype=np.uint32), np.flatnonzero(values).astype(np.uint32), device)
    same(atos.sort(array), np.sort(values), device)
    same(atos.argsort(array), np.argsort(values, kind="stable"), device)
    if values.dtype.kind != "f":
        same(atos.cumsum(array), np.cumsum(values), device)
        assert atos.sum(array) == np.sum(values)
    assert type(atos.sum(array)) is type(np.sum(values))
    assert atos.cumsum(array).dtype == np.cumsum(values).dtype
    assert array.to_numpy().tobytes() == values.tobytes()  # as it was


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("dtype", DTYPES)
def test_extremes_are_those_of_numpy(device, dtype):
    values = values_of(dtype).reshape(20, 5, 10)
    array = atos.asarray(values, device=device)
    np.testing.assert_array_equal([atos.min(array), atos.max(array)], [values.min(), values.max()])  # NaN, if there is one
    finite = values[2:4]
    assert np.isfinite(finite).all()
    array = atos.asarray(finite, device=device)
    assert (atos.min(array), atos.max(array)) == (finite.min(), finite.max())
    assert type(atos.min(array)) is type(finite.min())


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats_are_summed(device, dtype):
    values = np.random.default_rng(3).random((40, 50)).astype(dtype)
    array = atos.asarray(values, device=device)
    assert atos.sum(array) == pytest.approx(values.sum(dtype=np.float64), rel=1e-5)
    flat = values.reshape(-1)
    found = atos.cumsum(atos.asarray(flat, device=device))
    np.testing.assert_allclose(found.to_numpy(), np.cumsum(flat, dtype=np.float64), rtol=1e-4)
    values[3, 3] = np.nan
    assert np.isnan(atos.sum(atos.asarray(values, device=device)))


@pytest.mark.usefixtures("library")
def test_sorting_is_stable_with_nan_last(device):
    values = np.array([2, np.nan, 1, 2, np.nan, 1, -0.0, 0.0, -np.inf, np.inf], np.float32)
    array = atos.asarray(values, device=device)
    assert atos.argsort(array).to_numpy().tolist() == [8, 6, 7, 2, 5, 0, 3, 9, 1, 4]
    assert np.signbit(atos.sort(array).to_numpy()[1:3]).tolist() == [True, False]


@pytest.mark.usefixtures("library")
def test_integers_wrap_around(device):
    array = atos.full(3, 2**63 - 1, dtype=np.int64, device=device)
    assert atos.sum(array) == 2**63 - 3
    assert atos.cumsum(array).to_numpy().tolist() == [2**63 - 1, -2, 2**63 - 3]


@pytest.mark.usefixtures("library")
def test_indices_are_pushed_where_they_are(device):
    flags = np.zeros(5000, np.int32)
    flags[[3, 70, 4999]] = 1, -5, 2
    found = atos.nonzero(atos.asarray(flags, device=device, readonly=True), dtype=np.uint32)
    queue = atos.Queue(10, device=device)
    queue.push(found)
    assert queue.peek().tolist() == [3, 70, 4999]


def test_arguments_are_checked(device):
    flat, grid = atos.zeros(4, device=device), atos.zeros((2, 2), device=device)
    for function in (atos.nonzero, atos.cumsum, atos.sort, atos.argsort):
        with pytest.raises(InvalidArgumentError, match=r"takes a one-dimensional array \(got shape \(2, 2\)\)"):
            function(grid)
    for function in (atos.min, atos.max):
        with pytest.raises(InvalidArgumentError, match=r"an array without elements has no m.. \(got shape \(0, 3\)\)"):
            function(atos.zeros((0, 3), device=device))
    with pytest.raises(UnsupportedTypeError, match="indices are integers"):
        atos.nonzero(flat, dtype=np.float32)
    with pytest.raises(InvalidArgumentError, match="indices of an array of 300 elements do not fit uint8"):
        atos.nonzero(atos.zeros(300, device=device), dtype=np.uint8)


def test_arrays_without_elements_need_no_library(device, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    empty = atos.zeros((0,), dtype=np.int16, device=device)
    assert atos.sum(empty) == 0
    assert [atos.sort(empty).dtype, atos.nonzero(empty).dtype, atos.cumsum(empty).dtype] == [np.int16, np.int64, np.int64]


@pytest.mark.gpu
def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(MissingPackageError, match="on cuda:0 needs CuPy: python -m pip install cupy-cuda13x"):
        atos.sum(atos.zeros(3, device="cuda"))


@pytest.mark.gpu
def test_results_have_the_library_of_what_is_given():
    cupy, torch = pytest.importorskip("cupy"), pytest.importorskip("torch")
    assert atos.sort(cupy.array([3, 1])).library == "cupy"
    found = atos.sort(torch.tensor([3, 1], device="cuda"))
    assert (found.library, found.to_numpy().tolist()) == ("torch", [1, 3])


@pytest.mark.parametrize("dtype", DTYPES)
def test_fill_and_copy(device, dtype):
    array = atos.asarray(np.ones((2, 3), dtype), device=device, readonly=True)
    copy = array.copy()
    copy.fill(0)
    assert (copy.device, copy.dtype, copy.shape, copy.readonly) == (array.device, array.dtype, array.shape, False)
    assert not copy.to_numpy().any()
    assert array.to_numpy().all()
    atos.zeros((0, 3), device=device).fill(1)
    with pytest.raises(InvalidArgumentError, match="read-only"):
        array.fill(0)
    with pytest.raises(InvalidArgumentError, match=r"value must be one number \(got shape \(2,\)\)"):
        copy.fill([1, 2])
    if dtype == "uint8":
        with pytest.raises(InvalidArgumentError, match="do not fit uint8"):
            copy.fill(300)
