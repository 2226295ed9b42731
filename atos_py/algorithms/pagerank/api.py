"""The call `pagerank`: checks of its arguments, first ranks, and the choice of a method."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ...arrays.any_array import AnyArray
from ...arrays.array import Array, asarray, empty, to_host, zeros
from ...errors import InvalidArgumentError, UnsupportedTypeError
from ...graph.gather_ranges import is_low_degree, make_notes, plan_ranges
from ...graph.graph import Graph
from ...graph.kept import kept
from ...graph.strength import out_strength
from ...operators.gather_rounds import GatherRanges
from ...operators.long_rows import LongRows
from ...operators.ranges import mixed_item_dtype, mixed_ranges
from ...operators.vertex_map import vertex_map, vertex_sums
from ...runtime.launch_options import LaunchOptions, Unpack
from ...runtime.queue import Queue
from ...runtime.stats import LaunchStats
from ...support.shown import ShownFields
from ...support.validation import as_dtype, as_host_array, check_bool, check_float
from ..arguments import check_no_each_round
from ..frame import algorithm
from ..kept_launches import take_queue
from ..launch_sequence import LaunchSequence
from . import chebyshev_pull
from .chebyshev_pull import chebyshev_round, find_dangling
from .residual_push import ResidualPush, push_marked, set_ranks, sweep

if TYPE_CHECKING:
    from ...graph.host_partition import HostPartition
    from ...graph.partition import Partition

__all__ = ["METHODS", "PageRankResult", "check_damping", "check_numbers", "pagerank", "teleport_distribution"]

METHODS = ("sweep", "gather", "push")


@dataclass(frozen=True, eq=False)
class PageRankResult(ShownFields):
    """Result of `pagerank`.

    Attributes
    ----------
    rank : Array, or an array of the library that the graph's arrays came from
        The rank of each vertex; they sum to 1.
    stats : LaunchStats
        Of all launches together.
    error_bound : float
        What the relative error in the 1-norm is at most.

    Examples
    --------
    >>> result = atos.pagerank(atos.generate.rmat(8), tolerance=1e-4)
    >>> print(result.error_bound <= 1e-4, abs(result.rank.to_numpy().sum() - 1) < 1e-3)
    True True
    """

    rank: AnyArray
    stats: LaunchStats
    error_bound: float


@algorithm(in_parts=True)
def pagerank(
    graph: Graph | Partition | HostPartition,
    damping: float = 0.85,
    tolerance: float = 1e-4,
    *,
    dtype: DTypeLike = np.float32,
    personalization: ArrayLike | Array | None = None,
    weighted: bool = False,
    dangling: ArrayLike | Array | None = None,
    start: ArrayLike | Array | None = None,
    find: str | None = None,
    worker: str | None = None,
    capacity: int | None = None,
    **launch_options: Unpack[LaunchOptions],
) -> PageRankResult:
    """Return the PageRank of every vertex, as networkx defines it.

    Parallel edges count as often as they are there, and so do loops. A dangling vertex, one without out-edges, or only such
    of weight 0, is taken to have an edge to every vertex, or with `personalization` to those that it names, in its proportions.

    Parameters
    ----------
    graph : Graph, Partition or HostPartition
        Its out-edges are followed; the computation runs on its device. Over the parts of a graph, which has to be undirected,
        the method is "gather", and the ranks are a `PartitionedArray`.
    damping : float
        The probability of following an edge rather than jumping: at least 0 and less than 1.
    tolerance : float
        What the error is at most: the sum of the absolute differences to the exact ranks, where both sum to 1.
    dtype : dtype
        Of the ranks: float32 or float64. It limits the tolerance, because rounding adds an error: with float32 that must be
        more than ``(1 + damping) / (1 - damping) / 2**24``, with float64 more than two millionths of that; with `dangling`,
        twice as much. Memory for float64 is needed in either case.
    personalization : array_like, optional
        Where jumps lead (the teleport distribution): a non-negative number for each vertex, in any scale. By default every
        vertex is as likely.
    weighted : bool
        Whether an out-edge is followed with a probability in proportion to its weight, which may not be negative, rather than
        each as likely. Without weights all edges weigh the same. The weights of a vertex have a sum from 1e-280 to 1e280, or 0.
    dangling : array_like, optional
        Where dangling vertices lead instead: a non-negative number for each vertex, in any scale. If there is such a vertex,
        two rankings are found and added up, so this takes twice as long.
    start : array_like, optional
        Ranks to start from, in any scale: those of a similar graph, say. By default a vertex starts with its share of the
        jumps and a part in proportion to its out-edges, which is near the answer if the graph is undirected.
    find : {"sweep", "gather", "push"}, optional
        The method. "sweep": each launch checks all vertices, and those with a large residual pass it on. "gather": in each
        round every vertex adds up the contributions of its neighbors, which converges on undirected graphs. "push": the atomic
        add that makes a residual large pushes its vertex; with `barrier=True` this is bulk-synchronous. By default "gather" if
        the graph is undirected (`Graph.is_symmetric`), otherwise "sweep"; "sweep" also where weights count, by which nothing is
        gathered, and on a GPU if you choose the worker and the graph has 8 or more edges to a vertex, since gathering takes
        warps there.
    worker : str, optional
        "thread", "warp" or "cta". By default CTAs, or warps where those suit gathering.
    capacity : int, optional
        Of the queue; by default enough in any case.
    {launch_options}

    Raises
    ------
    InvalidArgumentError
        If an argument is out of range or of the wrong length, or the tolerance is finer than the dtype allows.
    LaunchConfigError
        If `each_round` is given, and vertices gather, which has a function between rounds of its own.
    QueueFullError
        If the queue has to grow, and there is no memory for that.

    Notes
    -----
    With ranks p so far, and residuals r, which are not passed on yet, the result is p + r, scaled to the sum 1. Its error is at
    most ``damping / (1 - damping) * sum(|r|) / sum(p)``. So the error is below the tolerance if no residual is above
    ``(1 - damping) / damping * tolerance * sum(p) / n``. Launches pass on what is above 0.8 times that limit; "push" begins
    with four times as much, since the sum is often small enough earlier, and "sweep" deals half of it out to vertices by their
    edges. The error is measured after each launch, and at the end in float64, from the ranks; "gather" measures it so in every
    round.

    References
    ----------
    Chen et al., "Atos: A Task-Parallel GPU Scheduler for Graph Analytics", ICPP 2022, Algorithms 3 and 4.

    Page, Brin, Motwani and Winograd, "The PageRank citation ranking: bringing order to the web", 1999.

    Examples
    --------
    >>> ring = atos.Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0])
    >>> atos.pagerank(ring).rank.to_numpy().round(3)
    array([0.25, 0.25, 0.25, 0.25], dtype=float32)
    """
    numbers = check_numbers(graph, damping, tolerance, dtype, weighted, dangling, find)
    damping, tolerance, weighted, kind, rounding = numbers
    assert isinstance(graph, Graph)  # graphs in parts have gone to forms of their own
    n = graph.num_vertices
    jumps = teleport_distribution("personalization", personalization, n)
    sinks = None if dangling is None else teleport_distribution("dangling", dangling, n)
    strength = out_strength(graph) if weighted else None
    if start is not None:
        start = _load_start(start, graph)
    # Everything at once; where vertices are pushed while others run, as much again, since a claimed slot is not free.
    room = (2 if find == "push" else 1) * (n + len(mixed_ranges(n))) + 1
    most = room if capacity is None else None
    least, dtype_of_items = room if capacity is None else capacity, mixed_item_dtype(n)

    def make_queue() -> Queue:
        return Queue(least, max_capacity=most, dtype=dtype_of_items, device=graph.device)

    queue = take_queue(graph, make_queue, launch_options, "pagerank", worker, least, most)
    launches = LaunchSequence("pagerank", queue, launch_options, worker)
    call = _Call(graph, launches, damping, strength, start, find, kind, tolerance - rounding)
    rank, bound = call.solve(jumps)
    if sinks is not None and not np.array_equal(sinks, jumps):
        rank, bound = call.move_dangling(rank, bound, sinks)
    searches = sweep.name, push_marked.name, chebyshev_round.name
    search = [run for run in launches.runs if run.task in searches]
    stats = launches.total(task=find or "pagerank", like=search[-1] if search else None)
    launches.finish()
    return PageRankResult(rank, stats, bound + rounding)  # type: ignore[arg-type]


class Numbers(NamedTuple):
    """Numbers of a call that were checked: `rounding` adds to the error, and is less than the `tolerance`."""

    damping: float
    tolerance: float
    weighted: bool
    kind: np.dtype[Any]
    rounding: float


def check_numbers(
    graph: Any, damping: float, tolerance: float, dtype: DTypeLike, weighted: bool, dangling: Any, find: str | None
) -> Numbers:
    """Return the numbers of a call, which fit each other and the method, or raise."""
    damping, tolerance = check_damping(damping), check_float("tolerance", tolerance)
    if find is not None and (not isinstance(find, str) or find not in METHODS):
        raise InvalidArgumentError(f"find must be one of {', '.join(METHODS)} (got {find!r:.80})")
    weighted = check_bool("weighted", weighted) and graph.weights is not None
    if weighted and find == "gather":
        raise InvalidArgumentError("find='gather' does not look at weights; leave it out, or weighted=True")
    kind = as_dtype(dtype)
    if kind not in (np.float32, np.float64):
        raise UnsupportedTypeError(f"ranks are float32 or float64 (got {kind})")
    rounding = (1 + damping) / (1 - damping) * (2.0**-24 if kind == np.float32 else 2.0**-53 * 1e3)
    if dangling is not None:
        rounding *= 2  # once more, of the sum of two rankings
    if not rounding < tolerance < math.inf:
        raise InvalidArgumentError(f"tolerance must be more than {rounding:.1e}, the rounding of {kind} (got {tolerance})")
    return Numbers(damping, tolerance, weighted, kind, rounding)


def _load_start(start: Any, graph: Graph) -> Array:
    """Return the ranks to start from as an array on the graph's device."""
    if isinstance(start, Array) and start.device != graph.device:
        raise InvalidArgumentError(f"start is on {start.device}, the graph on {graph.device}; copy it with atos.asarray(...)")
    n = graph.num_vertices
    start = asarray(start, device=graph.device, readonly=True)
    if start.shape != (n,):
        raise InvalidArgumentError(f"start must have one number for each of {n} vertices (got shape {start.shape})")
    if start.dtype == np.float64 and n:  # whose range is far wider than that of float32
        given = start.to_numpy()
        largest = float(given.max())
        if 0 < largest < math.inf and not 1e-20 < largest < 1e20:  # what is no number is found on the way
            return asarray(given / largest, device=graph.device, readonly=True)
    return start


