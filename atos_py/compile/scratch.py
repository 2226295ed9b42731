"""Bytes of scratch memory that a task sizes itself: of a worker, from those of one worker and one group."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["GROUPS", "MOST_BYTES", "sized_scratch"]

GROUPS = (1, 2, 4, 8, 16, 32)  # threads that may share a region
MOST_BYTES = 1 << 20  # of a worker: more than any multiprocessor has


def sized_scratch(needs: Sequence[int], num_threads: int) -> int:
    """Return the bytes of a worker's scratch.

    Parameters
    ----------
    needs : sequence of int
        Bytes that the task takes for a worker, and for each group of 1, 2, 4, 8, 16 and 32 threads; or nothing at all.
    num_threads : int
        Of a worker. If there is one, it is one group of any size.
    """
    if not needs:
        return 0
    of_worker, *of_groups = needs
    return of_worker + sum(size * -(-num_threads // threads) for size, threads in zip(of_groups, GROUPS, strict=True))
