"""Parents of a search over several devices: each vertex offers itself to its neighbors, and takes the best offer.

An offer is the depth that it gives and the id of the vertex, in one word, so that the least one is of the smallest id. Offers
cross a link as `atomic_min` does: only those that are less than what the device knows of. Nothing is read from other devices.

All is one launch of two rounds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...algorithms.bfs.tasks import UNREACHED
from ...algorithms.launch_sequence import LaunchSequence
from ...arrays.filled import full
from ...arrays.partitioned import PartitionedArray
from ...arrays.private import PrivateArray
from ...compile.atomics import atomic_min
from ...compile.packing import pack
from ...compile.task import task
from ...graph.partition import Partition
from ...operators.device_ranges import DeviceRanges, plan_device_ranges, reset_ranges, takers_of, vertices_of_device
from ...operators.edge_map import THREAD_MAX_DEGREE
from ...operators.range_takers import ask_for_range
from ...operators.row_map import row_map
from ...runtime.launch_options import LaunchOptions

__all__ = ["find_parents_over"]


class Tree(NamedTuple):
    """Arrays of the search for parents, the last argument of its task."""

    depth: PartitionedArray
    offer: PartitionedArray  # the least one to each vertex
    parent: PartitionedArray
    ranges: DeviceRanges
    thread_max_degree: int  # edges of a vertex along which one thread offers


def offer_of(v, parts, tree):  # type: ignore[no-untyped-def]
    """Return what v offers to its neighbors."""
    return pack(np.uint32(tree.depth[v] + np.uint32(1)), parts.original[v])


def offer_along_row(v, edge, last, parts, tree):  # type: ignore[no-untyped-def]
    """Offer v to its neighbors, if it is reached."""
    if tree.depth[v] != UNREACHED:
        offer = offer_of(v, parts, tree)
        for mine in range(edge, last):
            atomic_min(tree.offer, parts.indices[mine], offer)
    return 0


def offer_along_row_by_all(team, v, edge, last, parts, tree):  # type: ignore[no-untyped-def]
    """Do the same by the threads of a team."""
    if tree.depth[v] != UNREACHED:
        offer = offer_of(v, parts, tree)
        for mine in team.split(range(edge, last)):
            atomic_min(tree.offer, parts.indices[mine], offer)
    return 0


offer_along_rows = row_map(offer_along_row, offer_along_row_by_all)


def take_offer(v, parts, tree):  # type: ignore[no-untyped-def]
    """Name the parent of v: itself if it is a source, else who offers its depth. A search that ends early may leave it none."""
    depth, offer = tree.depth[v], tree.offer[v]
    if depth == 0:
        tree.parent[v] = parts.original[v]
    elif np.uint32(offer >> np.uint64(32)) == depth:
        tree.parent[v] = np.uint32(offer & np.uint64(0xFFFFFFFF))


@task
def find_parents(worker, item, parts, tree):  # type: ignore[no-untyped-def]
    """Do what a round does with ranges of vertices, and push the item again for the second round."""
    ranges, is_first = tree.ranges, worker.round == 0
    if worker.rank == 0 and is_first:
        worker.push(item)
    start, end = vertices_of_device(item, parts.indptr.size - 1, ranges)
    first = start + worker.max(ask_for_range(worker, ranges.taken, 0)) * ranges.size
    while first < end:
        taken = ask_for_range(worker, ranges.taken, 0)  # the answer comes meanwhile
        last = min(first + ranges.size, end)
        if is_first:
            offer_along_rows(worker, first, last, tree.thread_max_degree, parts.indptr, parts, tree)
        else:
            for v in worker.split(range(first, last)):
                take_offer(v, parts, tree)
        first = start + worker.max(taken) * ranges.size


def next_round(worker, parts, tree):  # type: ignore[no-untyped-def]
    """Let the ranges be taken anew."""
    reset_ranges(worker, tree.ranges)


def find_parents_over(parts: Partition, depth: PartitionedArray, launches: LaunchSequence) -> PartitionedArray:
    """Return the parents in the search that found the depths, by one more launch."""
    n, ownership = parts.num_vertices, parts.ownership
    taken = PrivateArray(1, np.int64, ownership.others(1))
    ranges = plan_device_ranges(ownership, launches.worker, taken)
    parent = full(n, UNREACHED, dtype=np.uint32, partition=parts)
    nothing: Any = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
    offer = full(n, nothing, dtype=np.uint64, partition=parts, combine="min")
    tree = Tree(depth, offer, parent, ranges, THREAD_MAX_DEGREE[ownership.devices[0].kind])
    rounds: LaunchOptions = {"barrier": True, "each_round": next_round}
    launches.launch(takers_of(ownership, ranges), find_parents, parts, tree, overrides=rounds)
    return parent
