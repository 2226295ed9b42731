"""The ways to launch workers on a queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..compile.short_traceback import as_launch
from ..compile.task import Task
from .launch import PreparedLaunch, launch_once
from .launch_options import LaunchOptions, Unpack
from .run import start
from .stats import LaunchStats

__all__ = ["QueueLaunches"]


class QueueLaunches:
    """The launches of a queue, as its methods."""

    @as_launch
    def prepare(
        self: Any,
        task: Task | Sequence[Task],
        *args: Any,
        worker: str = "cta",
        **options: Unpack[LaunchOptions],
    ) -> PreparedLaunch:
        """Check and compile a launch, and return it, to be made again and again for a fraction of the time.

        Parameters
        ----------
        task, *args, **options
            As for `launch_cta`.
        worker : {"cta", "warp", "thread"}
            What one worker is.

        Returns
        -------
        PreparedLaunch
            Calling it runs what is in the queue then; its method `rebind` returns one with other arguments.

        Raises
        ------
        AtosError
            What `launch_cta` raises before it runs anything.

        Examples
        --------
        >>> @atos.task
        ... def mark(worker, v, seen):
        ...     seen[v] = 1
        >>> seen, queue = atos.zeros(4, dtype=np.int32), atos.Queue(capacity=10)
        >>> launch = queue.prepare(mark, seen)
        >>> for v in (0, 2):
        ...     queue.push(v)
        ...     print(launch().tasks_run, seen[:])
        1 [1 0 0 0]
        1 [1 0 1 0]
        """
        return PreparedLaunch(self, worker, task, args, options)

    @as_launch
    def launch(
        self: Any,
        task: Task | Sequence[Task],
        *args: Any,
        worker: str = "cta",
        **options: Unpack[LaunchOptions],
    ) -> LaunchStats:
        """Run the queue's tasks with workers of the kind that `worker` names; otherwise as `launch_cta`.

        Parameters
        ----------
        task, *args, **options
            As for `launch_cta`.
        worker : {"cta", "warp", "thread"}
            What one worker is: a block, a warp of 32 threads, or a thread. On the CPU each has one thread.

        Returns
        -------
        LaunchStats

        Raises
        ------
        InvalidArgumentError
            If there are no such workers.
        AtosError
            What `launch_cta` raises.

        Examples
        --------
        >>> @atos.task
        ... def mark(worker, v, seen):
        ...     seen[v] = 1
        >>> seen, queue = atos.zeros(4, dtype=np.int32), atos.Queue(capacity=10)
        >>> queue.push([0, 2])
        >>> print(queue.launch(mark, seen, worker="thread").worker, seen[:])
        thread [1 0 1 0]
        """
        return launch_once(self, worker, task, args, options)

    @as_launch
    def launch_thread(self: Any, task: Task | Sequence[Task], *args: Any, **options: Unpack[LaunchOptions]) -> LaunchStats:
        """Run the queue's tasks with workers of one thread; otherwise as `launch_cta`.

        Examples
        --------
        >>> @atos.task
        ... def mark(worker, v, seen):
        ...     seen[v] = 1
        >>> seen, queue = atos.zeros(4, dtype=np.int32), atos.Queue(capacity=10)
        >>> queue.push([0, 2])
        >>> print(queue.launch_thread(mark, seen).worker, seen[:])
        thread [1 0 1 0]
        """
        return launch_once(self, "thread", task, args, options)

    @as_launch
    def launch_warp(self: Any, task: Task | Sequence[Task], *args: Any, **options: Unpack[LaunchOptions]) -> LaunchStats:
        """Run the queue's tasks with workers of one warp, 32 threads; otherwise as `launch_cta`.

        Examples
        --------
        >>> @atos.task
        ... def mark(worker, v, seen):
        ...     seen[v] = 1
        >>> seen, queue = atos.zeros(4, dtype=np.int32), atos.Queue(capacity=10)
        >>> queue.push([0, 2])
        >>> print(queue.launch_warp(mark, seen).worker, seen[:])
        warp [1 0 1 0]
        """
        return launch_once(self, "warp", task, args, options)

    @as_launch
    def launch_cta(self: Any, task: Task | Sequence[Task], *args: Any, **options: Unpack[LaunchOptions]) -> LaunchStats:
        """Run the queue's tasks, and what they push, with workers of one block (CTA), until all is done.

        Parameters
        ----------
        task : Task, or a sequence of Task
            What to run on each item; several kinds of tasks, nested and flat, each of which takes all of `args`.
        *args
            Handed to the task: arrays on the queue's device, numbers, None, and named tuples of those, such as a `Graph`. They
            take 256 words at most: an array one and one for each dimension, a number one.
        **options : LaunchOptions
            The schedule: `persistent`, `barrier`; the workers: `fetch_size`, `num_blocks`, `num_threads`, `shared_memory`; what
            else there is: `idle`, `each_round`, `streams`, `stream`, `device`, `timeout`, `trace`, `progress`, `debug`, `tier`,
            `experiment`. `atos_py.LaunchOptions` describes each.

        Returns
        -------
        LaunchStats

        Raises
        ------
        QueueFullError
            If tasks pushed more than the queue can hold. What is pending is still in it: raise `max_capacity` and launch again.
        LaunchTimeoutError
            If the launch took longer than `timeout`. What is pending is still in the queue: launch again to go on.
        KeyboardInterrupt
            If Ctrl-C was pressed, or whatever else the handler of a signal raised. The launch is stopped as by `timeout`.
        DeviceStuckError
            If a task of an earlier launch, which was stopped, still runs and holds the queue or the device.
        LaunchConfigError
            If a persistent launch asks for more blocks than can be resident, or a block for more than a multiprocessor has; or
            if the task takes scratch, and `shared_memory` is not given or is less than one element.
        TaskCompileError
            If the task does not compile for these arguments.
        TaskError
            If a check failed, with `debug`. The launch has ended in order, and what is pending is still in the queue, without
            the item of the task that failed.

        See Also
        --------
        LaunchOptions : describes the options.
        launch : has the kind of the workers as an option.
        launch_thread, launch_warp

        Notes
        -----
        Chen et al. 2022, Listing 3. A larger fetch size gives a worker more to balance over its threads, and the others less.

        Examples
        --------
        >>> @atos.task
        ... def mark(worker, v, seen):
        ...     seen[v] = 1
        >>> seen, queue = atos.zeros(4, dtype=np.int32), atos.Queue(capacity=10)
        >>> queue.push([0, 2])
        >>> print(queue.launch_cta(mark, seen, fetch_size=32, persistent=False).schedule, seen[:])
        discrete, relaxed [1 0 1 0]
        """
        return launch_once(self, "cta", task, args, options)

    def _prepare_kinds(self: Any, tasks: Sequence[Task]) -> None:
        """Tell items of these tasks apart, as a launch of them does. It would have to read back those that wait."""
        self._core.for_launch(tuple(task.name for task in tasks))

    start = start
