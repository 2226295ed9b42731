"""The queue of tasks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..arrays.array import Array
from ..arrays.over_hosts import HostPlaces
from ..arrays.ownership import Ownership
from ..compile.task import Task
from ..core.devices import Device
from ..core.library import check, lib
from ..errors import InvalidArgumentError, UnsupportedTypeError
from ..support.host_memory import host_memory_for
from ..support.not_copied import NotCopied
from ..support.validation import as_dtype, check_bool, check_int
from . import checkpoint
from .buckets import as_priorities, check_buckets, check_take
from .checkpoint import QueueOptions, QueueSnapshot
from .core_queue import CoreQueue
from .items import as_items, check_item_dtype, items_made_there
from .peer_queues import PeerQueues
from .queue_launches import QueueLaunches
from .shown_queue import ShownQueue
from .sites import OneDevice, site_of

__all__ = ["Queue"]


class Queue(ShownQueue, QueueLaunches, NotCopied):
    """A shared queue of tasks in the memory of one device: FIFO as far as concurrency allows.

    Parameters
    ----------
    capacity : int
        The items for which it has room at first.
    max_capacity : int, optional
        The most items for which it makes room by itself: before it is full it becomes twice as large, while the workers of a
        persistent launch go on. Until that launch ends, it keeps the smaller rings that it had, together as large as the last.
        By default what fits into half of the memory that the device has free when the queue is made, and at least `capacity`.
    dtype : dtype, optional
        Of the items: an integer of 32 or 64 bits, or a structured dtype of at most 32 bytes whose fields are numbers, or
        vectors as ``("at", np.float32, 3)``, which are tuples in tasks and in what is pushed.
        Every value of the type may be an item.
    device : Device or str, optional
        By default the best there is.
    buckets : int, optional
        Lets items have priorities, of which the lowest goes first: this many, each `delta` wide, are told apart at a time,
        and what lies beyond the last is kept until they are empty. A power of two from 2 to 1,024. Priorities are a hint:
        a task may run before one of a lower priority, so results must not depend on them.
    delta : float or "auto"
        Width of a bucket, in the unit of the priorities. Tasks of one bucket run in any order. With "auto", the default, it is
        1 at first, and changes while the workers run: it doubles while a bucket has too few items for all workers, and halves
        where a bucket has many more than they can take.
    take : {"oldest", "newest"}
        Which items workers take first. With "newest" each worker goes on with what its tasks have pushed last, so that a tree
        is worked off depth first, in little memory; idle workers get the oldest items of others. For persistent launches
        without barriers, on one device, and not with `buckets`. "oldest" is the default.
    devices : sequence of Device or str, optional
        In place of `device`: those of `owner`, which are the default if that is given.
    owner : Partition, optional
        What `Graph.partition` returns. Each device has a queue then, with this capacity, and runs the items that it owns: those
        that are a vertex of it, or records that begin with one. What cannot be done over several devices yet is refused. Over
        several hosts it is a queue on the device of this one, for the vertices of this one.

    Raises
    ------
    UnsupportedTypeError
        If `dtype` cannot be an item.
    InvalidArgumentError
        If `capacity` is not at least 1, or `max_capacity` is less.
    DeviceMemoryError
        If the device has too little free memory: an item takes its size, rounded up to 4, 8, 16 or 32 bytes, plus 4 bytes if
        that is 4, otherwise 8.

    Notes
    -----
    The protocol is that of Chen et al., "Atos: A Task-Parallel GPU Scheduler for Graph Analytics" (ICPP 2022), with an exact
    end in place of its tuned number of vain polls; docs/design.md argues why it is right.

    Examples
    --------
    >>> @atos.task
    ... def count_down(worker, v):
    ...     if v > 0:
    ...         worker.push(v - 1)
    >>> queue = atos.Queue(capacity=100)
    >>> queue.push([9, 19])
    >>> print(queue.launch_thread(count_down).tasks_run, len(queue))
    30 0
    """

    _core: CoreQueue | PeerQueues
    _site: OneDevice
    _not_copied = "a queue is neither copied nor pickled: save(path) writes what is in it, Queue.load reads it"

    @host_memory_for("a Queue")
    def __init__(
        self,
        capacity: int,
        *,
        max_capacity: int | None = None,
        dtype: DTypeLike = np.uint32,
        device: Device | str | None = None,
        buckets: int | None = None,
        delta: float | Literal["auto"] = "auto",
        take: Literal["oldest", "newest"] = "oldest",
        devices: Sequence[Device | str] | None = None,
        owner: Any = None,
    ) -> None:
        self._make(None, capacity, max_capacity, dtype, device, buckets, delta, take, devices, owner)

    @classmethod
    def _of_kinds(cls, tasks: Sequence[Task], capacity: int, **options: Any) -> Queue:
        """Return a queue that tells items of these tasks apart from the start; otherwise it is made anew when it has to."""
        queue = cls.__new__(cls)
        queue._make(tuple([task.name for task in tasks]), capacity, **options)
        return queue

    def _make(
        self,
        kinds: tuple[str, ...] | None,
        capacity: int,
        max_capacity: int | None = None,
        dtype: DTypeLike = np.uint32,
        device: Device | str | None = None,
        buckets: int | None = None,
        delta: float | Literal["auto"] = "auto",
        take: Literal["oldest", "newest"] = "oldest",
        devices: Sequence[Device | str] | None = None,
        owner: Any = None,
    ) -> None:
        self._dtype = check_item_dtype(as_dtype(dtype))
        self._site = site_of(owner, devices=devices, device=device, buckets=buckets)
        self._device = self._site.device
        first = check_int("capacity", capacity, 1, 1 << 62)
        most = 0 if max_capacity is None else check_int("max_capacity", max_capacity, first, 1 << 62)
        self._buckets, self._delta = check_buckets(buckets, delta)
        self._take = check_take(take, buckets, self._site.is_several)
        # By this launches find what was prepared for others.
        self._sort = self._device.kind, self._device.index, self._dtype, buckets is not None, take, *self._site.key
        self._core = self._site.make_core(first, most, self._dtype, kinds)
        if self._buckets is not None:
            self._core.set_buckets(self._buckets, 0.0 if self._delta == "auto" else self._delta)

    @property
    def ownership(self) -> Ownership | None:
        """Which device runs an item; None if there is one device."""
        return self._site.ownership

    @property
    def places(self) -> HostPlaces | None:
        """The hosts that own its items; None if there is one."""
        return self._site.places

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices that have it in their memory, and run its tasks."""
        return self._site.devices

    @property
    def buckets(self) -> int | None:
        """The buckets that it tells priorities apart by; None if it is a FIFO queue."""
        return self._buckets

    @property
    def delta(self) -> float | Literal["auto"] | None:
        """The width of a bucket, in the unit of the priorities; None without buckets."""
        return None if self._buckets is None else self._delta

    @property
    def take(self) -> Literal["oldest", "newest"]:
        """Which items workers take first: "oldest" or "newest"."""
        return self._take

    @property
    def capacity(self) -> int:
        """The items for which it has room now; it grows by itself up to `max_capacity`, and `resize` changes it."""
        return self._core.capacities()[0]

    @property
    def max_capacity(self) -> int:
        """The most items for which the queue makes room by itself; may be set, to `capacity` or more."""
        return self._core.capacities()[1]

    @max_capacity.setter
    def max_capacity(self, most: int) -> None:
        check(self._core.call(lib.atos_queue_limit, check_int("max_capacity", most, 1, 1 << 62)))

    @property
    def _handle(self) -> Any:
        return self._core.form.handle

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the items."""
        return self._dtype

    @property
    def device(self) -> Device:
        """The device that has the queue in its memory and runs its tasks; the first of several."""
        return self._device

    @property
    def tasks_run(self) -> int:
        """Tasks that all launches so far have run, those before a checkpoint included."""
        return self._core.state().tasks_run

    @property
    def tasks_pushed(self) -> int:
        """Items that those tasks pushed."""
        return self._core.state().tasks_pushed

    def __len__(self) -> int:
        """Return how many items are waiting."""
        return self._core.pending()

    @host_memory_for("Queue.push")
    def push(self, items: ArrayLike | Array, priority: ArrayLike | None = None, *, task: Task | None = None) -> None:
        """Append items.

        Parameters
        ----------
        items : array_like
            One-dimensional, or a single item; cast to the queue's dtype if every value fits. An array on the queue's GPU that
            has the queue's dtype is copied there, and a GPU makes the items of a `range` itself; anything else passes through
            the host.
        priority : array_like, optional
            In a queue with buckets: one number for all, or one for each item; the lowest goes first. By default 0. Such items
            pass through the host.
        task : Task, optional
            Which of the tasks of the launch to come runs them; by default the first.

        Raises
        ------
        QueueFullError
            If there is no room for all of them, and cannot be made up to `max_capacity`; none is pushed then.
        InvalidArgumentError
            If a value does not fit the dtype, or items for too many tasks would wait.
        UnsupportedTypeError
            If items of the queue have no room for their kind.

        Examples
        --------
        >>> queue = atos.Queue(capacity=10)
        >>> queue.push([3, 1, 2])
        >>> queue.push(7)
        >>> len(queue)
        4
        >>> ordered = atos.Queue(capacity=10, buckets=4, delta=1)
        >>> ordered.push([3, 1, 2], priority=[30, 10, 20])
        >>> ordered.peek()
        array([1, 2, 3], dtype=uint32)
        """
        if task is not None and not isinstance(task, Task):
            raise UnsupportedTypeError(f"task must be a task made with @atos.task (got {task!r:.80})")
        given: Any = None
        if type(items) is not np.ndarray and not self._buckets:
            given = items_made_there(items, self._dtype, self._device)
        if given is None:
            given = as_items(items, self._dtype)
        priorities = None if priority is None else as_priorities(priority, len(given), self._buckets)
        self._core.push(given, task.name if task else None, priorities)

    @overload
    def peek(self) -> NDArray[Any]: ...
    @overload
    def peek(self, *, kinds: Literal[True]) -> tuple[NDArray[Any], NDArray[Any]]: ...
    @host_memory_for("the items of a Queue")
    def peek(self, *, kinds: bool = False) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]:
        """Return a copy of the waiting items, the oldest first, or by priority; a launch in another thread is waited for.

        Parameters
        ----------
        kinds : bool
            Whether to return the names of their tasks too, as a second array; None is the first task of the launch to come.

        Examples
        --------
        >>> queue = atos.Queue(capacity=10)
        >>> queue.push([3, 1, 2])
        >>> queue.peek()
        array([3, 1, 2], dtype=uint32)
        >>> @atos.task
        ... def settle(worker, v):
        ...     pass
        >>> queue.push(4, task=settle)
        >>> queue.peek(kinds=True)[1]
        array([None, None, None, 'settle'], dtype=object)
        """
        form, stored, _ = self._core.read()
        items, numbers = form.decode(stored)
        items = self._site.to_ids(items)
        return (items, form.names(numbers)) if check_bool("kinds", kinds) else items

    def clear(self) -> None:
        """Drop every waiting item.

        Examples
        --------
        >>> queue = atos.Queue(capacity=10)
        >>> queue.push([3, 1, 2])
        >>> queue.clear()
        >>> len(queue)
        0
        """
        check(self._core.call(lib.atos_queue_clear))

    def resize(self, capacity: int) -> None:
        """Change the capacity; what is waiting stays, in order.

        A `max_capacity` that is less is raised to it; a queue whose `max_capacity` is its capacity keeps it so.

        Raises
        ------
        InvalidArgumentError
            If more items are waiting than the new capacity holds.

        Examples
        --------
        >>> queue = atos.Queue(capacity=10)
        >>> queue.resize(1000)
        >>> queue.capacity
        1000
        """
        check(self._core.call(lib.atos_queue_resize, check_int("capacity", capacity, 1, 1 << 62)))

    @host_memory_for("Queue.save")
    def save(self, path: str | os.PathLike[str], /, **arrays: Any) -> None:
        """Write the waiting items and the counters to a file, together with the arrays that the tasks work on.

        Parameters
        ----------
        path : path-like
            The file. It is replaced once the new one is whole and on disk, so that a process killed meanwhile leaves the old
            one.
        **arrays
            Whatever tasks write: arrays on any device, and `Joins`, each under a name of your choice. They and the items have
            to be of one moment, so no other queue's launch may be writing to them; a launch on this queue is waited for.

        Raises
        ------
        FileWriteError
            If the file cannot be written.
        DistributedError
            If that has failed in another process.

        See Also
        --------
        load

        Notes
        -----
        `atos_py.runtime.checkpoint` describes the format. A launch saves nothing by itself: stop it part-way, save, and launch
        again. With several processes all of them call this, and go on when process 0 has written the items of all. Of an array
        that each process has for itself, it writes its own.

        Examples
        --------
        >>> queue, done = atos.Queue(capacity=10), atos.zeros(4)
        >>> queue.push([2, 3])
        >>> queue.save("run.atos", done=done)
        >>> len(atos.Queue.load("run.atos", done=done))
        2
        """
        checkpoint.save(self._take_snapshot, self._core.state, path, arrays, self._site.group)

    @classmethod
    @host_memory_for("Queue.load")
    def load(
        cls, path: str | os.PathLike[str], /, *, device: Device | str | None = None, owner: Any = None, **arrays: Any
    ) -> Queue:
        """Return the queue that `save` wrote to a file, and fill arrays with what they held at that moment.

        It has the capacity that it had, and may grow to what this device can spare: set `max_capacity` if that is too much.

        Parameters
        ----------
        path : path-like
            The file.
        device : Device or str, optional
            Where the queue shall be, which need not be where it was; by default the best there is.
        owner : Partition, optional
            In place of `device`, the parts of a graph, as for `Queue`: these may be over other devices than those of the queue
            that was saved, of which there may have been one. Workers take the oldest items first then, whatever `take` was.
        **arrays
            A writable array to be filled for each one that was saved, under the same name, of the same shape and dtype, on any
            device; for joins, others of the same dtype and `combine`. Nothing is written before the whole file is checked. With
            several processes all of them call this, each
            reads the file, and they go on when all arrays are filled.

        Raises
        ------
        CheckpointError
            If the file is not a checkpoint, or is truncated or altered.
        MissingFileError
            If there is no such file.
        InvalidArgumentError
            If the arrays are not those that were saved.
        DistributedError
            If that has failed in another process, or the file is not the same in all.

        Examples
        --------
        >>> queue, done = atos.Queue(capacity=10), atos.full(2, 5)
        >>> queue.save("run.atos", done=done)
        >>> done[...] = 0
        >>> print(atos.Queue.load("run.atos", done=done).capacity, done[:])
        10 [5 5]
        """
        if owner is not None and device is not None:
            raise InvalidArgumentError(f"a queue has a device or an owner, and not both (got device={device!r:.80})")
        site = site_of(owner, device=device)
        return checkpoint.load(
            lambda options: cls(**site.suit(options)._asdict(), device=device, owner=owner),
            lambda queue, saved: queue._core.restore(saved),
            path,
            arrays,
            site.group,
        )

    def _take_snapshot(self) -> QueueSnapshot:
        return self._core.snapshot(QueueOptions(self.capacity, self._dtype, self._buckets, self._delta, self._take))
