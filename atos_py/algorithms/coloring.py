"""Graph colouring, speculatively: neighbours are coloured at the same time, and those that clash are coloured again.

There are two kinds of task in one queue. *Assign* gives a vertex the smallest colour that none of its neighbours is seen to
have, for the time being, and pushes its check. *Check* makes the colour final, unless a neighbour has the same: then one of the
two loses and takes another colour at once, which is checked in turn. A vertex that is final pushes the assignment of the one
`window` places behind it in the order, so that so many vertices are under way and a colour is checked soon. With `barrier=True`
the window is the whole graph and the same tasks run in rounds.

Who loses a clash: whoever meets a final colour, otherwise the one of smaller degree, ties going by a hash of the ids. A check
that wins marks the loser, with an atomic operation on the loser's own entry, on which the loser's becoming final depends too.
A vertex is in one place at a time (the queue, or one worker), so nobody else changes its colour.

*Never wrong*: suppose neighbours u and v end with the same colour. Each stored it, pushed a check, and passed that. The store
is done, for all to see, before its check looks at a neighbour: loads can overtake a store, but on a GPU this one is an atomic
exchange whose result is waited for before the push, and on the CPU the push adds to the counter of the queue, which puts the
two in an order. So the check of whichever stored last, say v, saw the colour of u. It was not final, for v would have lost,
nor did u outrank v. So v marked u, or found it marked, or found it final just then and lost; and what is marked does not pass.

*Always ends*: a vertex loses only to a final neighbour, once to each, since final colours are seen from then on and avoided; to
a neighbour of higher rank that changed since it was looked at; or by a mark, of which each check of a neighbour of higher rank
sets one at most. So a vertex is recoloured at most degree + 2 x (colours stored by neighbours of higher rank) times, a finite
number by induction from the highest rank down, whatever the order in which tasks run.

Sources: Gebremedhin and Manne, "Scalable parallel graph coloring algorithms", Concurrency: Practice and Experience 12 (2000);
Chen et al., "Atos: A Task-Parallel GPU Scheduler for Graph Analytics", ICPP 2022, Algorithms 5 and 6 and section 6.4.
"""

from __future__ import annotations

import weakref
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..array import Array, asarray, full
from ..errors import InvalidArgumentError, UnsupportedTypeError, VerificationError
from ..graph import Graph
from ..parallel import compiled, parallel_map, ranges
from ..program import WORKERS
from ..queue import Queue
from ..stats import LaunchStats
from ..task import atomic_add, atomic_cas, atomic_exch, atomic_or_, task

__all__ = ["ORDERS", "ColoringResult", "color", "verify"]

ORDERS = ("natural", "random", "degree")

# An entry of `colors` is a final colour, or a colour with these bits, or UNCOLORED plus the vertex's place in the order.
UNCOLORED, TENTATIVE, LOST = 1 << 31, 1 << 30, 1 << 29
COLOR = LOST - 1

_HUB = 1024  # neighbours of a vertex that gets a CTA by default
_MESH = 8  # neighbours on average, below which threads are better than warps
_WINDOW = {"cpu": 1 << 10, "thread": 1 << 19, "warp": 1 << 16, "cta": 1 << 14}
_FOR_HUBS = 1 << 10, 1 << 10  # window and patience
_SCRATCH = {"thread": 32, "warp": 512, "cta": 1024}  # bytes, half of them a bitmap of colours
_LEAST = 1 << 16  # places in a queue
_PIECE = 1 << 14  # vertices that a thread of the host takes at once
_symmetric: weakref.WeakKeyDictionary[Array, bool] = weakref.WeakKeyDictionary()


class Order(NamedTuple):
    """What is the same for all tasks of a launch."""

    vertices: Array | None  # in the order of their turns; None if that is the order of ids
    end: int  # places before this have their turn in this launch
    window: int  # vertices that are under way at once
    patience: int


def vertex_at(place, vertices):  # type: ignore[no-untyped-def]
    """Return the vertex at a place of the order."""
    return place if vertices is None else vertices[place]


def mixed(v):  # type: ignore[no-untyped-def]
    """Hash a vertex id, one to one."""
    h = v * 0x9E3779B1 & 0xFFFFFFFF
    h = (h ^ h >> 15) * 0x85EBCA77 & 0xFFFFFFFF
    return h ^ h >> 13


def outranks(u, v, graph):  # type: ignore[no-untyped-def]
    """Whether u keeps a colour that both have."""
    difference = graph.indptr[u + 1] - graph.indptr[u] - graph.indptr[v + 1] + graph.indptr[v]
    return difference > 0 or (difference == 0 and mixed(u) < mixed(v))


