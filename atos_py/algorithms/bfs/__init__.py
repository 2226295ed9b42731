"""Breadth-first search, speculatively: vertices of different depths are visited at the same time.

An item of the queue is a vertex to be visited. Visiting it lowers the depth of each neighbor to one more than its own, and
pushes the neighbors whose depth went down. A vertex that was visited too early, with a depth that is not yet its smallest, is
pushed again when a better one arrives: work is wasted then, but the depths come out right in any order, which is why no barrier
between levels is needed. With `barrier=True` the same task visits level after level and pushes each vertex once.

Where most vertices are a few edges away, most of the work is looking at edges to what is reached already. There the search goes
level by level. It may switch direction, so that vertices which are not reached look for one that is (`direction`). Otherwise a
bit for each vertex, in place of its depth, says that it is reached (`pushed_levels`).

Parents are found afterwards, by one pass over the edges: whichever edge leads from a finished depth to the next one names a
parent. During the search a depth and its parent would have to change together, in one word of 64 bits; that would double
what a search reads at random, also for those who do not ask for parents.

`api` has the call, `tasks`, `direction` and `pushed_levels` what runs on the device, `verify` the proof of a result.

Source: Chen et al., "Atos: A Task-Parallel GPU Scheduler for Graph Analytics", ICPP 2022, Algorithms 1 and 2.
"""

from . import entry  # noqa: F401 - registers the algorithm
from .api import DIRECTIONS, BFSResult, bfs
from .tasks import UNREACHED, assign_parents, degree, visit
from .verify import verify_bfs

__all__ = ["DIRECTIONS", "UNREACHED", "BFSResult", "assign_parents", "bfs", "degree", "verify_bfs", "visit"]
