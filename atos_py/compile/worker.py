"""Public interface of the first parameter of a task: the methods of a worker, with what they do."""

from __future__ import annotations

from typing import Any

from .group import WorkerGroup
from .task import Task, _inside_only

__all__ = ["Worker"]


class Worker:
    """Interface of a task's first parameter: a thread, a warp or a block (CTA) of the GPU, or a lane of the CPU.

    This class documents the names and serves editors; workers exist inside tasks only. A flat task has all of them. A
    nested task has `push`, `push_min`, `stop`, `clock`, `round`, `mode`, `scratch` with a number of elements, and, if it was
    made with one, `group`, since its iterations are spread over the threads of the worker. On the CPU a worker has one
    thread, or as many as its device says (`atos.device`).

    `sync`, `any`, `all`, `sum`, `min` and `max` are collective: every thread of the worker has to reach the call.

    Examples
    --------
    >>> @atos.task
    ... def total(worker, v, data, sums):
    ...     mine = 0
    ...     for i in worker.split(data.size):  # this thread's part
    ...         mine += data[i]
    ...     mine = worker.sum(mine)  # by all threads of the worker
    ...     if worker.rank == 0:
    ...         sums[v] = mine
    >>> data, sums, queue = atos.full(5, 2), atos.zeros(3, dtype=np.int64), atos.Queue(capacity=10)
    >>> queue.push(1)
    >>> print(queue.launch_warp(total, data, sums).tasks_run, sums[:])
    1 [ 0 10  0]
    """

    rank: int
    """The number of this thread in the worker, from 0."""

    size: int
    """Number of threads of the worker."""

    index: int
    """The number of this worker, from 0: among all of the launch, or of the round if the launch is discrete."""

    count: int
    """Number of those workers. They can share a scan, each with every `count`-th element from `index` on."""

    round: int
    """The number of the current round, from 0 in each launch; only with ``barrier=True``. In `idle` and `each_round` it is the
    round that has ended."""

    mode: int
    """The mode that `set_mode` has set before this round, 0 in the first one; only with ``barrier=True``."""

    pending: int
    """Number of items that wait for the next round, before those that the function pushes; in `each_round` only. Of a queue
    with buckets, those in buckets that are not open do not count."""

    group: WorkerGroup
    """In a flat task, ``worker.group(size)`` is the `Group` of this thread: the worker's threads in groups of `size`, which is
    2, 4, 8, 16 or 32, a number in the source or a global variable. In a nested task, ``worker.group`` is the group of threads
    that run the iteration, as many as ``@atos.task(workload=..., group=size)`` says."""

    def __init__(self) -> None:
        raise _inside_only("Worker")

    def push(self, item: Any, /, priority: float | None = None, *, task: Task | None = None) -> None:
        """Push an item into the queue.

        Parameters
        ----------
        item : int or tuple
            Cast to the type of the queue's items; a tuple of the fields in order if those are records, in which a vector is
            a tuple of its numbers.
        priority : number, optional
            Of a queue with buckets, where the lowest goes first; None is 0. Without buckets only None compiles.
        task : Task, optional
            Which of the launch's tasks runs it; by default the first.
        """

    def push_min(  # type: ignore[empty-body]
        self, array: Any, index: int, value: Any, /, *, priority: float | None = None, task: Task | None = None
    ) -> bool:
        """Lower `array[index]` to `value` where `value` is smaller, atomically, and push `index` if that lowered it.

        Parameters
        ----------
        array : writable array
            Of one dimension, and of a type that `atomic_min` takes. The queue's items are integers.
        index : int
            Also the item that is pushed.
        value : number
            As for `atomic_min`. Where it is not smaller than the element, nothing but a read is done.
        priority : number, optional
            Of the item, if the queue has buckets.
        task : Task, optional
            As for `push`.

        Returns
        -------
        bool
            Whether the element was lowered.

        Examples
        --------
        >>> @atos.task(workload=lambda v, graph, depth: graph.indptr[v + 1] - graph.indptr[v])
        ... def visit(worker, v, i, graph, depth):
        ...     worker.push_min(depth, graph.indices[graph.indptr[v] + i], depth[v] + 1)
        >>> graph, depth = atos.Graph.from_edges([0, 1, 0], [1, 2, 2]), atos.asarray([0, 9, 9])
        >>> queue = atos.Queue(capacity=10)
        >>> queue.push(0)
        >>> print(queue.launch_cta(visit, graph, depth).tasks_run, depth[:])
        3 [0 1 1]
        """

    def arrive(  # type: ignore[empty-body]
        self,
        counters: Any,
        index: Any,
        /,
        n: int = 1,
        *,
        push: Any = None,
        priority: float | None = None,
        task: Task | None = None,
    ) -> bool:
        """Subtract `n` from a counter of what is still missing; the one that makes it zero is the last to arrive.

        Each thread that calls this arrives. The last one sees all that the others wrote before they arrived, and so does the
        task on an item that it pushes.

        Parameters
        ----------
        counters : writable array of int32 or int64
            An argument of the task, whose elements say how many have yet to arrive.
        index : int or tuple of int
            One number for each dimension.
        n : int
            At least 1. A counter that comes below zero wraps as integers do; with ``debug=True`` it is a `TaskError`.
        push : int or tuple of numbers, optional
            An item that the last one pushes, as `push` does.
        priority : float, optional
            Of that item, if the queue has buckets.
        task : Task, optional
            Which of the launch's tasks runs the item; by default the first.

        Returns
        -------
        bool
            True for the one caller that made the counter zero.

        Notes
        -----
        The end of a launch does not depend on counters: one that never becomes zero is waited for by nobody. After a launch
        with ``debug=True``, `LaunchStats.waiting` has the counters that are above zero.

        Examples
        --------
        The sum of each subtree of a tree, whose vertices wait for their children:

        >>> @atos.task
        ... def ascend(worker, v, parent, missing, total):
        ...     if parent[v] >= 0:
        ...         atos.atomic_add(total, parent[v], total[v])
        ...         worker.arrive(missing, parent[v], push=parent[v])
        >>> parent = atos.asarray([-1, 0, 0, 1, 1])
        >>> missing, total = atos.asarray([2, 2, 0, 0, 0]), atos.full(5, 1)
        >>> queue = atos.Queue(capacity=10)
        >>> queue.push([2, 3, 4])
        >>> print(queue.launch_thread(ascend, parent, missing, total).tasks_run, total[:])
        5 [5 3 1 1 1]

        Vertex 1 waits for one child more than it has, and vertex 0 for vertex 1:

        >>> missing[:] = [2, 3, 0, 0, 0]
        >>> queue.push([2, 3, 4])
        >>> print(*queue.launch_thread(ascend, parent, missing, total, debug=True).waiting)
        2 of 5 counters of 'missing' wait: 0 lacks 1, 1 lacks 1
        """

    def open(  # type: ignore[empty-body]
        self, joins: Any, count: int, /, *, parent: int = 0, combine: str | None = "default", negate: bool = False
    ) -> int:
        """Open a join, which waits for `count` arrivals and then arrives at its parent; in flat tasks.

        Each thread that calls this opens one: in a task of warps or CTAs, call it where ``worker.rank == 0``. It never waits
        and never fails, since a thread has records for as many as ``@atos.task(opens=...)`` says before the task begins. Where
        there are none, the item stays in the queue, and the launch ends in order with `JoinsFullError`.

        Parameters
        ----------
        joins : Joins
            An argument of the task.
        count : int
            Arrivals that it waits for, at least 1.
        parent : int
            The handle of the join at which it arrives; 0 is the root.
        combine : {'sum', 'min', 'max', None}
            How the values that arrive are combined; by default as the joins were made.
        negate : bool
            Whether the combined value is negated for the parent, as in a search for the best move of two players.

        Returns
        -------
        int
            The handle, an int64, by which other tasks arrive.
        """

    def then(self, joins: Any, j: int, item: Any, /, *, priority: float | None = None, task: Task | None = None) -> None:
        """Let a join end by a push of `item`, in place of an arrival at its parent.

        It is called by the task that has opened the join, before anybody else has its handle. The task that runs the item takes
        the combined value by `take`, for which the item may hold the handle.

        Parameters
        ----------
        joins : Joins
        j : int
            The handle.
        item, priority, task
            As for `push`.
        """

    def arrive_at(self, joins: Any, j: int, /, value: Any = None, n: int = 1) -> None:
        """Arrive at a join; the last one to arrive closes it and arrives at its parent, with the combined value.

        Each thread that calls this arrives. Who takes the value, or runs the item of `then`, sees all that others wrote before
        they arrived.

        Parameters
        ----------
        joins : Joins
            An argument of the task.
        j : int
            The handle; 0 is the root, which counts nothing.
        value : number, optional
            Cast to the type of the values, and combined. Without one, only the arrival counts.
        n : int
            Arrivals that this one stands for. With ``debug=True``, more than the join waits for are a `TaskError`; so is a
            handle of a join that has ended.

        Notes
        -----
        Sums of floats depend on the order of arrivals.

        Examples
        --------
        >>> @atos.task
        ... def add(worker, v, joins, last):
        ...     if v == 0:
        ...         j = worker.open(joins, 2)
        ...         worker.then(joins, j, -j)
        ...         worker.push(j)
        ...         worker.push(j)
        ...     elif v > 0:
        ...         worker.arrive_at(joins, v, 5)
        ...     else:
        ...         last[0] = worker.take(joins, -v)
        >>> joins, last = atos.Joins(10), atos.zeros(1, dtype=np.int64)
        >>> queue = atos.Queue(10, dtype=np.int64)
        >>> queue.push(0)
        >>> print(queue.launch_thread(add, joins, last).tasks_run, last[0], joins.pending)
        4 10 0
        """

    def take(self, joins: Any, j: int, /) -> Any:
        """Return the combined value of a join whose item was pushed (`then`), and end the join.

        Parameters
        ----------
        joins : Joins
        j : int
            The handle.

        Returns
        -------
        number
        """

    def stop(self) -> None:
        """End the launch in order, without an error; `LaunchStats.stopped` is True then.

        Workers finish the items that they have in hand, this one included, and leave. What is unfinished stays in the queue.
        """

    def clock(self) -> int:  # type: ignore[empty-body]
        """Return the time of the device in nanoseconds, which never goes back within a worker.

        On a GPU it is the clock that all multiprocessors share, whose steps differ by GPU (``%globaltimer`` of PTX); on the
        CPU it is that of `time.monotonic_ns`. Times of different devices cannot be compared.

        Examples
        --------
        >>> @atos.task
        ... def measure(worker, v, out):
        ...     began = worker.clock()
        ...     for i in range(v):
        ...         out[0] += i
        ...     out[1] = worker.clock() - began
        >>> out, queue = atos.zeros(2, dtype=np.int64), atos.Queue(capacity=10)
        >>> queue.push(1000)
        >>> print(queue.launch_thread(measure, out).tasks_run, out[0], out[1] > 0)
        1 499500 True
        """

    def set_mode(self, mode: int, /) -> None:
        """Set `mode` for the rounds that follow, in the function `each_round` of a launch only.

        Parameters
        ----------
        mode : int
            The same on every thread that calls this.
        """

    def sync(self) -> None:
        """Wait for all threads of the worker; what they wrote before is seen by all of them after."""

    def any(self, condition: Any, /) -> bool:  # type: ignore[empty-body]
        """Whether `condition` holds for at least one thread of the worker."""

    def all(self, condition: Any, /) -> bool:  # type: ignore[empty-body]
        """Whether `condition` holds for every thread of the worker."""

    def sum(self, value: Any, /) -> Any:
        """Return the sum of `value` over the threads of the worker, in every thread, of the type of `value`."""

    def min(self, value: Any, /) -> Any:
        """Return the smallest `value` of the worker's threads, in every thread."""

    def max(self, value: Any, /) -> Any:
        """Return the largest `value` of the worker's threads, in every thread."""

    def split(self, work: int | range, /) -> range:  # type: ignore[empty-body]
        """Return this thread's share of `range(work)`, or of the range `work`: every `size`-th element from `rank` on."""

    def scratch(self, dtype: Any, count: int | None = None, /) -> Any:
        """Return scratch memory as a one-dimensional array of `dtype`, shared by the threads of the worker.

        With a `count`, a number in the source or a global variable, it has as many elements. Each such call in the source has
        memory of its own, the same whenever it is reached. In a nested task that memory belongs to the threads that run the
        iteration: the group, or one thread.

        Without a count, its size is the launch's `shared_memory` in bytes, which has to be given; all such calls return the
        same memory. What scratch holds at first is undefined.
        """
