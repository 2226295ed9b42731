"""The proof of how wrong ranks are at most, from the ranks alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...array import Array, to_host
from ...errors import InvalidArgumentError, VerificationError
from ...parallel import compiled, even_rows, num_threads, parallel_map
from ...validate import as_host_array, number
from ..checks import rows_of
from .driver import PageRankResult, teleport_of

__all__ = ["verify"]


def _scatter_kernel(
    indptr: Any, indices: Any, rank: Any, first: int, end: int, result: Any
) -> None:  # pragma: no cover - compiled
    """Add what vertices `first` to `end` hand on to `result`."""
    for u in range(first, end):
        degree = indptr[u + 1] - indptr[u]
        for edge in range(indptr[u], indptr[u + 1]):
            result[indices[edge]] += rank[u] / degree


def verify(
    graph: Any, result: Any, tolerance: float = 1e-4, *, damping: float = 0.85, personalization: ArrayLike | Array | None = None
) -> float:
    """Prove that the error of ranks is at most `tolerance`, from the ranks alone.

    With Q the chain that follows edges, and from vertices without any jumps as the teleport distribution v says, the exact
    ranks are the fixed point of ``y = dQ'y + (1 - d) v``. This is a contraction by d in the 1-norm, so ranks y are at most
    ``|dQ'y + (1 - d) v - y| / (1 - d)`` away from it. That is computed, in float64, over all edges.

    Parameters
    ----------
    graph : Graph or CSR
    result : PageRankResult or array
        The ranks, with sum 1.
    tolerance : float
        What the error may be.
    damping, personalization
        As given to `pagerank`.

    Returns
    -------
    float
        What the error is at most.

    Raises
    ------
    VerificationError
        The error may be larger than `tolerance`, or the ranks do not sum to 1 as far as that.
    """
    indptr, indices = rows_of(graph)
    tolerance, damping = number("tolerance", tolerance), number("damping", damping)
    n = indptr.size - 1
    rank = as_host_array("result", to_host(result.rank if isinstance(result, PageRankResult) else result))
    if rank.shape != (n,) or rank.dtype.kind not in "iuf":
        raise InvalidArgumentError(f"there must be one rank for each of {n} vertices (got shape {rank.shape} of {rank.dtype})")
    rank = rank.astype(np.float64)
    if n == 0:
        return 0.0
    if not abs(rank.sum() - 1) <= tolerance:
        raise VerificationError(f"the ranks sum to {rank.sum()}, and not to 1")
    step = max(-(-int(indptr[-1]) // min(num_threads(), 4)), 1)  # few pieces: each has sums of its own

    def scatter(piece: tuple[int, int]) -> NDArray[np.float64]:
        received = np.zeros(n)
        compiled(_scatter_kernel)(indptr, indices, rank, *piece, received)
        return received

    received, *others = parallel_map(scatter, even_rows(indptr, step))
    for other in others:
        received += other
    jumps = 1 - damping + damping * rank[indptr[1:] == indptr[:-1]].sum()
    difference = np.multiply(received, damping, out=received)  # in place, since new memory takes longer than the sums
    difference += jumps * teleport_of(personalization, n)
    difference -= rank
    bound = float(np.abs(difference).sum() / (1 - damping))
    if not bound <= tolerance:
        worst = int(np.argmax(np.abs(difference)))
        raise VerificationError(
            f"the error may be {bound:.3e}, more than {tolerance:.3e}: rank[{worst}] is {rank[worst]:.6e}, but what comes in"
            f" along its edges and by jumps is {rank[worst] + difference[worst]:.6e}"
        )
    return bound
