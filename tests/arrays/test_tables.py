"""Arrays as columns of polars and PyArrow, and their columns as arrays."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import atos_py as atos
from atos_py.errors import InvalidArgumentError, MissingPackageError

DTYPES = ["bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)), "float32", "float64"]


@pytest.fixture
def polars(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Polars where PyArrow was not imported, as in a program that has polars alone."""
    found = pytest.importorskip("polars")
    monkeypatch.delitem(sys.modules, "pyarrow", raising=False)
    return found


@pytest.mark.parametrize("dtype", DTYPES)
def test_polars_takes_columns(device, dtype, polars):
    values = np.array([0, 1, 1, 0, 1], dtype)
    array = atos.asarray(values, device=device, copy=True)
    column = polars.Series("x", array)
    table = polars.DataFrame({"a": array, "b": array})
    del array
    assert column.to_numpy().dtype == dtype
    assert column.to_list() == values.tolist()
    assert table["a"].to_list() == table["b"].to_list() == values.tolist()
    assert atos.asarray(column, device=device).to_numpy().tolist() == values.tolist()
    assert polars.Series(atos.zeros(0, dtype=dtype, device=device)).to_list() == []


@pytest.mark.parametrize("dtype", DTYPES)
def test_pyarrow_takes_columns(device, dtype):
    pyarrow = pytest.importorskip("pyarrow")
    values = np.array([0, 1, 1, 0, 1], dtype)
    array = atos.asarray(values, device=device, copy=True)
    column = pyarrow.array(array)
    if device.kind == "cpu" and dtype != "bool":  # of which Arrow has eight in a byte
        assert column.buffers()[1].address == array.pointer
    stream = pyarrow.chunked_array(array)
    table = pyarrow.table({"a": array, "b": array})
    del array
    assert column.type == pyarrow.from_numpy_dtype(dtype)
    assert column.to_pylist() == stream.to_pylist() == values.tolist()
    assert table.to_pydict() == {"a": values.tolist(), "b": values.tolist()}
    wide = pyarrow.array(atos.ones(2, dtype=np.int32, device=device), type=pyarrow.float64())
    assert (wide.type, wide.to_pylist()) == (pyarrow.float64(), [1.0, 1.0])
    assert atos.asarray(column, device=device).to_numpy().tolist() == values.tolist()


class Fake(ModuleType):
    """A library of tables that tells what it was given."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.given: list[Any] = []

    def Series(self, values: Any) -> Fake:  # noqa: N802
        return self.array(values)

    def array(self, values: Any, type: Any = None) -> Fake:
        self.given.append((values, type))
        return self

    def chunked_array(self, columns: Any) -> Fake:
        assert columns == [self]
        return self

    def __arrow_c_stream__(self, requested_schema: Any) -> Any:
        return self.__name__, requested_schema


@pytest.mark.parametrize("loaded", [("polars",), ("polars", "pyarrow"), ("pyarrow",)], ids=", ".join)
def test_the_library_in_use_makes_the_stream(device, loaded, monkeypatch):
    libraries = {name: Fake(name) for name in ("polars", "pyarrow")}
    for name, fake in libraries.items():
        monkeypatch.delitem(sys.modules, name, raising=False)
        if name in loaded:
            monkeypatch.setitem(sys.modules, name, fake)
    array = atos.asarray([3, 1, 4], device=device)
    asked = "pyarrow" if "pyarrow" in loaded else "polars"
    assert array.__arrow_c_stream__("schema") == (asked, "schema")
    ((values, kind),) = libraries[asked].given
    assert (values.tolist(), kind) == ([3, 1, 4], None)
    assert np.shares_memory(values, np.asarray(array)) == (device.kind == "cpu")


def test_what_is_no_column(device, monkeypatch):
    array = atos.ones((2, 3), device=device)
    for export in (array.__arrow_array__, array.__arrow_c_stream__):
        with pytest.raises(InvalidArgumentError, match=r"one dimension \(got shape \(2, 3\)\); give array.reshape\(-1\)"):
            export()
    for name in ("polars", "pyarrow"):
        monkeypatch.setitem(sys.modules, name, None)
    for export in (array.reshape(-1).__arrow_array__, array.reshape(-1).__arrow_c_stream__):
        with pytest.raises(MissingPackageError, match="python -m pip install pyarrow"):
            export()
