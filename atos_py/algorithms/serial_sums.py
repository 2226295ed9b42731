"""Centralities by serial searches on the host, for verifiers: sums over sources, and their comparison with what was found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..compile.host_kernels import compile_kernel, parallel_map, ranges
from ..errors import VerificationError

__all__ = ["check_centrality", "sum_over_sources"]

_TOLERANCE = 1e-9  # by which sums in another order may differ, relative to the largest


def sum_over_sources(
    kernel: Callable[..., None],
    indptr: NDArray[Any],
    indices: NDArray[Any],
    sources: NDArray[Any],
    *options: Any,
    dtypes: Sequence[DTypeLike] = (np.float64,),
) -> list[NDArray[Any]]:
    """Return sums for each vertex, to which a serial kernel adds what it finds from one source after the other.

    ``kernel(indptr, indices, sources, first, end, *options, *sums)`` searches from ``sources[first:end]``, and adds to an array
    of each of `dtypes`. Pieces of the sources run in threads, each with arrays of its own.
    """
    compiled, n = compile_kernel(kernel), indptr.size - 1

    def add_up(piece: tuple[int, int]) -> list[NDArray[Any]]:
        sums = [np.zeros(n, dtype) for dtype in dtypes]
        compiled(indptr, indices, sources, *piece, *options, *sums)
        return sums

    totals = [np.zeros(n, dtype) for dtype in dtypes]
    for part in parallel_map(add_up, ranges(len(sources), max(len(sources) // 16, 1))):
        for total, sums in zip(totals, part, strict=True):
            total += sums
    return totals


def check_centrality(found: NDArray[Any], expected: NDArray[np.float64]) -> None:
    """Raise, naming the vertex that differs most, unless all centralities are those of a serial computation, NaN included."""
    difference = np.abs(found - expected) / max(np.nanmax(np.abs(expected), initial=0.0), 1e-300)
    difference[np.isnan(found) & np.isnan(expected)] = 0
    if not (difference <= _TOLERANCE).all():
        v = int(np.argmax(np.where(np.isnan(difference), np.inf, difference)))
        raise VerificationError(f"the centrality of vertex {v} is {found[v]}, but a serial computation gives {expected[v]}")
