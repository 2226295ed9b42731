"""Strongly connected components by smallest keys, propagated along the edges from both ends, in rounds of one launch.

Vertices have keys, no two the same. Every vertex learns the smallest key of those that reach it, and the smallest one of those
that it reaches. Where both are the same, they are that of the component. Vertices that differ in either of the two are in
different components, so edges between them are left out from then on, and the vertices that are left begin again. Each time at
least the component of the smallest key that is left is found. A vertex without edges is a component by itself.

The work is over a list of edges, not over rows: all edges cost the same, and a list becomes short once most edges are left out.
An edge needs no transposed graph: its source takes a minimum from the target, and gives one to it.

Where there are many edges, the key of the vertex of largest degree, the pivot, is 0: it is likely to be in the largest
component, most of whose edges have nothing to propagate after two rounds and are left out then. Otherwise keys are the numbers
of vertices, which often follow the graph, and each range of edges is gone through several times in a round.

Sources: Alabandi, Sands, Biros and Burtscher, "A high-performance strongly connected components algorithm for GPUs", SC 2023
(ECL-SCC); Orzan, "On distributed verification and verified distribution", Vrije Universiteit Amsterdam, 2004 (coloring).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..arrays.array import Array, asarray, empty
from ..arrays.record import new_record, places
from ..compile.atomics import atomic_max, atomic_min
from ..compile.task import task
from ..graph.graph import Graph
from ..graph.graph_arrays import check_graph
from ..graph.strong_components import number_components
from ..operators.compaction import compaction
from ..operators.edge_map import THREAD_MAX_DEGREE
from ..operators.ranges import range_items
from ..operators.reductions import SCRATCH_BYTES
from ..operators.row_map import row_map
from ..operators.vertex_map import vertex_sums
from ..runtime.launch_options import LaunchOptions, Unpack
from ..runtime.queue import Queue
from .arguments import per_vertex, rows_on_host
from .connected_components import ComponentsResult, check_labels, connected_components, describe_components
from .frame import algorithm, verifier
from .kept_launches import take_queue
from .launch_sequence import LaunchSequence
from .registry import register

__all__ = ["strongly_connected_components", "verify_strongly_connected_components"]

_DENSE = 8  # mean degree from which on there is a pivot
_EDGES_PER_ITEM = 8192
_REPEATS = 4  # passes over a range of edges in a round, at most, where there is no pivot
_LAST_FULL_ROUND = 2  # after which edges are left out that have propagated the pivot's key

_BEGIN, _RESET, _PROPAGATE, _DROP, _FILTER = 0, 1, 2, 3, 4  # modes of rounds
_FROM, _TO = 0, 1  # columns of `known`
_32, _LOW, _TWICE = np.uint64(32), np.uint64(2**32 - 1), np.uint64(2**32 + 1)


class Notes(NamedTuple):
    """Words of `notes` (`arrays.record`)."""

    pivot: int = 1  # the vertex of key 0, with its degree
    any_change: int = 1
    step: int = 1  # how many lists of edges were made


AT = places(Notes)


class Keys(NamedTuple):
    """State of vertices, and the edges within classes of vertices that may be in one component."""

    known: Array  # (n, 2) smallest keys of the vertices that reach a vertex, and of those that it reaches
    both: Array  # the same memory, as a number of 64 bits for each vertex
    label: Array  # a vertex of the component of each vertex
    smallest: Array  # the smallest vertex of the component that a vertex stands for
    edges: Array  # (2 m) source and target of those left in every second list, and those of the next one
    counts: Array  # (2) how many each list has
    notes: Array


def key_of(v, keys):  # type: ignore[no-untyped-def]
    """Return the number by which vertices are compared, and the vertex of a key: the pivot and vertex 0 have changed keys."""
    pivot = keys.notes[AT.pivot] & 0xFFFF_FFFF
    return np.int64(0) if v == pivot else pivot if v == 0 else np.int64(v)


def store_edges(v, edge, last, step, graph, keys):  # type: ignore[no-untyped-def]
    """Put every `step`-th edge of v on the first list."""
    for place in range(edge, last, step):
        keys.edges[place] = np.uint64(v) << _32 | np.uint64(graph.indices[place])
    return 0


store_rows = row_map(
    lambda v, edge, last, graph, keys: store_edges(v, edge, last, 1, graph, keys),
    lambda team, v, edge, last, graph, keys: store_edges(v, edge + team.rank, last, team.size, graph, keys),
)


def reset(v, keys):  # type: ignore[no-untyped-def]
    """Let a vertex know nothing but its own key."""
    keys.both[v] = np.uint64(key_of(v, keys)) * _TWICE


def lower(v, column, key, keys):  # type: ignore[no-untyped-def]
    """Tell a vertex a key, or a smaller one that the vertex of this key knows; return whether that is new."""
    key = min(key, np.int64(keys.known[key_of(key, keys), column]))
    return atomic_min(keys.known, (v, column), key) > key


def propagate(source, target, of_source, of_target, keys):  # type: ignore[no-untyped-def]
    """Give what the source knows to the target, and the other way round; return whether anything changed."""
    changed = of_source & _LOW < of_target & _LOW and lower(target, _FROM, np.int64(of_source & _LOW), keys)
    if of_target >> _32 < of_source >> _32:
        changed |= lower(source, _TO, np.int64(of_target >> _32), keys)
    return changed


def propagate_range(worker, first, end, keys):  # type: ignore[no-untyped-def]
    """Propagate keys along this thread's edges of a range, two at a time, so that a GPU asks for the ends of both at once."""
    changed = False
    for place in range(first + worker.rank, end, 2 * worker.size):
        other = min(place + worker.size, end - 1)
        edge, next_edge = keys.edges[place], keys.edges[other]
        source, target, next_source, next_target = edge >> _32, edge & _LOW, next_edge >> _32, next_edge & _LOW
        of_source, of_target = keys.both[source], keys.both[target]
        of_next_source, of_next_target = keys.both[next_source], keys.both[next_target]
        changed |= propagate(source, target, of_source, of_target, keys)
        changed |= propagate(next_source, next_target, of_next_source, of_next_target, keys)
    return changed


