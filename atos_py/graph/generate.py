"""Random graphs: scale-free ones (R-MAT) and road-like ones (a grid with holes).

Every random number is a hash of the seed and of the number of the edge that it belongs to (`splitmix64`), so a graph depends
on its parameters alone, not on how the work was spread over threads, and no generator has to be passed along.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..compile.host_kernels import compile_kernel, parallel_map, ranges, returnable
from ..errors import InvalidArgumentError
from ..support.host_memory import host_memory_for
from ..support.splitmix64 import GOLDEN, splitmix64
from ..support.validation import check_float, check_int, require_host_memory
from .csr import CSR, MAX_VERTICES, EdgeChunk, build_csr, indptr_dtype

if TYPE_CHECKING:
    from ..core.devices import Device
    from .graph import Graph

__all__ = ["rmat", "road"]

# In compiled code a signed constant would turn unsigned 64-bit arithmetic into floats.
_ONE, _32, _LOW = np.uint64(1), np.uint64(32), np.uint64(0xFFFFFFFF)

_CHUNK_EDGES = 1 << 20
_ROUNDS = 4


@host_memory_for("generate.rmat")
def rmat(
    scale: int,
    edge_factor: int = 16,
    seed: int = 0,
    *,
    a: float = 0.57,
    b: float = 0.19,
    c: float = 0.19,
    device: Device | str | None = None,
) -> Graph:
    """Generate a scale-free graph with the R-MAT model (Chakrabarti, Zhan and Faloutsos 2004).

    Each edge descends through the adjacency matrix, at every level into its upper left, upper right, lower left or
    lower right quarter with probability `a`, `b`, `c` or what they leave. Then vertices are permuted, every edge is
    mirrored, and duplicates and loops are removed, so the graph has fewer than ``2 * edge_factor * 2**scale`` directed
    edges. Neighbours are in ascending order.

    Parameters
    ----------
    scale : int
        Logarithm to base 2 of the number of vertices, 0 to 31.
    edge_factor : int
        Edges generated for each vertex.
    seed : int
        The same seed gives the same graph on every machine.
    a, b, c : float
        Probabilities of three quarters.
    device : Device or str, optional
        Where the graph goes; the best device there is unless given.

    Examples
    --------
    >>> graph = atos.generate.rmat(10)
    >>> print(graph.num_vertices, graph.is_symmetric(), graph.max_degree > 100)
    1024 True True
    """
    from .graph import Graph

    return Graph.from_csr(*rmat_csr(scale, edge_factor, seed, a=a, b=b, c=c), device=device)


@host_memory_for("generate.road")
def road(side: int, keep: float = 0.62, seed: int = 0, *, device: Device | str | None = None) -> Graph:
    """Generate a road-like graph: a grid of ``side * side`` vertices, in which each edge is kept with probability `keep`.

    Vertex ``row * side + column`` is joined to its neighbours above, to the left, to the right and below, in this
    (ascending) order. Above a `keep` of 0.5 most vertices are in one component, and the nearer to 0.5, the more winding
    its paths.

    Parameters
    ----------
    side : int
        Vertices along each side of the grid, 0 to 65535.
    keep : float
        Probability of an edge, 0 to 1.
    seed : int
        The same seed gives the same graph on every machine.
    device : Device or str, optional
        Where the graph goes; the best device there is unless given.

    Examples
    --------
    >>> atos.generate.road(3, 1.0)
    Graph(9 vertices, 24 directed edges, no weights, on cpu)
    """
    from .graph import Graph

    return Graph.from_csr(*road_csr(side, keep, seed), device=device)


def _hash_seeds(seed: int, count: int) -> NDArray[np.uint64]:
    """Return hashes of `count` seeds from `seed` on."""
    return splitmix64(np.arange(count, dtype=np.uint64) + np.uint64(seed) + GOLDEN)  # type: ignore[no-any-return]


def _rmat_kernel(
    first: int, scale: int, seed: Any, a: Any, ab: Any, abc: Any, keys: Any, sources: Any, targets: Any
) -> None:  # pragma: no cover - compiled
    """Generate edges number `first` and on; `a`, `ab` and `abc` are sums of probabilities in units of 2**-32."""
    mask = (_ONE << np.uint64(scale)) - _ONE
    half = np.uint64((scale + 1) // 2)
    for i in range(sources.size):
        state = splitmix64(seed ^ (np.uint64(first + i) * GOLDEN))
        u = np.uint64(0)
        v = np.uint64(0)
        bits = state
        for level in range(scale):
            if level & 1:
                draw = bits >> _32
            else:
                state += GOLDEN
                bits = splitmix64(state)
                draw = bits & _LOW
            lower = draw >= ab
            right = (draw >= a) ^ lower ^ (draw >= abc)
            u = (u << _ONE) | np.uint64(lower)
            v = (v << _ONE) | np.uint64(right)
        # A permutation of the vertices without a table: odd multiples, sums and right shifts modulo a power of two all
        # can be undone.
        for j in range(0, keys.size, 2):
            u = (u * keys[j] + keys[j + 1]) & mask
            v = (v * keys[j] + keys[j + 1]) & mask
            u ^= u >> half
            v ^= v >> half
        sources[i] = u
        targets[i] = v


def rmat_csr(scale: int, edge_factor: int, seed: int, *, a: float, b: float, c: float) -> CSR:
    """Generate what `rmat` returns, on the host."""
    scale = check_int("scale", scale, 0, 31)
    edge_factor = check_int("edge_factor", edge_factor, 0, 2**32)
    seed = check_int("seed", seed, 0, 2**64 - 1)
    a, b, c = check_float("a", a), check_float("b", b), check_float("c", c)
    if not (min(a, b, c) >= 0 and a + b + c <= 1 + 1e-9):
        raise InvalidArgumentError(f"a, b and c must be probabilities whose sum is at most 1 (got {a}, {b} and {c})")
    require_host_memory(f"{edge_factor << scale} generated edges", 8 * (edge_factor << scale) + (4 << scale))
    thresholds = [np.uint64(round(min(p, 1) * 2**32)) for p in (a, a + b, a + b + c)]
    hashes = _hash_seeds(seed, 1 + 2 * _ROUNDS)
    start, keys = hashes[0], hashes[1:]
    keys[::2] |= _ONE  # factors, which have to be odd

    def generate(piece: tuple[int, int]) -> EdgeChunk:
        first, end = piece
        chunk = EdgeChunk(returnable(end - first, np.uint32), returnable(end - first, np.uint32), None)
        compile_kernel(_rmat_kernel)(first, scale, start, *thresholds, keys, chunk.sources, chunk.targets)
        return chunk

    chunks = parallel_map(generate, ranges(edge_factor << scale, _CHUNK_EDGES))
    return build_csr(chunks, 1 << scale, symmetrize=True, deduplicate=True, remove_loops=True)


def _road_kernel(
    first_row: int, end_row: int, side: int, seed: Any, keep: Any, indptr: Any, indices: Any
) -> None:  # pragma: no cover - compiled
    """Go through some rows of the grid: without `indices`, leave degrees at ``indptr[vertex + 1]``, else fill them in.

    Edge ``2 * v`` joins vertex ``v`` to the one on its right, edge ``2 * v + 1`` to the one below.
    """
    for row in range(first_row, end_row):
        for column in range(side):
            v = row * side + column
            place = np.int64(0) if indices is None else np.int64(indptr[v])
            for direction in range(4):
                if direction == 0:
                    exists, neighbor, edge = row > 0, v - side, 2 * (v - side) + 1
                elif direction == 1:
                    exists, neighbor, edge = column > 0, v - 1, 2 * (v - 1)
                elif direction == 2:
                    exists, neighbor, edge = column < side - 1, v + 1, 2 * v
                else:
                    exists, neighbor, edge = row < side - 1, v + side, 2 * v + 1
                if exists and splitmix64(seed ^ (np.uint64(edge) * GOLDEN)) >> _32 < keep:
                    if indices is not None:
                        indices[place] = neighbor
                    place += 1
            if indices is None:
                indptr[v + 1] = place


def road_csr(side: int, keep: float, seed: int) -> CSR:
    """Generate what `road` returns, on the host: once to count, once to write, so with no memory beyond the graph's."""
    side = check_int("side", side, 0, int(MAX_VERTICES**0.5))
    seed = check_int("seed", seed, 0, 2**64 - 1)
    keep = check_float("keep", keep)
    if not 0 <= keep <= 1:
        raise InvalidArgumentError(f"keep must be a probability, 0 to 1 (got {keep})")
    require_host_memory(f"a grid of {side} x {side} vertices", side * side * (4 + round(16 * keep)))
    threshold = np.uint64(round(keep * 2**32))
    (start,) = _hash_seeds(seed, 1)
    pieces = ranges(side, max(1, _CHUNK_EDGES // max(side, 1)))

    def go_through(indptr: NDArray[Any], indices: NDArray[np.uint32] | None) -> None:
        parallel_map(lambda rows: compile_kernel(_road_kernel)(*rows, side, start, threshold, indptr, indices), pieces)

    indptr = np.zeros(side * side + 1, indptr_dtype(4 * side * side))
    go_through(indptr, None)
    np.cumsum(indptr, out=indptr)
    indptr = indptr.astype(indptr_dtype(int(indptr[-1])), copy=False)
    indices = np.empty(int(indptr[-1]), np.uint32)
    go_through(indptr, indices)
    return CSR(indptr, indices, None)
