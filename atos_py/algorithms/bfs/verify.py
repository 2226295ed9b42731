"""The proof that depths, and parents, are right: it knows nothing of how they were found."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...compile.host_kernels import compile_kernel, even_rows, first_found, parallel_map, ranges
from ...errors import VerificationError
from ...graph.csr import CSR
from ...graph.graph import Graph
from ..arguments import check_cutoff, check_sources, check_target, ends_of, first_of, largest_whole, per_vertex, rows_on_host
from ..frame import verifier

__all__ = ["verify_bfs"]

_CHUNK_VERTICES = 1 << 20
_CHUNK_EDGES = 1 << 20


def _edges_kernel(
    indptr: Any, indices: Any, depth: Any, unreached: Any, most: Any, has_parent: Any, first: int, end: int
) -> int:  # pragma: no cover - compiled
    """Flag vertices to which an edge of vertices `first` to `end` leads from a depth one less; return a bad edge or -1.

    It is the first one along which the depth grows by more than 1, from a depth below `most`.

    Threads share `has_parent`: all that any of them writes there is 1, so it does not matter who comes first.
    """
    for u in range(first, end):
        depth_u = depth[u]
        if depth_u == unreached:
            continue
        for edge in range(indptr[u], indptr[u + 1]):
            v = indices[edge]
            depth_v = depth[v]
            if depth_v > depth_u:
                if depth_v != unreached and depth_v - depth_u == 1:
                    has_parent[v] = 1
                elif depth_u < most:
                    return edge
    return -1


def _tree_kernel(
    indptr: Any, indices: Any, parent: Any, first: int, end: int, has_edge: Any
) -> None:  # pragma: no cover - compiled
    """Flag the vertices to which an edge leads from their parent, if that is one of `first` to `end`."""
    for u in range(first, end):
        for edge in range(indptr[u], indptr[u + 1]):
            v = indices[edge]
            if parent[v] == u:
                has_edge[v] = 1


@verifier
def verify_bfs(
    graph: Graph | CSR,
    sources: ArrayLike,
    depth: Any,
    parent: Any = None,
    *,
    target: int | None = None,
    cutoff: float | None = None,
) -> None:
    """Prove that depths are every vertex's distance, in edges, from the nearest source, and parents those on shortest paths.

    Four conditions are checked of depths. With D the value that says "unreached" (the largest of the dtype):

    1. every source has depth 0, and no other vertex has;
    2. no depth is negative;
    3. for every edge (u, v) with depth[u] != D: depth[v] != D and depth[v] <= depth[u] + 1;
    4. every vertex with a depth other than 0 and D is the target of an edge from a vertex whose depth is exactly one less.

    They suffice. Call d(v) the distance of v. *No depth is too large*: along a shortest path from a source, whose depth
    is 0 by (1), (3) lets the depth grow by at most one per edge and never become D, so depth[v] <= d(v) wherever d(v)
    is finite. *No depth is too small*: from a vertex with a finite depth k, (4) leads backwards over k edges through
    depths k - 1, k - 2, ... to a vertex of depth 0, which is a source by (1); so there is a path of k edges and d(v) <=
    k = depth[v]. Hence depth[v] = d(v) where either is finite, and so both are D or infinite together: a vertex that
    can be reached is not D by the first part, one that cannot has no finite depth by the second. They are necessary as
    well: true distances fulfill all of them.

    Given parents, a fifth: the parent of a source is itself; that of an unreached vertex is the largest value of the dtype; and
    from that of any other vertex an edge leads to it, and its depth is one less. So parents lead to a source, along d(v) edges.

    Of a search with a cutoff, no depth may be larger, and (3) is checked where depth[u] + 1 is within it; by the first part,
    restricted to such paths, each vertex with d(v) up to the cutoff has its distance, and by the second no other has a depth.
    Of one with a target, (3) is checked where depth[u] + 1 < depth[target], and (4) for the target and vertices less deep. A
    path to the target of fewer edges than its depth would have depths by (3) that grow by at most one per edge, up to the
    target's; (4) leads back from the target as before. So its depth is right, and those of vertices less deep are.

    The check reads every edge once, or twice with parents, needs one byte for each vertex, and knows nothing of how the
    result was found.

    Parameters
    ----------
    graph : Graph
        The graph; directed or not.
    sources : int or array of int
        Where the search began.
    depth : array
        The depths, of any integer type; one for each vertex.
    parent : array, optional
        The parents, of any integer type.
    target, cutoff : optional
        Those that the search was given.

    Raises
    ------
    VerificationError
        The depths or parents are wrong. The message names the first offending edge or vertex of the first condition that fails.

    Examples
    --------
    >>> graph = atos.generate.road(3, 1.0)
    >>> depth = atos.bfs(graph, 0).depth
    >>> atos.verify_bfs(graph, 0, depth)
    >>> depth[8] = 3
    >>> atos.verify_bfs(graph, 0, depth)
    Traceback (most recent call last):
    atos_py.errors.VerificationError: ...
    """
    indptr, indices = rows_on_host(graph)
    num_vertices = indptr.size - 1
    depths = per_vertex("depth", depth, num_vertices)
    parents = None if parent is None else per_vertex("parent", parent, num_vertices)
    starts = check_sources(sources, num_vertices)
    end, limit = check_target(target, num_vertices), check_cutoff(cutoff)
    final = depths != np.iinfo(depths.dtype).max  # the reached vertices whose depth is proved
    beyond = final & (depths > (np.inf if limit is None else max(limit, 0)))
    if (v := first_of(beyond)) >= 0:
        raise VerificationError(f"depth[{v}] is {depths[v]}, beyond the cutoff of {cutoff}")
    most = max(largest_whole(limit, int(np.iinfo(depths.dtype).max)), 0)
    if end is not None and final[end]:
        most = min(most, max(int(depths[end]) - 1, 0))
        final &= depths < depths[end]
        final[end] = True
    _verify_depths(indptr, indices, starts, depths, final, most)
    if parents is not None:
        _verify_parents(indptr, indices, starts, depths, parents, final)


def _shown(value: Any) -> str:
    return "unreached" if value == np.iinfo(value.dtype).max else str(value)


def _verify_depths(
    indptr: NDArray[Any],
    indices: NDArray[Any],
    starts: NDArray[Any],
    depths: NDArray[Any],
    final: NDArray[np.bool_],
    most: int,
) -> None:
    """Check conditions 1 to 4: that on edges from depths below `most`, and the last of final vertices."""
    wrong = starts[depths[starts] != 0]
    if wrong.size:
        raise VerificationError(
            f"depth[{wrong[0]}] is {_shown(depths[wrong[0]])}, but vertex {wrong[0]} is a source, so it must be 0"
        )
    unreached, bound = depths.dtype.type(np.iinfo(depths.dtype).max), depths.dtype.type(most)
    has_parent = np.zeros(depths.size, np.uint8)

    def check_vertices(piece: tuple[int, int]) -> int:
        part = depths[slice(*piece)]
        bad = final[slice(*piece)] & (has_parent[slice(*piece)] == 0)
        bad[starts[(starts >= piece[0]) & (starts < piece[1])] - piece[0]] = False
        if part.dtype.kind == "i":
            bad |= part < 0
        return piece[0] + int(np.argmax(bad)) if bad.any() else -1

    if (edge := first_found(_edges_kernel, indptr, indices, depths, unreached, bound, has_parent)) >= 0:
        u, v = ends_of(indptr, indices, edge)
        raise VerificationError(
            f"edge {u} -> {v} (number {edge}): depth[{u}] is {depths[u]}, so depth[{v}] must be at most "
            f"{int(depths[u]) + 1}, but it is {_shown(depths[v])}"
        )
    for vertex in parallel_map(check_vertices, ranges(depths.size, _CHUNK_VERTICES)):
        if vertex >= 0:
            found = int(depths[vertex])
            if found < 0:
                reason = "a depth cannot be negative"
            elif found == 0:
                reason = "only a source may have depth 0"
            else:
                reason = f"no edge leads to it from a vertex of depth {found - 1}"
            raise VerificationError(f"depth[{vertex}] is {found}, but {reason}")


def _verify_parents(
    indptr: NDArray[Any],
    indices: NDArray[Any],
    starts: NDArray[Any],
    depths: NDArray[Any],
    parents: NDArray[Any],
    final: NDArray[np.bool_],
) -> None:
    """Check condition 5 of final vertices, where the depths are right, and of those that are not reached."""
    has_edge = np.zeros(depths.size, np.uint8)
    kernel = compile_kernel(_tree_kernel)
    parallel_map(lambda piece: kernel(indptr, indices, parents, *piece, has_edge), even_rows(indptr, _CHUNK_EDGES))
    reached = depths != np.iinfo(depths.dtype).max
    inner = final & (depths > 0)
    known = inner & (has_edge != 0)
    bad = inner != known
    bad[known] = depths[parents[known]] != depths[known] - 1
    bad[starts] = parents[starts] != starts
    bad |= ~reached & (parents != np.iinfo(parents.dtype).max)
    if (v := first_of(bad)) >= 0:
        if not reached[v]:
            reason = "it is not reached, so it has none"
        elif not inner[v]:
            reason = "it is a source, which is its own"
        elif not known[v]:
            reason = "no edge leads from there to it"
        else:
            reason = f"depth[{v}] is {depths[v]}, and depth[{parents[v]}] is {_shown(depths[parents[v]])}"
        raise VerificationError(f"the parent of vertex {v} is {_shown(parents[v])}, but {reason}")