@vertex_sums
def dangling_rank(v, indptr, strength, rank):  # type: ignore[no-untyped-def]
    """Return the rank of v if it is dangling."""
    dangles = indptr[v] == indptr[v + 1] if strength is None else strength[v] == 0
    return (np.float64(rank[v]) if dangles else 0.0,)


@vertex_map
def mix(v, first, second, part, result):  # type: ignore[no-untyped-def]
    """Add up two rankings, `part` of the first."""
    result[v] = part * first[v] + (1 - part) * second[v]


class _Call(NamedTuple):
    """Parameters that all rankings of one call share."""

    graph: Graph
    launches: LaunchSequence
    damping: float
    strength: Array | None  # sums of the weights of out-edges, if those count
    start: Array | None
    find: str | None
    dtype: np.dtype[Any]
    tolerance: float

    def move_dangling(self, rank: Array, bound: float, sinks: NDArray[np.float64]) -> tuple[Array, float]:
        """Return ranks where dangling vertices lead to `sinks`, and a bound, from those where they lead where jumps do.

        The solution is linear in where jumps and dangling vertices lead, so it is a mean of both rankings, in a proportion
        that follows from the rank of the dangling vertices in the first (docs/algorithms/pagerank.md).
        """
        launches, damping, n = self.launches, self.damping, self.graph.num_vertices
        (lost,) = launches.sums(dangling_rank, n, self.graph.indptr, self.strength, rank)[:1]
        if lost == 0:
            return rank, bound
        other, other_bound = self.solve(sinks)
        part = (1 - damping) / (1 - damping + damping * lost)
        result = zeros(n, dtype=self.dtype, device=self.graph.device)
        launches.over_vertices(mix, n, rank, other, part, result)
        return result, part * bound + (1 - part) * other_bound

    def solve(self, jumps: NDArray[np.float64]) -> tuple[Array, float]:
        """Return ranks and a bound of their error, which is at most `tolerance`."""
        graph, launches, damping, strength, start, find, dtype, tolerance = self
        n, undirected = graph.num_vertices, strength is None and graph.is_symmetric()
        known = kept(graph) if jumps.size == 1 else {}  # otherwise they are of this call, with the part of dangling vertices
        if "teleport" not in known:
            known["teleport"] = asarray(jumps, device=graph.device, readonly=True)
        teleport = known["teleport"]
        rank = empty(n, dtype=dtype, device=graph.device)
        pulls = find == "gather" or (find is None and undirected and (is_low_degree(graph) or launches.worker is None))
        if pulls:
            check_no_each_round("pagerank", launches.options)

        def set_start(launches: LaunchSequence, dangling: float, divide: bool, target: Array, factor: float = 1.0) -> None:
            per_vertex, per_edge = 1.0, 0.0
            if start is None and undirected and tolerance > 1e-5:
                # Ranks are nearly in proportion to degrees; but not so in each of the small components.
                per_vertex, per_edge = 1 - damping, damping * (1 - dangling) / max(graph.num_edges, 1)
            ranks, scale = teleport if start is None else start, (factor * per_vertex, factor * per_edge)
            launches.over_vertices(set_ranks, n, graph.indptr, ranks, *scale, divide, target)

        def pull(launches: LaunchSequence, dangling: float, plan: tuple[GatherRanges, LongRows]) -> float | None:
            return chebyshev_pull.solve(
                graph,
                launches,
                damping,
                teleport,
                rank,
                tolerance,
                plan=plan,
                begin=lambda values, factor: set_start(launches, dangling, True, values, factor),
                any_scale=start is not None,
                undirected=undirected,
            )

        def plan(launches: LaunchSequence) -> tuple[float, tuple[GatherRanges, LongRows]]:
            notes = make_notes(graph)
            dangling = launches.sums(find_dangling, n, graph.indptr, teleport, notes)[0]
            return dangling, plan_ranges(graph, notes)

        def plan_launches(recorder: LaunchSequence) -> None:
            pull(recorder, *plan(recorder))  # of nothing, so that it makes no ranks
            chebyshev_pull.make_ranks(recorder, graph, rank, 1.0, rank)

        if pulls:
            variant = graph.indptr.dtype, dtype, start is None or start.dtype, is_low_degree(graph)
            launches.compile_ahead(variant, plan_launches)
        if "ranges" not in known:
            known["ranges"] = plan(launches)
        dangling, ranges = known["ranges"]
        bound = pull(launches, dangling, ranges) if pulls else None
        if bound is not None and undirected:
            return rank, bound
        if bound is None:
            set_start(launches, dangling, False, rank)
        pushing = ResidualPush(graph, launches, damping, teleport, "push" if find == "push" else "sweep", strength)
        return pushing.solve(rank, tolerance, check_first=pulls)


def check_damping(value: Any) -> float:
    """Return the probability of following an edge; raise if it is none."""
    damping = check_float("damping", value)
    if not 0 <= damping < 1:
        raise InvalidArgumentError(f"damping must be at least 0 and less than 1 (got {damping})")
    return damping


def teleport_distribution(name: str, values: Any, n: int) -> NDArray[np.float64]:
    """Return where jumps lead, or dangling vertices, of sum 1; one number if it is the same for all vertices."""
    if values is None:
        return np.full(min(n, 1), 1 / max(n, 1))
    given = as_host_array(name, to_host(values))
    if given.shape != (n,) or given.dtype.kind not in "iufb":
        got = f"got shape {given.shape} of {given.dtype}"
        raise InvalidArgumentError(f"{name} must have one number for each of {n} vertices ({got})")
    given = given.astype(np.float64)
    if n and not (given.min() >= 0 and 0 < given.max() < math.inf):
        raise InvalidArgumentError(f"{name} must hold finite numbers, not negative, with a positive sum")
    if n:  # the largest is 1 first, since a sum of numbers near the ends of float64 overflows, or has few digits
        given /= given.max()
        given /= given.sum()
    return given
