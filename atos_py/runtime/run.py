"""A launch that goes on while its caller does something else, and takes items from it meanwhile."""

from __future__ import annotations

import atexit
import concurrent.futures
import threading
import weakref
from collections.abc import Generator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..arrays.array import Array
from ..compile.kinds import check_tasks
from ..compile.short_traceback import as_launch
from ..compile.task import Task
from ..errors import InvalidArgumentError, LaunchTimeoutError, UnsupportedTypeError
from ..support.host_memory import host_memory_for
from ..support.not_copied import NotCopied
from ..support.validation import check_timeout
from .inbox import Inbox
from .items import as_items
from .launch import PreparedLaunch
from .launch_errors import LaunchedQueue
from .launch_options import LaunchOptions, Unpack
from .sites import OneDevice
from .stats import LaunchStats

if TYPE_CHECKING:
    from typing_extensions import Self  # of typing from Python 3.11 on

__all__ = ["Run", "start"]

_Future = concurrent.futures.Future[Any]  # of LaunchStats, or None for a launch that has to be made again


class Run(NotCopied):
    """A launch that takes items from the host while its workers run, as `Queue.start` returns it.

    It ends when it was closed and nothing is left to do. A ``with`` block closes it at its end and waits, and stops it after an
    exception; ``await run`` waits for it in a coroutine. A run that is dropped is stopped, and so is one that has not ended
    when the interpreter ends. All methods may be called in any thread.

    Examples
    --------
    >>> @atos.task
    ... def mark(worker, v, seen):
    ...     seen[v] = 1
    >>> seen, queue = atos.zeros(4, dtype=np.int32), atos.Queue(capacity=10)
    >>> with queue.start(mark, seen) as run:
    ...     run.push([0, 2])
    ...     run.push(3)
    >>> print(run.wait().tasks_run, seen[:])
    3 [1 0 1 1]
    """

    _not_copied = "a run is one launch, which is neither copied nor pickled: wait() returns its statistics, which can be"

    def __init__(self, task: str, dtype: np.dtype[Any], site: OneDevice, inbox: Inbox, future: _Future) -> None:
        self._task = task
        self._dtype = dtype
        self._site = site
        self._inbox = inbox
        self._future = future
        weakref.finalize(self, inbox.stop).atexit = False  # `_stop_all` waits as well

    @property
    def waiting(self) -> int:
        """The items that were sent and that no worker has taken yet."""
        return self._inbox.waiting()

    @host_memory_for("Run.push")
    def push(self, items: ArrayLike | Array, *, task: Task | None = None) -> None:
        """Send items to the workers; waits only while some 32,768 items that no worker has taken yet are on their way.

        Parameters
        ----------
        items : array_like
            As for `Queue.push`.
        task : Task, optional
            Which of the tasks of the run they are for; by default the first.

        Raises
        ------
        InvalidArgumentError
            If the run was closed or has ended, it lacks the task, or a value does not fit the dtype.
        AtosError
            What ended the run, if that was an error.

        Examples
        --------
        >>> @atos.task
        ... def mark(worker, v, seen):
        ...     seen[v] = 1
        >>> seen, queue = atos.zeros(4, dtype=np.int32), atos.Queue(capacity=10)
        >>> with queue.start(mark, seen) as run:
        ...     run.push([1, 3])
        >>> seen[:]
        array([0, 1, 0, 1], dtype=int32)
        """
        if task is not None and not isinstance(task, Task):
            raise UnsupportedTypeError(f"task must be a task made with @atos.task (got {task!r:.80})")
        values = as_items(items, self._dtype)
        self._site.check_items(values)
        done = self._inbox.push(values, task.name if task else None)
        if done == len(values):
            return
        if not self._inbox.closed or self._future.done():
            self._future.result()  # raises what ended it
        why = "closed" if self._inbox.closed else "stopped"
        raise InvalidArgumentError(
            f"the run of {self._task} was {why} and takes no more items: {max(done, 0)} of {len(values)} were handed over;"
            " push the others to the queue, or start another run"
        )

    def close(self) -> None:
        """Say that no more items will come: the run ends when all is done.

        Examples
        --------
        >>> @atos.task
        ... def nothing(worker, v):
        ...     pass
        >>> run = atos.Queue(capacity=10).start(nothing)
        >>> run.push(range(5))
        >>> run.close()
        >>> run.wait().tasks_run
        5
        """
        self._inbox.close()

    def stop(self) -> None:
        """Stop the run in order, as a timeout would: what is unfinished, or was sent and not taken, is in the queue then.

        Examples
        --------
        >>> @atos.task
        ... def endless(worker, v):
        ...     worker.push(v)
        >>> queue = atos.Queue(capacity=10)
        >>> run = queue.start(endless)
        >>> run.push([1, 2])
        >>> run.stop()
        >>> _ = run.wait()
        >>> len(queue)
        2
        """
        self._inbox.stop()

    def wait(self, timeout: float | None = None) -> LaunchStats:
        """Wait for the end; a run that was interrupted meanwhile, by Ctrl-C, goes on.

        Parameters
        ----------
        timeout : float, optional
            Seconds to wait at most.

        Returns
        -------
        LaunchStats

        Raises
        ------
        InvalidArgumentError
            If no timeout is given, and the run was neither closed nor stopped: it would not end.
        LaunchTimeoutError
            If the run has not ended in time, and goes on.
        AtosError
            What a launch raises; see `Queue.launch_cta`.

        Examples
        --------
        >>> @atos.task
        ... def nothing(worker, v):
        ...     pass
        >>> run = atos.Queue(capacity=10).start(nothing)
        >>> try:
        ...     run.wait(timeout=0.01)
        ... except atos.LaunchTimeoutError as error:
        ...     print(error)
        the run of nothing goes on: it is open, and has not ended within 0.01 s
        """
        self._inbox.refuse_fork()
        asked = self._inbox.closed or self._inbox.stopped
        if timeout is not None:
            check_timeout(timeout)
        elif not asked and not self._future.done():
            raise InvalidArgumentError(
                f"the run of {self._task} is open, so that it would not end: close() or stop() it first, or give a timeout"
            )
        concurrent.futures.wait([self._future], None if timeout is None else min(timeout, threading.TIMEOUT_MAX))
        if not self._future.done():
            state = "it has work to do" if asked else "it is open"
            raise LaunchTimeoutError(
                f"the run of {self._task} goes on: {state}, and has not ended within {timeout} s", pending=None, stuck=False
            )
        stats: LaunchStats = self._future.result()
        return stats

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if error is None:
                self.close()
                self.wait()
        finally:
            if not self._future.done():  # after an exception, also one that came while it waited
                self.stop()
                concurrent.futures.wait([self._future])

    def __await__(self) -> Generator[Any, None, LaunchStats]:
        import asyncio  # slow to import

        self._inbox.refuse_fork()
        return asyncio.wrap_future(self._future).__await__()

    def __repr__(self) -> str:
        asked = "stopped" if self._inbox.stopped else "closed" if self._inbox.closed else "open"
        return f"<run of {self._task}: {'ended' if self._future.done() else asked}>"


