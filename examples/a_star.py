"""A* to a target in a city
========================

This program finds the fastest way to a crossing by A* (Hart, Nilsson and Raphael, 1968). An item is a crossing and an arrival
time. Its priority is that time and the least that the rest of the way can take. What cannot be faster than the way that is
known already is not pushed. So the result is right in whatever order items run; the order decides how much is searched.
"""

from __future__ import annotations

import numpy as np

import atos_py as atos

SIDE, LEAST, VISIT = 400, 10, np.dtype([("crossing", np.uint32), ("seconds", np.uint32)])


def rest(crossing, target, guided):
    """Return the least time from a crossing to the target, if there is to be an estimate: `LEAST` seconds a street."""
    return (abs(crossing // SIDE - target // SIDE) + abs(crossing % SIDE - target % SIDE)) * LEAST * guided


def streets_from(visit, graph, arrival, target, guided):
    """Return the number of streets at the crossing, or 0 if the item is out of date or too late, and the first one."""
    first, here = graph.indptr[visit.crossing], np.int64(visit.crossing)
    is_late = visit.seconds > arrival[here] or visit.seconds + rest(here, target, guided) >= arrival[target]
    return 0 if is_late else graph.indptr[here + 1] - first, first


@atos.task(workload=streets_from)
def drive(worker: atos.Worker, visit, i, first, graph, arrival, target, guided):
    """Drive along street i, and push its end if that is a new best time."""
    crossing, seconds = np.int64(graph.indices[first + i]), visit.seconds + graph.weights[first + i]
    bound = seconds + rest(crossing, target, guided)
    if bound < arrival[target] and atos.atomic_min(arrival, crossing, seconds) > seconds:
        worker.push((crossing, seconds), bound)


# %%
# A* and the same search without an estimate. A certificate over all streets verifies the time.
if __name__ == "__main__":
    from matplotlib import pyplot as plt

    streets, start, target = atos.generate.road(SIDE, 0.8), SIDE * 200 + 140, SIDE * 230 + 260
    city = streets.with_weights(atos.generate.random_weights(streets, LEAST, 14))
    exact = atos.sssp(city, start)
    atos.verify_sssp(city, start, exact.distance)
    for guided, name in ((1, "A*"), (0, "no estimate")):
        arrival, queue = atos.full(SIDE**2, atos.UNREACHED, dtype=np.uint32), atos.Queue(SIDE**2, dtype=VISIT, buckets=64)
        arrival[start] = 0
        queue.push((start, 0), 0)
        stats, found = queue.launch_cta(drive, city, arrival, target, guided), arrival.to_numpy()
        assert found[target] == exact.distance[target]
        print(f"{name}: {found[target]:,} seconds, verified; {stats.tasks_run:,} tasks on {city.device}")
        picture = np.where(found == atos.UNREACHED, np.nan, found).reshape(SIDE, SIDE)
        plt.subplot(1, 2, 2 - guided, title=name).imshow(picture[60:380, 20:380])
    plt.show()
