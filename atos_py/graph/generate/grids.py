"""Grids, whole, closed to rings and tori, or with holes as road networks have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...compile.host_kernels import compile_kernel, parallel_map, ranges
from ...errors import InvalidArgumentError
from ...support.host_memory import host_memory_for
from ...support.splitmix64 import GOLDEN, splitmix64
from ...support.validation import check_bool, check_float, check_int, require_host_memory
from ..csr import CSR, MAX_VERTICES, indptr_dtype
from ..graph import Graph
from .hashing import check_seed, hash_seeds

if TYPE_CHECKING:
    from ...core.devices import Device

__all__ = ["grid2d", "grid3d", "road", "road_csr"]

_32, _ALL = np.uint64(32), np.uint64(2**32)
_CHUNK_EDGES = 1 << 20


@host_memory_for("generate.grid2d")
def grid2d(rows: int, columns: int, *, periodic: bool = False, device: Device | str | None = None) -> Graph:
    """Generate a grid of ``rows * columns`` vertices, each joined to its neighbors in its row and its column.

    Vertex ``row * columns + column``; neighbors are in ascending order.

    Parameters
    ----------
    rows, columns : int
        Vertices in each direction.
    periodic : bool
        Whether the last row and column are joined to the first: a torus.
    device : Device or str, optional
        Where the graph goes; the best device there is unless given.

    See Also
    --------
    road : a square one with holes.

    Raises
    ------
    InvalidArgumentError
        If a number is negative, or there are more than 2**32 - 1 vertices.

    Examples
    --------
    >>> atos.generate.grid2d(2, 3)
    Graph(6 vertices, 14 directed edges, no weights, on cpu)
    """
    return Graph.from_csr(*grid_csr((1, rows, columns), periodic, names=("rows", "columns")), device=device)


@host_memory_for("generate.grid3d")
def grid3d(layers: int, rows: int, columns: int, *, periodic: bool = False, device: Device | str | None = None) -> Graph:
    """Generate a grid of ``layers * rows * columns`` vertices, each joined to its neighbors along three axes.

    Vertex ``(layer * rows + row) * columns + column``; neighbors are in ascending order.

    Parameters
    ----------
    layers, rows, columns : int
        Vertices in each direction.
    periodic : bool
        Whether the last layer, row and column are joined to the first.
    device : Device or str, optional
        Where the graph goes; the best device there is unless given.

    Raises
    ------
    InvalidArgumentError
        If a number is negative, or there are more than 2**32 - 1 vertices.

    Examples
    --------
    >>> atos.generate.grid3d(2, 2, 2)
    Graph(8 vertices, 24 directed edges, no weights, on cpu)
    """
    return Graph.from_csr(*grid_csr((layers, rows, columns), periodic, names=("layers", "rows", "columns")), device=device)


@host_memory_for("generate.road")
def road(side: int, keep: float = 0.62, seed: int = 0, *, device: Device | str | None = None) -> Graph:
    """Generate a road-like graph: a grid of ``side * side`` vertices, in which each edge is kept with probability `keep`.

    Vertex ``row * side + column`` is joined to its neighbors above, to the left, to the right and below, in this
    (ascending) order. Above a `keep` of 0.5 most vertices are in one component, and the nearer to 0.5, the more winding
    its paths. With 1 it is ``grid2d(side, side)``.

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

    Raises
    ------
    InvalidArgumentError
        If `side` or `keep` is out of its range.

    Examples
    --------
    >>> atos.generate.road(3, 1.0)
    Graph(9 vertices, 24 directed edges, no weights, on cpu)
    """
    return Graph.from_csr(*road_csr(side, keep, seed), device=device)


def _grid_kernel(
    first: int, end: int, layers: int, rows: int, columns: int, periodic: bool, seed: Any, keep: Any, indptr: Any, indices: Any
) -> None:  # pragma: no cover - compiled
    """Go through some lines of the grid: leave degrees at ``indptr[vertex + 1]``, or fill in `indices` if these have any room.

    One kernel does both, since Numba takes longer for a second one than most grids do. Edge ``2 * v`` joins vertex ``v`` to the
    one on its right, edge ``2 * v + 1`` to the one below; those between layers stay.
    """
    fills = indices.size > 0
    for line in range(first, end):
        layer = line // rows
        row = line - layer * rows
        for column in range(columns):
            v = line * columns + column
            begin = np.int64(indptr[v]) if fills else np.int64(0)
            place = begin
            for direction in range(6):
                if direction == 0 or direction == 5:
                    at, extent, stride = layer, layers, rows * columns
                elif direction == 1 or direction == 4:
                    at, extent, stride = row, rows, columns
                else:
                    at, extent, stride = column, columns, 1
                if direction < 3:
                    exists, u = at > 0, v - stride
                else:
                    exists, u = at < extent - 1, v + stride
                if periodic and not exists and extent > 2:  # otherwise it is the vertex itself, or there on the other side
                    exists, u = True, v + (extent - 1) * stride if direction < 3 else v - at * stride
                if exists and keep < _ALL and 0 < direction < 5:
                    edge = 2 * min(u, v) + (direction == 1 or direction == 4)
                    exists = splitmix64(seed ^ (np.uint64(edge) * GOLDEN)) >> _32 < keep
                if exists:
                    if fills:
                        indices[place] = u
                    place += 1
            if not fills:
                indptr[v + 1] = place
            elif periodic:  # in another order than the directions
                for i in range(begin + 1, place):
                    neighbor = indices[i]
                    while i > begin and indices[i - 1] > neighbor:
                        indices[i] = indices[i - 1]
                        i -= 1
                    indices[i] = neighbor


def grid_csr(
    shape: tuple[int, int, int],
    periodic: bool = False,
    keep: float = 1.0,
    seed: int = 0,
    names: tuple[str, ...] = ("layers", "rows", "columns"),
) -> CSR:
    """Generate a grid on the host: once to count, once to write, so with no memory beyond the graph's."""
    given = [check_int(name, value, 0, MAX_VERTICES) for name, value in zip(names, shape[-len(names) :], strict=True)]
    extents = (*shape[: -len(names)], *given)
    periodic, seed, n = check_bool("periodic", periodic), check_seed(seed), int(np.prod(extents, dtype=object))
    if n > MAX_VERTICES:
        raise InvalidArgumentError(f"a graph has at most {MAX_VERTICES} vertices (got {' * '.join(map(str, extents))} = {n})")
    edges = 2 * sum(extent > 1 for extent in extents) * n
    require_host_memory(f"a grid of {' x '.join(map(str, given))} vertices", 4 * (n + round(edges * keep)))
    threshold = np.uint64(round(keep * 2**32))
    (start,) = hash_seeds(seed, 1)
    pieces = ranges(extents[0] * extents[1], max(1, _CHUNK_EDGES // max(extents[2], 1)))

    def go_through(indptr: NDArray[Any], indices: NDArray[np.uint32]) -> None:
        numbers = *extents, periodic, start, threshold, indptr, indices
        parallel_map(lambda piece: compile_kernel(_grid_kernel)(*piece, *numbers), pieces)

    indptr = np.zeros(n + 1, indptr_dtype(edges))
    go_through(indptr, np.empty(0, np.uint32))
    np.cumsum(indptr, out=indptr)
    indptr = indptr.astype(indptr_dtype(int(indptr[-1])), copy=False)
    indices = np.empty(int(indptr[-1]), np.uint32)
    go_through(indptr, indices)
    return CSR(indptr, indices, None)


def road_csr(side: int, keep: float, seed: int) -> CSR:
    """Generate what `road` returns, on the host."""
    side = check_int("side", side, 0, int(MAX_VERTICES**0.5))
    keep = check_float("keep", keep)
    if not 0 <= keep <= 1:
        raise InvalidArgumentError(f"keep must be a probability, 0 to 1 (got {keep})")
    return grid_csr((1, side, side), keep=keep, seed=seed)
