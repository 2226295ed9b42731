"""Launch state of vertex programs: the record of a frontier's counters, and the modes of its rounds."""

from __future__ import annotations

from typing import NamedTuple

from ...arrays.record import places

__all__ = ["AT", "DONE", "PULL", "PUSH", "SCAN_BITS", "SCAN_LIST", "FrontierState"]

#: Modes: what the tasks of a round do. A scan comes before what is 2 less.
PUSH, PULL, SCAN_LIST, SCAN_BITS, DONE = range(5)


class FrontierState(NamedTuple):
    """Words of the state of a launch (`arrays.record`), which ends with an entry for each round."""

    mode: int = 1
    rounds: int = 1
    limited: int = 1
    explored: int = 1  # edges of all frontiers but one
    flipped: int = 1  # which bits are those of the frontier
    log: int = 1


AT = places(FrontierState)
