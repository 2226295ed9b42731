"""Strongly connected components by smallest keys, propagated along the edges from both ends, in rounds of one launch.

Vertices have keys, no two the same. Every vertex learns the smallest key of those that reach it, and the smallest one of those
that it reaches. Where both are the same, they are that of the component. Vertices that differ in either of the two are in
different components, so edges between them are left out from then on, and the vertices that are left begin again. Each time at
least the component of the smallest key that is left is found, or a vertex that no edge leaves.

An edge needs no transposed row for that: its source takes a minimum from the target, and gives one to it. What a vertex has
learned is also looked up at the vertex that has the key, which shortens paths.

Where there are many edges, the key of the vertex of largest degree is 0. It is likely to be in the largest component, which the
first pass finds then, and a vertex that reaches it has nothing more to take. Otherwise keys are the numbers of vertices, which
often follow the graph, and each range of vertices is gone through several times in a round.

Sources: Alabandi, Sands, Biros and Burtscher, "A high-performance strongly connected components algorithm for GPUs", SC 2023
(ECL-SCC); Orzan, "On distributed verification and verified distribution", Vrije Universiteit Amsterdam, 2004 (colouring).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays.array import zeros
from ..arrays.array_library import as_library
from ..compile.atomics import atomic_add, atomic_max, atomic_min
from ..compile.task import task
from ..graph.graph import Graph
from ..graph.graph_arrays import check_graph
from ..graph.strong_components import number_components
from ..operators.row_map import row_map, row_queue
from ..operators.vertex_map import vertex_map
from ..runtime.launch_options import LaunchOptions
from ..support.host_memory import host_memory_for
from ..support.splitmix64 import splitmix64
from .arguments import check_call, per_vertex, rows_on_host
from .connected_components import ComponentsResult, check_labels, describe_components
from .launch_sequence import LaunchSequence
from .registry import Algorithm, register

if TYPE_CHECKING:
    from typing_extensions import Unpack  # of typing from Python 3.11 on

__all__ = ["strongly_connected_components", "verify_strongly_connected_components"]

_DENSE = 8  # mean degree from which on the vertex of largest degree is likely to be in a component of most vertices
_REPEATS = 8  # passes over a range in a round, at most, of other graphs

_BEGIN, _START, _PROPAGATE, _SPLIT = 0, 1, 2, 3  # modes of rounds
# Columns of `known`, the state of a vertex, with keys for vertices. The class is 0 where the component is known. Edges between
# classes are left out.
_FROM, _TO, _CLASS, _GIVEN = 0, 1, 2, 3
_NONE = 0xFFFF_FFFF
# Places in `notes`: the vertex of key 0, with its degree; whether anything changed; and how many components were found.
_PIVOT, _ANY_CHANGE, COUNT = 0, 1, 2
# Packed counts of a range: vertices that are left, those that changed, and components that were found.
_LEFT, _CHANGED, _FOUND = 1, 1 << 20, 1 << 40
_ALL_LEFT, _CHANGES = _CHANGED - 1, _FOUND - _CHANGED


def key_of(v, notes):  # type: ignore[no-untyped-def]
    """Return the number by which vertices are compared, 0 for the pivot; and the vertex of a key."""
    return v ^ (notes[_PIVOT] & _NONE)


def found(v, key, notes, known, label, smallest):  # type: ignore[no-untyped-def]
    """Write down the component of v, by the vertex of a key, and its smallest vertex."""
    known[v, _CLASS] = 0
    name = key_of(key, notes)
    label[v] = name
    atomic_min(smallest, name, v)
    return _FOUND if name == v else 0


def propagate_edges(v, edge, last, step, start, indices, known):  # type: ignore[no-untyped-def]
    """Give `start` to the targets of v; return whether there are any, the smallest key that they reach, and what changed."""
    own = known[v, _CLASS]
    leaves = False
    least = _NONE
    changed = 0
    while edge < last:
        u = indices[edge]
        if u != v and known[u, _CLASS] == own:
            leaves = True
            least = min(least, known[u, _TO])
            if atomic_min(known, (u, _FROM), start) > start:
                changed = _CHANGED
        edge += step
    return leaves, least, changed


def smallest_known(v, column, notes, known):  # type: ignore[no-untyped-def]
    """Return the key that v knows, or the one known of its vertex."""
    key = known[v, column]
    return min(key, known[key_of(key, notes), column])


def is_settled(v, start, known):  # type: ignore[no-untyped-def]
    """Whether v has nothing new to give, and nothing to take: it reaches the pivot, the smallest of all."""
    return known[v, _GIVEN] == start and known[v, _TO] == 0


def conclude(v, start, leaves, least, changed, notes, known, label, smallest):  # type: ignore[no-untyped-def]
    """Store what v has learned and given; or its component, if no edge leaves it."""
    if not leaves:
        return found(v, key_of(v, notes), notes, known, label, smallest)
    known[v, _GIVEN] = start
    least = min(least, smallest_known(v, _TO, notes, known))
    if least < known[v, _TO]:
        known[v, _TO] = least  # which others only read
        changed = _CHANGED
    if atomic_min(known, (v, _FROM), start) > start:
        changed = _CHANGED
    return _LEFT + changed


def propagate(v, edge, last, notes, indices, known, label, smallest):  # type: ignore[no-untyped-def]
    """Propagate smallest keys along the edges of v."""
    if known[v, _CLASS] == 0:
        return 0
    start = smallest_known(v, _FROM, notes, known)
    if is_settled(v, start, known):
        return _LEFT
    leaves, least, changed = propagate_edges(v, np.int64(edge), last, 1, start, indices, known)
    return conclude(v, start, leaves, least, changed, notes, known, label, smallest)


def propagate_by_all(team, v, edge, last, notes, indices, known, label, smallest):  # type: ignore[no-untyped-def]
    """Do the same by all threads of a team."""
    start = team.min(smallest_known(v, _FROM, notes, known))
    if is_settled(v, start, known):
        return _LEFT if team.rank == 0 else 0
    leaves, least, changed = propagate_edges(v, edge + team.rank, last, team.size, start, indices, known)
    leaves = team.any(leaves)
    least = team.min(least)
    return changed if team.rank > 0 else conclude(v, start, leaves, least, changed, notes, known, label, smallest)


def is_left(v, notes, indices, known, label, smallest):  # type: ignore[no-untyped-def]
    """Whether the component of v is not known yet."""
    return known[v, _CLASS] != 0


propagate_rows = row_map(propagate, propagate_by_all, is_left)


def split(v, classes, notes, known, label, smallest):  # type: ignore[no-untyped-def]
    """Give v its component, or the class of those that reach and are reached by the same vertices, and let it begin again."""
    if known[v, _CLASS] == 0:
        return 0
    if classes:
        start = known[v, _FROM]
        end = known[v, _TO]
        if start == end:
            return found(v, start, notes, known, label, smallest)
        known[v, _CLASS] = np.int64(splitmix64(np.uint64(start) << np.uint64(32) | np.uint64(end)) >> np.uint64(33)) + 1
    known[v, _FROM] = key_of(v, notes)
    known[v, _TO] = key_of(v, notes)
    known[v, _GIVEN] = _NONE
    return _LEFT


@task
def separate(worker, item, size, thread_max_degree, repeats, graph, notes, known, label, smallest):  # type: ignore[no-untyped-def]
    """Do for a range of vertices what the mode of the round says."""
    first = item * size
    end = min(first + size, label.size)
    total = 0  # what is left and changed
    components = 0
    if worker.mode == _BEGIN:
        largest = 0
        for v in worker.split(range(first, end)):
            known[v, _CLASS] = 1
            smallest[v] = v
            largest = max(largest, (graph.indptr[v + 1] - graph.indptr[v]) << 32 | v)
            total = _LEFT
        largest = worker.max(largest)
        if worker.rank == 0 and repeats == 1:
            atomic_max(notes, _PIVOT, largest)
    elif worker.mode == _PROPAGATE:
        again = True
        changes = 0
        while again:
            total = propagate_rows(
                worker, first, end, thread_max_degree, graph.indptr, notes, graph.indices, known, label, smallest
            )
            components += total // _FOUND
            changes |= total & _CHANGES
            repeats -= 1
            again = worker.any(total & _CHANGES > 0) and repeats > 0
            worker.sync()  # so that all threads know the same of the vertices that they share
        total |= changes
    else:
        for v in worker.split(range(first, end)):
            total += split(v, worker.mode == _SPLIT, notes, known, label, smallest)
        components = total // _FOUND
    components = worker.sum(components)
    if worker.any(total & _CHANGES > 0) and worker.rank == 0:
        notes[_ANY_CHANGE] = 1
    if worker.any(total & _ALL_LEFT > 0) and worker.rank == 0:
        worker.push(item)
    if worker.rank == 0 and components > 0:
        atomic_add(notes, COUNT, components)


def set_mode(worker, size, thread_max_degree, repeats, graph, notes, known, label, smallest):  # type: ignore[no-untyped-def]
    """Choose what the next round does: start, propagate until nothing changes, split, propagate again, and so on."""
    if worker.mode == _BEGIN:
        worker.set_mode(_START)
    elif worker.mode != _PROPAGATE:
        worker.set_mode(_PROPAGATE)
    else:
        if notes[_ANY_CHANGE] == 0:
            worker.set_mode(_SPLIT)
        worker.sync()  # all have read it
        if worker.rank == 0:
            notes[_ANY_CHANGE] = 0


@vertex_map
def name_by_smallest(v, label, smallest):  # type: ignore[no-untyped-def]
    """Make the smallest vertex of v's component its label."""
    label[v] = smallest[label[v]]