def four(e, step, end, graph, colors):  # type: ignore[no-untyped-def]
    """Return the entries of four neighbours, by the edges e, e + step, ...; the first again in place of those past the end.

    Four at a time since a GPU then has four loads under way at once.
    """
    near = graph.indices
    a = near[e]
    b = near[e + step] if e + step < end else a
    c = near[e + 2 * step] if e + 2 * step < end else a
    d = near[e + 3 * step] if e + 3 * step < end else a
    return colors[a], colors[b], colors[c], colors[d]


def forbid(worker, entry, low, span, bits, words):  # type: ignore[no-untyped-def]
    """Mark the colour of a neighbour as taken, if it is in the range of colours from `low` on."""
    place = (entry & COLOR) - low
    if entry < UNCOLORED and place >= 0 and place < span:
        bit, word = 1 << (place & 31), bits + (place >> 5)
        if worker.size == 1:
            words[word] |= bit
        elif words[word] & bit == 0:
            atomic_or_(words, word, bit)


def precedes(entry, turn):  # type: ignore[no-untyped-def]
    """Whether an entry is that of a vertex without a colour that is before `turn` in the queue."""
    return entry >= UNCOLORED and entry < turn


def note(worker, u, turn, colors, low, span, bits, words):  # type: ignore[no-untyped-def]
    """Note a neighbour that has to be waited for, or, if it has a colour by now, that."""
    entry = colors[u]
    if precedes(entry, turn):
        k = atomic_add(words, 0, 1) + 1
        if k < bits:
            words[k] = u
    else:
        forbid(worker, entry, low, span, bits, words)


def lowest_zero(word):  # type: ignore[no-untyped-def]
    """Return the number of the lowest bit that is 0."""
    bit = 0
    for step in (16, 8, 4, 2, 1):
        if word & (1 << step) - 1 == (1 << step) - 1:
            word >>= step
            bit += step
    return bit


def smallest_free(worker, v, turn, graph, colors, patience):  # type: ignore[no-untyped-def]
    """Return the smallest colour that no neighbour of v has; `turn` is the entry of v, or 0 to wait for nobody.

    The scratch memory holds a number of vertices to wait for, those vertices, and a bit for each colour of a range. A vertex
    needs one colour more than it has neighbours at most; if those of a range are all taken, the next range is looked at.
    """
    first, end = graph.indptr[v], graph.indptr[v + 1]
    words = worker.scratch(np.uint32)
    bits, low = words.size // 2, 0
    while True:
        span = min(end - first + 1 - low, 32 * (words.size - bits))
        for w in worker.split((span + 31) >> 5):
            words[bits + w] = 0
        if worker.rank == 0:
            words[0] = 0
        worker.sync()
        e = first + worker.rank
        while e < end:  # a range whose step is not known would take a division
            a, b, c, d = four(e, worker.size, end, graph, colors)
            forbid(worker, a, low, span, bits, words)
            forbid(worker, b, low, span, bits, words)
            forbid(worker, c, low, span, bits, words)
            forbid(worker, d, low, span, bits, words)
            waits = precedes(a, turn) or precedes(b, turn) or precedes(c, turn) or precedes(d, turn)
            for _ in range(4):
                if waits and e < end:
                    note(worker, graph.indices[e], turn, colors, low, span, bits, words)
                e += worker.size
        worker.sync()
        for k in worker.split(min(words[0], bits - 1)):
            entry, polls = colors[words[k + 1]], 0
            while entry >= UNCOLORED and polls < patience:
                entry = colors[words[k + 1]]
                polls += 1
            forbid(worker, entry, low, span, bits, words)
        worker.sync()
        free = COLOR
        for w in worker.split((span + 31) >> 5):
            if words[bits + w] != 0xFFFFFFFF and free == COLOR:
                free = low + 32 * w + lowest_zero(words[bits + w])
        free = worker.min(free)
        if free < low + span:
            return free
        low = low + span if low + span <= end - first else 0  # start anew: colours changed meanwhile


def has(entry, color):  # type: ignore[no-untyped-def]
    """Whether an entry is this colour, final or not."""
    return entry & ~(TENTATIVE | LOST) == color


def loses(v, u, color, graph, colors):  # type: ignore[no-untyped-def]
    """Whether v has to give up its colour because its neighbour u has it too; if u has to, that is marked."""
    entry = colors[u]
    if not has(entry, color) or u == v or entry & LOST != 0:
        return False
    if entry == color or outranks(u, v, graph):
        return True
    return atomic_cas(colors, u, TENTATIVE | color, TENTATIVE | LOST | color) == color


