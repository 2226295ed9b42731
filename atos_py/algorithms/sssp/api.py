"""Launching a search for shortest paths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ...arrays.any_array import AnyArray
from ...arrays.array import Array, to_host
from ...arrays.filled import full
from ...graph.graph import Graph
from ...graph.weight_range import weight_range
from ...operators.ranges import mixed_item_dtype, mixed_ranges
from ...runtime.buckets import check_buckets
from ...runtime.launch_options import LaunchOptions, Unpack
from ...runtime.queue import Queue
from ...runtime.stats import LaunchStats
from ...support.host_memory import host_memory_for
from ...support.shown import ShownFields
from ...support.validation import check_bool
from ..arguments import check_cutoff, check_sources, check_target, largest_whole
from ..bfs.api import SCHEDULE, choose_direction, find_depths, pushes_by_level, zero_at
from ..bfs.tasks import UNREACHED, pays_to_follow
from ..frame import algorithm
from ..kept_launches import take_queue
from ..launch_sequence import LaunchSequence
from .distances import BUCKETS, distance_dtype, pays_to_order, suit_capacity, suit_delta, unreached_of
from .search import find_distances
from .tasks import assign_along_hops, assign_predecessors, count_orphans, find_hops

if TYPE_CHECKING:
    from ...graph.host_partition import HostPartition
    from ...graph.partition import Partition

__all__ = ["SSSPResult", "sssp"]

_IN_32_BITS = 2**31  # vertices of which int32 can name each


@dataclass(frozen=True, eq=False)
class SSSPResult(ShownFields):
    """Result of `sssp`.

    Attributes
    ----------
    distance : Array, or an array of the library that the graph's arrays came from
        Length of the shortest path from the nearest source to each vertex. Where weights are floats it has their type, and
        is infinite where there is no path. Otherwise it is uint32 if the largest weight times the number of vertices less
        one fits, else int64, and the type's largest value where there is no path.
    predecessor : as `distance`, or None
        With `predecessors=True`, the vertex before each on a shortest path, int32 (int64 if there are more than 2**31
        vertices); -1 at sources and where there is no path. Of those that could be it is the one of smallest id, so that the
        result does not depend on chance; but one at a smaller distance comes before those at the same, along edges of
        weight 0, and of these the ones to which the fewest such edges lead. So predecessors always lead to a source.
    stats : LaunchStats
        Of all launches together.

    Examples
    --------
    >>> graph = atos.Graph.from_edges([0, 0, 1], [1, 2, 2], weights=[5, 9, 3])
    >>> result = atos.sssp(graph, 0, predecessors=True)
    >>> print(result.distance[:], result.predecessor[:])
    [0 5 8] [-1  0  1]
    """

    distance: AnyArray
    predecessor: AnyArray
    stats: LaunchStats

    @host_memory_for("SSSPResult.reached")
    def reached(self) -> NDArray[np.bool_]:
        """Return whether there is a path to each vertex, as a NumPy array.

        Examples
        --------
        >>> atos.sssp(atos.Graph.from_edges([0, 2], [1, 1], weights=[5, 3]), 0).reached()
        array([ True,  True, False])
        """
        distance = np.asarray(to_host(self.distance))
        return distance != unreached_of(distance.dtype)  # type: ignore[no-any-return]

    @property
    def num_reached(self) -> int:
        """Number of vertices that there is a path to, with the sources."""
        return int(np.count_nonzero(self.reached()))


@algorithm(in_parts=True)
def sssp(
    graph: Graph | Partition | HostPartition,
    source: ArrayLike,
    *,
    target: int | None = None,
    cutoff: float | None = None,
    predecessors: bool = False,
    delta: float | Literal["auto"] = "auto",
    worker: str | None = None,
    **launch_options: Unpack[LaunchOptions],
) -> SSSPResult:
    """Return the length of the shortest path from a source to every vertex, along edges with weights of at least 0.

    Parameters
    ----------
    graph : Graph, Partition or HostPartition
        Its out-edges are followed; the search runs on its device. Without weights, edges have the length 1, and the search is
        that of `bfs`. Over the parts of a graph the distances are a `PartitionedArray`.
    source : int or array of int
        The vertex to start from; or several, each at distance 0, in any order and as often as you like.
    target : int, optional
        A vertex whose distance is all that is wanted: the search ends soon after it is known. ``distance[target]`` is right
        then, and so are the predecessors from there to a source; what is not nearer than the target may have a distance that
        is too large.
    cutoff : float, optional
        The largest distance that is wanted, inclusive: what is farther away counts as not reached.
    predecessors : bool
        Whether to find a tree of shortest paths too; that takes another pass over the edges, and some more where edges of
        weight 0 matter.
    delta : float or "auto"
        Width of the buckets of distances, in the unit of the weights. Lower buckets run first: narrow ones save tasks, and wide
        ones keep more workers busy. With "auto" it follows from the mean weight and the number of edges to a vertex; on a GPU,
        where many edges leave a vertex, vertices run in the order of their arrival then, which is faster.
    {launch_options}
        With ``barrier=True`` a bucket is worked off before the next one opens.

    Raises
    ------
    InvalidArgumentError
        If a weight is negative or NaN, there is no such vertex, the cutoff is NaN, or integer weights are so large
        that a path may be longer than an int64 can tell.
    QueueFullError
        If the queue has to grow, and there is no memory for that.

    Notes
    -----
    *Floats.* A distance is the least sum of the weights along any path to the vertex, where each sum is rounded to the type of
    the weights from the source on. It does not depend on the schedule, since rounding never changes the order of two sums. A
    sum that is too large for the type is infinite, and so is the distance along an edge of infinite weight: no path.

    *Why `target` is right.* An item (vertex, distance) is skipped, and an edge not relaxed, if the distance is no less than the
    target's at that time. Take a shortest path to the target, of length D. As long as the target's distance is more than D,
    some vertex of the path has its final distance k, and the next one has not got its own from it: the item (vertex, k) has
    not run, or not that edge of it. When they do, k and the next distance are at most D, less than the target's, and are not
    skipped. So the distances along the path become final, one after the other, until the target's is. The search ends early
    because few items are left then. It relies on their order for speed, and for nothing else.

    References
    ----------
    Meyer and Sanders, "Delta-stepping: a parallelizable shortest path algorithm", J. Algorithms 49 (2003).

    Examples
    --------
    >>> graph = atos.Graph.from_edges([0, 0, 1], [1, 2, 2], weights=[0.5, 2, 0.25])
    >>> print(atos.sssp(graph, 0).distance[:])
    [0.   0.5  0.75]
    """
    assert isinstance(graph, Graph)  # graphs in parts have gone to forms of their own
    n = graph.num_vertices
    end, limit = check_target(target, n), check_cutoff(cutoff)
    _, width = check_buckets(BUCKETS, delta)
    tree_wanted = check_bool("predecessors", predecessors)
    sources = check_sources(source, n)
    kind = distance_dtype(graph)

    def launches_on(dtype: DTypeLike, capacity: int = suit_capacity(graph)) -> LaunchSequence:
        """Return a sequence of launches on a queue, which has buckets if items have a distance, and if that pays."""
        ordered = np.dtype(dtype).names is not None and pays_to_order(graph, width)
        order: dict[str, Any] = {"buckets": BUCKETS, "delta": suit_delta(graph, width)} if ordered else {}
        key = "sssp", worker, capacity, np.dtype(dtype), *order.values()
        queue = take_queue(graph, lambda: Queue(capacity, dtype=dtype, device=graph.device, **order), launch_options, *key)
        return LaunchSequence("sssp", queue, launch_options, worker or "cta")

    chosen = worker is not None or not SCHEDULE.isdisjoint(launch_options)
    follows = not chosen and pays_to_follow(graph)
    if graph.weights is None:
        whole = largest_whole(limit, int(UNREACHED))
        search = tree = launches_on(mixed_item_dtype(n))
        ways = choose_direction(graph, None, chosen), pushes_by_level(graph, chosen, launch_options)
        distance = find_depths(graph, sources, ways[0], search, end, whole, follows, ways[1])
        searches = [search]
    else:
        distance, searches = find_distances(graph, sources, kind, end, limit, launches_on, follows)
        search = searches[0]
    first, runs, predecessor = search.total(), [run for each in searches for run in each.runs], None
    if tree_wanted:
        if graph.weights is not None:
            tree = launches_on(mixed_item_dtype(n))
            tree.end = search.end  # one time limit for both
        before = len(tree.runs)
        predecessor = _find_predecessors(graph, sources, distance, tree)
        runs += tree.runs[before:]
    for each in (*searches, *([tree] if tree_wanted and graph.weights is not None else [])):
        each.finish()
    stats = LaunchStats.total(runs, task=first.task, like=first)
    return SSSPResult(distance, predecessor, stats)  # type: ignore[arg-type]


def _find_predecessors(graph: Graph, sources: NDArray[Any], distance: Array, launches: LaunchSequence) -> Array:
    """Return the predecessors, by a pass over the edges, and by a search along edges of weight 0 where it takes one."""
    n = graph.num_vertices
    word = np.dtype(np.uint32 if n <= _IN_32_BITS else np.uint64)
    predecessor = full(n, np.iinfo(word).max, dtype=word, device=graph.device)  # which is -1
    unreached = unreached_of(distance.dtype)
    edges = graph.indptr, graph.indices, graph.weights
    rounds: LaunchOptions = {"persistent": False, "barrier": True}  # two: ranges, then vertices

    def name_by_distance(launches: LaunchSequence) -> None:
        launches.launch(mixed_ranges(n), assign_predecessors, *edges, distance, unreached, predecessor, overrides=rounds)

    def count(launches: LaunchSequence) -> None:
        launches.over_vertices(count_orphans, n, launches.zeroed_totals(), distance, unreached, predecessor)

    def name_by_hops(items: range, launches: LaunchSequence) -> None:
        hops = zero_at(sources, n, UNREACHED, graph.device)
        launches.launch(items, find_hops, *edges, distance, predecessor, hops)
        launches.launch(items, assign_along_hops, *edges, distance, predecessor, hops, overrides=rounds)

    def plan(launches: LaunchSequence) -> None:
        name_by_distance(launches)
        count(launches)
        name_by_hops(mixed_ranges(n), launches)

    if distance.dtype.kind == "f" or (graph.weights is not None and weight_range(graph.weights).least == 0):
        launches.compile_ahead((graph.indptr.dtype, distance.dtype, word), plan)
        name_by_distance(launches)
        count(launches)
        orphans = int(launches.totals[0]) > len(sources)
        name_by_hops(mixed_ranges(n if orphans else 0), launches)  # of nothing, so that a later call finds it compiled
    else:
        name_by_distance(launches)
    kind = np.dtype(f"i{word.itemsize}")
    return Array(predecessor.pointer, (n,), kind, graph.device, readonly=False, owner=predecessor, library=predecessor.library)
