"""Certificate of the fixed point of a linear map of feature vectors: its residual in float64, which bounds the error."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays.array import to_host
from ...compile.host_kernels import compile_kernel, even_rows, parallel_map
from ...errors import InvalidArgumentError, VerificationError
from ...graph.graph import Graph
from ...support.validation import as_host_array, check_float

__all__ = ["check_distance", "host_features", "row_sums", "unit_roundoff"]


def unit_roundoff(dtype: np.dtype[Any]) -> float:
    """Return by how much a number changes at most, relative to its size, when it is rounded to a type of floats."""
    return float(np.finfo(dtype).eps) / 2


def _residual_kernel(
    indptr: Any, indices: Any, coefficients: Any, x: Any, constant: Any, norms: Any, first: int, end: int
) -> None:  # pragma: no cover - compiled
    """Add the norms of the residual of rows `first` to `end`: the largest, the sum, and the sum of squares."""
    for v in range(first, end):
        for f in range(x.shape[1]):
            total = constant[v, f] - x[v, f]
            for edge in range(indptr[v], indptr[v + 1]):
                total += coefficients[edge, min(f, coefficients.shape[1] - 1)] * x[indices[edge], f]
            norms[0] = max(norms[0], abs(total))
            norms[1] += abs(total)
            norms[2] += total * total


def check_distance(
    graph: Graph,
    coefficients: NDArray[Any],
    x: NDArray[Any],
    constant: NDArray[Any],
    contraction: float,
    tolerance: Any,
    norm: str = "max",
) -> None:
    """Raise unless x is near the fixed point of x = C x + constant: the residual over 1 - contraction bounds the distance.

    `coefficients` has a row for each edge (v, u), of what x[u] counts in row v, for all features or for each.
    """
    limit = check_float("tolerance", tolerance)
    csr = graph._on_host()
    indptr, indices, kernel = np.asarray(csr.indptr), np.asarray(csr.indices), compile_kernel(_residual_kernel)
    coefficients = np.ascontiguousarray(coefficients if coefficients.ndim == 2 else coefficients[:, None], np.float64)

    def measure(piece: tuple[int, int]) -> NDArray[Any]:
        norms = np.zeros(3)
        kernel(indptr, indices, coefficients, x, np.ascontiguousarray(constant, np.float64), norms, *piece)
        return norms

    found = np.array([measure((0, 0)), *parallel_map(measure, even_rows(indptr, 1 << 20))])
    residual = {"max": found[:, 0].max(), "1": found[:, 1].sum(), "2": math.sqrt(found[:, 2].sum())}[norm]
    bound = residual / (1 - contraction)
    if not bound <= limit or not np.isfinite(x).all():
        raise VerificationError(
            f"the features may be {bound:.3g} from the fixed point, which is more than the tolerance of {limit:.3g}"
        )


def host_features(name: str, values: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return features that a verifier was given as float64 on the host; `shape` has -1 for any number."""
    found = np.ascontiguousarray(as_host_array(name, to_host(values)))
    if found.dtype.kind not in "fiu" or found.ndim != len(shape):
        raise InvalidArgumentError(
            f"{name} must be numbers of {len(shape)} dimensions (got {found.dtype} of shape {found.shape})"
        )
    if any(given != wanted for given, wanted in zip(found.shape, shape, strict=True) if wanted >= 0):
        raise InvalidArgumentError(f"{name} must be of shape {shape}, -1 for any (got {found.shape})")
    return found.astype(np.float64)


def row_sums(graph: Graph, values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the row of each edge, and the sums of values of edges over the rows."""
    degrees = np.asarray(graph.degrees())
    rows = np.repeat(np.arange(graph.num_vertices), degrees)
    sums = np.zeros((graph.num_vertices, *values.shape[1:]))
    np.add.at(sums, rows, values)
    return rows, sums
