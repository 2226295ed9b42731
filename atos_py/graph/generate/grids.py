"""Grids, whole, closed to rings and tori, or with holes as road networks have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...compile.host_kernels import parallel_map, ranges
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

_2, _32, _ALL = np.uint64(2), np.uint64(32), 2**32
_CHUNK_VERTICES = 1 << 16  # whose arrays stay in a cache


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


class _Grid(NamedTuple):
    """Extents, periodicity and edge probability of a grid, whose vertices are joined to the next ones along each axis."""

    layers: int
    rows: int
    columns: int
    periodic: bool
    seed: np.uint64
    keep: int  # of 2**32 edges in a layer

    def neighbors(self, lines: tuple[int, int], *, only_there: bool = False) -> tuple[NDArray[np.bool_], NDArray[np.uint32]]:
        """Return which neighbors the vertices of some lines have, of two along each axis in ascending order, and their ids.

        Edge ``2 * v`` joins vertex v to the one on its right, edge ``2 * v + 1`` to the one below; those between layers stay.
        With `only_there` the ids may be anything.
        """
        line, column = np.arange(*lines)[:, None], np.arange(self.columns)[None, :]
        v = line * self.columns + column
        layer, row = line // self.rows, line % self.rows
        axes = [(layer, self.layers, self.rows * self.columns), (row, self.rows, self.columns), (column, self.columns, 1)]
        along = [axis for axis in axes if axis[1] > 1]
        sides = 2 * len(along)
        there = np.empty((*v.shape, sides), np.bool_)
        ids = np.empty((0 if only_there else len(v), self.columns, sides), np.uint32)
        for number, (at, extent, stride) in enumerate(along):
            for direction, exists, step in ((number, at > 0, -stride), (-1 - number, at < extent - 1, stride)):
                u = v + step
                if self.periodic and extent > 2:  # otherwise it is the vertex itself, or there on the other side
                    u, exists = np.where(exists, u, u - extent * step), np.ones_like(exists)
                if at is not layer and self.keep < _ALL:
                    edge = np.minimum(u, v).view(np.uint64) * _2 + np.uint64(at is row)
                    exists = exists & (splitmix64(self.seed ^ (edge * GOLDEN)) >> _32 < self.keep)
                there[..., direction] = exists
                if not only_there:
                    ids[..., direction] = u
        return there.reshape(v.size, sides), ids.reshape(len(ids) * self.columns, sides)


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
    (start,) = hash_seeds(seed, 1)
    grid = _Grid(extents[0], extents[1], extents[2], periodic, start, round(keep * 2**32))
    pieces = ranges(extents[0] * extents[1], max(1, _CHUNK_VERTICES // max(extents[2], 1)))

    def count(lines: tuple[int, int]) -> None:
        there, _ = grid.neighbors(lines, only_there=True)
        indptr[1 + lines[0] * grid.columns : 1 + lines[1] * grid.columns] = there.sum(axis=1)

    def fill(lines: tuple[int, int]) -> None:
        there, ids = grid.neighbors(lines)
        if periodic:  # in another order than the directions
            ids[~there] = MAX_VERTICES
            ids.sort(axis=1)
            there = np.arange(there.shape[1]) < there.sum(axis=1)[:, None]
        indices[indptr[lines[0] * grid.columns] : indptr[lines[1] * grid.columns]] = ids[there]

    indptr = np.zeros(n + 1, indptr_dtype(edges))
    parallel_map(count, pieces)
    np.cumsum(indptr, out=indptr)
    indptr = indptr.astype(indptr_dtype(int(indptr[-1])), copy=False)
    indices = np.empty(int(indptr[-1]), np.uint32)
    parallel_map(fill, pieces)
    return CSR(indptr, indices, None)


def road_csr(side: int, keep: float, seed: int) -> CSR:
    """Generate what `road` returns, on the host."""
    side = check_int("side", side, 0, int(MAX_VERTICES**0.5))
    keep = check_float("keep", keep)
    if not 0 <= keep <= 1:
        raise InvalidArgumentError(f"keep must be a probability, 0 to 1 (got {keep})")
    return grid_csr((1, side, side), keep=keep, seed=seed)