def is_found(edge, dropping, keys):  # type: ignore[no-untyped-def]
    """Whether an edge is in a component that is found; if `dropping`, leads from the pivot's and has nothing to propagate."""
    of_source, of_target = keys.both[edge >> _32], keys.both[edge & _LOW]
    if dropping:
        return of_source == 0 and of_target & _LOW == 0
    return of_source == of_target and of_source >> _32 == of_source & _LOW


def is_left(edge, dropping, keys):  # type: ignore[no-untyped-def]
    """Whether an edge may be in a component that is not known yet."""
    return (dropping or keys.both[edge >> _32] == keys.both[edge & _LOW]) and not is_found(edge, dropping, keys)


def find(v, keys):  # type: ignore[no-untyped-def]
    """Write down the component of a vertex, and the smallest vertex of that."""
    name = key_of(np.int64(keys.known[v, _FROM]), keys)
    keys.label[v] = name
    if keys.smallest[name] > v:
        atomic_min(keys.smallest, name, v)


list_those_left = compaction(is_left)


@task(max_registers={"cta": (64, None)})
def separate(worker, item, size, share, thread_max_degree, repeats, graph, keys):  # type: ignore[no-untyped-def]
    """Do for a range of the list of edges what the mode of the round says; at first for a range of `share` vertices."""
    n, m = keys.label.size, graph.indices.size
    step = keys.notes[AT.step] & 1
    first = item * size + step * m
    end = min(item * size + size, keys.counts[step]) + step * m
    if worker.mode == _BEGIN:
        begin, last = item * share, min(item * share + share, n)
        largest = 0
        for v in worker.split(range(begin, last)):
            keys.label[v], keys.smallest[v] = v, v
            keys.both[v] = np.uint64(v) * _TWICE  # vertex 0 and the pivot are reset before the next round
            largest = max(largest, (graph.indptr[v + 1] - graph.indptr[v]) << 32 | v)
        largest = worker.max(largest)
        if worker.rank == 0 and repeats == 1:
            atomic_max(keys.notes, AT.pivot, largest)
        store_rows(worker, begin, last, thread_max_degree, graph.indptr, graph, keys)
    elif worker.mode == _RESET:
        for place in worker.split(range(first, end)):
            edge = keys.edges[place]
            reset(np.int64(edge >> _32), keys)
            reset(np.int64(edge & _LOW), keys)
    elif worker.mode == _PROPAGATE:
        for _ in range(repeats):
            if not worker.any(propagate_range(worker, first, end, keys)):
                break
            if worker.rank == 0:
                keys.notes[AT.any_change] = 1
    else:
        dropping = worker.mode == _DROP
        for place in worker.split(range(first, end)):
            edge = keys.edges[place]
            if is_found(edge, dropping, keys):
                find(np.int64(edge >> _32), keys)
        list_those_left(worker, first, end, keys.edges, (1 - step) * m, keys.counts, 1 - step, dropping, keys)
    if worker.rank == 0 and first < end:
        worker.push(item)


def set_mode(worker, size, share, thread_max_degree, repeats, graph, keys):  # type: ignore[no-untyped-def]
    """Choose what the next round does: propagate until nothing changes, filter the edges, reset their ends, and so on."""
    mode, notes = worker.mode, keys.notes
    if mode == _FILTER:
        worker.set_mode(_RESET)
    elif mode in (_BEGIN, _RESET, _DROP):
        worker.set_mode(_PROPAGATE)
    elif notes[AT.any_change] == 0:
        worker.set_mode(_FILTER)
    elif repeats == 1 and worker.round == _LAST_FULL_ROUND:
        worker.set_mode(_DROP)
    worker.sync()  # all have read whether anything changed
    if worker.rank == 0:
        if mode == _BEGIN and keys.label.size > 0:
            reset(np.int64(0), keys)
            reset(key_of(np.int64(0), keys), keys)
        elif mode in (_DROP, _FILTER):
            notes[AT.step] += 1
        notes[AT.any_change] = 0
        keys.counts[1 - (notes[AT.step] & 1)] = 0


