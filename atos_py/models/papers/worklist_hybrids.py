"""Hybrids of data-driven and topology-driven work that only the reproduction of Nasre et al. 2013 needs: Figures 12 and 13.

*Spatial*: vertices are in partitions of r neighboring numbers. The worklist has partitions; all edges of one are relaxed,
though a single vertex of it may have changed. With r = 1 it is data-driven.

*Pre-passes*: cells of an octree are summed up from their children. In a pre-pass, which is topology-driven, each cell looks
whether its children are summed up. What is left is data-driven: the last child of a cell pushes it. The paper's threads wait
for children in a loop, which needs all of them to be running; here nobody waits.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...arrays.array import Array, asarray
from ...arrays.filled import full
from ...compile.atomics import atomic_add, atomic_exch, atomic_min
from ...compile.task import task
from ...core.devices import Device
from ...errors import VerificationError
from ...graph.graph import Graph
from ...operators.edge_map import weight_of
from ...runtime.queue import Queue
from ...runtime.stats import LaunchStats

__all__ = ["TOPOLOGY", "search_by_partitions", "sum_up_tree", "verify_tree"]

TOPOLOGY = 1 << 20  # pre-passes: more than there are levels, so that they do everything
_MOST_BODIES = 1_000_000
_CELLS = 256  # of a range


def partition_edges(p, size, graph, distance):  # type: ignore[no-untyped-def]
    """Return the edges of a partition, which are neighbors, and the first of them."""
    first = graph.indptr[p * size]
    return np.int64(graph.indptr[min((p + 1) * size, graph.indptr.size - 1)] - first), first


@task(workload=partition_edges)
def relax_partition(worker, p, i, first, size, graph, distance):  # type: ignore[no-untyped-def]
    """Relax an edge of a partition; the partition of what that changes comes next."""
    edge, v = first + i, p * size
    while graph.indptr[v + 1] <= edge:
        v += 1
    u = graph.indices[edge]
    value = distance.dtype.type(distance[v] + weight_of(graph.weights, edge))
    if value < distance[u] and value < atomic_min(distance, u, value):
        worker.push(u // size)


def search_by_partitions(graph: Graph, source: int, size: int) -> tuple[NDArray[Any], LaunchStats]:
    """Return distances from a vertex, infinite where there is no path, by a worklist of partitions of so many vertices."""
    distance = full(graph.num_vertices, np.inf, dtype=np.float32, device=graph.device)
    distance[source] = 0
    queue = Queue(max(2 * graph.num_vertices, 1), device=graph.device)
    queue.push(source // size)
    stats = queue.launch_cta(relax_partition, size, graph, distance, barrier=True)
    return distance.to_numpy(), stats


class Tree(NamedTuple):
    """An octree whose cells are numbered by level, so that the children of each are neighbors."""

    child: Array  # the first child of each cell, then the number of cells
    parent: Array
    missing: Array  # children that are not summed up yet
    claimed: Array
    total: Array  # the mass, and mass * x, y and z; NaN where a cell is not summed up, or another thread does not see it yet


@functools.lru_cache(maxsize=1)
def make_tree(bodies: int) -> tuple[NDArray[Any], ...]:
    """Return the arrays of a tree of random bodies, on the host, and all sums; its leaves are not divided any more."""
    rng, levels = np.random.default_rng(0), max(math.ceil(math.log(max(bodies, 2), 8)), 1) + 1
    place = rng.integers(0, 1 << levels, (bodies, 3))
    key = sum((place[:, axis] >> bit & 1) << 3 * bit + axis for axis in range(3) for bit in range(levels))
    keys = [np.unique(np.asarray(key) >> 3 * (levels - level)) for level in range(levels + 1)]
    offsets = np.cumsum([0, *map(len, keys)])
    parent = np.concatenate([[0], *(offsets[k] + np.searchsorted(keys[k], keys[k + 1] >> 3) for k in range(levels))])
    child = np.append(np.searchsorted(parent[1:], np.arange(offsets[-1])) + 1, offsets[-1])
    mass = rng.integers(1, 9, bodies)
    body = np.c_[mass, place * mass[:, None]].astype(np.float64)  # whole numbers, whose sums are exact in any order
    sums = [np.zeros((len(each), 4)) for each in keys]
    for level, each in enumerate(keys):
        np.add.at(sums[level], np.searchsorted(each, np.asarray(key) >> 3 * (levels - level)), body)
    is_leaf = np.diff(child) == 0
    missing = np.where(is_leaf, 0, np.bincount(parent[1:][~is_leaf[1:]], minlength=offsets[-1]))
    return child.astype(np.int32), parent.astype(np.int32), missing.astype(np.int32), np.concatenate(sums)


def sum_up(worker, c, tree, pushes):  # type: ignore[no-untyped-def]
    """Sum up a cell whose children are, unless another thread does; return whether it has yet to be done."""
    if atomic_exch(tree.claimed, c, 1) != 0:
        return False
    mass, x, y, z = 0.0, 0.0, 0.0, 0.0
    for k in range(tree.child[c], tree.child[c + 1]):
        mass, x, y, z = mass + tree.total[k, 0], x + tree.total[k, 1], y + tree.total[k, 2], z + tree.total[k, 3]
    if math.isnan(mass + x + y + z):
        atomic_exch(tree.claimed, c, 0)
        return True
    tree.total[c, 0], tree.total[c, 1], tree.total[c, 2], tree.total[c, 3] = mass, x, y, z
    if c > 0 and atomic_add(tree.missing, tree.parent[c], -1) == 1 and pushes != 0:
        worker.push(tree.parent[c], task=gather)
    return False


@task
def sweep(worker, item, passes, pushes, tree, ranges):  # type: ignore[no-untyped-def]
    """Look at each cell of a range, in this pre-pass; afterwards push those whose children are there."""
    k, number = item % ranges, item // ranges
    any_left = False
    for c in worker.split(range(k * _CELLS, min((k + 1) * _CELLS, tree.parent.size))):
        if tree.claimed[c] == 0:
            if tree.missing[c] == 0:
                if number < passes:
                    sum_up(worker, c, tree, pushes)
                elif pushes != 0:
                    worker.push(c, task=gather)
            any_left = True
    if worker.any(any_left) and worker.rank == 0 and (number + 1 < passes or (pushes != 0 and number < passes)):
        worker.push(item + ranges)


@task(workload=lambda c, *args: 1)
def gather(worker, c, i, passes, pushes, tree, ranges):  # type: ignore[no-untyped-def]
    """Sum up a cell that was pushed; once more, if a sum has not arrived from another thread."""
    if sum_up(worker, c, tree, pushes):
        worker.push(c, task=gather)


def sum_up_tree(bodies: int, device: Device, passes: int, is_combined: bool) -> tuple[NDArray[Any], LaunchStats]:
    """Return the sums of all cells of a tree of so many bodies, or of a million, after so many pre-passes.

    They are rounds of a launch of their own, or combined with the rest, where nobody waits for the end of a pass.
    """
    child, parent, missing, sums = make_tree(max(1, min(bodies, _MOST_BODIES)))
    is_leaf = np.diff(child) == 0
    total = np.where(is_leaf[:, None], sums, np.nan)
    tree = Tree(
        *(asarray(part, device=device, copy=True) for part in (child, parent, missing, is_leaf.astype(np.int32), total))
    )
    ranges = -(-len(parent) // _CELLS)
    queue, runs = Queue(len(parent) + 2 * ranges, dtype=np.int64, device=device), []
    for is_last in (False, True):
        if is_last or (passes and not is_combined):
            count = passes if is_combined or not is_last else 0
            queue.push(np.arange(ranges))
            runs.append(queue.launch_warp((sweep, gather), count, int(is_last), tree, ranges, barrier=not is_last))
    return tree.total.to_numpy(), LaunchStats.total(runs)


def verify_tree(bodies: int, total: NDArray[Any]) -> None:
    """Raise unless every cell has the sum of its bodies."""
    wrong = np.flatnonzero(~(total == make_tree(max(1, min(bodies, _MOST_BODIES)))[-1]).all(axis=1))
    if wrong.size:
        raise VerificationError(f"{wrong.size} cells have wrong sums, the first of them cell {wrong[0]}")
