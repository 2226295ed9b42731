"""The proof of how wrong ranks are at most, from the ranks alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arrays.array import Array, to_host
from ...compile.host_kernels import compile_kernel, even_rows, num_threads, parallel_map, ranges
from ...errors import InvalidArgumentError, VerificationError
from ...graph.weights import check_weights
from ...support.validation import as_host_array, check_bool, check_float
from ..arguments import rows_on_host
from ..frame import verifier
from .api import PageRankResult, check_damping, teleport_distribution

__all__ = ["verify_pagerank"]

_CHUNK_VERTICES = 1 << 20  # at a time, since new memory for all at once takes longer than what is done with it


def _strength_kernel(indptr: Any, weights: Any, first: int, end: int, strength: Any) -> None:  # pragma: no cover - compiled
    """Write down what the edges of vertices `first` to `end` weigh, or how many they are without weights."""
    for u in range(first, end):
        if weights is None:
            strength[u] = indptr[u + 1] - indptr[u]
        else:
            total = 0.0
            for edge in range(indptr[u], indptr[u + 1]):
                total += np.float64(weights[edge])
            strength[u] = total


def _scatter_kernel(
    indptr: Any, indices: Any, weights: Any, strength: Any, rank: Any, first: int, end: int, result: Any
) -> None:  # pragma: no cover - compiled
    """Add the contributions of vertices `first` to `end` to `result`."""
    for u in range(first, end):
        if strength[u] > 0:
            share = rank[u] / strength[u]
            for edge in range(indptr[u], indptr[u + 1]):
                result[indices[edge]] += share if weights is None else share * np.float64(weights[edge])


@verifier
def verify_pagerank(
    graph: Any,
    result: Any,
    tolerance: float = 1e-4,
    *,
    damping: float = 0.85,
    personalization: ArrayLike | Array | None = None,
    weighted: bool = False,
    dangling: ArrayLike | Array | None = None,
) -> float:
    """Prove that the error of ranks is at most `tolerance`, from the ranks alone.

    With Q the chain that follows edges, by their weights if those count, and from vertices without any jumps as the teleport
    distribution v says, or `dangling`, the exact ranks are the fixed point of ``y = dQ'y + (1 - d) v``. This is a contraction
    by d in the 1-norm, so ranks y are at most ``|dQ'y + (1 - d) v - y| / (1 - d)`` away from it. That is computed, in float64,
    over all edges.

    Parameters
    ----------
    graph : Graph
    result : PageRankResult or array
        The ranks, with sum 1.
    tolerance : float
        What the error may be.
    damping, personalization, weighted, dangling
        As given to `pagerank`.

    Returns
    -------
    float
        What the error is at most.

    Raises
    ------
    VerificationError
        The error may be larger than `tolerance`, or the ranks do not sum to 1 as far as that.

    Examples
    --------
    >>> graph = atos.generate.rmat(8)
    >>> atos.verify_pagerank(graph, atos.pagerank(graph, tolerance=1e-4), 1e-4) <= 1e-4
    True
    """
    indptr, indices = rows_on_host(graph)
    tolerance, damping = check_float("tolerance", tolerance), check_damping(damping)
    n = indptr.size - 1
    rank = as_host_array("result", to_host(result.rank if isinstance(result, PageRankResult) else result))
    if rank.shape != (n,) or rank.dtype.kind not in "iuf":
        raise InvalidArgumentError(f"there must be one rank for each of {n} vertices (got shape {rank.shape} of {rank.dtype})")
    if n == 0:
        return 0.0
    counts = check_bool("weighted", weighted) and graph.weights is not None
    weights = check_weights(to_host(graph.weights), indices.size) if counts else None
    if weights is not None and weights.size and weights.min() < 0:
        raise InvalidArgumentError(f"weights must not be negative (weights[{int(weights.argmin())}] is {weights.min()})")
    rank = np.ascontiguousarray(rank, rank.dtype if rank.dtype in (np.float32, np.float64) else np.float64)

    strength = np.empty(n)

    def sum_ranks(piece: tuple[int, int]) -> tuple[float, float]:
        compile_kernel(_strength_kernel)(indptr, weights, *piece, strength)
        ranks = rank[slice(*piece)].astype(np.float64)
        return float(ranks.sum()), float(ranks[strength[slice(*piece)] == 0].sum())

    total, lost = map(sum, zip(*parallel_map(sum_ranks, ranges(n, _CHUNK_VERTICES)), strict=True))
    if not abs(total - 1) <= tolerance:
        raise VerificationError(f"the ranks sum to {total}, and not to 1")
    step = max(-(-int(indptr[-1]) // min(num_threads(), 4)), 1)  # few pieces: each has sums of its own

    def scatter(piece: tuple[int, int]) -> NDArray[np.float64]:
        received = np.zeros(n)
        compile_kernel(_scatter_kernel)(indptr, indices, weights, strength, rank, *piece, received)
        return received

    received = parallel_map(scatter, even_rows(indptr, step))
    jumps = teleport_distribution("personalization", personalization, n)
    sinks = jumps if dangling is None else teleport_distribution("dangling", dangling, n)
    teleport = np.broadcast_to((1 - damping) * jumps + damping * lost * sinks, n)

    def compare(piece: tuple[int, int]) -> tuple[float, int, float]:
        part = slice(*piece)
        expected = damping * sum(one[part] for one in received) + teleport[part]
        difference = np.abs(expected - rank[part])
        worst = int(np.argmax(difference))
        return float(difference.sum()), piece[0] + worst, float(expected[worst])

    sums, vertices, expected = zip(*parallel_map(compare, ranges(n, _CHUNK_VERTICES)), strict=True)
    bound = sum(sums) / (1 - damping)
    if not bound <= tolerance:
        chunk = int(np.argmax(np.abs(np.array(expected) - rank[list(vertices)])))
        raise VerificationError(
            f"the error may be {bound:.3e}, more than {tolerance:.3e}: rank[{vertices[chunk]}] is {rank[vertices[chunk]]:.6e},"
            f" but what comes in along its edges and by jumps is {expected[chunk]:.6e}"
        )
    return bound
