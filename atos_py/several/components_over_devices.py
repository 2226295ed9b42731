"""Connected components over several devices: a union-find forest on each, of which every device then unites all.

A device unites the ends of the edges that it has, in a forest of all vertices that is its own. So no edge crosses a link. Then
it reads where the forests of the others lead from each vertex, and unites that in a second forest, which begins as a copy of
the first: a tree of any device is connected there. So the trees of all second forests are the components. A tree takes the
smallest id of its vertices as its label.

All is one launch, of a round for each step.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..algorithms.bfs.tasks import UNREACHED
from ..algorithms.connected_components import ComponentsResult, connected_components
from ..arrays.array import Array
from ..arrays.partitioned import PartitionedArray
from ..arrays.private import PrivateArray, arrays_together
from ..arrays.shared import common_zeros
from ..compile.atomics import atomic_add, atomic_min
from ..compile.task import task
from ..graph.partition import Partition
from ..operators.device_ranges import DeviceRanges, plan_device_ranges, reset_ranges, takers_of, vertices_of_device
from ..operators.edge_map import THREAD_MAX_DEGREE
from ..operators.range_takers import ask_for_range
from ..operators.row_map import row_map
from ..operators.union_find import find_root, root_of, unite
from ..runtime.launch_options import LaunchOptions
from .forms import form
from .over_devices import launches_over

__all__ = ["components_over"]

# Rounds: each vertex becomes a tree; ends of own edges are united; the forest is copied; what the others have found is united
# in the copy; smallest ids are found; vertices are labeled.
_BEGIN, _UNITE, _COPY, _MERGE, _NAME, _LABEL = range(6)


class Forests(NamedTuple):
    """Arrays of the search for components, the last argument of its task."""

    own: PrivateArray  # the parents of all vertices, by the edges of the device
    all_own: Array  # the same of all devices, a row for each
    root: PrivateArray  # by the edges of all devices
    smallest: PrivateArray  # id in the tree of each root
    label: PartitionedArray
    num_roots: Array
    ranges: DeviceRanges
    thread_max_degree: int  # edges of a vertex that one thread unites


def unite_row(v, edge, last, parts, forests):  # type: ignore[no-untyped-def]
    """Unite the ends of the edges of v."""
    root = find_root(v, forests.own)
    while edge < last:
        root = unite(root, np.int64(parts.indices[edge]), forests.own)
        edge += 1
    return 0


def unite_row_by_all(team, v, edge, last, parts, forests):  # type: ignore[no-untyped-def]
    """Do the same by the threads of a team."""
    root = find_root(v, forests.own)
    for mine in range(edge + team.rank, last, team.size):
        root = unite(root, np.int64(parts.indices[mine]), forests.own)
    return 0


unite_rows = row_map(unite_row, unite_row_by_all)


def merge(v, n, device, forests):  # type: ignore[no-untyped-def]
    """Unite v with its parent in the forest of each other device that owns vertices: the rest has none."""
    for k in range((n + forests.ranges.chunk - 1) // forests.ranges.chunk):
        if k != device:
            above = np.int64(forests.all_own[k, v])
            if above != v:
                unite(find_root(v, forests.root), above, forests.root)


def find_smallest(v, parts, forests):  # type: ignore[no-untyped-def]
    """Lower the smallest id of the tree of v."""
    top = root_of(v, forests.root)
    if forests.smallest[top] > parts.original[v]:  # so that few threads wait for one address
        atomic_min(forests.smallest, top, parts.original[v])


def name(v, forests):  # type: ignore[no-untyped-def]
    """Label v by the smallest id of its tree; return whether it is the root."""
    top = root_of(v, forests.root)
    forests.label[v] = forests.smallest[top]
    return top == v


@task
def find_components(worker, item, parts, forests):  # type: ignore[no-untyped-def]
    """Do what a round does with ranges of vertices, and push the item again for the next round."""
    ranges, step, n = forests.ranges, worker.round, parts.indptr.size - 1
    if worker.rank == 0 and step < _LABEL:
        worker.push(item)
    start, end = vertices_of_device(item, n, ranges)
    if step != _UNITE and step != _LABEL:
        start, end = np.int64(0), np.int64(n)
    roots = np.int64(0)
    first = start + worker.max(ask_for_range(worker, ranges.taken, 0)) * ranges.size
    while first < end:
        taken = ask_for_range(worker, ranges.taken, 0)  # the answer comes meanwhile
        last = min(first + ranges.size, end)
        if step == _UNITE:
            unite_rows(worker, first, last, forests.thread_max_degree, parts.indptr, parts, forests)
        else:
            for v in worker.split(range(first, last)):
                if step == _BEGIN:
                    forests.own[v] = v
                elif step == _COPY:
                    forests.root[v] = root_of(v, forests.own)
                elif step == _MERGE:
                    merge(v, n, item // ranges.chunk, forests)
                elif step == _NAME:
                    find_smallest(v, parts, forests)
                elif name(v, forests):
                    roots += 1
        first = start + worker.max(taken) * ranges.size
    roots = worker.sum(roots)
    if worker.rank == 0 and roots > 0:
        atomic_add(forests.num_roots, 0, roots)


def next_round(worker, parts, forests):  # type: ignore[no-untyped-def]
    """Let the ranges be taken anew."""
    reset_ranges(worker, forests.ranges)


@form(connected_components, Partition, rounds=True)
def components_over(parts: Partition, given: Any, options: Any) -> ComponentsResult:
    """Return the labels of components, how many there are, and the statistics; see `connected_components`."""
    n, ownership = parts.num_vertices, parts.ownership
    launches = launches_over("connected_components", parts, np.uint32, None, given.worker, options)
    of_vertices = PrivateArray, n, np.uint32
    taken, own, root, smallest = arrays_together(ownership, (PrivateArray, 1, np.int64), *[of_vertices] * 3)
    smallest.fill(UNREACHED)
    label = PartitionedArray(n, np.uint32, ownership)
    count = common_zeros(1, np.int64, ownership)
    ranges = plan_device_ranges(ownership, launches.worker, taken)
    alone = THREAD_MAX_DEGREE[ownership.devices[0].kind]
    forests = Forests(own, own.rows, root, smallest, label, count, ranges, alone)
    rounds: LaunchOptions = {"barrier": True, "each_round": next_round}
    launches.launch(takers_of(ownership, ranges), find_components, parts, forests, overrides=rounds)
    return ComponentsResult(label, int(count[0]), launches.total())  # type: ignore[arg-type]
