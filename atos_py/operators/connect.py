"""Joining of components by union-find, where most edges of the largest component are not looked at.

Every vertex is linked to its first neighbor if that is smaller, and then to its second one. That joins most of a component
already. The most frequent root of a sample then stands for the largest component, and only vertices outside of it link the rest
of their edges: if the graph is symmetric, an edge between inside and outside is seen from outside too. Where few edges would be
spared, because there are few, each edge of a symmetric graph is linked from its larger end alone. In a graph that is not
symmetric all vertices link all of theirs. At last every vertex gets its root, the smallest of its component.

All of that is one launch: an item is a range of vertices, and each round does one step for all of them, with
`choose_largest` between rounds.

Sources: Sutton, Ben-Nun and Barak, "Optimizing parallel graph connectivity computation via subgraph sampling", IPDPS 2018
(Afforest); Jaiganesh and Burtscher, "A high-performance connected components implementation for GPUs", HPDC 2018 (ECL-CC).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..arrays.record import places
from ..compile.atomics import atomic_add, atomic_max
from ..compile.task import Task
from ..support.splitmix64 import splitmix64
from .row_map import csr_bounds, row_map
from .union_find import find_root, root_of, unite

__all__ = ["ALL_EDGES", "AT", "Notes", "choose_largest", "connect", "connecting", "sampled_edges"]

# What a launch is told instead of a number of sampled edges: that every vertex links all of its edges, or those to smaller
# neighbors.
ALL_EDGES, _TO_SMALLER = 1 << 40, 0
_MIN_DEGREE = 4  # mean degree from which on sparing edges is worth it, and knowing whether the graph is symmetric
_SAMPLES = 128
_ANY, _SMALLER = -1, -2  # instead of a vertex of the largest component: edges to any neighbor are linked, or to smaller ones


class Notes(NamedTuple):
    """Words of `notes` (`arrays.record`)."""

    largest: int = 1  # the root of the largest component
    num_components: int = 1
    roots: int = _SAMPLES


AT = places(Notes)


def sampled_edges(num_edges: int, n: int) -> int:
    """Return how many edges of each vertex of a symmetric graph are linked before the largest component is known."""
    return 2 if num_edges >= _MIN_DEGREE * n else _TO_SMALLER


def is_sampled(sampled):  # type: ignore[no-untyped-def]
    """Whether some edges of each vertex are linked before the largest component is chosen."""
    return sampled != ALL_EDGES and sampled != _TO_SMALLER


def link_smaller(v, edge, last, step, indices, parent):  # type: ignore[no-untyped-def]
    """Unite v and its smaller neighbors along every `step`-th edge from `edge` on.

    The root of v is found only if there is one. The first edge of a row is linked before, and often no other leads to a smaller
    vertex.
    """
    root = np.int64(-1)
    while edge < last:
        u = indices[edge]
        if u < v:
            if root < 0:
                root = np.int64(find_root(v, parent))
            root = np.int64(unite(root, u, parent))
        edge += step


def link_edges(v, edge, last, largest, indices, parent):  # type: ignore[no-untyped-def]
    """Unite v and its neighbors along edges of its row, unless it is in the component of `largest`."""
    if largest == _SMALLER:
        link_smaller(v, edge + 1, last, 1, indices, parent)
    elif edge < last:
        root = find_root(v, parent)
        if largest < 0 or root != find_root(largest, parent):
            while edge < last:
                root = unite(root, indices[edge], parent)
                edge += 1
    return 0


def link_edges_by_all(team, v, edge, last, largest, indices, parent):  # type: ignore[no-untyped-def]
    """Do the same by all threads of a team, for a vertex that is not in that component."""
    if largest == _SMALLER:
        link_smaller(v, edge + team.rank, last, team.size, indices, parent)
    else:
        root = find_root(v, parent)
        for each in team.split(range(edge, last)):
            root = unite(root, indices[each], parent)
    return 0


def is_apart(v, largest, indices, parent):  # type: ignore[no-untyped-def]
    """Whether v is not in the component of `largest`."""
    return largest < 0 or find_root(v, parent) != find_root(largest, parent)


def connecting(bounds: Callable[..., Any]) -> Task:
    """Return the task of graphs that have `indices`, whose edges of v begin and end where ``bounds(v, graph)`` says."""
    link_rows = row_map(link_edges, link_edges_by_all, is_apart, bounds=bounds)

    def connect(worker, item, size, thread_max_degree, sampled, graph, parent, notes):  # type: ignore[no-untyped-def]
        """Do the step of the round for a range of vertices: a first link, links along `sampled` edges or all, or labels."""
        n = parent.size
        first = item * size
        end = min(first + size, n)
        step = worker.round
        if step == 2 and not is_sampled(sampled):
            step = 3
        if step == 0:
            for v in worker.split(range(first, end)):
                low = v
                edge, last = bounds(v, graph)
                if edge < last:
                    low = min(v, graph.indices[edge])
                parent[v] = low
        elif step == 1 and is_sampled(sampled):
            for v in worker.split(range(first, end)):
                edge, last = bounds(v, graph)
                link_edges(v, edge, min(last, edge + sampled), _ANY, graph.indices, parent)
        elif step <= 2:
            chosen = np.int64(_ANY if sampled == ALL_EDGES else _SMALLER)
            if is_sampled(sampled):
                chosen = notes[AT.largest] & 0xFFFF_FFFF
            link_rows(worker, first, end, thread_max_degree, graph, chosen, graph.indices, parent)
        else:
            roots = 0
            for v in worker.split(range(first, end)):
                root = root_of(v, parent)
                parent[v] = root  # race: the parent that was there before leads to the root too
                roots += root == v
            roots = worker.sum(roots)
            if worker.rank == 0:
                atomic_add(notes, AT.num_components, roots)
        if step < 3 and worker.rank == 0:
            worker.push(item)

    return Task(connect, max_registers={"cta": 48})  # components of road4900 take 2.8 ms instead of 3.7


connect = connecting(lambda v, graph: csr_bounds(v, graph.indptr))


def choose_largest(worker, size, thread_max_degree, sampled, graph, parent, notes):  # type: ignore[no-untyped-def]
    """Find the most frequent root of a sample of vertices, after the links that every vertex has."""
    if worker.round == 1 and is_sampled(sampled):
        n = np.uint64(parent.size)
        for k in worker.split(_SAMPLES):
            notes[AT.roots + k] = find_root(np.int64(splitmix64(np.uint64(k)) % n), parent)
        worker.sync()
        for k in worker.split(_SAMPLES):
            same = 0
            for other in range(_SAMPLES):
                same += notes[AT.roots + other] == notes[AT.roots + k]
            atomic_max(notes, AT.largest, same << 32 | notes[AT.roots + k])
