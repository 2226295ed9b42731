"""Public interface of tasks: the decorator `@task`, and the methods of a task's `worker`."""

from __future__ import annotations

import functools
import importlib
import operator
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, overload

from ..errors import InvalidArgumentError, TaskCallError
from ..support.validation import check_int
from .group import Group
from .register_limits import Limits, check_limits
from .scratch import GROUPS

__all__ = [
    "Task",
    "Worker",
    "task",
]


@dataclass(frozen=True, eq=False)
class Task:
    """A task function, ready to be launched by `Queue.launch_thread`, `launch_warp` or `launch_cta`.

    Made by `task`. A task is compiled at its first launch, for the kinds of its arguments and the values of the global and
    captured variables that its functions read, and again at a launch that finds other kinds or values.

    Attributes
    ----------
    body : callable
        `body(worker, item, *args)` of a flat task, `body(worker, item, i, *values, *args)` of a nested one.
    workload : callable or None
        `workload(item, *args)` of a nested task: the length of the item's inner loop, or `(length, value, ...)`.
    group : int
        Threads that run an iteration of a nested task together; 1 if each runs iterations of its own.
    max_registers : int, tuple or dict, optional
        As `task` takes it.
    spills : int, optional
        Bytes that a thread may spill in a launch with a function between rounds, before a larger limit of registers is tried;
        by default few, and none for tasks of the package.
    opens : int
        Joins that a thread opens at most for an item.

    Examples
    --------
    >>> @atos.task
    ... def mark(worker, v, seen):
    ...     seen[v] = 1
    >>> mark
    <atos task mark>
    >>> mark.nested
    False
    """

    body: Callable[..., Any]
    workload: Callable[..., Any] | None = None
    group: int = 1
    max_registers: Limits | Mapping[str, Limits] | None = None
    spills: int | None = None
    opens: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "__doc__", self.body.__doc__)
        object.__setattr__(self, "__module__", getattr(self.body, "__module__", None))

    def __copy__(self) -> Task:
        """Return the task itself, which never changes."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Task:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle a task as functions are: by the name that its module has for it, so that no code is in a pickle.

        A decorated function is no longer found by its own name, which is that of the task. In cloudpickle, which writes the
        functions of a notebook or script themselves, a task is made of them.
        """
        module, name = self.body.__module__, self.body.__qualname__
        if _find_task(module, name) is self and not (module == "__main__" and "cloudpickle" in sys.modules):
            return _named_task, (module, name)
        return Task, (self.body, self.workload, self.group, self.max_registers, self.spills, self.opens)

    @property
    def nested(self) -> bool:
        """Whether the body runs once for each iteration of an inner loop, rather than once for each item."""
        return self.workload is not None

    @functools.cached_property
    def name(self) -> str:
        """The name of the task function."""
        return getattr(self.body, "__name__", None) or repr(self.body)

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse: tasks run inside a launch."""
        raise TaskCallError(
            f"task {self.name!r} was called from the host; give it to queue.launch_thread, launch_warp or launch_cta instead"
            f" (its plain Python function is {self.name}.body)"
        )

    def __repr__(self) -> str:
        workload = f" workload={getattr(self.workload, '__name__', self.workload)}" if self.nested else ""
        group = f" group={self.group}" if self.group > 1 else ""
        return f"<atos task {self.name}{workload}{group}>"


def _find_task(module: str, name: str) -> Any:
    """Return what a module that is imported has under a name."""
    try:
        return operator.attrgetter(name)(sys.modules[module])
    except (AttributeError, KeyError):
        return None


def _named_task(module: str, name: str) -> Task:
    """Return the task that was pickled."""
    importlib.import_module(module)
    found = _find_task(module, name)
    if not isinstance(found, Task):
        raise InvalidArgumentError(f"the pickle is of the task {name} of the module {module}, which has no such task here")
    return found


@overload
def task(body: Callable[..., Any], /) -> Task: ...
@overload
def task(
    *,
    workload: Callable[..., Any] | None = None,
    group: int | None = None,
    max_registers: Limits | Mapping[str, Limits] | None = None,
    opens: int = 1,
) -> Callable[[Callable[..., Any]], Task]: ...
def task(
    body: Callable[..., Any] | None = None,
    /,
    *,
    workload: Callable[..., Any] | None = None,
    group: int | None = None,
    max_registers: Limits | Mapping[str, Limits] | None = None,
    opens: int = 1,
) -> Task | Callable[[Callable[..., Any]], Task]:
    """Make a function the task of a queue.

    Used as `@task`, the function is the body of a *flat* task, `body(worker, item, *args)`: it runs once for each item,
    with all threads of the worker in it. Used as `@task(workload=length)`, it is the body of a *nested* task,
    `body(worker, item, i, *values, *args)`: it runs once for each `i < length(item, *args)`, and those iterations are
    spread evenly over the threads of the worker, across all the items that it fetched.

    Parameters
    ----------
    workload : callable, optional
        `workload(item, *args)`, run exactly once for each item; it may have parameters for the first of `args` only. It
        returns the length of the inner loop, or a tuple `(length, value, ...)` whose values, at most eight scalars, are
        handed to every iteration after `i`.
    group : {2, 4, 8, 16, 32}, optional
        Threads of a warp or CTA worker that run an iteration of a nested task together, as `worker.group` (see `Group`). By
        default each thread runs iterations of its own.
    max_registers : int, tuple or dict, optional
        The most registers that a thread of the task's kernels on a GPU takes, from 16 to 255: with 40 a multiprocessor holds
        1,536 threads, with 64 it holds 1,024. What does not fit is spilled to memory. A tuple has limits that are tried in
        turn until nothing is spilled, of which `None` is no limit; by default the tuple is ``(40, 48, 64, None)``. A dict
        has limits for kinds of workers, as in ``{"cta": 40}``, and leaves the default to the others. Of several tasks in one
        launch the limit of the first one counts. Blocks of more than 256 threads have limits of their own.
    opens : int, optional
        Of a flat task with `Joins` among its arguments: how many of them a thread opens at most for an item, from 0 to 4,096.
        It has records for so many before it begins.

    Returns
    -------
    Task

    Notes
    -----
    Tasks are Python functions of numbers, compiled by Numba: arithmetic, `if`, `for`, `while`, tuples, `math`, calls of
    other such functions (which need no decoration), and the atomics of this module. They cannot allocate. An assert is
    checked in launches with ``debug=True`` and left out of others; a raise takes such a launch.

    What is read from arrays, items and arguments of the types uint8, uint16 and uint32 is int64 inside a task. uint64 stays
    what it is. With a signed variable it takes a conversion of one of the two, but for comparisons, which are by value. Indices
    are checked with ``debug=True`` only, and a negative one does not count from the end.

    Examples
    --------
    >>> def length(v):
    ...     return v
    >>> @atos.task(workload=length)
    ... def add(worker, v, i, total):  # for each i < v
    ...     atos.atomic_add(total, 0, i)
    >>> total, queue = atos.zeros(1, dtype=np.int64), atos.Queue(capacity=10)
    >>> queue.push([3, 4])
    >>> print(queue.launch_cta(add, total).tasks_run, total[0])
    2 9

    A task that waits for memory most of the time may be faster with more threads at once, each with fewer registers:

    >>> @atos.task(max_registers={"cta": 32})
    ... def mark(worker, v, seen):
    ...     if worker.rank == 0:
    ...         seen[v] = 1
    >>> mark.max_registers
    {'cta': 32}
    """
    if body is None:
        if workload is not None and not callable(workload):
            raise InvalidArgumentError(f"task(workload=...) takes a function of an item and the arguments, not {workload!r}")
        if group is not None:
            if workload is None:
                raise InvalidArgumentError(
                    f"task(group={group!r}) takes a workload, whose iterations groups run; a flat task has worker.group(k)"
                )
            if check_int("group", group, 2, 32) not in GROUPS:
                raise InvalidArgumentError(f"group must be 2, 4, 8, 16 or 32 (got {group})")
        limits, most = check_limits(max_registers), check_int("opens", opens, 0, 4096)
        return lambda function: Task(_function(function), workload, 1 if group is None else int(group), limits, opens=most)
    return Task(_function(body))


def _function(body: Callable[..., Any]) -> Callable[..., Any]:
    if not callable(body) or isinstance(body, Task):
        raise InvalidArgumentError(
            f"@task decorates a function, not {body!r}; the workload goes by name, as in @task(workload=length)"
        )
    return body


def _inside_only(name: str) -> TaskCallError:
    return TaskCallError(f"{name} works inside tasks only; from the host, read and write the array's elements instead")


class Worker:
    """Interface of a task's first parameter: a thread, a warp or a block (CTA) of the GPU, or a lane of the CPU.

    This class documents the names and serves editors; workers exist inside tasks only. A flat task has all of them. A
    nested task has `push`, `push_min`, `stop`, `round`, `mode`, `scratch` with a number of elements, and, if it was made with
    one, `group`, since its iterations are spread over the threads of the worker. On the CPU a worker has one thread.

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

    def __init__(self) -> None:
        raise _inside_only("Worker")

    def push(self, item: Any, /, priority: float | None = None, *, task: Task | None = None) -> None:
        """Push an item into the queue.

        Parameters
        ----------
        item : int or tuple
            Cast to the type of the queue's items; a tuple of the fields in order if those are records.
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

    def then(
        self, joins: Any, j: int, item: Any, /, *, priority: float | None = None, task: Task | None = None
    ) -> None:
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
            Arrivals that this one stands for. More than the join waits for are a `TaskError` with ``debug=True``, as is a handle
            of a join that has ended.

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

    def group(self, size: int, /) -> Group:  # type: ignore[empty-body]
        """Return the group of this thread: the worker's threads in groups of `size`, which is 2, 4, 8, 16 or 32.

        The size is a number in the source or a global variable. In a nested task, `group` is no method but the threads that
        run the iteration, as many as ``@atos.task(workload=..., group=size)`` says.
        """

    def scratch(self, dtype: Any, count: int | None = None, /) -> Any:
        """Return scratch memory as a one-dimensional array of `dtype`, shared by the threads of the worker.

        With a `count`, a number in the source or a global variable, it has as many elements. Each such call in the source has
        memory of its own, the same whenever it is reached. In a nested task that memory belongs to the threads that run the
        iteration: the group, or one thread.

        Without a count, its size is the launch's `shared_memory` in bytes, which has to be given; all such calls return the
        same memory. What scratch holds at first is undefined.
        """