@vertex_sums
def name_by_smallest(v, label, smallest):  # type: ignore[no-untyped-def]
    """Make the smallest vertex of v's component its label; return whether that is v."""
    label[v] = smallest[label[v]]
    return (1.0 if label[v] == v else 0.0,)


@algorithm(rounds=True)
def strongly_connected_components(
    graph: Graph, *, worker: str | None = None, **launch_options: Unpack[LaunchOptions]
) -> ComponentsResult:
    """Find which vertices reach each other along edges in their direction.

    Parameters
    ----------
    graph : Graph
        If every edge has its reverse, these are its components, and are found as `connected_components` does it.
    {launch_options}

    See Also
    --------
    connected_components : with edges in either direction.

    References
    ----------
    Alabandi, Sands, Biros and Burtscher, "A high-performance strongly connected components algorithm for GPUs", SC 2023.

    Examples
    --------
    >>> graph = atos.Graph.from_edges([0, 1, 2, 2], [1, 2, 1, 3])
    >>> result = atos.strongly_connected_components(graph)
    >>> print(result.label[:], result.num_components)
    [0 1 1 3] 3
    """
    if graph.is_symmetric():
        return connected_components(graph, worker=worker, **launch_options)
    rows, n, m, device = graph._replace(weights=None), graph.num_vertices, graph.num_edges, graph.device
    both = empty(n, dtype=np.uint64, device=device)
    keys = Keys(
        known=Array(both.pointer, (n, 2), np.dtype(np.uint32), device, readonly=False, owner=both),
        both=both,
        label=empty(n, dtype=np.uint32, device=device),
        smallest=empty(n, dtype=np.uint32, device=device),
        edges=empty(2 * m, dtype=np.uint64, device=device),
        counts=asarray(np.array([m, 0]), device=device),
        notes=new_record(Notes, device),
    )
    items = range_items(max(n, m), _EDGES_PER_ITEM)
    repeats = 1 if m >= _DENSE * n else _REPEATS
    arguments = _EDGES_PER_ITEM, -(-n // max(len(items), 1)), THREAD_MAX_DEGREE[device.kind], repeats, rows, keys
    room = 2 * len(items) or 1
    queue = take_queue(graph, lambda: Queue(room, device=device), launch_options, "strong components", worker)
    launches = LaunchSequence("strongly_connected_components", queue, launch_options, worker)
    options: LaunchOptions = {"barrier": True, "each_round": set_mode, "shared_memory": SCRATCH_BYTES[worker or "cta"]}

    def run(launches: LaunchSequence) -> int:
        launches.launch(items, separate, *arguments, overrides=options)
        return int(launches.sums(name_by_smallest, n, keys.label, keys.smallest)[0])

    return ComponentsResult(keys.label, launches.launch_planned(graph.indptr.dtype, run), launches.total())  # type: ignore[arg-type]


@verifier
def verify_strongly_connected_components(graph: Graph, label: Any, num_components: int | None = None) -> None:
    """Prove that labels are the smallest vertex of each vertex's strongly connected component.

    They are compared with those that Tarjan's algorithm finds, a serial depth-first search that has nothing in common with how
    they were found.

    Parameters
    ----------
    graph : Graph
        Directed or not.
    label : array
        The labels, of any integer type; one for each vertex.
    num_components : int, optional
        How many components there are said to be.

    References
    ----------
    Tarjan, "Depth-first search and linear graph algorithms", SIAM Journal on Computing 1 (1972).

    Examples
    --------
    >>> graph = atos.Graph.from_edges([0, 1, 2, 2], [1, 2, 1, 3])
    >>> atos.verify_strongly_connected_components(graph, [0, 1, 1, 3], 3)
    >>> atos.verify_strongly_connected_components(graph, [0, 0, 0, 3])
    Traceback (most recent call last):
    atos_py.errors.VerificationError: ...
    """
    check_graph(graph)
    indptr, indices = rows_on_host(graph)
    found = per_vertex("label", label, indptr.size - 1)
    component = number_components(indptr, indices)
    _, first = np.unique(component, return_index=True)
    check_labels(found, first[component], num_components, "strongly connected component")


register(
    run=strongly_connected_components,
    verify=lambda graph, result, _: verify_strongly_connected_components(graph, result.label, result.num_components),
    describe=describe_components,
    arrays=lambda result: {"label": result.label},
    help="find which vertices reach each other",
    description="""\
Finds the strongly connected components of a directed graph by smallest keys that are propagated from both ends of edges
(ECL-SCC). The label of a vertex is the smallest vertex of its component. Tarjan's algorithm, on one core, proves it right.""",
    examples=("web.txt.gz --out label.npy", "rmat:16:16 --worker warp"),
)