@host_memory_for("atos.strongly_connected_components")
def strongly_connected_components(
    graph: Graph, *, worker: str | None = None, **launch_options: Unpack[LaunchOptions]
) -> ComponentsResult:
    """Find which vertices reach each other along edges in their direction.

    Parameters
    ----------
    graph : Graph
        If it is undirected, these are its components, which `connected_components` finds faster.
    worker : {'thread', 'warp', 'cta'}, optional
        By default "cta".
    **launch_options : LaunchOptions
        As for `Queue.launch_cta`: `persistent`, `fetch_size`, `num_blocks`, `num_threads`, ... The launch has rounds, so
        `barrier` is True. `timeout` is for the whole call, which keeps nothing then.

    Returns
    -------
    ComponentsResult

    Raises
    ------
    InvalidArgumentError
        If there is no such worker.
    LaunchConfigError
        If `barrier` is False, or `each_round` is given.

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
    check_call(strongly_connected_components, graph, worker, launch_options, rounds=True)
    rows, n, device = graph._replace(weights=None), graph.num_vertices, graph.device
    label = zeros(n, dtype=np.uint32, device=device)
    known = zeros((n, 4), dtype=np.uint32, device=device)
    smallest = zeros(n, dtype=np.uint32, device=device)
    notes = zeros(COUNT + 1, dtype=np.int64, device=device)
    launches = LaunchSequence("strongly_connected_components", row_queue(n, device), launch_options, worker)
    repeats = 1 if graph.num_edges >= _DENSE * n else _REPEATS

    def run() -> None:
        launches.over_rows(separate, n, repeats, rows, notes, known, label, smallest, each_round=set_mode)
        launches.over_vertices(name_by_smallest, n, label, smallest)

    launches.compile_ahead(graph.indptr.dtype, run)
    run()
    return ComponentsResult(as_library(label, graph.library), int(notes[COUNT]), launches.total())


@host_memory_for("atos.verify_strongly_connected_components")
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

    Raises
    ------
    VerificationError
        Something is wrong. The message names the first vertex that is.

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
    Algorithm(
        name="strongly_connected_components",
        run=strongly_connected_components,
        verify=lambda graph, result, _: verify_strongly_connected_components(graph, result.label, result.num_components),
        describe=describe_components,
        arrays=lambda result: {"label": result.label},
        help="find which vertices reach each other",
        description="""\
Finds the strongly connected components of a directed graph by smallest keys that are propagated from both ends of edges
(ECL-SCC). The label of a vertex is the smallest vertex of its component. Tarjan's algorithm, on one core, proves it right.""",
        examples=("web.txt.gz --out label.npy", "rmat:16:16 --worker warp"),
        launch_defaults=True,
    )
)