@task
def assign_or_check(worker, item, graph, colors, order):  # type: ignore[no-untyped-def]
    """Give the vertex at place item // 2 of the order a colour, or check the one it has: the lowest bit tells."""
    place = item >> 1
    v = vertex_at(place, order.vertices)
    first, end = graph.indptr[v], graph.indptr[v + 1]
    turn = 0
    if item & 1:
        entry = colors[v]
        color, lost = entry & COLOR, entry & LOST != 0
        e = first + worker.rank
        while e < end:
            a, b, c, d = four(e, worker.size, end, graph, colors)
            clash = has(a, color) or has(b, color) or has(c, color) or has(d, color)
            for _ in range(4):
                if clash and e < end:
                    lost |= loses(v, graph.indices[e], color, graph, colors)
                e += worker.size
        lost = worker.any(lost)
        if worker.rank == 0 and not lost:  # final, unless v has been told to give it up
            lost = atomic_cas(colors, v, TENTATIVE | color, color) != TENTATIVE | color
        final = not worker.any(lost)
    else:
        final = first == end
        if final:
            colors[v] = 0
        elif order.patience > 0:
            turn = colors[v]
    if not final:
        color = smallest_free(worker, v, turn, graph, colors, order.patience)
        if worker.rank == 0 and atomic_exch(colors, v, TENTATIVE | color) > COLOR:  # always; asked to be sure that it is stored
            worker.push(item | 1)
    elif worker.rank == 0 and place + order.window < order.end:
        worker.push((place + order.window) << 1)


