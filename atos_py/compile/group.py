"""Type of `Worker.group` for editors and documents: the threads of a worker that work together on one thing."""

from __future__ import annotations

from typing import Any

from ..errors import TaskCallError

__all__ = ["Group", "WorkerGroup"]


class Group:
    """Interface of a group: 2, 4, 8, 16 or 32 consecutive threads of a worker.

    A flat task gets its group by ``worker.group(size)``; in a nested task made by ``@atos.task(workload=..., group=size)``, the
    threads that run an iteration are ``worker.group``. With thread workers and on the CPU a group is one thread, whose `split`
    goes over everything, so that one source gives one result everywhere.

    This class documents the names and serves editors; groups exist inside tasks only. `sync`, `any`, `all`, `sum`, `min`, `max`
    and `shuffle` are collective: every thread of the group has to reach the call. Threads of other groups need not.

    Examples
    --------
    >>> @atos.task(workload=lambda v, data, sums: 3, group=4)
    ... def add(worker, v, i, data, sums):  # four threads for each i < 3
    ...     group, mine = worker.group, 0
    ...     for k in group.split(data.shape[1]):  # this thread's part
    ...         mine += data[i, k]
    ...     mine = group.sum(mine)  # by the threads of the group
    ...     if group.rank == 0:
    ...         sums[i] = mine
    >>> data, sums = atos.asarray(np.arange(30).reshape(3, 10)), atos.zeros(3, dtype=np.int64)
    >>> queue = atos.Queue(capacity=10)
    >>> queue.push(0)
    >>> print(queue.launch_warp(add, data, sums).tasks_run, sums[:])
    1 [ 45 145 245]
    """

    rank: int
    """The number of this thread in the group, from 0."""

    size: int
    """Number of threads of the group: as many as were asked for, or 1."""

    index: int
    """The number of this group in the worker, from 0. In flat tasks only."""

    count: int
    """Number of groups of the worker. In flat tasks only."""

    def __init__(self) -> None:
        raise TaskCallError("Group works inside tasks only; from the host, read and write the array's elements instead")

    def split(self, work: int | range, /) -> range:  # type: ignore[empty-body]
        """Return this thread's share of `range(work)`, or of the range `work`: every `size`-th element from `rank` on."""

    def sync(self) -> None:
        """Wait for all threads of the group; what they wrote before is seen by all of them after."""

    def any(self, condition: Any, /) -> bool:  # type: ignore[empty-body]
        """Whether `condition` holds for at least one thread of the group."""

    def all(self, condition: Any, /) -> bool:  # type: ignore[empty-body]
        """Whether `condition` holds for every thread of the group."""

    def sum(self, value: Any, /) -> Any:
        """Return the sum of `value` over the threads of the group, in every thread, of the type of `value`."""

    def min(self, value: Any, /) -> Any:
        """Return the smallest `value` of the group's threads, in every thread. A NaN counts only if all are."""

    def max(self, value: Any, /) -> Any:
        """Return the largest `value` of the group's threads, in every thread. A NaN counts only if all are."""

    def shuffle(self, value: Any, source: int, /) -> Any:
        """Return the `value` of the thread whose rank is `source`, modulo the group's size."""

    def scratch(self, dtype: Any, count: int, /) -> Any:
        """Return scratch memory of the group, a one-dimensional array of `count` elements of `dtype`; see `Worker.scratch`."""


class WorkerGroup(Group):
    """What `Worker.group` is to editors: the group itself in a nested task, and in a flat one what returns a group."""

    def __call__(self, size: int, /) -> Group:  # type: ignore[empty-body]
        """Return the group of this thread: the worker's threads in groups of `size`, which is 2, 4, 8, 16 or 32."""
