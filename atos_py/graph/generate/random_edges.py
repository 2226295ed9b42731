"""Random graphs whose vertices are alike: uniform ones, those between two sides, and rings with shortcuts.

Distinct edges are the first of a random permutation of all that there may be, so none has to be drawn again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InvalidArgumentError
from ...support.host_memory import host_memory_for
from ...support.splitmix64 import GOLDEN, splitmix64
from ...support.validation import check_bool, check_float, check_int
from ..csr import CSR, MAX_VERTICES, build_csr
from ..graph import Graph
from .hashing import check_seed, generate_edges, hash_seeds, permutation_keys, permute

if TYPE_CHECKING:
    from ...core.devices import Device

__all__ = ["bipartite", "small_world", "uniform"]

_ONE, _32, _LOW = np.uint64(1), np.uint64(32), np.uint64(0xFFFFFFFF)


@host_memory_for("generate.uniform")
def uniform(
    num_vertices: int, num_edges: int, seed: int = 0, *, directed: bool = False, device: Device | str | None = None
) -> Graph:
    """Generate a random graph with exactly so many edges, each set of them as likely: G(n, m) of Erdős and Rényi (1959).

    There are no loops and no parallel edges, and neighbors are in ascending order.

    Parameters
    ----------
    num_vertices : int
        How many vertices.
    num_edges : int
        How many edges: of an undirected graph pairs of vertices, each of which becomes two directed edges.
    seed : int
        The same seed gives the same graph on every machine.
    directed : bool
        Whether an edge is there without its reverse.
    device : Device or str, optional
        Where the graph goes; the best device there is unless given.

    Raises
    ------
    InvalidArgumentError
        If there are more edges than pairs of vertices, or a number is out of its range.

    Examples
    --------
    >>> atos.generate.uniform(100, 250)
    Graph(100 vertices, 500 directed edges, no weights, on cpu)
    """
    n, directed = check_int("num_vertices", num_vertices, 0, MAX_VERTICES), check_bool("directed", directed)
    pairs = n * max(n - 1, 0) // (1 if directed else 2)
    return Graph.from_csr(*_distinct(n, num_edges, pairs, seed, np.uint64(0), directed=directed), device=device)


@host_memory_for("generate.bipartite")
def bipartite(left: int, right: int, num_edges: int, seed: int = 0, *, device: Device | str | None = None) -> Graph:
    """Generate a random undirected graph with exactly so many edges, all of which join one side to the other.

    Vertices 0 to ``left - 1`` are on one side, those from `left` on on the other. Each set of edges is as likely. There are no
    parallel edges, and neighbors are in ascending order.

    Parameters
    ----------
    left, right : int
        How many vertices each side has.
    num_edges : int
        How many edges, each of which becomes two directed ones.
    seed : int
        The same seed gives the same graph on every machine.
    device : Device or str, optional
        Where the graph goes; the best device there is unless given.

    Raises
    ------
    InvalidArgumentError
        If there are more edges than pairs of vertices, or a number is out of its range.

    Examples
    --------
    >>> graph = atos.generate.bipartite(30, 20, 100)
    >>> print(graph, graph.indices[: graph.indptr[30]].min())
    Graph(50 vertices, 200 directed edges, no weights, on cpu) 30
    """
    left = check_int("left", left, 0, MAX_VERTICES)
    right = check_int("right", right, 0, MAX_VERTICES - left)
    csr = _distinct(left + right, num_edges, left * right, seed, np.uint64(left), directed=False)
    return Graph.from_csr(*csr, device=device)


@host_memory_for("generate.small_world")
def small_world(
    num_vertices: int, neighbors: int, rewire: float, seed: int = 0, *, device: Device | str | None = None
) -> Graph:
    """Generate a ring with shortcuts (Watts and Strogatz 1998): many triangles, and short paths all the same.

    Each vertex is joined to the nearest ones on a ring. Then one end of each edge is moved to any other vertex with probability
    `rewire`. Edges that have become the same are one. Neighbors are in ascending order.

    Parameters
    ----------
    num_vertices : int
        How many vertices.
    neighbors : int
        To how many each is joined at first, half of them on each side: an even number, less than `num_vertices`.
    rewire : float
        The probability with which an edge is moved, 0 to 1.
    seed : int
        The same seed gives the same graph on every machine.
    device : Device or str, optional
        Where the graph goes; the best device there is unless given.

    Raises
    ------
    InvalidArgumentError
        If `neighbors` is odd or too large, or another number is out of its range.

    Examples
    --------
    >>> atos.generate.small_world(1000, 6, 0.0)
    Graph(1,000 vertices, 6,000 directed edges, no weights, on cpu)
    """
    return Graph.from_csr(*small_world_csr(num_vertices, neighbors, rewire, seed), device=device)


def pair_of(number: Any) -> tuple[Any, Any]:
    """Return the pair u < v of a number, for compiled code: those of v come after ``v * (v - 1) / 2`` others."""
    v = np.uint64(np.sqrt(np.float64(2.0) * number)) + _ONE  # or one less
    while (v * (v - _ONE)) >> _ONE > number:
        v -= _ONE
    return number - ((v * (v - _ONE)) >> _ONE), v


def _distinct_kernel(
    first: int, count: Any, bits: Any, keys: Any, num_vertices: Any, left: Any, directed: bool, sources: Any, targets: Any
) -> None:  # pragma: no cover - compiled
    """Generate edges number `first` and on of a permutation of all `count`: between sides if there is a left one."""
    for i in range(sources.size):
        pair = permute(np.uint64(first + i), count, bits, keys)
        if left > 0:
            right = num_vertices - left
            u = pair // right
            v = left + (pair - u * right)
        elif directed:
            others = num_vertices - _ONE
            u = pair // others
            v = pair - u * others
            v += np.uint64(v >= u)
        else:
            u, v = pair_of(pair)
        sources[i] = u
        targets[i] = v


def _distinct(num_vertices: int, num_edges: int, pairs: int, seed: int, left: Any, *, directed: bool) -> CSR:
    """Return a graph of so many of all pairs of vertices that there may be."""
    num_edges = check_int("num_edges", num_edges, 0, 2**48)
    if num_edges > pairs:
        raise InvalidArgumentError(f"num_edges must be at most {pairs}, the number of pairs of vertices (got {num_edges})")
    _, keys = permutation_keys(check_seed(seed))
    numbers = np.uint64(pairs), np.uint64(max(pairs - 1, 0).bit_length()), keys, np.uint64(num_vertices), left, directed
    chunks = generate_edges(_distinct_kernel, num_edges, num_vertices, *numbers)
    return build_csr(chunks, num_vertices, symmetrize=not directed, sort=True)


def _ring_kernel(
    first: int, num_vertices: Any, half: Any, rewire: Any, seed: Any, sources: Any, targets: Any
) -> None:  # pragma: no cover - compiled
    """Generate edges number `first` and on, `half` from each vertex to the next ones."""
    for i in range(sources.size):
        edge = np.uint64(first + i)
        u = edge // half
        v = (u + _ONE + (edge - u * half)) % num_vertices
        number = splitmix64(seed ^ (edge * GOLDEN))
        if number >> _32 < rewire:
            v = ((number & _LOW) * (num_vertices - _ONE)) >> _32
            v += np.uint64(v >= u)
        sources[i] = u
        targets[i] = v


def small_world_csr(num_vertices: int, neighbors: int, rewire: float, seed: int) -> CSR:
    """Generate what `small_world` returns, on the host."""
    n = check_int("num_vertices", num_vertices, 0, MAX_VERTICES)
    neighbors = check_int("neighbors", neighbors, 0, max(n - 1, 0))
    if neighbors % 2:
        raise InvalidArgumentError(f"neighbors must be even, half of them on each side (got {neighbors})")
    rewire = check_float("rewire", rewire)
    if not 0 <= rewire <= 1:
        raise InvalidArgumentError(f"rewire must be a probability, 0 to 1 (got {rewire})")
    (start,) = hash_seeds(check_seed(seed), 1)
    half, threshold = neighbors // 2, np.uint64(round(rewire * 2**32))
    chunks = generate_edges(_ring_kernel, n * half, n, np.uint64(n), np.uint64(max(half, 1)), threshold, start)
    return build_csr(chunks, n, symmetrize=True, deduplicate=True)
