"""Breadth-first search, speculatively: vertices of different depths are visited at the same time.

An item of the queue is a vertex to be visited. Visiting it lowers the depth of each neighbour to one more than its own, and
pushes the neighbours whose depth went down. A vertex that was visited too early, with a depth that is not yet its smallest, is
pushed again when a better one arrives: work is wasted then, but the depths come out right in any order, which is why no barrier
between levels is needed. With `barrier=True` the same task visits level after level and pushes each vertex once.

Source: Chen et al., "Atos: A Task-Parallel GPU Scheduler for Graph Analytics", ICPP 2022, Algorithms 1 and 2.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..array import Array, full
from ..errors import InvalidArgumentError, UnsupportedTypeError, VerificationError
from ..graph import Graph
from ..parallel import compiled, parallel_map, ranges
from ..program import WORKERS
from ..queue import Queue
from ..stats import LaunchStats
from ..task import atomic_min, task

__all__ = ["UNREACHED", "BFSResult", "bfs", "verify"]

UNREACHED = np.uint32(0xFFFF_FFFF)


def degree(v, graph, depth):  # type: ignore[no-untyped-def]
    """Return the number of neighbours, where they begin, and the depth that they get."""
    first = graph.indptr[v]
    return graph.indptr[v + 1] - first, first, depth[v] + 1


@task(workload=degree)
def visit(worker, v, i, first, next_depth, graph, depth):  # type: ignore[no-untyped-def]
    """Relax edge i of vertex v."""
    neighbor = graph.indices[first + i]
    if atomic_min(depth, neighbor, next_depth) > next_depth:
        worker.push(neighbor)


class BFSResult(NamedTuple):
    """What `bfs` returns.

    Attributes
    ----------
    depth : Array
        Edges from the source to each vertex, uint32; `UNREACHED` (2**32 - 1) where there is no path.
    stats : LaunchStats
    """

    depth: Array
    stats: LaunchStats


def bfs(graph: Graph, source: int, *, worker: str = "cta", capacity: int | None = None, **launch_options: Any) -> BFSResult:
    """Return the number of edges on the shortest path from a source to every vertex.

    Parameters
    ----------
    graph : Graph
        Its out-edges are followed; the search runs on its device.
    source : int
        The vertex to start from.
    worker : str
        "thread", "warp" or "cta".
    capacity : int, optional
        Of the queue; by default room for every vertex twice.
    **launch_options
        As for `Queue.launch_cta`: `persistent`, `barrier`, `fetch_size`, `num_blocks`, `num_threads`, ...

    Returns
    -------
    BFSResult

    Raises
    ------
    InvalidArgumentError
        If there is no such vertex, or no such worker.
    QueueFullError
        If so many vertices wait at once that the queue is too small.
    """
    if worker not in WORKERS:
        raise InvalidArgumentError(f"worker must be one of {', '.join(WORKERS)} (got {worker!r})")
    if not 0 <= source < graph.num_vertices:
        raise InvalidArgumentError(f"source {source} is not a vertex: there are {graph.num_vertices}, numbered from 0")
    device = graph.device
    depth = full(graph.num_vertices, UNREACHED, dtype=np.uint32, device=device)
    depth[source] = 0
    queue = Queue(capacity or 2 * graph.num_vertices, device=device)
    queue.push(source)
    stats = getattr(queue, f"launch_{worker}")(visit, graph, depth, **launch_options)
    return BFSResult(depth, stats)


_CHUNK_VERTICES = 1 << 20
_CHUNK_EDGES = 1 << 20


class _Rows(Protocol):
    """What is needed of a graph: a `Graph` will do, or a `CSR`."""

    @property
    def indptr(self) -> Any: ...
    @property
    def indices(self) -> Any: ...


def _edges_kernel(
    indptr: Any, indices: Any, depth: Any, unreached: Any, first: int, end: int, has_parent: Any
) -> int:  # pragma: no cover - compiled
    """Check the edges of vertices `first` to `end`, flag vertices that have a parent; return the first bad edge or -1.

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
                if depth_v - depth_u > 1:
                    return edge
                has_parent[v] = 1
    return -1


