"""The call `color`: the order of the vertices, which workers color which, and how many are in flight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...arrays.any_array import AnyArray
from ...arrays.array import Array, asarray, filled_array, zeros
from ...arrays.memory import clear_bytes
from ...errors import InvalidArgumentError
from ...graph.graph import Graph
from ...graph.kept import kept
from ...operators.ranges import mixed_item_dtype, mixed_ranges, range_items
from ...operators.vertex_map import vertex_map, vertex_max
from ...runtime.launch_options import LaunchOptions, Unpack
from ...runtime.queue import Queue
from ...runtime.stats import LaunchStats
from ...support.shown import ShownFields
from ...support.validation import check_int
from ..frame import algorithm
from ..kept_launches import take_queue
from ..launch_sequence import LaunchSequence
from .order import ORDERS, find_hubs, sort_by_turn
from .ranges import assign_range, check_range
from .tasks import LAST, UNCOLORED, ColoringParams, assign, check, vertex_at

__all__ = ["ORDERS", "ColoringResult", "color"]

# Degree from which on a vertex is a hub, and gets a CTA by default. On the CPU a worker is a thread anyway.
_HUB_DEGREE = {"cuda": 1024, "cpu": 1 << 62}
_LOW_AVERAGE_DEGREE = 8  # average degree below which a thread is enough for a vertex, and an item is a range of them
_MANY_EDGES = 16_000_000  # edges from which on rounds clash less by more than they cost
_MAX_IN_FLIGHT = {"cpu": 1 << 10, "thread": 1 << 19, "warp": 1 << 17, "cta": 1 << 14}
# Hubs in flight, and their spin limit: few, each waiting for those before it, take fewer colors, but more time.
_HUB_LIMITS = {"natural": (1 << 17, 1 << 10), "random": (1 << 17, 1 << 10), "degree": (1 << 15, 1 << 12)}
_SCRATCH_BYTES = {"thread": 32, "warp": 512, "cta": 1024}  # half of them a bitmap of colors
_MIN_CAPACITY = 1 << 16
_TASKS, _RANGE_TASKS = (assign, check), (assign_range, check_range, assign, check)


@dataclass(frozen=True, eq=False)
class ColoringResult(ShownFields):
    """Result of `color`.

    Attributes
    ----------
    colors : Array, or an array of the library that the graph's arrays came from
        The color of each vertex, from 0, uint32.
    num_colors : int
        The largest color plus one.
    stats : LaunchStats

    Examples
    --------
    >>> result = atos.color(atos.generate.road(10, 1.0))
    >>> print(result.num_colors <= 5, result.colors.shape)
    True (100,)
    """

    colors: AnyArray
    num_colors: int
    stats: LaunchStats


@algorithm()
def color(
    graph: Graph,
    order: str = "natural",
    *,
    worker: str | None = None,
    capacity: int | None = None,
    window: int | None = None,
    patience: int | None = None,
    **launch_options: Unpack[LaunchOptions],
) -> ColoringResult:
    """Color the vertices of a graph so that no edge joins equal colors.

    Parameters
    ----------
    graph : Graph
        Taken as undirected: if an edge lacks its reverse, `Graph.to_symmetric` is colored, which the first call makes. Loops
        are ignored.
    order : {'natural', 'random', 'degree'}
        Which vertices come first: those of small ids; any, in an order that is random but always the same; or those of large
        degree, which takes the fewest colors. Where neighbors have similar ids, a random order keeps them from being
        colored at the same time, and so saves work, but reads memory at random.
    worker : str, optional
        "thread", "warp" or "cta", for one vertex at a time. By default a CTA takes a range of vertices if they have fewer than
        8 neighbors on average, and there is no `window` and no `patience`; otherwise, on a GPU, a CTA takes a vertex with
        1,024 or more, which then come first, and a warp one of the others.
    capacity : int, optional
        Of the queue; by default room for every vertex twice, and at least 65,536.
    window : int, optional
        How many vertices are in flight at once: begun and not final. By default some for each worker that a large GPU holds,
        1,024 on the CPU, and with `barrier=True` all. Few clash less and take fewer colors, many keep more workers busy.
    patience : int, optional
        How often a vertex looks again, at most, at a neighbor that comes before it and is not colored yet. Waiting avoids
        clashes if vertices are begun in order, so with `fetch_size=1`. By default 1,024, or 4,096 by degree, for the CTAs that
        are chosen by default, otherwise 0.
    {launch_options}
        By default `barrier=True` where CTAs take the large vertices and the graph has 16 million edges or more, except with
        `order="degree"`.

    Returns
    -------
    ColoringResult
        At most one color more than the largest degree. Unless items are ranges, `stats.tasks_run / graph.num_vertices` is the
        workload ratio: 2 if no neighbors clash and all vertices have some; a vertex without neighbors is one task. Where hubs
        come first, with patience, or in another than the natural order, passes over all vertices add to it, 4,096 vertices to
        a task; in rounds, 512.

    Raises
    ------
    InvalidArgumentError
        If there is no such order, or a number is too small.
    QueueFullError
        If the queue has to grow, and there is no memory for that.

    References
    ----------
    Gebremedhin and Manne, "Scalable parallel graph coloring algorithms", Concurrency: Practice and Experience 12 (2000).

    Jones and Plassmann, "A parallel graph coloring heuristic", SIAM Journal on Scientific Computing 14 (1993).

    Chen et al., "Atos: A Task-Parallel GPU Scheduler for Graph Analytics", ICPP 2022, Algorithms 5 and 6.

    Examples
    --------
    >>> triangle = atos.Graph.from_edges([0, 1, 2], [1, 2, 0], symmetrize=True)
    >>> atos.color(triangle).num_colors
    3
    """
    if not isinstance(order, str) or order not in ORDERS:
        raise InvalidArgumentError(f"order must be one of {', '.join(ORDERS)} (got {order!r:.80})")
    window = None if window is None else check_int("window", window, 1, 2**62)
    patience = None if patience is None else check_int("patience", patience, 0, 2**62)
    if (scratch := launch_options.get("shared_memory")) is not None:
        check_int("shared_memory", scratch, 8, 1 << 20)
    graph = graph.to_symmetric()
    n, device = graph.num_vertices, graph.device
    low_degree = graph.num_edges < _LOW_AVERAGE_DEGREE * n
    by_ranges = low_degree and worker is None and window is None and not patience
    room = max(2 * n, _MIN_CAPACITY) if capacity is None else capacity
    dtype = mixed_item_dtype(n)
    tasks = _RANGE_TASKS if by_ranges else _TASKS

    def make_queue() -> Queue:
        return Queue._of_kinds(tasks, room, dtype=dtype, device=device)

    queue = take_queue(graph, make_queue, launch_options, "color", worker, room, tasks)
    ranges = len(range_items(n)) or 1
    maps = take_queue(graph, lambda: Queue(ranges, dtype=dtype, device=device), launch_options, "maps", worker, "color")
    launches = LaunchSequence("color", queue, launch_options, worker, maps)
    colors = filled_array(n, np.uint32(LAST), device)
    largest = launches.workspace("largest color", lambda: zeros(1, dtype=np.uint32, device=device))
    clear_bytes(device, largest.pointer, largest.nbytes)
    hub_degree = _HUB_DEGREE[device.kind]
    hubs_first = worker is None and not by_ranges and graph.num_edges >= hub_degree

    def run_phases(hubs: Array | None, launches: LaunchSequence) -> None:
        for phase in _plan_phases(graph, sort_by_turn(graph, order, launches), worker, by_ranges, order, hubs):
            _run_phase(phase, graph, colors, launches, window, patience)

    def plan(launches: LaunchSequence) -> None:
        if hubs_first:
            find_hubs(graph, order, hub_degree, launches)
        run_phases(asarray(np.arange(1, dtype=np.uint32), device=device) if hubs_first else None, launches)
        launches.over_vertices(largest_color, n, largest, colors)

    launches.compile_ahead((graph.indptr.dtype, order, by_ranges, hubs_first, window is None, patience), plan)
    hubs = None
    if hubs_first:
        known, key = kept(graph), f"hubs by {order}"
        if key not in known:
            known[key] = asarray(find_hubs(graph, order, hub_degree, launches), device=device)
        hubs = known[key]
    run_phases(hubs, launches)
    stats = launches.total()  # before what only looks at the result
    launches.over_vertices(largest_color, n, largest, colors)
    num_colors = int(largest[0]) + 1 if n else 0
    launches.finish()
    return ColoringResult(colors, num_colors, stats)  # type: ignore[arg-type]


@vertex_map
def set_turn(place, colors, params):  # type: ignore[no-untyped-def]
    """Write down the turn of the vertex at a place of the order, if it has no color yet."""
    v = vertex_at(place, params.vertices)
    if colors[v] >= UNCOLORED:
        colors[v] = UNCOLORED + (place >> 1 if params.end > UNCOLORED else place)


@vertex_max
def largest_color(v, colors):  # type: ignore[no-untyped-def]
    """Return the color of v."""
    return colors[v]


class _Phase(NamedTuple):
    """A launch for some vertices, and its default settings."""

    vertices: Array | None  # in the order of their turns; None for all in the order of ids
    worker: str
    max_in_flight: int
    spin_limit: int = 0
    by_ranges: bool = False
    options: LaunchOptions = {}  # noqa: RUF012 - never changed


def _plan_phases(
    graph: Graph, vertices: Array | None, worker: str | None, by_ranges: bool, order: str, hubs: Array | None
) -> list[_Phase]:
    """Return the launches: one for hubs, if there are any, and one for all vertices, which leaves alone what has a color."""
    if by_ranges:
        return [_Phase(vertices, "cta", graph.num_vertices, by_ranges=True, options={"fetch_size": 32})]
    kind = worker or "warp"
    rest = _Phase(vertices, kind, _MAX_IN_FLIGHT[kind if graph.device.kind == "cuda" else "cpu"])
    if hubs is None or not hubs.size:
        return [rest]
    options: LaunchOptions = {"fetch_size": 1, "num_threads": 512}
    rounds: LaunchOptions = {}
    if order == "degree":  # which rounds would upset
        options["num_blocks"] = graph.device.processors
    elif graph.num_edges >= _MANY_EDGES:
        rounds = {"barrier": True}
    first = _Phase(hubs, "cta", *_HUB_LIMITS[order], options=options | rounds)
    return [first, rest._replace(options=rounds)]


def _run_phase(
    phase: _Phase, graph: Graph, colors: Array, launches: LaunchSequence, window: int | None, patience: int | None
) -> None:
    """Color the vertices of a phase that have no color yet."""
    vertices = phase.vertices
    end = graph.num_vertices if vertices is None else vertices.size
    options: LaunchOptions = {"shared_memory": _SCRATCH_BYTES[phase.worker], **phase.options}
    in_rounds = launches.options.get("barrier", options.get("barrier"))
    max_in_flight = min(window or (end if in_rounds else phase.max_in_flight), end)
    params = ColoringParams(vertices, end, max_in_flight, phase.spin_limit if patience is None else patience)
    if params.spin_limit:
        launches.over_vertices(set_turn, end, colors, params)
    if phase.by_ranges or (in_rounds and max_in_flight == end and not params.spin_limit):
        places = mixed_ranges(end)
    else:
        places = range(max_in_flight)
    tasks = _RANGE_TASKS if phase.by_ranges else _TASKS
    launches.launch(places, tasks, graph._replace(weights=None), colors, params, worker=phase.worker, defaults=options)