@as_launch
def start(
    queue: LaunchedQueue,
    task: Task | Sequence[Task],
    *args: Any,
    worker: str = "cta",
    **options: Unpack[LaunchOptions],
) -> Run:
    """Start a launch that takes items from the host while its workers run, and return at once.

    Parameters
    ----------
    task, *args, **options
        As for `launch_cta`. Neither `barrier=True` nor `persistent=False` is possible, nor a queue with buckets. On a GPU the
        launch has a stream of its own and begins after what is in `stream`.
    worker : {"cta", "warp", "thread"}
        What one worker is.

    Returns
    -------
    Run

    Notes
    -----
    Other calls of this queue wait for the end. What the options make impossible and errors of compilation are raised here,
    errors of the run by `Run.wait`.

    On a GPU, other kernels may have to wait for the end too, unless `num_blocks` leaves room for them: launches, functions of
    arrays, copies from array to array, arrays that are pushed to another queue. New arrays and copies from and to the host need
    not.

    Examples
    --------
    >>> @atos.task
    ... def mark(worker, v, seen):
    ...     seen[v] = 1
    >>> seen, queue = atos.zeros(4, dtype=np.int32), atos.Queue(capacity=10)
    >>> with queue.start(mark, seen, worker="thread") as run:
    ...     run.push([0, 2])
    >>> seen[:]
    array([1, 0, 1, 0], dtype=int32)
    """
    while True:
        inbox = Inbox(queue._device)
        launch = PreparedLaunch(queue, worker, task, args, options, inbox)
        future: _Future = concurrent.futures.Future()
        future.set_running_or_notify_cancel()  # a coroutine that is cancelled while it waits does not cancel the run
        name = ", ".join(member.name for member in check_tasks(task))
        run = Run(name, queue._dtype, queue._site, inbox, future)
        # A daemon, since others are waited for before `_stop_all` is called.
        thread = threading.Thread(target=_serve, args=(launch, future, inbox), name=f"run of {name}", daemon=True)
        _threads[inbox] = thread
        try:
            thread.start()
        except BaseException:
            del _threads[inbox]
            raise
        # One that has ended without the queue raises why, or returns None: then the queue has another form meanwhile.
        if inbox.has_begun() or future.result() is not None:
            return run


_threads: dict[Inbox, threading.Thread] = {}  # of the runs that have not ended


def _serve(launch: PreparedLaunch | None, future: _Future | None, inbox: Inbox) -> None:
    """Run a launch. It knows nothing of the `Run`, which would never be dropped otherwise."""
    assert launch is not None
    assert future is not None
    try:
        with host_memory_for("a launch"):
            stats = launch._run(launch._began, launch._filled)
    except BaseException as error:
        future.set_exception(error)
        launch = future = None  # this frame is in the error's traceback, which would keep all of it alive
    else:
        future.set_result(stats)
    finally:
        _threads.pop(inbox, None)


@atexit.register
def _stop_all() -> None:
    """Stop what is still running when the interpreter ends, and wait for it."""
    left = list(_threads.items())
    for inbox, _ in left:
        inbox.stop()
    for _, thread in left:
        thread.join()