def verify(graph: _Rows, sources: ArrayLike, depth: Any) -> None:
    """Prove that `depth` holds every vertex's distance, in edges, from the nearest source.

    Four conditions are checked. With D the value that says "unreached" (the largest of the dtype):

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
    well: true distances fulfil all of them.

    The check reads every edge once, needs one byte for each vertex, and knows nothing of how `depth` was found.

    Parameters
    ----------
    graph : Graph or CSR
        The graph; directed or not.
    sources : int or array of int
        Where the search began.
    depth : Array or numpy.ndarray
        The depths, of any integer type; one for each vertex.

    Raises
    ------
    VerificationError
        The depths are wrong. The message names the first offending edge or vertex of the first condition that fails.
    """
    indptr, indices, depths = np.asarray(graph.indptr), np.asarray(graph.indices), np.ascontiguousarray(depth)
    num_vertices = indptr.size - 1
    if depths.dtype.kind not in "iu":
        raise UnsupportedTypeError(f"depth must be an array of integers, not {depths.dtype}")
    if depths.shape != (num_vertices,):
        raise InvalidArgumentError(f"depth must have one entry for each of {num_vertices} vertices (got shape {depths.shape})")
    starts = np.unique(np.atleast_1d(np.asarray(sources)))
    if not starts.size or starts.dtype.kind not in "iu":
        raise InvalidArgumentError(f"sources must be one or more vertex ids (got {sources!r})")
    if int(starts[0]) < 0 or int(starts[-1]) >= num_vertices:
        outside = int(starts[0] if starts[0] < 0 else starts[-1])
        raise InvalidArgumentError(f"source {outside} is not a vertex: ids lie in 0..{num_vertices - 1}")
    unreached = depths.dtype.type(np.iinfo(depths.dtype).max)

    def show(value: Any) -> str:
        return "unreached" if value == unreached else str(value)

    wrong = starts[depths[starts] != 0]
    if wrong.size:
        raise VerificationError(
            f"depth[{wrong[0]}] is {show(depths[wrong[0]])}, but vertex {wrong[0]} is a source, so it must be 0"
        )

    has_parent = np.zeros(num_vertices, np.uint8)

    def check_edges(piece: tuple[int, int]) -> int:
        return int(compiled(_edges_kernel)(indptr, indices, depths, unreached, *piece, has_parent))

    def check_vertices(piece: tuple[int, int]) -> int:
        part = depths[slice(*piece)]
        bad = (part != unreached) & (has_parent[slice(*piece)] == 0)
        bad[starts[(starts >= piece[0]) & (starts < piece[1])] - piece[0]] = False
        if part.dtype.kind == "i":
            bad |= part < 0
        return piece[0] + int(np.argmax(bad)) if bad.any() else -1

    for edge in parallel_map(check_edges, _even_pieces(indptr)):
        if edge >= 0:
            u, v = int(np.searchsorted(indptr, edge, side="right")) - 1, int(indices[edge])
            raise VerificationError(
                f"edge {u} -> {v} (number {edge}): depth[{u}] is {depths[u]}, so depth[{v}] must be at most "
                f"{int(depths[u]) + 1}, but it is {show(depths[v])}"
            )
    for vertex in parallel_map(check_vertices, ranges(num_vertices, _CHUNK_VERTICES)):
        if vertex >= 0:
            found = int(depths[vertex])
            if found < 0:
                reason = "a depth cannot be negative"
            elif found == 0:
                reason = "only a source may have depth 0"
            else:
                reason = f"no edge leads to it from a vertex of depth {found - 1}"
            raise VerificationError(f"depth[{vertex}] is {found}, but {reason}")


def _even_pieces(indptr: NDArray[Any]) -> list[tuple[int, int]]:
    """Cut the vertices into pieces with about the same number of edges."""
    num_vertices = indptr.size - 1
    marks = np.arange(0, int(indptr[-1]) + 1, _CHUNK_EDGES)
    cuts = np.unique(np.concatenate([[0], np.searchsorted(indptr, marks, side="left"), [num_vertices]]))
    return list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))