class ColoringResult(NamedTuple):
    """What `color` returns.

    Attributes
    ----------
    colors : Array
        The colour of each vertex, from 0, uint32.
    num_colors : int
        The largest colour plus one.
    stats : LaunchStats
    """

    colors: Array
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
        "thread", "warp" or "cta". By default, on a GPU, threads if a vertex has fewer than 8 neighbours on average; otherwise
        CTAs for the vertices with 1,024 or more, which then come first, and warps for the rest.
    capacity : int, optional
        Of the queue; by default room for every vertex twice.
    window : int, optional
        How many vertices are under way at once. By default some for each worker that a large GPU holds, 1,024 on the CPU, and
        with `barrier=True` all. Few clash less and take fewer colours, many keep more workers busy.
    patience : int, optional
        How often a vertex looks again, at most, at a neighbour that comes before it and is not coloured yet. Waiting avoids
        clashes if vertices are begun in order, so with `fetch_size=1`. By default 1,024 for the CTAs that are chosen by
        default, otherwise 0.
    **launch_options
        As for `Queue.launch_cta`: `persistent`, `barrier`, `fetch_size`, `num_blocks`, `num_threads`, ...

    Returns
    -------
    ColoringResult
        At most one colour more than the largest degree. `stats.tasks_run / graph.num_vertices` is the workload ratio: 2 if
        no neighbours clash and all vertices have some; a vertex without neighbours is one task.

    Raises
    ------
    InvalidArgumentError
        If there is no such order or worker, or a number is too small.
    QueueFullError
        If the capacity asked for is too small.
    """
    if order not in ORDERS:
        raise InvalidArgumentError(f"order must be one of {', '.join(ORDERS)} (got {order!r})")
    if worker is not None and worker not in WORKERS:
        raise InvalidArgumentError(f"worker must be one of {', '.join(WORKERS)} (got {worker!r})")
    scratch = launch_options.get("shared_memory")
    for name, value, least in (("window", window, 1), ("patience", patience, 0), ("shared_memory", scratch, 8)):
        if value is not None and value < least:
            raise InvalidArgumentError(f"{name} must be at least {least} (got {value})")
    if not _is_symmetric(graph):
        graph = graph.simplify(symmetrize=True, deduplicate=True)
    n, device = graph.num_vertices, graph.device
    # For each launch: where it ends in the order, its workers, their options, their window, and their patience.
    plan: list[tuple[int, str, dict[str, Any], int, int]] = [(n, worker or "warp", {}, _WINDOW[worker or "warp"], 0)]
    vertices = _ordered(graph, order)
    if worker is None and device.kind == "cuda":
        if graph.num_edges < _MESH * n:
            plan = [(n, "thread", {}, _WINDOW["thread"], 0)]
        elif hubs := int(np.count_nonzero(large := graph.degrees() >= _HUB)):
            vertices = np.arange(n, dtype=np.uint32) if vertices is None else vertices
            vertices = vertices[np.argsort(~large[vertices], kind="stable")]
            plan = [(hubs, "cta", {"fetch_size": 1, "num_threads": 512}, *_FOR_HUBS), *plan]
    colors = full(n, UNCOLORED, dtype=np.uint32, device=device)
    if patience or plan[0][4]:
        places = np.empty(n, np.uint32)
        places[slice(None) if vertices is None else vertices] = UNCOLORED + (np.arange(n) >> int(n > UNCOLORED))
        colors[...] = places
    turns = None if vertices is None else asarray(vertices, device=device, readonly=True)
    queue = Queue(capacity or max(2 * n, _LEAST), dtype=np.uint32 if n <= UNCOLORED else np.int64, device=device)
    runs: list[LaunchStats] = []
    begun = 0
    for end, kind, defaults, usual, polls in plan:
        usual = n if launch_options.get("barrier") else usual if device.kind == "cuda" else _WINDOW["cpu"]
        under_way = min(window or usual, end - begun)
        queue.push(np.arange(begun, begun + under_way, dtype=queue.dtype) * 2)
        step = Order(turns, end, under_way, polls if patience is None else patience)
        options = {"shared_memory": _SCRATCH[kind], **defaults, **launch_options}
        runs.append(getattr(queue, f"launch_{kind}")(assign_or_check, graph, colors, step, **options))
        begun = end
    total = {name: sum(getattr(run, name) for run in runs) for name in ("tasks_run", "tasks_pushed", "milliseconds", "rounds")}
    return ColoringResult(colors, int(np.asarray(colors).max()) + 1 if n else 0, replace(runs[-1], **total))


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


def _antisymmetry_kernel(indptr: Any, indices: Any, first: int, end: int) -> Any:  # pragma: no cover - compiled
    """Sum up a hash of each edge minus the hash of its reverse."""
    total = np.uint64(0)
    for u in range(first, end):
        for edge in range(indptr[u], indptr[u + 1]):
            v = indices[edge]
            z = (np.uint64(u) << np.uint64(32) | np.uint64(v)) * np.uint64(0x9E3779B97F4A7C15)
            z = (z ^ z >> np.uint64(29)) * np.uint64(0xBF58476D1CE4E5B9)
            total += z ^ z >> np.uint64(32)
            z = (np.uint64(v) << np.uint64(32) | np.uint64(u)) * np.uint64(0x9E3779B97F4A7C15)
            z = (z ^ z >> np.uint64(29)) * np.uint64(0xBF58476D1CE4E5B9)
            total -= z ^ z >> np.uint64(32)
    return total


def _is_symmetric(graph: Graph) -> bool:
    """Whether every edge has its reverse, told by a sum of hashes over all edges; remembered for the graph."""
    if graph.indices not in _symmetric:
        indptr, indices = np.asarray(graph.indptr), np.asarray(graph.indices)
        kernel = compiled(_antisymmetry_kernel)
        sums = parallel_map(lambda piece: int(kernel(indptr, indices, *piece)), ranges(graph.num_vertices, _PIECE))
        _symmetric[graph.indices] = sum(sums) % 2**64 == 0
    return _symmetric[graph.indices]


def _clash_kernel(indptr: Any, indices: Any, colors: Any, first: int, end: int) -> int:  # pragma: no cover - compiled
    """Return the first edge that joins equal colours and is no loop, or -1."""
    for u in range(first, end):
        for edge in range(indptr[u], indptr[u + 1]):
            if colors[indices[edge]] == colors[u] and indices[edge] != u:
                return edge
    return -1


def verify(graph: Graph, colors: Any) -> None:
    """Prove that `colors` is a colouring: every edge but loops joins different colours, none larger than the largest degree.

    Parameters
    ----------
    graph : Graph
        Directed or not. The degree of a vertex is the number of its edges, of those that lead to it too if some edge lacks
        its reverse.
    colors : Array or numpy.ndarray
        The colours, of any integer type; one for each vertex.

    Raises
    ------
    VerificationError
        It is none. The message names the first edge or vertex that is wrong.
    """
    indptr, indices, found = np.asarray(graph.indptr), np.asarray(graph.indices), np.ascontiguousarray(colors)
    n = indptr.size - 1
    if found.dtype.kind not in "iu":
        raise UnsupportedTypeError(f"colors must be an array of integers, not {found.dtype}")
    if found.shape != (n,):
        raise InvalidArgumentError(f"colors must have one entry for each of {n} vertices (got shape {found.shape})")
    kernel = compiled(_clash_kernel)
    for edge in parallel_map(lambda piece: int(kernel(indptr, indices, found, *piece)), ranges(n, _PIECE)):
        if edge >= 0:
            u, v = int(np.searchsorted(indptr, edge, side="right")) - 1, int(indices[edge])
            raise VerificationError(f"edge {u} -> {v} (number {edge}) joins two vertices of colour {found[u]}")
    degrees = np.diff(indptr)
    if found.max(initial=0) > degrees.max(initial=0) and not _is_symmetric(graph):
        degrees = degrees + np.bincount(indices, minlength=n)
    most = int(degrees.max(initial=0))
    wrong = (found < 0) | (found > most)
    if wrong.any():
        v = int(np.argmax(wrong))
        raise VerificationError(f"colors[{v}] is {found[v]}, but colours lie in 0..{most}, the largest degree")
