"""The call of betweenness centrality, its task, its verifier and its entry."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...arrays.any_array import AnyArray
from ...arrays.array import asarray, empty, zeros
from ...compile.atomics import atomic_add
from ...compile.task import task
from ...graph.graph import Graph
from ...graph.graph_arrays import check_graph
from ...operators.edge_map import THREAD_MAX_DEGREE
from ...operators.ranges import range_items
from ...operators.vertex_map import vertex_map
from ...runtime.launch_options import LaunchOptions, Unpack
from ...runtime.queue import Queue
from ...runtime.stats import LaunchStats
from ...support.shown import ShownFields
from ...support.validation import check_bool
from ..arguments import choose_sources, per_vertex, rows_on_host
from ..bfs.entry import SOURCES_OR_COUNT
from ..frame import algorithm, verifier
from ..launch_sequence import LaunchSequence
from ..registry import SEED, pick_options, register
from ..serial_sums import check_centrality, sum_over_sources
from .path_counts import count_paths, forget_paths, listed_rows, make_path_counts
from .workspace import share_of_memory

__all__ = ["BetweennessResult", "betweenness", "verify_betweenness"]


@dataclass(frozen=True, eq=False)
class BetweennessResult(ShownFields):
    """Result of `betweenness`.

    Attributes
    ----------
    centrality : Array, or an array of the library that the graph's arrays came from
        Of each vertex, float64.
    stats : LaunchStats

    Examples
    --------
    >>> path = atos.Graph.from_edges([0, 1, 2], [1, 2, 3], symmetrize=True)
    >>> print(atos.betweenness(path, normalized=False).centrality[:])
    [0. 2. 2. 0.]
    """

    centrality: AnyArray
    stats: LaunchStats


def carried(edge, last, step, s, row, level, indices, share):  # type: ignore[no-untyped-def]
    """Return what targets of a level add to the vertex above them, for each path to it."""
    total = 0.0
    while edge < last:
        u = indices[edge]
        if s.depth[row, u] == level:
            total += share[row, u]
        edge += step
    return total


def finish(v, total, s, row, source, share, centrality):  # type: ignore[no-untyped-def]
    """Add what a vertex carries of the paths from the source; keep what it adds to those above it, for each path to them."""
    paths = s.paths[row, v]
    if v != source:
        atomic_add(centrality, v, total * paths)
    share[row, v] = 1 / paths + total if paths < np.inf else np.nan
    return 0


def carry_row(v, edge, last, s, row, source, level, indices, share, centrality):  # type: ignore[no-untyped-def]
    """Go back to v from the next level."""
    return finish(v, carried(np.int64(edge), last, 1, s, row, level, indices, share), s, row, source, share, centrality)


def carry_row_by_all(team, v, edge, last, s, row, source, level, indices, share, centrality):  # type: ignore[no-untyped-def]
    """Do the same by all threads of a team."""
    total = team.sum(carried(edge + team.rank, last, team.size, s, row, level, indices, share))
    return finish(v, total, s, row, source, share, centrality) if team.rank == 0 else 0


carry_rows = listed_rows(carry_row, carry_row_by_all)


@task(max_registers={"cta": (64, None)})
def accumulate(worker, source, indptr, indices, thread_max_degree, s, share, centrality):  # type: ignore[no-untyped-def]
    """Add the part of all shortest paths from a source that leads through each vertex."""
    row = worker.index
    level = count_paths(worker, source, indptr, indices, thread_max_degree, s)
    while level > 0:  # from that to the one above, which begins at ends[row, level]
        begin, end = s.ends[row, level], s.ends[row, level + 1]
        carry_rows(worker, begin, end, thread_max_degree, indptr, s, row, source, level, indices, share, centrality)
        worker.sync()
        level -= 1
    forget_paths(worker, s)


@vertex_map
def rescale(v, centrality, sampled, factors):  # type: ignore[no-untyped-def]
    """Multiply by the factor of a vertex: those that were sources may have another."""
    centrality[v] *= factors[sampled[v]]


@algorithm()
def betweenness(
    graph: Graph,
    sources: ArrayLike | None = None,
    *,
    normalized: bool = True,
    seed: int = 0,
    worker: str | None = None,
    **launch_options: Unpack[LaunchOptions],
) -> BetweennessResult:
    """Return the betweenness centrality of every vertex, by edges.

    The centrality of v is the sum, over all pairs of other vertices s and t, of the part of all shortest paths from s to t that
    lead through v. It is defined and scaled as in networkx; but each of several parallel edges makes a path of its own
    (`Graph.simplify` leaves one of them).

    Parameters
    ----------
    graph : Graph
        Its out-edges are followed. If each has its reverse (`Graph.is_symmetric`), it is taken as undirected.
    sources : int or array of int, optional
        To estimate the centrality from paths that begin at some vertices only: at most how many, chosen at random, or an array
        of the vertices themselves. By default all, which is exact. Each takes as long as two breadth-first searches.
    normalized : bool
        Whether to divide by the number of pairs. Otherwise, a pair of an undirected graph counts once.
    seed : int
        Of 64 bits. Decides which sources are chosen, the same ones on every machine.
    {launch_options}
        A worker works on one source at a time. Every worker of `num_blocks` blocks takes 28 bytes for each vertex; by default
        there are so many blocks that all workers together take at most 8 GiB.

    Raises
    ------
    InvalidArgumentError
        If there is no such vertex, or no source.

    Notes
    -----
    Paths are counted in float64, as in networkx. Where there are more than 1e308 to a vertex, as in large grids, the result is
    NaN for it and for all vertices on these paths but their beginning.

    References
    ----------
    Brandes, "A faster algorithm for betweenness centrality", J. Math. Sociology 25 (2001).

    Examples
    --------
    >>> star = atos.Graph.from_edges([0, 0, 0], [1, 2, 3], symmetrize=True)
    >>> print(atos.betweenness(star).centrality[:])
    [1. 0. 0. 0.]
    """
    n, device = graph.num_vertices, graph.device
    chosen = choose_sources(sources, n, seed)
    factors = _factors(n, len(chosen), check_bool("normalized", normalized), n > 0 and graph.is_symmetric())
    centrality = zeros(n, dtype=np.float64, device=device)
    queue = Queue(max(len(chosen), len(range_items(n)), 1), dtype=np.uint32, device=device)
    launches = LaunchSequence("betweenness", queue, launch_options, worker)
    blocks, workers = share_of_memory(device, len(chosen), 28 * (n + 2), worker or "cta", launch_options)
    counts, share = make_path_counts(workers, n, device), empty((workers, n), dtype=np.float64, device=device)
    arguments = graph.indptr, graph.indices, THREAD_MAX_DEGREE[device.kind], counts, share, centrality
    launches.launch(chosen, accumulate, *arguments, defaults={"num_blocks": blocks, "fetch_size": 1})
    sampled = np.zeros(n, np.uint8)
    sampled[chosen] = 1
    where, by = asarray(sampled, device=device, readonly=True), asarray(np.array(factors), device=device, readonly=True)
    launches.over_vertices(rescale, n, centrality, where, by)
    return BetweennessResult(centrality, launches.total(accumulate.name))  # type: ignore[arg-type]


def _factors(n: int, k: int, normalized: bool, undirected: bool) -> tuple[float, float]:
    """Return by what the sums of k sources are multiplied, of vertices that are no sources and of those that are.

    A vertex is an end of no pair that counts for it, so that of the pairs from k sources a source has those of k - 1.
    """
    if n < 3:
        return 0.0, 0.0
    pairs = n - 2 if normalized else (2 if undirected else 1) / (n - 1)
    return 1 / (k * pairs), 1 / ((k - 1) * pairs) if k > 1 else math.nan


def _paths_kernel(
    indptr: Any, indices: Any, sources: Any, first: int, end: int, found: Any
) -> None:  # pragma: no cover - compiled
    """Add up the dependencies of some sources on all vertices: one after the other, with a list of predecessors' edges."""
    n = indptr.size - 1
    depth, paths, behind = np.empty(n, np.int64), np.empty(n), np.empty(n)
    order = np.empty(n, np.int64)
    tails, heads = np.empty(indices.size, np.uint32), np.empty(indices.size, np.uint32)
    for k in range(first, end):
        source = sources[k]
        depth[:], paths[:], behind[:] = -1, 0.0, 0.0
        depth[source], paths[source], order[0] = 0, 1.0, source
        at, count, edges = 0, 1, 0
        while at < count:
            u = order[at]
            at += 1
            for edge in range(indptr[u], indptr[u + 1]):
                v = indices[edge]
                if depth[v] < 0:
                    depth[v] = depth[u] + 1
                    order[count] = v
                    count += 1
                if depth[v] == depth[u] + 1:
                    paths[v] += paths[u]
                    tails[edges], heads[edges] = u, v
                    edges += 1
        behind[paths == np.inf] = np.nan
        while edges > 0:  # the farthest ends first
            edges -= 1
            u, v = tails[edges], heads[edges]
            behind[u] += paths[u] / paths[v] * (1 + behind[v])
        behind[source] = 0.0
        found += behind


