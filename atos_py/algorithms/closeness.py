"""Closeness and harmonic centrality: how near other vertices are, by searches from 64 sources at once (`bit_search`).

A search goes along the edges, so that it finds distances from its sources *into* each vertex, as networkx takes them. A vertex
needs no distance from a single source: at each level it adds the level once for each source that reaches it then.

Sources: Boldi and Vigna, "Axioms for centrality", Internet Mathematics 2014, for both definitions; Eppstein and Wang, "Fast
approximation of centrality", J. Graph Algorithms and Applications 2004, for sources chosen at random; Then et al., "The more
the merrier: efficient multi-source graph traversal", VLDB 2014.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..arrays.array import Array, asarray, empty, zeros
from ..graph.graph import Graph
from ..graph.graph_arrays import check_graph
from ..operators.vertex_map import vertex_map
from ..runtime.launch_options import LaunchOptions, Unpack
from ..runtime.stats import LaunchStats
from ..support.shown import ShownFields
from ..support.validation import check_bool
from .arguments import choose_sources, per_vertex, rows_on_host
from .bfs.entry import SOURCES_OR_COUNT
from .bit_notes import BitNotes, count_bits
from .bit_search import BitSearches
from .frame import algorithm, verifier
from .registry import SEED, Option, pick_options, register
from .serial_sums import check_centrality, sum_over_sources

__all__ = ["ClosenessResult", "closeness", "verify_closeness"]


@dataclass(frozen=True, eq=False)
class ClosenessResult(ShownFields):
    """Result of `closeness`.

    Attributes
    ----------
    centrality : Array, or an array of the library that the graph's arrays came from
        Of each vertex, float64.
    searches : int
        How many searches there were, each from 64 sources at once or, on a GPU, up to 256.
    stats : LaunchStats

    Examples
    --------
    >>> path = atos.Graph.from_edges([0, 1], [1, 2], symmetrize=True)
    >>> result = atos.closeness(path, harmonic=True)
    >>> print(result.centrality[:], result.searches)
    [1.5 2.  1.5] 1
    """

    centrality: Any
    searches: int
    stats: LaunchStats


@vertex_map
def add_reached(v, seen, log_words, reached):  # type: ignore[no-untyped-def]
    """Add how many sources of a search have reached a vertex."""
    number = 0
    for place in range(v << log_words, (v + 1) << log_words):
        number += count_bits(seen[place])
    reached[v] += number


@vertex_map
def finish(v, sums, log_words, reached, is_source, num_sources, harmonic, scales, centrality):  # type: ignore[no-untyped-def]
    """Turn the sums of a vertex into its centrality."""
    total = sums.dtype.type(0)
    for place in range(v << log_words, (v + 1) << log_words):
        total += sums[place]
    if harmonic:
        centrality[v] = total
    elif total > 0:
        own = np.int64(is_source[v])
        others = reached[v] - own
        share = others / (num_sources - own) if scales else 1.0
        centrality[v] = others / total * share
    else:
        centrality[v] = 0.0


@algorithm()
def closeness(
    graph: Graph,
    sources: ArrayLike | None = None,
    *,
    harmonic: bool = False,
    wf_improved: bool = True,
    seed: int = 0,
    worker: str | None = None,
    **launch_options: Unpack[LaunchOptions],
) -> ClosenessResult:
    """Return the closeness centrality of every vertex, by edges, or the harmonic one.

    The closeness of v is the inverse of the mean distance into v, from all other vertices that reach it. The harmonic
    centrality is the sum of the inverses of these distances. Both are defined as in networkx.

    Parameters
    ----------
    graph : Graph
        Its out-edges are followed, so that of a directed graph the distances are those into each vertex; of
        ``graph.transpose()`` they are those from it.
    sources : int or array of int, optional
        To take the distances from some vertices only: at most how many, chosen at random, or an array of the vertices
        themselves. By default all, which is exact. The closeness is an estimate then, and the harmonic centrality the sum over
        the sources.
    harmonic : bool
        Whether to return the harmonic centrality, which needs no correction where vertices do not reach each other.
    wf_improved : bool
        Whether to multiply the closeness by the part of all sources that reach the vertex (Wasserman and Faust), so that
        vertices of small components do not come first. It changes nothing where all reach each other.
    seed : int
        Of 64 bits. Decides which sources are chosen, the same ones on every machine.
    {launch_options}
        A level of a search is a round, whatever `barrier` says.

    Raises
    ------
    InvalidArgumentError
        If there is no such vertex, or no source.
    LaunchConfigError
        If `each_round` is given: a search has a function between rounds of its own.

    References
    ----------
    Boldi and Vigna, "Axioms for centrality", Internet Mathematics 10 (2014).

    Eppstein and Wang, "Fast approximation of centrality", J. Graph Algorithms and Applications 8 (2004).

    Then et al., "The more the merrier: efficient multi-source graph traversal", VLDB 2014.

    Examples
    --------
    >>> star = atos.Graph.from_edges([0, 0, 0], [1, 2, 3], symmetrize=True)
    >>> print(atos.closeness(star).centrality[:])
    [1.  0.6 0.6 0.6]
    """
    n, device = graph.num_vertices, graph.device
    chosen = choose_sources(sources, n, seed)
    harmonic, scales = check_bool("harmonic", harmonic), check_bool("wf_improved", wf_improved)
    searches = BitSearches("closeness", graph, len(chosen), launch_options, worker, with_maps=True)
    launches = searches.launches
    sums = zeros(searches.size, dtype=np.float64 if harmonic else np.int64, device=device)
    reached: Array = zeros(n, dtype=np.int64, device=device)
    batches = 0
    for _, batch in searches.batches(chosen):
        searches.run(batch, BitNotes(sums=sums, inverse=1 if harmonic else None))
        if not harmonic:
            launches.over_vertices(add_reached, n, searches.seen, searches.log_words, reached)
        batches += 1
    marks = np.zeros(n, np.uint8)
    marks[chosen] = 1
    is_source = asarray(marks, device=device, readonly=True)
    centrality = empty(n, dtype=np.float64, device=device)
    numbers = len(chosen), int(harmonic), int(scales)
    launches.over_vertices(finish, n, sums, searches.log_words, reached, is_source, *numbers, centrality)
    launches.finish()
    return ClosenessResult(centrality, batches, launches.total("closeness"))


def _sums_kernel(
    indptr: Any, indices: Any, sources: Any, first: int, end: int, harmonic: bool, total: Any, reached: Any
) -> None:  # pragma: no cover - compiled
    """Add up the distances, or their inverses, from some sources, each by a search with a queue, and how often others come."""
    n = indptr.size - 1
    depth, order = np.empty(n, np.int64), np.empty(n, np.int64)
    for k in range(first, end):
        depth[:] = -1
        depth[sources[k]], order[0] = 0, sources[k]
        at, count = 0, 1
        while at < count:
            u = order[at]
            at += 1
            if depth[u] > 0:
                total[u] += 1 / depth[u] if harmonic else depth[u]
                reached[u] += 1
            for edge in range(indptr[u], indptr[u + 1]):
                v = indices[edge]
                if depth[v] < 0:
                    depth[v] = depth[u] + 1
                    order[count] = v
                    count += 1


@verifier
def verify_closeness(
    graph: Graph,
    centrality: Any,
    sources: ArrayLike | None = None,
    *,
    harmonic: bool = False,
    wf_improved: bool = True,
    seed: int = 0,
) -> None:
    """Compare centralities with those of a serial implementation: a search from each source alone, on the host.

    It takes one source at a time and has a queue of vertices, where `closeness` has bits of many sources and levels. Sums of
    floats in another order differ by rounding: they may differ by 1e-9 of the largest centrality.

    Parameters
    ----------
    graph : Graph
        The graph; directed or not.
    centrality : array of float
        One for each vertex.
    sources, harmonic, wf_improved, seed : optional
        Those that `closeness` was given.

    Raises
    ------
    VerificationError
        A centrality is wrong. The message names the vertex that differs most.

    Examples
    --------
    >>> star = atos.Graph.from_edges([0, 0, 0], [1, 2, 3], symmetrize=True)
    >>> atos.verify_closeness(star, [1.0, 0.6, 0.6, 0.6])
    >>> atos.verify_closeness(star, [1.0, 0.6, 0.6, 0.5])
    Traceback (most recent call last):
    atos_py.errors.VerificationError: ...
    """
    check_graph(graph)
    indptr, indices = rows_on_host(graph)
    n = indptr.size - 1
    found = per_vertex("centrality", centrality, n, "f")
    chosen = choose_sources(sources, n, seed)
    harmonic, scales = check_bool("harmonic", harmonic), check_bool("wf_improved", wf_improved)

    dtypes = np.float64, np.int64
    total, reached = sum_over_sources(_sums_kernel, indptr, indices, chosen, harmonic, dtypes=dtypes)
    expected = total
    if not harmonic:
        others = np.full(n, len(chosen))
        others[chosen] -= 1
        expected = reached / np.maximum(total, 1)
        if scales:
            expected *= reached / np.maximum(others, 1)
    check_centrality(found, expected)


def _describe(result: ClosenessResult) -> dict[str, Any]:
    centrality = np.asarray(result.centrality)
    largest = int(centrality.argmax()) if centrality.size else None
    return {"largest": float(centrality.max(initial=0.0)), "of vertex": largest, "searches": result.searches}


register(
    run=closeness,
    verify=lambda graph, result, options: verify_closeness(
        graph, result.centrality, **pick_options(options, "sources", "harmonic", "wf_improved", "seed")
    ),
    describe=_describe,
    arrays=lambda result: {"centrality": result.centrality},
    help="find how near all other vertices are",
    description="""\
Finds the closeness centrality of each vertex, from the distances, by edges, of others into it, or the harmonic one; or an
estimate from the distances from some vertices. The command takes 64 of them unless told otherwise. Searches go from 64 sources
at once (Then et al. 2014). A serial implementation checks the result.""",
    examples=("rmat:8:8 --out centrality.npy", "rmat:16:16 --sources 256 --harmonic"),
    options={
        "sources": SOURCES_OR_COUNT,
        "harmonic": Option("sum up the inverses of distances instead", convert=None),
        "seed": SEED,
    },
    defaults={"sources": 64},
)
