"""Division of a host's cores among processes, which launchers bind to cores of their own or to some that they share."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence, Set

from ..core.devices import Device
from ..core.process_group import ProcessGroup

__all__ = ["divide_cores", "threads_of"]


def divide_cores(cores: Sequence[Set[int]], limits: Sequence[int]) -> list[int]:
    """Return the threads of each process, of which each may use some cores, and so many of them at a time.

    A core goes to one of those that may use it, which has the fewest so far. Each has a thread at least.
    """
    threads = [0] * len(cores)
    for core in sorted(set().union(*cores)):
        takers = [rank for rank, its in enumerate(cores) if core in its]
        threads[min(takers, key=lambda rank: threads[rank])] += 1
    for rank, limit in enumerate(limits):
        if limit < len(cores[rank]):  # a quota of time, which is one for all
            threads[rank] = min(threads[rank], limit // len(cores) + (rank < limit % len(cores)))
    return [max(count, 1) for count in threads]


def threads_of(group: ProcessGroup) -> int:
    """Return the threads of this process where a launch does not say."""
    own = [sorted(os.sched_getaffinity(0)), Device("cpu").processors]
    told = [json.loads(each) for each in group.gather(json.dumps(own).encode())]
    return divide_cores([set(cores) for cores, _ in told], [limit for _, limit in told])[group.rank]
