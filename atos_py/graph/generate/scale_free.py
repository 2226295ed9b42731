"""Random graphs whose degrees differ widely, as those of social networks do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import InvalidArgumentError
from ...support.host_memory import host_memory_for
from ...support.splitmix64 import GOLDEN, splitmix64
from ...support.validation import as_host_array, check_float, check_int
from ..csr import CSR, MAX_VERTICES, Renumber, build_csr, renumber_edges
from ..graph import Graph
from ..partition import Partition, placement_of
from .hashing import check_seed, generate_edges, hash_seeds, permutation_keys, permute

if TYPE_CHECKING:
    from ...core.devices import Device

__all__ = ["barabasi_albert", "kronecker", "rmat", "rmat_csr"]


# In compiled code a signed constant would turn unsigned 64-bit arithmetic into floats.
_ONE, _32, _LOW = np.uint64(1), np.uint64(32), np.uint64(0xFFFFFFFF)


@overload
def rmat(
    scale: int,
    edge_factor: int = 16,
    seed: int = 0,
    *,
    a: float = 0.57,
    b: float = 0.19,
    c: float = 0.19,
    device: Device | str | None = None,
    devices: None = None,
    order: str = "keep",
) -> Graph: ...
@overload
def rmat(
    scale: int,
    edge_factor: int = 16,
    seed: int = 0,
    *,
    a: float = 0.57,
    b: float = 0.19,
    c: float = 0.19,
    device: None = None,
    devices: Sequence[Device | str] | Literal["auto"],
    order: str = "keep",
) -> Partition: ...
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
    devices: Sequence[Device | str] | Literal["auto"] | None = None,
    order: str = "keep",
) -> Graph | Partition:
    """Generate a scale-free graph with the R-MAT model (Chakrabarti, Zhan and Faloutsos 2004).

    Each edge descends through the adjacency matrix, at every level into its upper left, upper right, lower left or
    lower right quarter with probability `a`, `b`, `c` or what they leave. Then vertices are permuted, every edge is
    mirrored, and duplicates and loops are removed, so the graph has fewer than ``2 * edge_factor * 2**scale`` directed
    edges. Neighbors are in ascending order. The probabilities are by default those of the Graph500 benchmark.

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
    devices : sequence of Device or str, or "auto", optional
        Several devices among which the graph is divided, as by `Graph.partition`, in place of one.
    order : {"keep", "random"}
        How vertices are numbered on several devices. The permutation has made the ids random already, so that ``"keep"``
        gives each device about as many edges.

    Returns
    -------
    Graph or Partition
        Parts if there are several `devices`. The graph is built in the memory of the host, of which each device then gets its
        own rows.

    See Also
    --------
    kronecker : the same with a matrix of any size in place of the quarters.

    Raises
    ------
    InvalidArgumentError
        If `scale` is out of its range, or the probabilities are negative or have a sum above 1.

    Examples
    --------
    >>> graph = atos.generate.rmat(10)
    >>> print(graph.num_vertices, graph.is_symmetric(), graph.max_degree > 100)
    1024 True True
    >>> atos.generate.rmat(10, devices=["cpu:0", "cpu:1"])
    Partition(1,024 vertices, 20,906 directed edges, over cpu, cpu:1)
    """
    placement = placement_of(device, devices, order)
    if placement is None:
        return Graph.from_csr(*rmat_csr(scale, edge_factor, seed, a=a, b=b, c=c), device=device)
    return placement.parts(rmat_csr(scale, edge_factor, seed, a=a, b=b, c=c, renumber=placement.renumber))


@host_memory_for("generate.kronecker")
def kronecker(
    initiator: ArrayLike, scale: int, edge_factor: int = 16, seed: int = 0, *, device: Device | str | None = None
) -> Graph:
    """Generate a stochastic Kronecker graph (Leskovec et al. 2010), which resembles itself in its parts.

    Each edge descends through the adjacency matrix `scale` times, into one of the parts that a square matrix, the initiator,
    divides it into, with probabilities in proportion to the entries. Then vertices are permuted, every edge is mirrored, and
    duplicates and loops are removed. `rmat` does the same with a matrix of 2 x 2: ``kronecker([[0.57, 0.19], [0.19, 0.05]],
    scale)``, the graph of the Graph500 benchmark, is ``rmat(scale)``.

    Parameters
    ----------
    initiator : array_like
        A square matrix of k x k numbers, none of them negative, with k from 2 on.
    scale : int
        Logarithm to base k of the number of vertices.
    edge_factor : int
        Edges generated for each vertex.
    seed : int
        The same seed gives the same graph on every machine.
    device : Device or str, optional
        Where the graph goes; the best device there is unless given.

    Raises
    ------
    InvalidArgumentError
        If the matrix is not square, has a negative or no finite entry, or the graph would have too many vertices.

    Examples
    --------
    >>> communities = [[5, 1, 0], [1, 4, 1], [0, 1, 3]]
    >>> atos.generate.kronecker(communities, 6, edge_factor=4).num_vertices  # 3**6
    729
    """
    return Graph.from_csr(*kronecker_csr(initiator, scale, edge_factor, seed), device=device)


@host_memory_for("generate.barabasi_albert")
def barabasi_albert(num_vertices: int, edges: int, seed: int = 0, *, device: Device | str | None = None) -> Graph:
    """Generate a graph by preferential attachment (Barabási and Albert 1999).

    Vertices come one after another, and each draws `edges` neighbors: the ends of edges that are there or being made, each as
    likely, so that a vertex of high degree is chosen more often. Loops and duplicates, of which there are few, are removed.
    All edges are made at once: a choice is traced back until it meets the beginning of an edge (Sanders and Schulz 2016,
    after Batagelj and Brandes 2005). Neighbors are in ascending order.

    Parameters
    ----------
    num_vertices : int
        How many vertices.
    edges : int
        What each of them adds.
    seed : int
        The same seed gives the same graph on every machine.
    device : Device or str, optional
        Where the graph goes; the best device there is unless given.

    Raises
    ------
    InvalidArgumentError
        If a number is negative or too large.

    Examples
    --------
    >>> graph = atos.generate.barabasi_albert(10_000, 4)
    >>> print(graph.num_edges > 79_000, graph.max_degree > 200)
    True True
    """
    return Graph.from_csr(*barabasi_albert_csr(num_vertices, edges, seed), device=device)


def _descend_kernel(
    first: int,
    scale: int,
    seed: Any,
    size: Any,
    thresholds: Any,
    rows: Any,
    columns: Any,
    num_vertices: Any,
    bits: Any,
    keys: Any,
    sources: Any,
    targets: Any,
) -> None:  # pragma: no cover - compiled
    """Generate edges number `first` and on; thresholds are sums of the probabilities of parts, in units of 2**-32."""
    for i in range(sources.size):
        state = splitmix64(seed ^ (np.uint64(first + i) * GOLDEN))
        u = np.uint64(0)
        v = np.uint64(0)
        number = state
        for level in range(scale):
            if level & 1:
                draw = number >> _32
            else:
                state += GOLDEN
                number = splitmix64(state)
                draw = number & _LOW
            part = 0
            for threshold in thresholds:
                part += draw >= threshold
            u = u * size + rows[part]
            v = v * size + columns[part]
        sources[i] = permute(u, num_vertices, bits, keys)
        targets[i] = permute(v, num_vertices, bits, keys)


def rmat_csr(scale: int, edge_factor: int, seed: int, *, a: float, b: float, c: float, renumber: Renumber | None = None) -> CSR:
    """Generate what `rmat` returns, on the host, of vertices with the numbers that `renumber` gives them."""
    scale = check_int("scale", scale, 0, 31)
    a, b, c = check_float("a", a), check_float("b", b), check_float("c", c)
    if not (min(a, b, c) >= 0 and a + b + c <= 1 + 1e-9):
        raise InvalidArgumentError(f"a, b and c must be probabilities whose sum is at most 1 (got {a}, {b} and {c})")
    return _descend(2, scale, edge_factor, seed, np.cumsum([a, b, c]), renumber)


def kronecker_csr(initiator: ArrayLike, scale: int, edge_factor: int, seed: int) -> CSR:
    """Generate what `kronecker` returns, on the host."""
    matrix = as_host_array("initiator", initiator)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not 2 <= matrix.shape[0] <= 2**16:
        raise InvalidArgumentError(f"initiator must be a square matrix, from 2 x 2 on (got shape {matrix.shape})")
    if matrix.dtype.kind not in "iufb":
        raise InvalidArgumentError(f"initiator must hold numbers (got {matrix.dtype})")
    parts = matrix.astype(np.float64).ravel()
    if not (parts.min() >= 0 and 0 < parts.sum() < np.inf):
        raise InvalidArgumentError("initiator must hold finite numbers, not negative, with a positive sum")
    size, most = matrix.shape[0], 0
    while size ** (most + 1) <= MAX_VERTICES:
        most += 1
    sums = np.cumsum(parts)
    return _descend(size, check_int("scale", scale, 0, most), edge_factor, seed, sums[:-1] / sums[-1])


def _descend(
    size: int, scale: int, edge_factor: int, seed: int, sums: NDArray[np.float64], renumber: Renumber | None = None
) -> CSR:
    edge_factor = check_int("edge_factor", edge_factor, 0, 2**32)
    start, keys = permutation_keys(check_seed(seed))
    thresholds = np.array([round(min(p, 1) * 2**32) for p in sums.tolist()], np.uint64)
    n = size**scale
    bits = np.uint64((n - 1).bit_length())
    rows, columns = np.divmod(np.arange(size * size, dtype=np.uint64), np.uint64(size))
    limits = tuple(thresholds) if size == 2 else thresholds  # of a tuple, compiled code knows the length
    constants = scale, start, np.uint64(size), limits, rows, columns, np.uint64(n), bits, keys
    chunks = generate_edges(_descend_kernel, edge_factor * n, n, *constants)
    numbers = None if renumber is None else renumber(n, 2 * edge_factor * n)
    if numbers is not None:
        renumber_edges(chunks, numbers)
    return build_csr(chunks, n, symmetrize=True, deduplicate=True, remove_loops=True)


def _attach_kernel(first: int, edges: Any, seed: Any, sources: Any, targets: Any) -> None:  # pragma: no cover - compiled
    """Generate edges number `first` and on: the list of all ends has that of edge e in places 2 * e and 2 * e + 1."""
    for i in range(sources.size):
        edge = np.uint64(first + i)
        place = (edge << _ONE) | _ONE
        while place & _ONE:  # drawn from the places before it
            place = splitmix64(seed ^ ((place >> _ONE) * GOLDEN)) % place
        sources[i] = edge // edges
        targets[i] = (place >> _ONE) // edges


def barabasi_albert_csr(num_vertices: int, edges: int, seed: int) -> CSR:
    """Generate what `barabasi_albert` returns, on the host."""
    n = check_int("num_vertices", num_vertices, 0, MAX_VERTICES)
    edges = check_int("edges", edges, 0, 2**31 - 1)
    (start,) = hash_seeds(check_seed(seed), 1)
    chunks = generate_edges(_attach_kernel, n * edges, n, np.uint64(max(edges, 1)), start)
    return build_csr(chunks, n, symmetrize=True, deduplicate=True, remove_loops=True)
