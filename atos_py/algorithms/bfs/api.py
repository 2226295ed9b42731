"""Launching a breadth-first search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arrays.any_array import AnyArray
from ...arrays.array import Array, filled_array, to_host
from ...arrays.memory import clear_bytes
from ...core.devices import Device
from ...errors import InvalidArgumentError
from ...graph.graph import Graph
from ...operators.ranges import mixed_item_dtype, mixed_ranges
from ...runtime.launch_options import LaunchOptions, Unpack
from ...runtime.queue import Queue
from ...runtime.stats import LaunchStats
from ...support.deprecation import warn_deprecated
from ...support.host_memory import host_memory_for
from ...support.shown import ShownFields
from ...support.validation import check_bool, check_choice
from ..arguments import check_cutoff, check_no_each_round, check_sources, check_target, largest_whole
from ..frame import algorithm
from ..kept_launches import take_queue
from ..launch_sequence import LaunchSequence
from .direction import LEVEL_TASKS, search_by_level
from .pushed_levels import search_by_pushed_levels
from .tasks import UNREACHED, assign_parents, pays_to_follow, visit, visit_along, visit_within

if TYPE_CHECKING:
    from ...graph.host_partition import HostPartition
    from ...graph.partition import Partition

__all__ = ["DIRECTIONS", "SCHEDULE", "BFSResult", "bfs", "choose_direction", "find_depths", "pushes_by_level", "zero_at"]

DIRECTIONS = ("push", "auto")

# Edges, in all and to a vertex, from which on switching direction is worth its launches, and telling whether it may be done.
_LARGE = {"cpu": 1_500_000, "cuda": 16_000_000}
_DENSE = 8
SCHEDULE = {"persistent", "barrier"}  # options that choose one


@dataclass(frozen=True, eq=False)
class BFSResult(ShownFields):
    """Result of `bfs`.

    Attributes
    ----------
    depth : Array, or an array of the library that the graph's arrays came from
        Edges from the nearest source to each vertex, uint32; `UNREACHED` (2**32 - 1) where there is no path.
    stats : LaunchStats
        Of the search and, if parents were asked for, of the pass that finds them, together.
    parent : as `depth`, or None
        With `parents=True`, the vertex before each on a shortest path, uint32: of those that could be, the one of smallest
        id, so that the result does not depend on chance. A source is its own parent, as in the Graph500 and GAP benchmarks;
        for a vertex that is not reached it is `UNREACHED`.

    Examples
    --------
    >>> result = atos.bfs(atos.generate.road(3, 1.0), 0, parents=True)
    >>> print(result.num_reached, result.num_levels, result.parent[0])
    9 5 0
    """

    depth: AnyArray
    stats: LaunchStats
    parent: AnyArray = None  # type: ignore[assignment]

    @host_memory_for("BFSResult.reached")
    def reached(self) -> NDArray[np.bool_]:
        """Return whether there is a path to each vertex, as a NumPy array.

        Examples
        --------
        >>> atos.bfs(atos.Graph.from_edges([0, 2], [1, 1]), 0).reached()
        array([ True,  True, False])
        """
        return np.asarray(to_host(self.depth)) != UNREACHED

    @property
    def num_reached(self) -> int:
        """Number of vertices that there is a path to, with the sources."""
        return int(np.count_nonzero(self.reached()))

    @property
    @host_memory_for("BFSResult.num_levels")
    def num_levels(self) -> int:
        """Number of different depths of vertices that there is a path to: the largest plus one."""
        depth = np.asarray(to_host(self.depth))
        return int(depth.max(where=depth != UNREACHED, initial=0)) + 1


@algorithm(in_parts=True)
def bfs(
    graph: Graph | Partition | HostPartition,
    source: ArrayLike,
    *,
    target: int | None = None,
    cutoff: float | None = None,
    direction: str | None = None,
    parents: bool = False,
    worker: str | None = None,
    capacity: int | None = None,
    **launch_options: Unpack[LaunchOptions],
) -> BFSResult:
    """Return the number of edges on the shortest path from a source to every vertex.

    Parameters
    ----------
    graph : Graph, Partition or HostPartition
        Its out-edges are followed; the search runs on its device. Over the parts of a graph the depths, and the parents, are
        a `PartitionedArray`.
    source : int or array of int
        The vertex to start from; or several, each of depth 0, in any order and as often as you like.
    target : int, optional
        A vertex whose depth is all that is wanted: the search ends soon after it is known. ``depth[target]`` is right then, and
        so are the parents from there to a source; what is not less deep than the target may have a depth that is too large,
        or `UNREACHED`.
    cutoff : float, optional
        The largest depth that is wanted, inclusive: what is deeper counts as not reached.
    direction : {'push', 'auto'}, optional
        'push': along the edges of what is reached. 'auto': level by level, pushing or pulling, whichever saves work
        (direction-optimizing search); where it pulls, vertices that are not reached yet look for a neighbor that is. That is
        for undirected graphs, and faster by a factor on those that few levels and many edges make up, such as social networks.
        It is the default where a graph is undirected (`Graph.is_symmetric`), has 8 or more edges to a vertex, and 1.5 million
        or more in all, on a GPU 16 million; but not if you choose a worker or a schedule. A level is a round of one launch,
        whatever `barrier` says. On graphs with so many edges 'push' goes level by level too, for up to 64 levels, unless you
        choose a worker or a schedule, or give a target. Otherwise every vertex is taken as soon as a worker is free.
    parents : bool
        Whether to find a tree of shortest paths too; that takes another pass over the edges.
    capacity : int, optional
        Of the queue; by default room for every vertex twice.
    {launch_options}

    Raises
    ------
    InvalidArgumentError
        If there is no such vertex or direction, the cutoff is NaN, or the direction is 'auto' and some edge lacks its
        reverse.
    LaunchConfigError
        If `each_round` is given, and the direction is 'auto', which has a function between rounds of its own.
    QueueFullError
        If the queue has to grow, and there is no memory for that.

    Notes
    -----
    *Why `target` is right.* A vertex does not pass on its depth if its neighbors would be no less deep than the target is at
    that time. Take a shortest path to the target, of length D. As long as the target is deeper than D, a vertex of the path
    with its final depth k < D is either still to be visited, or was visited with that depth and passed it on: k + 1 <= D is
    less than the target's depth. So depths along the path become final, one after the other, until the target's is.

    References
    ----------
    Chen et al., "Atos: A Task-Parallel GPU Scheduler for Graph Analytics", ICPP 2022, Algorithms 1 and 2.

    Beamer, Asanović and Patterson, "Direction-optimizing breadth-first search", SC 2012.

    Examples
    --------
    >>> atos.bfs(atos.generate.road(3, 1.0), 0).depth.to_numpy().reshape(3, 3)
    array([[0, 1, 2],
           [1, 2, 3],
           [2, 3, 4]], dtype=uint32)
    """
    assert isinstance(graph, Graph)  # graphs in parts have gone to forms of their own
    n, device = graph.num_vertices, graph.device
    limit = int(UNREACHED) if cutoff is None else largest_whole(check_cutoff(cutoff), int(UNREACHED))
    if target is not None:
        target = check_target(target, n)
    chosen = worker is not None or not SCHEDULE.isdisjoint(launch_options)
    is_large = has_many_edges(graph)
    follows = direction is None and not chosen and pays_to_follow(graph)
    by_level = is_large and pushes_by_level(graph, chosen, launch_options)
    direction = "push" if direction is None and not is_large else choose_direction(graph, direction, chosen)
    if direction == "auto":
        check_no_each_round("bfs", launch_options)
    worker = worker or "cta"
    if parents is not False:
        parents = check_bool("parents", parents)
    room, dtype = 2 * n if capacity is None else capacity, mixed_item_dtype(n)
    sources = check_sources(source, n)
    of_levels = direction == "auto" and limit > 0

    def make_queue() -> Queue:
        if of_levels:
            return Queue._of_kinds(LEVEL_TASKS, room, dtype=dtype, device=device)
        return Queue(room, dtype=dtype, device=device)

    queue = take_queue(graph, make_queue, launch_options, "bfs", worker, room, of_levels)
    launches = LaunchSequence("bfs", queue, launch_options, worker)
    depth = find_depths(graph, sources, direction, launches, target, limit, follows, by_level)
    stats = launches.total(None if direction == "push" else "direction_optimizing")
    parent = None
    if parents:
        parent = _find_parents(graph, depth, launches)
        stats = launches.total(stats.task, like=stats)
    launches.finish()
    return BFSResult(depth, stats, parent)  # type: ignore[arg-type]


def has_many_edges(graph: Graph) -> bool:
    """Whether a graph is so large, and has so many edges to a vertex, that levels are few and worth a round each."""
    return graph.num_edges >= max(_LARGE[graph.device.kind], _DENSE * graph.num_vertices)


def pushes_by_level(graph: Graph, chosen: bool, options: LaunchOptions) -> bool:
    """Whether a search that pushes goes level by level: where there are many edges, and no schedule was chosen."""
    return not chosen and has_many_edges(graph) and {"each_round", "idle"}.isdisjoint(options)


def choose_direction(graph: Graph, asked: str | None, chosen: bool) -> str:
    """Return the direction that was asked for, if it suits the graph, or the likely better one."""
    if asked is None:
        return "auto" if has_many_edges(graph) and not chosen and graph.is_symmetric() else "push"
    if isinstance(asked, str) and asked == "switch":
        warn_deprecated('direction="switch"', 'direction="auto"')
        asked = "auto"
    direction = check_choice("direction", asked, DIRECTIONS)
    if direction == "auto" and not graph.is_symmetric():
        raise InvalidArgumentError(
            f"direction={asked!r} is for graphs in which every edge has its reverse, and here some edge has none: "
            "pass graph.to_symmetric(), or direction='push'"
        )
    return direction


def find_depths(
    graph: Graph,
    sources: NDArray[Any],
    direction: str,
    launches: LaunchSequence,
    target: int | None,
    limit: int,
    follows: bool = False,
    by_level: bool = False,
) -> Array:
    """Return the depths, up to a limit, or so many as it takes to know that of a target.

    If it `follows` paths, a group of threads that reached a vertex goes on with its edges. A search that pushes may do so
    `by_level`.
    """
    sources = sources.astype(launches.queue.dtype, copy=False)
    depth = zero_at(sources, graph.num_vertices, UNREACHED, graph.device)
    if direction == "auto" and limit > 0:
        search_by_level(graph, sources, depth, launches, target, limit)
    elif by_level and target is None and limit > 0:
        search_by_pushed_levels(graph._replace(weights=None), sources, depth, launches, limit)
    elif target is None and limit == UNREACHED:
        launches.launch(sources, visit_along if follows else visit, graph._replace(weights=None), depth)
    else:
        launches.launch(sources, visit_within, graph._replace(weights=None), depth, target, limit)
    return depth


def zero_at(sources: NDArray[Any], n: int, unreached: Any, device: Device) -> Array:
    """Return an array of the type of `unreached` that is 0 at the sources, and that elsewhere."""
    distance = filled_array(n, unreached, device)
    if len(sources) == 1:
        itemsize = distance.dtype.itemsize
        clear_bytes(device, distance.pointer + int(sources[0]) * itemsize, itemsize)
    else:
        begin = np.full(n, unreached)
        begin[sources] = 0
        distance[...] = begin
    return distance


def _find_parents(graph: Graph, depth: Array, launches: LaunchSequence) -> Array:
    """Return the parents, by a pass over the edges in two rounds whatever the search did: ranges, then vertices."""
    n = graph.num_vertices
    parent = filled_array(n, UNREACHED, graph.device)
    rounds: LaunchOptions = {"persistent": False, "barrier": True}
    launches.launch(mixed_ranges(n), assign_parents, graph.indptr, graph.indices, depth, parent, overrides=rounds)
    return parent
