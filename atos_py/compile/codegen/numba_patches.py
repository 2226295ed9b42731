"""Patches of Numba that the rest of this package relies on."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
from collections.abc import Iterator

import numpy as np

__all__ = ["defer_scipy", "removed_numpy_names"]

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


@contextlib.contextmanager
def defer_scipy(linalg: str) -> Iterator[None]:
    """Keep Numba, which is imported or started meanwhile, from importing SciPy: that takes longer than the rest of its start.

    Numba's module `arraymath` does so only to find out whether SciPy is there. What uses linear algebra imports it later.

    Parameters
    ----------
    linalg : str
        Numba's module for linear algebra, whose `ensure_blas` is asked.
    """

    def ensure_scipy() -> None:
        if importlib.util.find_spec("scipy") is None:
            raise ImportError("SciPy is not installed")

    module = importlib.import_module(linalg)
    true = module.ensure_blas
    module.ensure_blas = ensure_scipy  # type: ignore[attr-defined]
    try:
        yield
    finally:
        module.ensure_blas = true  # type: ignore[attr-defined]
