"""Ranges of vertices of about equal work, which workers take one after the other to gather in rounds.

A range has about as much work as any other, wherever the vertices of many edges lie: of a graph whose vertices are in the order
of their degrees, the first range would have nearly all edges if all had as many vertices. The work before vertex v is its
number times `_VERTEX_WORK` and the edges before it; v begins a range where that passes a multiple of the work of a range, as in
a merge path of vertices and edges. Vertices stay in groups of as many as a worker has threads, where a group is no more than a
range. Rows that one worker would need too long for are in no range: `long_rows` has their pieces.

`note_row` marks where ranges begin, and lists hubs, in a pass over all vertices; `plan_ranges` makes the ranges of that.

Source: Merrill and Garland, "Merge-based parallel sparse matrix-vector multiplication", SC 2016, for the sum of both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays.array import Array, asarray, zeros
from ..compile.atomics import atomic_add
from ..operators import long_rows
from ..operators.edge_map import THREAD_MAX_DEGREE
from ..operators.gather_rounds import GatherRanges
from ..operators.ranges import VERTICES_PER_ITEM, range_items
from ..operators.vertex_map import vertex_map
from ..runtime.queue import Queue
from .graph_arrays import GraphArrays
from .kept import kept
from .largest_degree import largest_degree

__all__ = ["RowNotes", "find_ranges", "is_low_degree", "make_notes", "note_row", "plan_ranges"]

# Average degree below which a graph is low-degree, if no vertex has more edges than one thread gathers alone: then threads of a
# CTA gather for a vertex each. On the CPU a worker is a thread anyway.
_LOW_AVERAGE_DEGREE = {"cuda": 8, "cpu": 1 << 62}
_LOW_DEGREE_THREAD_MAX = {"cuda": 512, "cpu": 1 << 62}
# Vertices of a range on average, for low-degree graphs (True) and for others: the smallest and the largest number, and how many
# items each multiprocessor should get, from which the number follows between these.
_RANGE_SIZES = {True: (256, VERTICES_PER_ITEM, 4), False: (32, 256, 64)}
_GROUP = {True: 256, False: 32}  # vertices that stay together
_VERTEX_WORK = 4  # what a vertex costs, in edges


class RowNotes(NamedTuple):
    """The hubs of a graph and the first vertices of its ranges, as tasks find them."""

    hubs: Array  # how many there are, and the vertex, the first edge and the end of each
    begins: Array  # the vertex that begins a range, by the number of the range; or 0
    work: int  # of a range
    group: int  # vertices that stay together
    hub_degree: int  # edges beyond which a vertex is a hub


def is_low_degree(graph: GraphArrays) -> bool:
    """Whether vertices have few edges, so that a thread is enough for each; on the CPU it always is."""
    kind = graph.device.kind
    few, most = graph.num_edges < _LOW_AVERAGE_DEGREE[kind] * graph.num_vertices, _LOW_DEGREE_THREAD_MAX[kind]
    return few and (graph.num_edges <= most or largest_degree(graph) <= most)


def make_notes(graph: GraphArrays, devices: int = 1, make: Callable[[int, Any], Array] | None = None) -> RowNotes:
    """Return room for the notes of a graph, for so many devices; `make` is called with a size and a dtype, for zeros."""
    n, m, low_degree = graph.num_vertices, graph.num_edges, is_low_degree(graph)
    smallest, largest, items_per_processor = _RANGE_SIZES[low_degree]
    # Over several devices each takes as many as one alone would, since all wait for the last.
    size = max(smallest, min(largest, n // (items_per_processor * graph.device.processors)) // devices)
    work = max(m * size // max(n, 1) + _VERTEX_WORK * size, 1)
    new = make or (lambda size, dtype: zeros(size, dtype=dtype, device=graph.device))
    hubs = new(4 + 3 * (m // long_rows.HUB_DEGREE), np.int64)
    begins = new((m + _VERTEX_WORK * n) // work + 1, np.uint32)
    return RowNotes(hubs, begins, work, _GROUP[low_degree], long_rows.HUB_DEGREE)


def _work_before(v, indptr):  # type: ignore[no-untyped-def]
    return _VERTEX_WORK * v + np.int64(indptr[v])


def _range_of(v, indptr, notes):  # type: ignore[no-untyped-def]
    """Return the number of the range in which v is."""
    first = v // notes.group * notes.group
    before = _work_before(first, indptr)
    is_heavy = _work_before(min(first + notes.group, indptr.size - 1), indptr) - before > notes.work
    return (_work_before(v, indptr) if is_heavy else before) // notes.work


def note_row(v, indptr, notes):  # type: ignore[no-untyped-def]
    """Mark v if it begins a range, and list its row if it is a hub; for tasks."""
    first, end = np.int64(indptr[v]), np.int64(indptr[v + 1])
    if end - first > notes.hub_degree:
        place = 1 + 3 * atomic_add(notes.hubs, 0, 1)
        notes.hubs[place] = v
        notes.hubs[place + 1] = first
        notes.hubs[place + 2] = end
    number = _range_of(np.int64(v), indptr, notes)
    if v > 0 and number != _range_of(np.int64(v) - 1, indptr, notes):
        notes.begins[number] = v


_note_rows = vertex_map(note_row)


def hubs_of(notes: RowNotes) -> NDArray[np.int64]:
    """Return the rows of the hubs, by vertices, of which there is one for each."""
    hubs = np.asarray(notes.hubs[1 : 1 + 3 * int(notes.hubs[0])]).reshape(-1, 3)
    return hubs[np.argsort(hubs[:, 0])]


def plan_ranges(graph: GraphArrays, notes: RowNotes, devices: int = 1) -> tuple[GatherRanges, long_rows.LongRows]:
    """Return the ranges of a graph and the pieces of its long rows, for so many devices."""
    device, low_degree, hubs = graph.device, is_low_degree(graph), hubs_of(notes)
    begins = np.unique(np.append(notes.begins.to_numpy(), np.uint32(graph.num_vertices)))
    count = len(begins) - 1
    long = long_rows.make_long_rows(hubs, graph.num_edges, count, device, devices)
    has_hub = np.zeros(count, np.bool_)
    has_hub[np.searchsorted(begins, hubs[:, 0], side="right") - 1] = True
    # What takes longest comes first: pieces, and ranges with hubs.
    order = np.concatenate([np.arange(count, count + long.rows.size), np.argsort(~has_hub, kind="stable")])
    thread_max_degree = max(THREAD_MAX_DEGREE[device.kind], _LOW_DEGREE_THREAD_MAX[device.kind] if low_degree else 0)
    thread_max_degree = min(thread_max_degree, long.longest)
    begins_there, in_order = (asarray(each.astype(np.uint32), device=device, readonly=True) for each in (begins, order))
    return GatherRanges(begins_there, thread_max_degree, in_order, "cta" if low_degree else "warp"), long


def find_ranges(graph: GraphArrays) -> tuple[GatherRanges, long_rows.LongRows]:
    """Return the same, by a launch over all vertices the first time."""
    known = kept(graph)
    if "gather ranges" not in known:
        notes, items = make_notes(graph), range_items(graph.num_vertices)
        queue = Queue(max(len(items), 1), device=graph.device)
        queue.push(items)
        queue.launch_cta(_note_rows, graph.num_vertices, graph.indptr, notes)
        known["gather ranges"] = plan_ranges(graph, notes)
    return known["gather ranges"]  # type: ignore[no-any-return]
