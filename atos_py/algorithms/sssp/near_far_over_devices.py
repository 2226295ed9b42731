"""Shortest paths over several devices in the order of distances: near-far, in rounds of one launch.

Vertices below a threshold are near: they run, round by round, until none is left. Others are far: a bit for each, which its
owner has. Then the threshold is raised, and a round goes through the bits: what is below it becomes near. `open_bucket` is the
function between rounds. That is delta-stepping with one bucket at a time. The order saves most of what arrival repeats.

Source: Davidson, Baxter, Garland and Owens, "Work-efficient parallel GPU methods for single-source shortest paths", IPDPS 2014.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...arrays.array import Array
from ...arrays.partitioned import PartitionedArray
from ...arrays.shared import common_zeros
from ...compile.atomics import atomic_min, atomic_or_
from ...compile.task import task
from ...graph.partition import Partition
from ...runtime.launch_options import LaunchOptions
from ..launch_sequence import LaunchSequence
from ..over_devices import first_of_ranges
from .tasks import out_edges, shortens, weight_of

__all__ = ["find_near_and_far"]

# Places in the ends: the threshold; that before; the least distance of a far vertex; whether the last round split the far ones.
_THRESHOLD, _BEFORE, _LEAST, _SPLIT = range(4)
_SIZE = 4096  # vertices of a range


class NearFar(NamedTuple):
    """Arrays and numbers of a search, the last argument of its tasks."""

    far: PartitionedArray  # a bit for each vertex
    ends: Array
    delta: Any
    unreached: Any
    num_ranges: int


@task(workload=out_edges)
def relax_near(worker, item, i, first, length, parts, distance, target, cutoff, search):  # type: ignore[no-untyped-def]
    """Relax an edge; if the distance of its end went down, push that, or note that it is far."""
    neighbor = parts.indices[first + i]
    candidate = length + weight_of(parts.weights, first + i, distance)
    if shortens(neighbor, candidate, distance, target, cutoff):
        if candidate < search.ends[_THRESHOLD]:
            worker.push((neighbor, candidate), task=relax_near)
        else:
            atomic_or_(search.far, neighbor >> 5, np.uint32(1 << (neighbor & 31)))


@task
def split_far(worker, item, parts, distance, target, cutoff, search):  # type: ignore[no-untyped-def]
    """Push the far vertices of a range that are near now, and find the least distance of the others."""
    threshold, before, least = search.ends[_THRESHOLD], search.ends[_BEFORE], search.unreached
    last = min(item.vertex + _SIZE, distance.size) - 1
    for word in worker.split(range(item.vertex >> 5, (last >> 5) + 1)):
        bits = search.far[word]
        if bits != 0:
            rest = 0
            for k in range(32):
                if bits >> k & 1 != 0:
                    v = 32 * word + k
                    length = distance[v]
                    if length >= threshold:
                        rest |= 1 << k
                        least = min(least, length)
                    elif length >= before:  # otherwise it was near before, and has run
                        worker.push((v, length), task=relax_near)
            search.far[word] = rest
    least = worker.min(least)
    if worker.rank == 0 and least < search.unreached:
        atomic_min(search.ends, _LEAST, least)


def open_bucket(worker, parts, distance, target, cutoff, search):  # type: ignore[no-untyped-def]
    """Raise the threshold if nothing is near, so that it is above the least distance of a far vertex, and have these split."""
    ends = search.ends
    threshold, least, was_split = ends[_THRESHOLD], ends[_LEAST], ends[_SPLIT] != 0
    is_near = worker.pending > 0
    ended = was_split and least == search.unreached
    if target is not None:
        ended |= distance[target] <= threshold
    worker.sync()  # all have read them
    if worker.rank == 0:
        ends[_SPLIT] = 0 if is_near else 1
        if not is_near and not ended:
            ends[_BEFORE] = threshold
            ends[_THRESHOLD] = (least if was_split else threshold) + search.delta
            ends[_LEAST] = search.unreached
    if not is_near and not ended:
        for k in worker.split(search.num_ranges):
            worker.push((k * _SIZE, 0), task=split_far)


def find_near_and_far(
    parts: Partition,
    sources: NDArray[Any],
    distance: PartitionedArray,
    launches: LaunchSequence,
    delta: float,
    target: int | None,
    cutoff: Any,
) -> None:
    """Find distances, with steps of the threshold by `delta`."""
    ownership, kind = parts.ownership, distance.dtype
    is_float = kind.kind == "f"
    words = ownership.others(-(-parts.num_vertices // 32))
    far = PartitionedArray(words.size, np.uint32, words)
    ends = common_zeros(4, kind if is_float else np.int64, ownership)
    unreached = ends.dtype.type(np.inf if is_float else np.iinfo(kind).max)
    step = ends.dtype.type(delta if is_float else max(round(delta), 1))
    ends[:] = np.array([step, 0, unreached, 0], ends.dtype)
    search = NearFar(far, ends, step, unreached, len(first_of_ranges(parts, _SIZE)))
    rounds: LaunchOptions = {"barrier": True, "each_round": open_bucket}
    arguments = parts, distance, target, cutoff, search
    launches.launch(sources, (relax_near, split_far), *arguments, overrides=rounds)
