"""Programs of SIMD-X and their like, a few lines each. Each call returns metadata, or what follows from it, and statistics.

Options are those of `Program.run`. Results are proved by the verifiers of this package (docs/simd-x.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...algorithms.arguments import check_sources
from ...arrays.array import Array, asarray
from ...arrays.filled import full
from ...errors import InvalidArgumentError
from ...graph.graph import Graph
from .combine import MIN, SUBTRACT, SUM, VOTE, Combine
from .program import Program
from .stats import ProgramStats

__all__ = ["bfs", "connected_components", "k_core", "pagerank", "reachable", "sssp", "weighted_sums"]


def next_level(m_v, weight, m_u):  # type: ignore[no-untyped-def]
    """Update of a breadth-first search."""
    return m_v + 1


def relax(m_v, weight, m_u):  # type: ignore[no-untyped-def]
    """Update of shortest paths."""
    return m_v + weight


def own_value(m_v, weight, m_u, *args):  # type: ignore[no-untyped-def]
    """Update that carries the metadata itself, for components, sets and shares of ranks."""
    return m_v


def lost_edge(m_v, weight, m_u, k):  # type: ignore[no-untyped-def]
    """Update by a vertex that leaves the graph."""
    return 1


def weighted_value(m_v, weight, m_u):  # type: ignore[no-untyped-def]
    """Update of a weighted sum."""
    return weight * m_v


def next_share(before, received, v, indptr, damping, jump, tolerance):  # type: ignore[no-untyped-def]
    """Return what each out-edge of v carries next, of its rank."""
    return (jump + damping * received) / max(indptr[v + 1] - indptr[v], 1)


BFS = Program(next_level, VOTE)
SSSP = Program(relax, MIN)
COMPONENTS = Program(own_value, MIN)
K_CORE = Program(lost_edge, SUBTRACT, active=lambda before, after, k: before >= k > after, wants=lambda m_u, k: m_u >= k)
PAGERANK = Program(
    own_value,
    SUM,
    active=lambda before, after, indptr, damping, jump, tolerance: abs(after - before) > tolerance * after,
    apply=next_share,
)
WEIGHTED_SUMS = Program(weighted_value, SUM, active=lambda before, after: True, apply=lambda before, received, v: received)
REACHABLE = Program(own_value, Combine(lambda a, b: a | b, neutral=0, idempotent=True))


def bfs(graph: Graph, source: ArrayLike, **options: Any) -> tuple[Array, ProgramStats]:
    """Return the edges on the shortest path from a source to every vertex, uint32, the largest value where there is none.

    Examples
    --------
    >>> from atos_py import acc
    >>> depth, stats = acc.programs.bfs(atos.generate.road(3, 1.0), 0, direction="auto")
    >>> print(depth[:], stats.frontiers)
    [0 1 2 1 2 3 2 3 4] (1, 2, 3, 2, 1)
    """
    depth = full(graph.num_vertices, 2**32 - 1, dtype=np.uint32, device=graph.device)
    for v in check_sources(source, graph.num_vertices):
        depth[v] = 0
    return depth, BFS.run(graph, depth, start=source, **options)


def sssp(graph: Graph, source: int, *, dtype: Any = np.float32, **options: Any) -> tuple[Array, ProgramStats]:
    """Return the length of the shortest path from a vertex to every vertex, infinite where there is none.

    Examples
    --------
    >>> from atos_py import acc
    >>> graph = atos.Graph.from_edges([0, 0, 1], [1, 2, 2], weights=[5, 9, 3])
    >>> print(acc.programs.sssp(graph, 0, delta=2)[0][:])
    [0. 5. 8.]
    """
    distance = full(graph.num_vertices, np.inf, dtype=dtype, device=graph.device)
    distance[check_sources(source, graph.num_vertices)[0]] = 0
    return distance, SSSP.run(graph, distance, start=source, **options)


def connected_components(graph: Graph, **options: Any) -> tuple[Array, ProgramStats]:
    """Return the smallest vertex of the component of every vertex, uint32, where edges are taken in either direction.

    Examples
    --------
    >>> from atos_py import acc
    >>> print(acc.programs.connected_components(atos.Graph.from_edges([0, 3], [2, 4]))[0][:])
    [0 1 0 3 3]
    """
    label = asarray(np.arange(graph.num_vertices, dtype=np.uint32), device=graph.device)
    return label, COMPONENTS.run(graph.to_symmetric(), label, **options)


def k_core(graph: Graph, k: int, **options: Any) -> tuple[NDArray[np.bool_], ProgramStats]:
    """Return which vertices are in the k-core of an undirected graph without loops: each has k edges or more to others in it.

    The program of the paper's authors keeps vertices with more than K edges, and so finds the core of K + 1.

    Examples
    --------
    >>> from atos_py import acc
    >>> triangle_with_tail = atos.Graph.from_edges([0, 1, 2, 2], [1, 2, 0, 3], symmetrize=True)
    >>> acc.programs.k_core(triangle_with_tail, 2)[0]
    array([ True,  True,  True, False])
    """
    degrees = graph.degrees().astype(np.int32)
    degree = asarray(degrees, device=graph.device, copy=True)
    stats = K_CORE.run(graph, degree, k, start=np.flatnonzero(degrees < k), **options)
    return degree.to_numpy() >= k, stats


def pagerank(graph: Graph, damping: float = 0.85, tolerance: float = 1e-4, **options: Any) -> tuple[NDArray[Any], ProgramStats]:
    """Return the PageRank of every vertex, float32 with the sum 1; the sum of its errors is about `tolerance` at most.

    The metadata is what each out-edge carries: rank / degree.

    Examples
    --------
    >>> from atos_py import acc
    >>> ring = atos.Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0])
    >>> acc.programs.pagerank(ring)[0]
    array([0.25, 0.25, 0.25, 0.25], dtype=float32)
    """
    degree, n = np.maximum(graph.degrees(), 1), max(graph.num_vertices, 1)
    share = asarray((1 / n / degree).astype(np.float32), device=graph.device)
    jump = (1 - damping) / n
    stats = PAGERANK.run(graph, share, graph.indptr, damping, jump, (1 - damping) * tolerance, **options)
    rank = share.to_numpy() * degree
    return (rank / rank.sum()).astype(np.float32), stats


def weighted_sums(graph: Graph, values: ArrayLike, *, rounds: int = 1, **options: Any) -> tuple[Array, ProgramStats]:
    """Return ``A.T @ ... @ A.T @ values``, A the matrix of weights: a product with it, or as many as there are rounds.

    The paper's authors call several of them belief propagation, which they are not.

    Examples
    --------
    >>> from atos_py import acc
    >>> graph = atos.Graph.from_edges([0, 0, 1], [1, 2, 2], weights=[5.0, 9.0, 3.0])
    >>> print(acc.programs.weighted_sums(graph, [1.0, 2.0, 3.0])[0][:])
    [ 0.  5. 15.]
    """
    sums = asarray(np.array(values), device=graph.device)
    return sums, WEIGHTED_SUMS.run(graph, sums, rounds=rounds, **options)


def reachable(graph: Graph, sources: ArrayLike, **options: Any) -> tuple[Array, ProgramStats]:
    """Return from which of up to 63 sources there is a path to each vertex: bit k stands for the k-th, in ascending order.

    Examples
    --------
    >>> from atos_py import acc
    >>> print(acc.programs.reachable(atos.Graph.from_edges([0, 1, 2], [2, 2, 3]), [0, 1])[0][:])
    [1 2 3 3]
    """
    vertices = check_sources(sources, graph.num_vertices)
    if len(vertices) > 63:
        raise InvalidArgumentError(f"a set of sources has 63 bits (got {len(vertices)} sources); make several calls")
    sets = np.zeros(graph.num_vertices, np.int64)
    sets[vertices] = 1 << np.arange(len(vertices))
    reached = asarray(sets, device=graph.device)
    return reached, REACHABLE.run(graph, reached, start=vertices, **options)
