"""Maximal independent set: the one that a greedy algorithm finds in an order of few neighbors first, found in parallel.

In this order, a vertex comes before another one if its degree class is better, and within a class by a hash of the id and the
seed. A vertex is in the set exactly if no neighbor before it is. So the set depends on the order alone, not on who looks when:
it is the same on every device, with every worker and schedule, for the same seed.

A task looks at the undecided vertices of a range. Such a vertex is out if it meets a neighbor that is in; it waits if it meets
an undecided one before it; and otherwise, at the end of its row, it is in, and puts out its neighbors. A range with vertices
that wait is pushed again. One thread looks at the first edges of a vertex, which mostly decide; where they do not, the vertex
becomes an item of its own, at whose other edges all threads of a worker look. The first undecided vertex of all never waits, so
there is an end. States change only once, from undecided to in or out, so one that is out of date costs time and nothing else.

Sources: Burtscher, Devale, Azimi, Jaiganesh and Powers, "A high-quality and fast maximal independent set implementation for
GPUs", ACM TOPC 5 (2018); Blelloch, Fineman and Shun, "Greedy sequential maximal independent set and matching are parallel on
average", SPAA 2012.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..arrays.array import Array, asarray, empty, to_host
from ..compile.atomics import atomic_cas
from ..compile.host_kernels import first_found
from ..compile.task import task
from ..errors import InvalidArgumentError, VerificationError
from ..graph.graph import Graph
from ..graph.graph_arrays import check_graph
from ..operators.ranges import mixed_item_dtype, mixed_range_bounds, mixed_ranges
from ..operators.vertex_map import vertex_map
from ..runtime.launch_options import LaunchOptions, Unpack
from ..runtime.queue import Queue
from ..support.splitmix64 import splitmix64
from ..support.validation import as_host_array
from .arguments import check_sources, hash_of_seed, per_vertex, rows_on_host
from .frame import algorithm, verifier
from .kept_launches import take_queue
from .launch_sequence import LaunchSequence
from .registry import SEED, register
from .vertex_set import VertexSetResult, describe_set

__all__ = ["decide", "maximal_independent_set", "verify_maximal_independent_set"]

# The state of a vertex. In the end, states are flags. An undecided vertex has its degree class in the bits from 2 on, the best
# one being the largest; `SHARED` is set when the vertex has become an item of its own.
OUT, IN, SHARED, UNDECIDED = 0, 1, 1, 2
_INCLUDED = 62  # the class of vertices that have to be in the set
_ONE_THREAD = 64  # edges of a vertex at which one thread looks
_DENSE = 8  # mean degree
_NUM_THREADS = 128  # of a block


def is_before(u, state_u, v, state_v, base):  # type: ignore[no-untyped-def]
    """Whether an undecided vertex u comes before v."""
    if state_u >> 2 != state_v >> 2:
        return state_u >> 2 > state_v >> 2
    return splitmix64(base + np.uint64(u)) < splitmix64(base + np.uint64(v))


@vertex_map
def set_state(v, indptr, average, included, state):  # type: ignore[no-untyped-def]
    """Make a vertex undecided, in the class of its degree."""
    degree = np.int64(indptr[v + 1]) - np.int64(indptr[v])
    rank = (_INCLUDED - 1) * average // (average + degree)
    if included is not None and included[v]:
        rank = _INCLUDED
    state[v] = rank << 2 | UNDECIDED


def comes_before(u, found, v, own, base):  # type: ignore[no-untyped-def]
    """Whether a neighbor u of an undecided vertex v, in the state that was found, is undecided and before v."""
    return found >= UNDECIDED and u != v and is_before(u, found, v, own, base)


def look(v, own, edge, end, step, graph, state, base):  # type: ignore[no-untyped-def]
    """Look at every `step`-th edge of v until one decides: return `IN` or `UNDECIDED` by the neighbor, or `OUT` for none.

    Four at a time, so that a GPU has four loads under way at once; the first stands for those that are missing.
    """
    near = graph.indices
    while edge < end:
        a = near[edge]
        b = near[edge + step] if edge + step < end else a
        c = near[edge + 2 * step] if edge + 2 * step < end else a
        d = near[edge + 3 * step] if edge + 3 * step < end else a
        of_a, of_b, of_c, of_d = state[a], state[b], state[c], state[d]
        if of_a == IN or of_b == IN or of_c == IN or of_d == IN:
            return IN
        if comes_before(a, of_a, v, own, base) or comes_before(b, of_b, v, own, base):
            return UNDECIDED
        if comes_before(c, of_c, v, own, base) or comes_before(d, of_d, v, own, base):
            return UNDECIDED
        edge += 4 * step
    return OUT


def join(v, first, step, graph, state):  # type: ignore[no-untyped-def]
    """Put v in the set and its neighbors out, of which this thread has every `step`-th one."""
    if first == 0:
        state[v] = IN
    for edge in range(graph.indptr[v] + first, graph.indptr[v + 1], step):
        u = graph.indices[edge]
        if u != v and state[u] != OUT:
            state[u] = OUT


@task(max_registers={"cta": 32})  # the set of road4900 takes 1.39 ms instead of 1.62
def decide(worker, item, graph, state, base):  # type: ignore[no-untyped-def]
    """Decide the vertices of a range by one thread each, or one vertex by all threads; push again what has to wait."""
    n = graph.indptr.size - 1
    if item < n:
        own = state[item]
        edge, end = np.int64(graph.indptr[item]) + _ONE_THREAD + worker.rank, np.int64(graph.indptr[item + 1])
        met = look(item, own, edge, end, np.int64(worker.size), graph, state, base) if own >= UNDECIDED else OUT
        is_out, waits = worker.any(met == IN or own < UNDECIDED), worker.any(met == UNDECIDED)
        if not is_out and not waits:
            join(item, worker.rank, worker.size, graph, state)
        elif worker.rank == 0 and not is_out:
            worker.push(item)
        elif worker.rank == 0:
            state[item] = OUT
        return
    first, size = mixed_range_bounds(item, n)
    waiting = False
    for v in worker.split(range(first, first + size)):
        own = state[v]
        if own >= UNDECIDED and own & SHARED == 0:
            edge, end = np.int64(graph.indptr[v]), np.int64(graph.indptr[v + 1])
            met = look(v, own, edge, min(end, edge + _ONE_THREAD), np.int64(1), graph, state, base)
            if met == IN:
                state[v] = OUT
            elif met == UNDECIDED:
                waiting = True
            elif end - edge <= _ONE_THREAD:
                join(v, 0, 1, graph, state)
            elif atomic_cas(state, v, own, own | SHARED) == own:
                worker.push(v)
    if worker.any(waiting) and worker.rank == 0:
        worker.push(item)


@algorithm()
def maximal_independent_set(
    graph: Graph,
    *,
    seed: int = 0,
    include: ArrayLike | None = None,
    worker: str | None = None,
    **launch_options: Unpack[LaunchOptions],
) -> VertexSetResult:
    """Find a set of vertices of which no two are neighbors, and to which no vertex can be added.

    Vertices of small degree are preferred, which makes the set large. It is the one that a greedy algorithm finds in a certain
    order, so it is the same in every run, on every device, with every worker and schedule.

    Parameters
    ----------
    graph : Graph
        Taken as undirected, as `Graph.to_symmetric` makes it. Loops are ignored.
    seed : int
        Of 64 bits. Decides the order of vertices of about the same degree.
    include : array of int, optional
        Vertices that have to be in the set, no two of which may be neighbors.
    {launch_options}

    Raises
    ------
    InvalidArgumentError
        If `include` names neighbors, or what is no vertex.

    References
    ----------
    Burtscher, Devale, Azimi, Jaiganesh and Powers, "A high-quality and fast maximal independent set implementation for GPUs",
    ACM TOPC 5 (2018).

    Examples
    --------
    >>> path = atos.Graph.from_edges([0, 1, 2], [1, 2, 3], symmetrize=True)
    >>> atos.maximal_independent_set(path, include=[1]).members.to_numpy()
    array([False,  True, False,  True])
    """
    base = hash_of_seed(seed)
    n, device, flags, chosen = graph.num_vertices, graph.device, None, None
    if include is not None and (given := as_host_array("include", to_host(include))).size:
        chosen = check_sources(given, n, "include")
        flags = np.zeros(n, np.bool_)
        flags[chosen] = True
    graph = graph.to_symmetric()
    rows, average = graph._replace(weights=None), max(graph.num_edges // max(n, 1), 1)
    included = None if flags is None else asarray(flags, device=device, readonly=True)
    state = empty(n, dtype=np.uint8, device=device)
    items = mixed_ranges(n)
    most = len(items) + min(n, graph.num_edges // _ONE_THREAD)  # that wait: ranges, and vertices of many edges
    room, dtype = 2 * most + 1, mixed_item_dtype(n)
    queue = take_queue(graph, lambda: Queue(room, dtype=dtype, device=device), launch_options, "independent set", worker)
    launches = LaunchSequence("maximal_independent_set", queue, launch_options, worker)
    # Where rows are long, waiting takes less time from others in rounds. A thread of a small block waits for fewer others.
    defaults: LaunchOptions = {"num_threads": _NUM_THREADS, "barrier": average >= _DENSE} if device.kind == "cuda" else {}

    def launch_all(launches: LaunchSequence) -> None:
        launches.over_vertices(set_state, n, graph.indptr, average, included, state)
        launches.launch(items, decide, rows, state, base, defaults=defaults)

    launches.launch_planned((graph.indptr.dtype, included is None), launch_all)
    # States are 0 or 1 now, as bool is.
    members = Array(state.pointer, state.shape, np.dtype(np.bool_), device, readonly=False, owner=state)
    if chosen is not None and not (kept := members.to_numpy()[chosen]).all():
        raise InvalidArgumentError(
            f"include names vertex {chosen[np.argmin(kept)]} and a neighbor of it, which cannot both be in an independent set"
        )
    return VertexSetResult(members, launches.total(decide.name))  # type: ignore[arg-type]


def _set_kernel(indptr: Any, indices: Any, members: Any, first: int, end: int) -> int:  # pragma: no cover - compiled
    """Return the first of vertices `first` to `end` that is a member beside a member, or is none and can be one; or -1."""
    for v in range(first, end):
        met = False
        for edge in range(indptr[v], indptr[v + 1]):
            met |= indices[edge] != v and members[indices[edge]]
        if met == members[v]:
            return v
    return -1


@verifier
def verify_maximal_independent_set(graph: Graph, members: Any) -> None:
    """Prove that no two members are neighbors, and that every other vertex has a member as a neighbor.

    Parameters
    ----------
    graph : Graph
        Taken as undirected. Loops are ignored.
    members : array of bool
        One for each vertex.

    Examples
    --------
    >>> path = atos.Graph.from_edges([0, 1, 2], [1, 2, 3], symmetrize=True)
    >>> atos.verify_maximal_independent_set(path, [False, True, False, True])
    >>> atos.verify_maximal_independent_set(path, [False, True, False, False])
    Traceback (most recent call last):
    atos_py.errors.VerificationError: ...
    """
    check_graph(graph)
    indptr, indices = rows_on_host(graph.to_symmetric())
    found = per_vertex("members", members, indptr.size - 1, "b")
    v = first_found(_set_kernel, indptr, indices, found)
    if v >= 0 and found[v]:
        neighbors = indices[indptr[v] : indptr[v + 1]]
        other = neighbors[found[neighbors] & (neighbors != v)][0]
        raise VerificationError(f"vertices {v} and {other} are neighbors, and both in the set")
    if v >= 0:
        raise VerificationError(f"vertex {v} is not in the set, and no neighbor of it is: it can be added")


register(
    run=maximal_independent_set,
    verify=lambda graph, result, _: verify_maximal_independent_set(graph, result.members),
    describe=describe_set,
    arrays=lambda result: {"members": result.members},
    help="find a maximal independent set",
    description="""\
Finds vertices of which no two are neighbors, and to which none can be added (Burtscher et al. 2018), by preference of small
degree. A pass over all edges proves both. The set depends on the seed alone. Edges are taken as undirected.""",
    examples=("rmat:16:16 --out members.npy", "road:1000:0.62 --seed 7"),
    options={"seed": SEED},
)
