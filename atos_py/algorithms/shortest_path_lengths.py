"""Shortest distances from many sources at once: a row of distances for each source.

By edges, 64 sources or more share one search (`bit_search`). Along weights, an item of the queue is a row, a vertex and the
distance with which it was pushed. Each row is a search as in `sssp`, and all of them run side by side in one launch, so that
many short searches keep all workers busy where one of them would not. Items of all rows share the buckets of a queue: near
vertices go first, whosever they are.

Sources: Then et al., "The more the merrier: efficient multi-source graph traversal", VLDB 2014; Meyer and Sanders,
"Delta-stepping: a parallelizable shortest path algorithm", J. Algorithms 2003.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays.any_array import AnyArray
from ..arrays.array import Array, to_host
from ..arrays.filled import full
from ..compile.atomics import atomic_min
from ..compile.task import task
from ..errors import InvalidArgumentError, VerificationError
from ..graph.csr import CSR
from ..graph.graph import Graph
from ..runtime.launch_options import LaunchOptions, Unpack
from ..runtime.queue import Queue
from ..runtime.stats import LaunchStats
from ..support.shown import ShownFields
from ..support.validation import as_host_array, check_bool
from .arguments import check_cutoff, check_sources, largest_whole, rows_on_host
from .bfs.entry import CUTOFF, SOURCES
from .bit_notes import BitNotes
from .bit_search import MOST_LEVELS, BitSearches
from .frame import algorithm, verifier
from .kept_launches import take_queue
from .launch_sequence import LaunchSequence
from .registry import Option, pick_options, register
from .sssp.distances import BUCKETS, distance_dtype, distance_limit, suit_delta, unreached_of
from .sssp.tasks import weight_of
from .sssp.verify import verify_sssp

__all__ = ["ShortestPathLengthsResult", "shortest_path_lengths", "verify_shortest_path_lengths"]


@dataclass(frozen=True, eq=False)
class ShortestPathLengthsResult(ShownFields):
    """Result of `shortest_path_lengths`.

    Attributes
    ----------
    distance : Array, or an array of the library that the graph's arrays came from
        ``distance[i, v]`` is the length of the shortest path from source i to vertex v; of the types that `SSSPResult` names.
    stats : LaunchStats

    Examples
    --------
    >>> graph = atos.Graph.from_edges([0, 1, 2], [1, 2, 0])
    >>> print(atos.shortest_path_lengths(graph, [2, 0]).distance[1, 2])
    2
    """

    distance: AnyArray
    stats: LaunchStats


def out_edges(item, graph, distance, cutoff):  # type: ignore[no-untyped-def]
    """Return how many edges to relax, the first one, the distance of the vertex, and the row; store the 0 of a source."""
    first = graph.indptr[item.vertex]
    skipped = atomic_min(distance, (item.row, item.vertex), item.distance) < item.distance
    return 0 if skipped else graph.indptr[item.vertex + 1] - first, first, item.distance, item.row


@task(workload=out_edges, max_registers={"cta": (64, None)})
def relax_in_row(worker, item, i, first, length, row, graph, distance, cutoff):  # type: ignore[no-untyped-def]
    """Relax an edge in a row; push its end with the distance if that went down."""
    neighbor = graph.indices[first + i]
    candidate = length + weight_of(graph.weights, first + i, distance)
    if cutoff is not None and candidate > cutoff:
        return
    if atomic_min(distance, (row, neighbor), candidate) > candidate:
        worker.push((row, neighbor, candidate), candidate)


@algorithm()
def shortest_path_lengths(
    graph: Graph,
    sources: ArrayLike,
    *,
    weighted: bool = False,
    cutoff: float | None = None,
    worker: str | None = None,
    **launch_options: Unpack[LaunchOptions],
) -> ShortestPathLengthsResult:
    """Return the length of the shortest path from each of several sources to every vertex.

    Parameters
    ----------
    graph : Graph
        Its out-edges are followed. Without weights, searches from 64 sources run as one, on a GPU from 256, level by level: a
        level is a round of a launch, whatever `barrier` says. Along weights all searches run in one launch.
    sources : int or array of int
        The vertices to start from, a row of the result for each, in their order; one may be there several times. The result
        takes the number of sources times the number of vertices, in memory of the device.
    weighted : bool
        Whether to add up the weights of edges, which must be at least 0, rather than count edges.
    cutoff : float, optional
        The largest distance that is wanted, inclusive: what is farther away counts as not reached.
    {launch_options}

    Raises
    ------
    InvalidArgumentError
        If there is no such vertex, the graph has no weights to add up, one of them is negative or NaN, the cutoff is
        NaN, or integer weights are so large that a path may be longer than an int64 can tell.
    LaunchConfigError
        If `each_round` is given, and distances are counted by edges: such a search has a function between rounds of its own.
    QueueFullError
        If the queue has to grow, and there is no memory for that.

    References
    ----------
    Then et al., "The more the merrier: efficient multi-source graph traversal", VLDB 2014.

    Meyer and Sanders, "Delta-stepping: a parallelizable shortest path algorithm", J. Algorithms 49 (2003).

    Examples
    --------
    >>> graph = atos.Graph.from_edges([0, 1, 2], [1, 2, 0], weights=[5, 9, 3])
    >>> atos.shortest_path_lengths(graph, [2, 0], weighted=True).distance.to_numpy()
    array([[ 3,  8,  0],
           [ 0,  5, 14]], dtype=uint32)
    """
    n = graph.num_vertices
    rows, limit = _rows(sources, n), check_cutoff(cutoff)
    graph = _weighted(graph, weighted)
    kind = distance_dtype(graph)
    distance = full((len(rows), n), unreached_of(kind), dtype=kind, device=graph.device)
    if graph.weights is None:
        searches = BitSearches("shortest_path_lengths", graph, len(rows), launch_options, worker)
        launches, most = searches.launches, max(largest_whole(limit, MOST_LEVELS), 0)  # a source is always reached
        for first, batch in searches.batches(rows):
            searches.run(batch, BitNotes(distance, first), most)
    else:
        launches = _search_along_weights(graph, rows, distance, distance_limit(limit, kind), launch_options, worker)
    launches.finish()
    return ShortestPathLengthsResult(distance, launches.total())  # type: ignore[arg-type]


def _search_along_weights(
    graph: Graph, rows: NDArray[Any], distance: Array, limit: Any, options: LaunchOptions, worker: str | None
) -> LaunchSequence:
    """Find the distances along weights, by one launch."""
    n = graph.num_vertices
    items = np.zeros(len(rows), [("row", np.uint32), ("vertex", np.uint32), ("distance", distance.dtype)])
    items["row"], items["vertex"] = np.arange(len(rows)), rows
    ordered: dict[str, Any] = {"buckets": BUCKETS, "delta": suit_delta(graph, "auto")}

    def make_queue() -> Queue:
        return Queue(2 * n, dtype=items.dtype, device=graph.device, **ordered)

    queue = take_queue(graph, make_queue, options, "shortest_path_lengths", worker, distance.dtype, *ordered.items())
    launches = LaunchSequence("shortest_path_lengths", queue, options, worker)
    launches.launch(items, relax_in_row, graph, distance, limit)
    return launches


def _rows(sources: ArrayLike, n: int) -> NDArray[Any]:
    """Return the sources in their order."""
    check_sources(sources, n)
    rows = np.atleast_1d(as_host_array("sources", to_host(sources))).astype(np.int64)
    if rows.ndim > 1:
        raise InvalidArgumentError(f"sources must be one vertex or a list of them (got shape {rows.shape})")
    return rows


def _weighted(graph: Any, weighted: bool) -> Any:
    """Return the graph with weights if they are to be added up, otherwise without."""
    if not check_bool("weighted", weighted):
        return graph._replace(weights=None)
    if graph.weights is None:
        raise InvalidArgumentError("the graph has no weights to add up: leave out weighted=True, or make it with weights")
    return graph


@verifier
def verify_shortest_path_lengths(
    graph: Graph | CSR, sources: ArrayLike, distance: Any, *, weighted: bool = False, cutoff: float | None = None
) -> None:
    """Prove that each row of distances is right, as `verify_sssp` does for one; its docstring has the proof.

    Parameters
    ----------
    graph : Graph
        The graph; directed or not.
    sources : int or array of int
        Where the searches began.
    distance : array of shape (sources, vertices)
        Float32, float64, or integers of at most 63 bits.
    weighted, cutoff : optional
        Those that the searches were given.

    Raises
    ------
    VerificationError
        A distance is wrong. The message names the row, and an offending edge or vertex.

    Examples
    --------
    >>> graph = atos.Graph.from_edges([0, 1, 2], [1, 2, 0])
    >>> atos.verify_shortest_path_lengths(graph, [2, 0], [[1, 2, 0], [0, 1, 2]])
    >>> atos.verify_shortest_path_lengths(graph, [2, 0], [[1, 2, 0], [0, 1, 1]])
    Traceback (most recent call last):
    atos_py.errors.VerificationError: row 1: ...
    """
    n = rows_on_host(graph)[0].size - 1
    rows = _rows(sources, n)
    graph = _weighted(graph, weighted)
    found = as_host_array("distance", to_host(distance))
    if found.shape != (shape := (len(rows), n)):
        raise InvalidArgumentError(f"distance must have a row for each source, of shape {shape} (got shape {found.shape})")
    for row, vertex in enumerate(rows.tolist()):
        try:
            verify_sssp(graph, vertex, found[row], cutoff=cutoff)
        except VerificationError as error:
            raise VerificationError(f"row {row}: {error}") from None


def _describe(result: ShortestPathLengthsResult) -> dict[str, Any]:
    distance = np.asarray(result.distance)
    return {"rows": len(distance), "reached": int(np.count_nonzero(distance != unreached_of(distance.dtype)))}


register(
    run=shortest_path_lengths,
    verify=lambda graph, result, options: verify_shortest_path_lengths(
        graph, options["sources"], result.distance, **pick_options(options, "weighted", "cutoff")
    ),
    describe=_describe,
    arrays=lambda result: {"distance": result.distance},
    help="find shortest distances from many sources at once",
    description="""\
Finds how far each vertex is from each of several sources: by edges, 64 sources in one search, or along weights of at least 0.
Each row is verified as the result of one search.""",
    examples=("rmat:12:16 --sources 0,5,9 --out distance.npy", "roads.gr.gz --sources 0,70000 --weighted"),
    options={
        "sources": SOURCES,
        "weighted": Option("use the weights of the edges", convert=None),
        "cutoff": CUTOFF,
    },
    weighted=True,
    defaults={"sources": [0]},
)
