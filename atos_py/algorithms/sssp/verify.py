"""The proof that distances, and predecessors, are right: it knows nothing of how they were found."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arrays.array import to_host
from ...compile.host_kernels import compile_kernel, even_rows, first_found, parallel_map
from ...errors import InvalidArgumentError, UnsupportedTypeError, VerificationError
from ...graph.csr import CSR
from ...graph.graph import Graph
from ...graph.weight_range import refuse_negative
from ...support.validation import as_host_array
from ..arguments import check_cutoff, check_sources, check_target, ends_of, first_of, largest_whole, per_vertex, rows_on_host
from ..frame import verifier

__all__ = ["verify_sssp"]

_CHUNK_EDGES = 1 << 20
_LEADS_BACK, _UNKNOWN, _MEANT = 1, 2, 3  # what the walk along predecessors knows of a vertex; 0 if nothing yet


def _add(length: Any, weight: Any, distance: Any, top: Any) -> Any:  # pragma: no cover - compiled
    """Return the length of a path with one more edge, in the type of distances; `top` if that cannot tell it."""
    return top if weight > top - length else distance.dtype.type(length + weight)


def _edges_kernel(
    indptr: Any, indices: Any, weights: Any, distance: Any, bounds: Any, limit: Any, farther: Any, first: int, end: int
) -> int:  # pragma: no cover - compiled
    """Check the edges of vertices `first` to `end`; return the first one that would shorten a distance, or -1.

    What is longer than `limit`, or no shorter than the second of the `bounds`, is left alone; the first is that of no path.
    Vertices to which a tight edge leads from a smaller distance are flagged; all that any thread writes there is 1.
    """
    top, final = bounds[0], bounds[1]
    for u in range(first, end):
        length = distance[u]
        if length == top:
            continue
        for edge in range(indptr[u], indptr[u + 1]):
            through, found = _add(length, weights[edge], distance, top), distance[indices[edge]]
            if through == found:
                if length < found:
                    farther[indices[edge]] = 1
            elif through < found and through <= limit and through < final:
                return edge
    return -1


def _level_kernel(
    indptr: Any, indices: Any, weights: Any, distance: Any, top: Any, rooted: Any, stack: Any
) -> None:  # pragma: no cover - compiled
    """Flag what tight edges between equal distances lead to from vertices that are flagged."""
    count = 0
    for v in range(distance.size):
        if rooted[v]:
            stack[count] = v
            count += 1
    while count > 0:
        count -= 1
        u = stack[count]
        for edge in range(indptr[u], indptr[u + 1]):
            v = indices[edge]
            if not rooted[v] and distance[v] == distance[u] and _add(distance[u], weights[edge], distance, top) == distance[u]:
                rooted[v] = 1
                stack[count] = v
                count += 1


def _tree_kernel(
    indptr: Any, indices: Any, weights: Any, distance: Any, top: Any, predecessor: Any, first: int, end: int, known: Any
) -> None:  # pragma: no cover - compiled
    """Flag the vertices to which a tight edge leads from their predecessor, if that is one of `first` to `end`."""
    for u in range(first, end):
        if distance[u] != top:
            for edge in range(indptr[u], indptr[u + 1]):
                v = indices[edge]
                if predecessor[v] == u and _add(distance[u], weights[edge], distance, top) == distance[v]:
                    known[v] = 1


def _walk_kernel(predecessor: Any, chosen: Any, state: Any) -> int:  # pragma: no cover - compiled
    """Return the first of the chosen vertices whose predecessors do not lead to one that is known to lead back, or -1."""
    for v in range(predecessor.size):
        if chosen[v]:
            u = v
            while state[u] == 0:
                state[u] = _MEANT
                u = predecessor[u]
            if state[u] != _LEADS_BACK:
                return v
            u = v
            while state[u] == _MEANT:
                state[u] = _LEADS_BACK
                u = predecessor[u]
    return -1


@verifier
def verify_sssp(
    graph: Graph | CSR,
    sources: ArrayLike,
    distance: Any,
    predecessor: Any = None,
    *,
    target: int | None = None,
    cutoff: float | None = None,
) -> None:
    """Prove that distances are those of every vertex from the nearest source, and predecessors those on shortest paths.

    An edge (u, v) of weight w is *tight* if distance[u] + w == distance[v], added in the type of the distances. With D the
    value of no path, infinity or the largest of an integer type, these conditions are checked:

    1. every source has distance 0, and no distance is negative or NaN;
    2. for every edge (u, v) with distance[u] != D: distance[v] <= distance[u] + w;
    3. tight edges lead to every vertex whose distance is not D, from a source.

    They suffice. *No distance is too large*: along a shortest path from a source, whose distance is 0 by (1), (2) lets
    distances grow by at most the weight of each edge, so that at its end distance[v] <= d(v), the true one. *No distance is too
    small*: by (3) some path from a source to v has tight edges only, so its length is distance[v], and d(v) <= distance[v]. In
    particular, v is at D only if no path leads there. They are necessary as well: the last edge of a shortest path is tight,
    as are those before it. Rounding changes nothing of that if d(v) is the least rounded sum, since adding a weight
    keeps the order of two sums.

    (3) needs no search where a tight edge comes from a smaller distance: followed back, such edges come to an end, which is a
    source. Vertices without one are searched for along tight edges between equal distances (weights of 0, or lost in
    rounding) from those that have one and from the sources. So a cycle of weight 0 that explains nothing but itself is found.

    Of a search with a cutoff, no distance may be larger but the 0 of a source, and (2) is checked where the sum is within it.
    Of one with a target, (2) is checked where the sum is less than distance[target], and (3) for the target and what is nearer.
    A path that is shorter than distance[target] then has distances by (2) that grow by at most its weights, up to that of the
    target, which would be less than it is.

    Given predecessors, a fourth: the predecessor of a source and of a vertex at D is -1; from that of any other vertex, a tight
    edge leads to it; and predecessors lead to a source, not round in a cycle of equal distances.

    Parameters
    ----------
    graph : Graph
        The graph; directed or not; without weights each edge has the length 1.
    sources : int or array of int
        Where the search began.
    distance : array
        One for each vertex: float32, float64, or integers of at most 63 bits.
    predecessor : array of int, optional
        One for each vertex.
    target, cutoff : optional
        Those that the search was given.

    Raises
    ------
    VerificationError
        The distances or predecessors are wrong. The message names an offending edge or vertex.

    Examples
    --------
    >>> graph = atos.Graph.from_edges([0, 0, 1], [1, 2, 2], weights=[5, 9, 3])
    >>> atos.verify_sssp(graph, 0, [0, 5, 8], [-1, 0, 1])
    >>> atos.verify_sssp(graph, 0, [0, 5, 9])
    Traceback (most recent call last):
    atos_py.errors.VerificationError: ...
    """
    indptr, indices = rows_on_host(graph)
    n = indptr.size - 1
    weights = _weights_on_host(graph)
    distances, top = _distances(distance, n, weights)
    predecessors = None if predecessor is None else per_vertex("predecessor", predecessor, n).astype(np.int64)
    starts, end, limit = check_sources(sources, n), check_target(target, n), check_cutoff(cutoff)
    final = distances != top  # the reached vertices whose distance is proved
    _check_values(distances, top, starts, limit)
    bound = top
    if end is not None and final[end]:
        bound = distances[end]
        final &= distances < bound
        final[end] = True
    if limit is None:
        limit = top
    elif distances.dtype.kind == "i":
        limit = largest_whole(limit, int(top))
    edges = indptr, indices, weights, distances
    rooted = _verify_edges(edges, top, bound, limit)
    rooted[starts] = 1
    if (final & (rooted == 0)).any():
        rooted[distances == top] = 0
        compile_kernel(_level_kernel)(*edges, top, rooted, np.empty(n, np.uint32))
        lost = final & (rooted == 0)
        if (v := first_of(lost)) >= 0:
            raise VerificationError(f"distance[{v}] is {distances[v]}, but no tight edges lead there from a source")
    if predecessors is not None:
        _verify_tree(edges, top, starts, final, predecessors)


def _weights_on_host(graph: Graph | CSR) -> NDArray[Any]:
    """Return a weight for each edge, none of them negative, which compiled code may add to an int64."""
    if graph.weights is None:
        return np.broadcast_to(np.int64(1), graph.indices.size)
    weights = np.asarray(graph.weights)
    refuse_negative(weights)
    return np.minimum(weights, 2**63 - 1).astype(np.int64) if weights.dtype == np.uint64 else weights


def _distances(distance: Any, n: int, weights: NDArray[Any]) -> tuple[NDArray[Any], Any]:
    """Return distances as floats or int64, and the value of no path."""
    given = np.ascontiguousarray(as_host_array("distance", to_host(distance)))
    kind = given.dtype
    if (
        kind.kind not in "iuf"
        or kind == np.uint64
        or kind.itemsize not in (4, 8)
        or (kind.kind != "f" and weights.dtype.kind == "f")
    ):
        raise UnsupportedTypeError(
            f"distances along weights of {weights.dtype} must be "
            f"{'' if weights.dtype.kind == 'f' else 'int32, uint32, int64, '}float32 or float64, not {kind}"
        )
    if given.shape != (n,):
        raise InvalidArgumentError(f"distance must have one entry for each of {n} vertices (got shape {given.shape})")
    if kind.kind == "f":
        return given.astype(kind.newbyteorder("="), copy=False), kind.type(np.inf)
    top = np.int64(2**63 - 1)
    found = given.astype(np.int64)
    found[given == np.iinfo(kind).max] = top
    return found, top


def _check_values(distances: NDArray[Any], top: Any, starts: NDArray[Any], limit: int | float | None) -> None:
    """Check condition 1, and that no distance is beyond the cutoff."""
    bad = ~(distances >= 0)
    if (v := first_of(bad)) >= 0:
        raise VerificationError(f"distance[{v}] is {distances[v]}, but a distance is at least 0")
    wrong = starts[distances[starts] != 0]
    if wrong.size:
        v = int(wrong[0])
        raise VerificationError(f"distance[{v}] is {_shown(distances[v], top)}, but vertex {v} is a source, so it must be 0")
    if limit is not None:
        bad = (distances != top) & (distances > limit)
        bad[starts] = False
        if (v := first_of(bad)) >= 0:
            raise VerificationError(f"distance[{v}] is {distances[v]}, beyond the cutoff of {limit}")


def _verify_edges(edges: tuple[NDArray[Any], ...], top: Any, bound: Any, limit: Any) -> NDArray[np.uint8]:
    """Check condition 2; return whether a tight edge leads to each vertex from a smaller distance."""
    indptr, indices, weights, distances = edges
    farther = np.zeros(distances.size, np.uint8)
    bounds = np.array([top, bound], distances.dtype)

    if (edge := first_found(_edges_kernel, *edges, bounds, limit, farther)) >= 0:
        u, v = ends_of(indptr, indices, edge)
        raise VerificationError(
            f"edge {u} -> {v} (number {edge}) of weight {weights[edge]}: distance[{u}] is {distances[u]}, so distance[{v}] "
            f"must be at most {distances[u] + weights[edge]}, but it is {_shown(distances[v], top)}"
        )
    return farther


def _verify_tree(
    edges: tuple[NDArray[Any], ...], top: Any, starts: NDArray[Any], final: NDArray[np.bool_], predecessors: NDArray[np.int64]
) -> None:
    """Check condition 4 of final vertices, where the distances are right, and of those that are not reached."""
    indptr, _, _, distances = edges
    known = np.zeros(distances.size, np.uint8)
    kernel = compile_kernel(_tree_kernel)
    parallel_map(lambda piece: kernel(*edges, top, predecessors, *piece, known), even_rows(indptr, _CHUNK_EDGES))
    none = distances == top
    none[starts] = True
    chosen = final & ~none
    bad = (none & (predecessors != -1)) | (chosen & (known == 0))
    if (v := first_of(bad)) >= 0:
        reason = "it is a source or not reached, so it has none (-1)" if none[v] else "no tight edge leads from there to it"
        raise VerificationError(f"the predecessor of vertex {v} is {predecessors[v]}, but {reason}")
    state = np.where(known, 0, _UNKNOWN).astype(np.uint8)
    state[starts] = _LEADS_BACK
    inner = np.flatnonzero(known)
    state[inner[distances[predecessors[inner]] < distances[inner]]] = _LEADS_BACK
    v = int(compile_kernel(_walk_kernel)(predecessors, chosen, state))
    if v >= 0:
        raise VerificationError(f"the predecessors of vertex {v} do not lead to a source, but round in a cycle of weight 0")


def _shown(value: Any, top: Any) -> str:
    return "that of no path" if value == top else str(value)
