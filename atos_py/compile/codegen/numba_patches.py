"""Patches of Numba that the rest of this package relies on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np

__all__ = ["removed_numpy_names"]

# Names that NumPy has removed, and what they stood for. numba-cuda 0.30 uses some of them when it is imported.
_REMOVED = {"in1d": "isin", "round_": "round", "row_stack": "vstack", "trapz": "trapezoid"}


@contextlib.contextmanager
def removed_numpy_names() -> Iterator[None]:
    """Give NumPy back, for a while, the names that it no longer has."""
    missing = [name for name in _REMOVED if name not in vars(np)]
    for name in missing:
        setattr(np, name, getattr(np, _REMOVED[name]))
    try:
        yield
    finally:
        for name in missing:
            delattr(np, name)
