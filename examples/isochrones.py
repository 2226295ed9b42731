"""Shortest paths in a city
========================

This program computes how long it takes to drive from one crossing of a city to all others. An item is a record: a crossing and
an arrival time. If a faster way has been found since, nothing is left to do. Times only fall, so the last ones are right.
"""

from __future__ import annotations

import numpy as np

import atos_py as atos

SIDE, VISIT = 300, np.dtype([("crossing", np.uint32), ("seconds", np.uint32)])


def city() -> atos.Graph:
    """Return a grid of streets that take 20 seconds each, with a third of them closed, and fast roads that take 5."""
    crossings, rng, streets = np.arange(SIDE * SIDE).reshape(SIDE, SIDE), np.random.default_rng(1), []
    for axis in (0, 1):
        here, there = crossings.take(range(SIDE - 1), axis), crossings.take(range(1, SIDE), axis)
        fast = np.indices(here.shape)[1 - axis] % 30 == 0
        is_open = fast | (rng.random(here.shape) < 0.67)
        streets.append((here[is_open], there[is_open], np.where(fast, 5, 20)[is_open].astype(np.uint32)))
    sources, targets, seconds = (np.concatenate(parts) for parts in zip(*streets, strict=True))
    return atos.Graph.from_edges(sources, targets, seconds, num_vertices=SIDE * SIDE, symmetrize=True)


def streets_from(visit, graph, arrival):
    """Return the number of streets at the crossing, or 0 if the item is out of date, and the index of the first one."""
    first = graph.indptr[visit.crossing]
    late = visit.seconds > arrival[visit.crossing]
    return 0 if late else graph.indptr[visit.crossing + 1] - first, first


@atos.task(workload=streets_from)
def drive(worker: atos.Worker, visit, i, first, graph, arrival):
    """Drive along street i, and push its end if that is a new best time."""
    crossing, seconds = graph.indices[first + i], visit.seconds + graph.weights[first + i]
    if atos.atomic_min(arrival, crossing, seconds) > seconds:
        worker.push((crossing, seconds))


# %%
# The search begins at one crossing. An item has 32 bits for the crossing and 32 for the time.
if __name__ == "__main__":
    graph, start = city(), SIDE * SIDE // 2 + SIDE // 3
    arrival = atos.full(SIDE * SIDE, atos.UNREACHED, dtype=np.uint32)
    arrival[start] = 0
    queue = atos.Queue(capacity=8 * SIDE * SIDE, dtype=VISIT)
    queue.push((start, 0))
    print(queue.launch_cta(drive, graph, arrival))
    minutes = arrival.to_numpy().reshape(SIDE, SIDE) / 60
    print(f"{np.mean(minutes <= 15):.0%} of the crossings within 15 minutes")
    from matplotlib import pyplot as plt

    plt.imshow(np.where(minutes <= 60, minutes, np.nan), cmap=plt.get_cmap("viridis_r", 12))
    plt.colorbar(label="minutes; white: not reachable")
    plt.show()