@verifier
def verify_betweenness(
    graph: Graph, centrality: Any, sources: ArrayLike | None = None, *, normalized: bool = True, seed: int = 0
) -> None:
    """Compare centralities with those of a serial implementation: Brandes' algorithm on the host, each source by one thread.

    It keeps the edges of shortest paths in a list, and goes through that backwards, from the end of each edge to its
    beginning. So it shares neither the levels nor the direction of the sums with what it checks. Sums of floats in another
    order differ by rounding: they may differ by 1e-9 of the largest centrality.

    Parameters
    ----------
    graph : Graph
        The graph; directed or not.
    centrality : array of float
        One for each vertex.
    sources, normalized, seed : optional
        Those that `betweenness` was given.

    Raises
    ------
    VerificationError
        A centrality is wrong. The message names the vertex that differs most.

    Examples
    --------
    >>> star = atos.Graph.from_edges([0, 0, 0], [1, 2, 3], symmetrize=True)
    >>> atos.verify_betweenness(star, [1.0, 0, 0, 0])
    >>> atos.verify_betweenness(star, [1.0, 0.1, 0, 0])
    Traceback (most recent call last):
    atos_py.errors.VerificationError: ...
    """
    check_graph(graph)
    indptr, indices = rows_on_host(graph)
    n = indptr.size - 1
    found = per_vertex("centrality", centrality, n, "f")
    chosen = choose_sources(sources, n, seed)
    (expected,) = sum_over_sources(_paths_kernel, indptr, indices, chosen)
    other, own = _factors(n, len(chosen), check_bool("normalized", normalized), n > 0 and graph.is_symmetric())
    factor = np.full(n, other)
    factor[chosen] = own
    expected *= factor
    check_centrality(found, expected)


def _describe(result: BetweennessResult) -> dict[str, Any]:
    centrality = np.asarray(result.centrality)
    return {"largest": float(centrality.max(initial=0.0)), "of vertex": int(centrality.argmax()) if centrality.size else None}


register(
    run=betweenness,
    verify=lambda graph, result, options: verify_betweenness(
        graph, result.centrality, **pick_options(options, "sources", "normalized", "seed")
    ),
    describe=_describe,
    arrays=lambda result: {"centrality": result.centrality},
    help="find on how many shortest paths vertices lie",
    description="""\
Finds the part of all shortest paths, by edges, that leads through each vertex, or an estimate from the paths that begin at some
vertices (Brandes 2001). The command takes 32 of them unless told otherwise. A serial implementation checks the result.""",
    examples=("rmat:8:8 --out centrality.npy", "rmat:16:16 --sources 64"),
    options={"sources": SOURCES_OR_COUNT, "seed": SEED},
    defaults={"sources": 32},
)
