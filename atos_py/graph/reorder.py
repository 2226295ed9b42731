"""Orders of the vertices of a graph by which neighbors get similar ids: level by level, on the device of the graph.

A search proceeds in all components at once. The vertices that a level reaches for the first time come in the order of their
first neighbor in the level before, and of those with the same first neighbor the ones of few edges first, which is the order
of Cuthill and McKee; or in the order of that neighbor's edges, which is that of a breadth-first search. On the CPU that is a
queue in compiled code. On a GPU the vertices of each level are sorted at once, which gives the same, in some twenty operations
on arrays for each level.

For `rcm` the search begins at the end of a component: from a vertex of few edges in the last level of a search, searched again
from there, as long as that finds more levels (George and Liu).

Sources: Cuthill and McKee, "Reducing the bandwidth of sparse symmetric matrices", ACM National Conference 1969; George and Liu,
"An implementation of a pseudoperipheral node finder", ACM TOMS 5 (1979); Azad, Jacquelin, Buluç and Ng, "The reverse
Cuthill-McKee algorithm in distributed-memory", IPDPS 2017.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.array import Array
from ..arrays.compute import compute
from ..compile.host_kernels import compile_kernel
from ..errors import InvalidArgumentError
from ..support.splitmix64 import GOLDEN, splitmix64
from ..support.validation import check_int
from .components import component_labels
from .graph_arrays import GraphArrays
from .row_arrays import row_edges, stable_order

__all__ = ["ORDERS", "check_order", "order_vertices", "random_order"]

ORDERS = ("bfs", "rcm", "degree", "random")
_32 = np.uint64(32)
_MOST_SWEEPS = 8  # of searches for the end of a component; nearly all end earlier


def check_order(order: Any) -> str:
    """Return the name of an order; raise if it is none."""
    if not isinstance(order, str) or order not in ORDERS:
        raise InvalidArgumentError(f"order must be one of {', '.join(ORDERS)} (got {order!r:.80})")
    return order


def order_vertices(graph: GraphArrays, order: str, seed: int) -> Array:
    """Return the vertices in an order, as uint32; those by levels of a symmetric graph only."""
    start = _start(seed)
    if order == "degree":
        return compute(lambda xp, indptr: (_argsort(xp, -_degrees(xp, indptr)),), graph.indptr)[0]
    if order == "random":
        return compute(lambda xp, indptr: (_shuffle(xp, indptr.size - 1, start),), graph.indptr)[0]
    arrays = graph.indptr, graph.indices, component_labels(graph)
    return compute(reverse_cuthill_mckee if order == "rcm" else breadth_first, *arrays)[0]


def random_order(num_vertices: int, seed: int) -> NDArray[np.uint32]:
    """Return the vertices of a graph in the order "random" on the host; it depends on their number alone."""
    return _shuffle(np, num_vertices, _start(seed))  # type: ignore[no-any-return]


def _start(seed: int) -> np.uint64:
    return splitmix64(np.array([check_int("seed", seed, 0, 2**64 - 1)], np.uint64) + GOLDEN)[0]  # type: ignore[no-any-return]


def _degrees(xp: Any, indptr: Any) -> Any:
    return (indptr[1:] - indptr[:-1]).astype(np.int64)


def _argsort(xp: Any, keys: Any) -> Any:
    return stable_order(xp, keys).astype(np.uint32)


def _shuffle(xp: Any, n: int, start: Any) -> Any:
    return _argsort(xp, splitmix64((xp.arange(n, dtype=np.uint64) * GOLDEN) ^ start))


def breadth_first(xp: Any, indptr: Any, indices: Any, label: Any) -> tuple[Any]:
    """Return the vertices in the order of a search from the smallest vertex of each component; for `compute`."""
    roots = xp.flatnonzero(label == xp.arange(label.size, dtype=np.uint32)).astype(np.uint32)
    return (_by_component(xp, _search(xp, indptr, indices, roots, None)[0], label),)


def reverse_cuthill_mckee(xp: Any, indptr: Any, indices: Any, label: Any) -> tuple[Any]:
    """Return the vertices in reverse Cuthill-McKee order; for `compute`."""
    degree = _degrees(xp, indptr).astype(np.uint64)
    level = xp.zeros(label.size, np.int64)
    roots, _ = _ends(xp, level, degree, label)
    chosen, depth = roots.copy(), xp.full(roots.size, -1)
    open_ends = xp.arange(roots.size)  # components whose end may lie further away
    for _ in range(_MOST_SWEEPS):
        _, level = _search(xp, indptr, indices, chosen[open_ends], None)
        found, levels = _ends(xp, level, degree, label)
        further = levels > depth[open_ends]
        open_ends = open_ends[further]
        if not open_ends.size:
            break
        depth[open_ends] = levels[further]
        chosen[open_ends] = found[further]
    order, _ = _search(xp, indptr, indices, chosen, degree)
    return (_by_component(xp, order, label)[::-1],)


def _ends(xp: Any, level: Any, degree: Any, label: Any) -> tuple[Any, Any]:
    """Return, of each component searched, by labels, the vertex of fewest edges in its last level, and that level."""
    if xp is np:
        best = np.full(level.size, -1)
        compile_kernel(_ends_kernel)(level, degree, label, best)
        ends = best[best >= 0]
        return ends.astype(np.uint32), level[ends]
    searched = xp.flatnonzero(level >= 0)
    most = int(level.max()) if level.size else 0
    order = searched[stable_order(xp, (most - level[searched]).astype(np.uint64) << _32 | degree[searched])]
    order = order[stable_order(xp, label[order])]
    first = xp.ones(order.size, bool)
    first[1:] = label[order[1:]] != label[order[:-1]]
    ends = order[first]
    return ends.astype(np.uint32), level[ends]


def _ends_kernel(level: Any, degree: Any, label: Any, best: Any) -> None:  # pragma: no cover - compiled
    """Leave the end of each component at its label in `best`, which is -1 elsewhere."""
    for v in range(level.size):
        if level[v] >= 0:
            other = best[label[v]]
            if other < 0 or level[v] > level[other] or (level[v] == level[other] and degree[v] < degree[other]):
                best[label[v]] = v


def _by_component(xp: Any, order: Any, label: Any) -> Any:
    return order[stable_order(xp, label[order])]


def _search(xp: Any, indptr: Any, indices: Any, roots: Any, degree: Any) -> tuple[Any, Any]:
    """Return what is reached from the roots, level by level, and the level of each vertex, or -1; low `degree` comes first."""
    if xp is not np:
        return search_levels(xp, indptr, indices, roots, degree)
    level, order = np.full(indptr.size - 1, -1), np.empty(indptr.size - 1, np.uint32)
    order[: roots.size] = roots
    count = compile_kernel(_search_kernel)(indptr, indices, degree, level, order, roots.size, np.empty_like(order, np.uint64))
    return order[:count], level


def _search_kernel(
    indptr: Any, indices: Any, degree: Any, level: Any, order: Any, count: int, keys: Any
) -> int:  # pragma: no cover - compiled
    """Search from the first `count` vertices of `order`, append what is reached, and return how many there are then."""
    for i in range(count):
        level[order[i]] = 0
    at = 0
    while at < count:
        v = order[at]
        at += 1
        first = count
        for edge in range(indptr[v], indptr[v + 1]):
            u = indices[edge]
            if level[u] < 0:
                level[u] = level[v] + 1
                order[count] = u
                count += 1
        if degree is not None and count > first + 1:
            for i in range(first, count):
                keys[i] = degree[order[i]] << _32 | np.uint64(order[i])
            keys[first:count].sort()
            for i in range(first, count):
                order[i] = np.uint32(keys[i])
    return count


def search_levels(xp: Any, indptr: Any, indices: Any, roots: Any, degree: Any) -> tuple[Any, Any]:
    """Do the same by sorting each level; for `compute`."""
    level = xp.full(indptr.size - 1, -1)
    level[roots] = 0
    frontier, parts = roots, [roots]
    while frontier.size:
        edges, rows = row_edges(xp, indptr, frontier)
        ends = indices[edges]
        new = xp.flatnonzero(level[ends] < 0)
        order = new[stable_order(xp, ends[new])]
        ends = ends[order]
        first = xp.ones(ends.size, bool)
        first[1:] = ends[1:] != ends[:-1]
        ends, order = ends[first], order[first]  # each vertex once, with its first edge
        keys = order if degree is None else (rows[order].astype(np.uint64) << _32) | degree[ends]
        frontier = ends[stable_order(xp, keys)]
        level[frontier] = len(parts)
        parts.append(frontier)
    return xp.concatenate(parts), level
