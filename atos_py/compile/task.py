"""Public interface of tasks: the decorator `@task`."""

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
from .register_limits import Limits, check_limits
from .scratch import GROUPS

__all__ = [
    "Task",
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
    opens: int | None = None,
) -> Callable[[Callable[..., Any]], Task]: ...
def task(
    body: Callable[..., Any] | None = None,
    /,
    *,
    workload: Callable[..., Any] | None = None,
    group: int | None = None,
    max_registers: Limits | Mapping[str, Limits] | None = None,
    opens: int | None = None,
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
        Of a flat task with `Joins` among its arguments: how many of them a thread opens at most for an item, from 0 to 4,096;
        one unless given. It has records for so many before it begins.

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
        if opens is not None and workload is not None:
            raise InvalidArgumentError(f"task(opens={opens!r}) is for flat tasks: a nested task opens no joins")
        limits, most = check_limits(max_registers), 1 if opens is None else check_int("opens", opens, 0, 4096)
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
