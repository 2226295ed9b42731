"""The types of items that queues are tested with, and random items of each."""

from __future__ import annotations

import numpy as np
import pytest

INTEGERS = ["int32", "uint32", "int64", "uint64"]
RECORDS = {
    "8 bytes": np.dtype([("vertex", "u4"), ("distance", "f4")]),
    "12 bytes": np.dtype([("a", "i4"), ("b", "u4"), ("c", "i4")]),
    "12 bytes, unaligned": np.dtype([("vertex", "u4"), ("distance", "f8")]),
    "16 bytes": np.dtype([("vertex", "i8"), ("distance", "f8")]),
    "16 bytes, padded": np.dtype([("flag", "?"), ("distance", "f8")], align=True),
    "24 bytes": np.dtype([("vertex", "i8"), ("distance", "f8"), ("parent", "u4"), ("flag", "?"), ("rest", "u2")], align=True),
    "29 bytes, unaligned": np.dtype([("a", "u4"), ("b", "f8"), ("c", "i8"), ("d", "u1"), ("e", "f8")]),
    "32 bytes": np.dtype([("vertex", "i8"), ("distance", "f8"), ("parent", "u8"), ("bound", "f8")]),
    "3 bytes": np.dtype([("a", "u2"), ("b", "i1")]),
}
DTYPES = {**{name: np.dtype(name) for name in INTEGERS}, **RECORDS}
all_dtypes = pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)


def random_items(dtype: np.dtype, n: int, seed: int = 0) -> np.ndarray:
    """Return items with every value of the type equally likely, and its limits among them."""
    rng = np.random.default_rng(seed)
    items = np.zeros(n, dtype)
    fields = [(items, dtype)] if dtype.names is None else [(items[name], dtype[name]) for name in dtype.names]
    for values, kind in fields:
        if kind.kind == "f":
            edges = np.array([0, -1, np.inf, -np.inf, np.finfo(kind).max, np.finfo(kind).tiny], kind)
            values[:] = rng.normal(size=n)
        elif kind.kind == "b":
            edges = np.array([False, True])
            values[:] = rng.integers(0, 2, n)
        else:
            limits = np.iinfo(kind)
            edges = np.array([0, limits.max, limits.min, limits.max - 1], kind)
            values[:] = rng.integers(limits.min, limits.max, n, kind, endpoint=True)
        values[: len(edges)] = edges[:n]
    return items
