"""Launching a colouring: the order of the vertices, which workers colour which, and how many are under way."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...array import asarray, full
from ...errors import InvalidArgumentError
from ...graph import Graph, check_graph
from ...libraries import as_library
from ...queue import Queue
from ...stats import LaunchStats
from ...validate import whole
from ..checks import check_worker
from ..launches import Launches
from .blocks import BLOCK, assign_or_check_block
from .tasks import UNCOLORED, Order, assign_or_check

__all__ = ["ORDERS", "ColoringResult", "color"]

ORDERS = ("natural", "random", "degree")

_HUB = 1024  # neighbours of a vertex that gets a CTA by default
_MESH = 8  # neighbours on average, below which a thread is enough for a vertex, and an item is a block of them
_LARGE = 16_000_000  # edges from which on rounds clash less by more than they cost
_WINDOW = {"cpu": 1 << 10, "thread": 1 << 19, "warp": 1 << 17, "cta": 1 << 14}
# Window and patience for hubs: few under way, each waiting for those before it, take fewer colours, but more time.
_FOR_HUBS = {"natural": (1 << 17, 1 << 10), "random": (1 << 17, 1 << 10), "degree": (1 << 15, 1 << 12)}
_SCRATCH = {"thread": 32, "warp": 512, "cta": 1024}  # bytes, half of them a bitmap of colours
_LEAST = 1 << 16  # places in a queue


class ColoringResult(NamedTuple):
    """What `color` returns.

    Attributes
    ----------
    colors : Array, or an array of the library that the graph's arrays came from
        The colour of each vertex, from 0, uint32.
    num_colors : int
        The largest colour plus one.
    stats : LaunchStats
    """

    colors: Any
    num_colors: int
    stats: LaunchStats


def color(
    graph: Graph,
    order: str = "natural",
    *,
    worker: str | None = None,
    capacity: int | None = None,
    window: int | None = None,
    patience: int | None = None,
    **launch_options: Any,
) -> ColoringResult:
    """Colour the vertices of a graph so that no edge joins equal colours.

    Parameters
    ----------
    graph : Graph
        Taken as undirected: if an edge lacks its reverse, a symmetric copy is made first. Loops are ignored.
    order : {'natural', 'random', 'degree'}
        Which vertices come first: those of small ids; any, in an order that is random but always the same; or those of large
        degree, which takes the fewest colours. Where neighbours have similar ids, a random order keeps them from being
        coloured at the same time, and so saves work, but reads memory at random.
    worker : str, optional
        "thread", "warp" or "cta", for one vertex at a time. By default a CTA takes a block of vertices if they have fewer than
        8 neighbours on average, and neither `window` nor `patience` is given; otherwise, on a GPU, a CTA takes a vertex with
        1,024 or more, which then come first, and a warp one of the others.
    capacity : int, optional
        Of the queue; by default room for every vertex twice, and at least 65,536.
    window : int, optional
        How many vertices are under way at once. By default some for each worker that a large GPU holds, 1,024 on the CPU, and
        with `barrier=True` all. Few clash less and take fewer colours, many keep more workers busy.
    patience : int, optional
        How often a vertex looks again, at most, at a neighbour that comes before it and is not coloured yet. Waiting avoids
        clashes if vertices are begun in order, so with `fetch_size=1`. By default 1,024, or 4,096 by degree, for the CTAs that
        are chosen by default, otherwise 0.
    **launch_options
        As for `Queue.launch_cta`: `persistent`, `barrier`, `fetch_size`, `num_blocks`, `num_threads`, ... By default
        `barrier=True` where CTAs take the large vertices and the graph has 16 million edges or more, except with
        `order="degree"`. `timeout` is for the whole call, which keeps nothing then.

    Returns
    -------
    ColoringResult
        At most one colour more than the largest degree. Unless items are blocks, `stats.tasks_run / graph.num_vertices` is the
        workload ratio: 2 if no neighbours clash and all vertices have some; a vertex without neighbours is one task.

    Raises
    ------
    InvalidArgumentError
        If there is no such order or worker, or a number is too small.
    QueueFullError
        If the queue has to grow, and there is no memory for that.
    """
    check_graph(graph)
    if not isinstance(order, str) or order not in ORDERS:
        raise InvalidArgumentError(f"order must be one of {', '.join(ORDERS)} (got {order!r:.80})")
    if worker is not None:
        check_worker(worker)
    scratch = launch_options.get("shared_memory")
    for name, value, least in (("window", window, 1), ("patience", patience, 0), ("shared_memory", scratch, 8)):
        if value is not None:
            whole(name, value, least, 2**62)
    graph = graph.to_symmetric()
    n, device = graph.num_vertices, graph.device
    by_blocks = worker is None and window is None and not patience and graph.num_edges < _MESH * n
    vertices, phases = _planned(graph, order, worker, by_blocks)
    colors = full(n, UNCOLORED, dtype=np.uint32, device=device)
    if patience or phases[0].patience:
        places = np.empty(n, np.uint32)
        places[slice(None) if vertices is None else vertices] = UNCOLORED + (np.arange(n) >> int(n > UNCOLORED))
        colors[...] = places
    turns = None if vertices is None else asarray(vertices, device=device, readonly=True)
    room = max(2 * n, _LEAST) if capacity is None else capacity
    blocks = -(-n // BLOCK)
    queue = Queue(room, dtype=np.uint32 if n + blocks <= UNCOLORED else np.int64, device=device)
    launches = Launches("color", launch_options)
    begun = 0
    for phase in phases:
        options = {"shared_memory": _SCRATCH[phase.worker], **phase.options}
        rounds = launch_options.get("barrier", options.get("barrier"))
        under_way = min(window or (n if rounds else phase.window), phase.end - begun)
        items = n + np.arange(blocks) if by_blocks else np.arange(begun, begun + under_way)
        queue.push(items.astype(queue.dtype) * 2)
        step = Order(turns, phase.end, under_way, phase.patience if patience is None else patience)
        task = assign_or_check_block if by_blocks else assign_or_check
        launches.run(queue, phase.worker, task, graph, colors, step, usual=options)
        begun = phase.end
    num_colors = int(np.asarray(colors).max()) + 1 if n else 0
    return ColoringResult(as_library(colors, graph.library), num_colors, LaunchStats.total(launches.runs))


class _Phase(NamedTuple):
    """A launch for the vertices up to a place in the order, and what it does unless told otherwise."""

    end: int
    worker: str
    window: int
    patience: int = 0
    options: dict[str, Any] = {}  # noqa: RUF012 - never changed


def _planned(graph: Graph, order: str, worker: str | None, by_blocks: bool) -> tuple[NDArray[np.uint32] | None, list[_Phase]]:
    """Return the order, changed so that hubs come first if they get a launch of their own, and the launches."""
    vertices = _ordered(graph, order)
    n, gpu = graph.num_vertices, graph.device.kind == "cuda"
    if by_blocks:
        return vertices, [_Phase(n, "cta", n, options={"fetch_size": 32})]
    kind = worker or "warp"
    phases = [_Phase(n, kind, _WINDOW[kind if gpu else "cpu"])]
    if worker is None and gpu:
        large = graph.degrees() >= _HUB
        if hubs := int(np.count_nonzero(large)):
            vertices = np.arange(n, dtype=np.uint32) if vertices is None else vertices
            first = large[vertices]
            vertices = np.concatenate([vertices[first], vertices[~first]])
            few: dict[str, Any] = {"fetch_size": 1, "num_threads": 512}
            rounds: dict[str, Any] = {}
            if order == "degree":  # which rounds would upset
                few["num_blocks"] = graph.device.processors
            elif graph.num_edges >= _LARGE:
                rounds = {"barrier": True}
            phases = [_Phase(hubs, "cta", *_FOR_HUBS[order], few | rounds), phases[0]._replace(options=rounds)]
    return vertices, phases


def _ordered(graph: Graph, order: str) -> NDArray[np.uint32] | None:
    """Return the vertices in the order of their turns, or None if that is the order of ids."""
    if order == "natural":
        return None
    vertices = np.random.default_rng(0).permutation(np.arange(graph.num_vertices, dtype=np.uint32))
    if order == "degree":
        degrees = graph.degrees()
        behind = (degrees.max(initial=0) - degrees)[vertices]
        behind = behind.astype(np.min_scalar_type(behind.max(initial=0)))  # narrow keys are sorted faster
        vertices = vertices[np.argsort(behind, kind="stable")]
    return vertices
