"""The core's queue behind a `Queue`, which stores items in one of two forms: alone, or each with its kind.

The kind is the number of the task that runs the item. A queue begins without kinds, and gets them when a push names a task or a
launch has several. The core then makes a queue with items one byte longer, which takes the place of the one before; so it does
where the numbers change. A call that another thread made meanwhile on the queue before is told `ATOS_REPLACED` and made again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays.array import Array
from ..compile.codegen import ITEM_BYTES, stored_bytes
from ..core.library import check, ffi, in_turn, lib, message
from ..errors import InvalidArgumentError, QueueFullError, UnsupportedTypeError
from ..support.host_memory import host_memory_for
from ..support.uninterrupted import uninterrupted
from .checkpoint import QueueOptions, QueueSnapshot, QueueState
from .stats import DeviceStats

__all__ = ["CoreQueue", "Form", "is_replaced", "lacks_tasks"]

_WORD = 8  # bytes of the largest items that the core can make by itself
_KINDS = 256  # numbers that fit the byte
_STATS, _COUNT, _PAIR = map(ffi.typeof, ("atos_stats *", "uint64_t *", "uint64_t[2]"))  # parsed once


def is_replaced(status: int) -> bool:
    """Whether another form has taken the place of the one that a call was made on, so that it did nothing."""
    return status == int(lib.ATOS_REPLACED)


def lacks_tasks(tasks: tuple[str, ...], missing: Iterable[str]) -> InvalidArgumentError:
    """Return the error of a launch of tasks, since items wait for others."""
    return InvalidArgumentError(
        f"items are waiting for tasks that the launch of {', '.join(tasks)} lacks (of {', '.join(map(repr, missing))}); launch"
        " these too, or clear() the queue"
    )


class Form(NamedTuple):
    """Storage format of a queue: the size of its stored items, and their kinds.

    Attributes
    ----------
    handle : cdata
        The core's queue.
    dtype : numpy.dtype
        Of the items.
    kinds : tuple or None
        The name of the task of each kind, by number; None stands for the first task of the launch to come. None instead of a
        tuple if items have no kind.
    """

    handle: Any
    dtype: np.dtype[Any]
    kinds: tuple[str | None, ...] | None = None

    @property
    def stride(self) -> int:
        """Bytes of a stored item."""
        return stored_bytes(self.dtype.itemsize, self.kinds is not None)

    def encode(self, items: NDArray[Any], numbers: NDArray[np.uint8] | int = 0) -> NDArray[np.uint8]:
        """Return items as the core takes them, with the numbers of their kinds."""
        given = self.dtype.itemsize
        if given == self.stride:
            return items.view(np.uint8).reshape(len(items), given)
        stored = np.zeros((len(items), self.stride), np.uint8)
        # By elements, since by bytes it takes many times as long.
        np.ndarray(len(items), items.dtype, stored, strides=(self.stride,))[:] = items  # type: ignore[call-overload]
        if self.kinds is not None and (isinstance(numbers, np.ndarray) or numbers):
            stored[:, -1] = numbers
        return stored

    def word_of(self, item: int, number: int) -> int:
        """Return an item that is a number, and the number of its kind, as a word of at most 8 bytes."""
        return item if self.kinds is None else item | number << 8 * (self.stride - 1)

    def decode(self, stored: NDArray[np.uint8]) -> tuple[NDArray[Any], NDArray[np.uint8]]:
        """Return the items that the core stores, and the numbers of their kinds."""
        items = np.ascontiguousarray(stored[:, : self.dtype.itemsize]).view(self.dtype).reshape(-1)
        return items, stored[:, -1].copy() if self.kinds is not None else np.zeros(len(stored), np.uint8)

    def launch(self, programs: list[Any], launch: Any) -> tuple[int, Any, tuple[DeviceStats, ...]]:
        """Run a program over the items, as an `atos_launch` says; return the status, the statistics, and those of devices."""
        stats = ffi.new(_STATS)
        return lib.atos_queue_launch(self.handle, programs[0], launch, stats), stats, ()

    def names(self, numbers: NDArray[np.uint8]) -> NDArray[Any]:
        """Return the name of the task of each of these kinds."""
        return np.array(self.kinds or (None,), object)[numbers]


class CoreQueue:
    """The core's queue and its form, which may change while other threads use it."""

    is_of_many = False  # queues, which have to agree on their form before each launch

    def __init__(self, handle: Any, dtype: np.dtype[Any], kinds: tuple[str | None, ...] | None = None) -> None:
        self.form = Form(handle, dtype, kinds)

    def call(self, function: Any, *args: Any) -> int:
        """Return the status of a function of the core, called with the queue."""
        while is_replaced(status := in_turn(function, self.form.handle, *args)):
            pass
        return status

    def set_buckets(self, number: int, width: float) -> None:
        """Give an empty queue buckets of a width; 0: one that adapts."""
        check(self.call(lib.atos_queue_set_buckets, number, width))

    def priorities(self, count: int) -> NDArray[np.float64]:
        """Return the priorities of the first items that `read` returns, of a queue with buckets."""
        priorities = np.empty(count)
        check(self.call(lib.atos_queue_read_priorities, _pointer(priorities), count))
        return priorities

    def pending(self) -> int:
        """Return how many items are waiting."""
        count = ffi.new(_COUNT)
        check(self.call(lib.atos_queue_pending, count))
        return int(count[0])

    def pending_now(self) -> int | None:
        """Return how many items are waiting; None while another thread launches, or where a queue cannot be asked."""
        count = ffi.new(_COUNT)
        return None if lib.atos_queue_pending(self.form.handle, count) else int(count[0])

    def capacities(self) -> tuple[int, int]:
        """Return the items for which there is room now, and how many there may be."""
        pair = ffi.new(_PAIR)
        lib.atos_queue_capacity(self.form.handle, pair, pair + 1)
        return pair[0], pair[1]

    def push(
        self, items: NDArray[Any] | Array | range, task: str | None, priorities: NDArray[np.float64] | None = None
    ) -> None:
        """Push items for a task, from the host or from the queue's GPU, or whole numbers that follow each other."""
        count = len(items) if isinstance(items, range) else items.size
        while True:
            form, number = self.form, 0
            if task is not None or form.kinds is not None:
                form, number = self._number_of(task)
            more: tuple[Any, ...] = ()
            if isinstance(items, range) and form.stride <= _WORD:
                push, given = lib.atos_queue_push_range, form.word_of(items.start, number)
            elif isinstance(items, Array) and form.kinds is None:
                push, given = lib.atos_queue_push_device, ffi.cast("void *", items.pointer)
            else:
                if isinstance(items, range):
                    items = np.arange(items.start, items.stop, dtype=form.dtype)
                items = np.ascontiguousarray(items)
                is_stored = form.kinds is None and form.dtype.names is None  # as it is, 4 or 8 bytes
                push, given = lib.atos_queue_push, ffi.from_buffer(items if is_stored else form.encode(items, number))
            if priorities is not None:
                push, more = lib.atos_queue_push_prioritized, (_pointer(priorities),)
            status = push(form.handle, given, *more, count)
            if status == lib.ATOS_HELD:
                status = in_turn(push, form.handle, given, *more, count)
            if status != lib.ATOS_REPLACED:
                break
        if status == lib.ATOS_QUEUE_FULL:
            text, waiting = message(), self.pending()
            raise QueueFullError(
                f"{text}; set queue.max_capacity = {waiting + count} or more",
                capacity=self.capacities()[0],
                pending=waiting,
                lost=0,
            )
        if status:
            check(status)

    def set_kinds(self, kinds: tuple[str | None, ...]) -> None:
        """Give an empty queue that nobody else uses kinds of items."""
        self._change(self.form, kinds, [lib.ATOS_NO_KIND])

    def know(self, task: str) -> None:
        """Tell items of a task apart from now on."""
        self._number_of(task)

    @host_memory_for("the items of a Queue")
    def read(self, room: int | None = None) -> tuple[Form, NDArray[np.uint8], QueueState]:
        """Return the oldest items, all or at most `room`, as they are stored in some form, and how the queue stood then."""
        state = ffi.new("atos_queue_state *")
        space = room or 0
        while True:
            form = self.form
            stored = np.zeros((space, form.stride), np.uint8)
            status = in_turn(lib.atos_queue_read, form.handle, ffi.cast("void *", stored.ctypes.data), space, state)
            if is_replaced(status):
                continue
            check(status)
            if room is not None or state.pending <= space:
                break
            space = state.pending  # at the first look, or if another thread pushed meanwhile
        return form, stored[: state.pending], QueueState(*(getattr(state, field) for field in QueueState._fields))

    def state(self) -> QueueState:
        """Return how the queue stands."""
        return self.read(0)[2]

    def snapshot(self, options: QueueOptions) -> QueueSnapshot:
        """Return what a checkpoint holds; of different moments, if another thread launches or pushes meanwhile."""
        form, stored, state = self.read()
        items, numbers = form.decode(stored)
        priorities = None if options.buckets is None else self.priorities(len(items))
        return QueueSnapshot(options, items, priorities, form.kinds, numbers, state)

    def restore(self, saved: QueueSnapshot) -> None:
        """Put an empty queue that nobody else uses in a state: with buckets the counters first, and then the items."""
        if saved.kinds is not None:
            self.set_kinds(saved.kinds)
        stored = self.form.encode(saved.items, saved.numbers)
        state = saved.state if saved.priorities is None else saved.state._replace(pending=0, level=0)
        raw = ffi.cast("void *", stored.ctypes.data)
        check(self.call(lib.atos_queue_restore, raw, ffi.new("atos_queue_state *", state._asdict())))
        if saved.priorities is not None:
            check(self.call(lib.atos_queue_push_prioritized, raw, _pointer(saved.priorities), len(stored)))

    def _number_of(self, task: str | None) -> tuple[Form, int]:
        """Return a form that has a task among its kinds, and the task's number; None is the first task of the next launch."""
        while True:
            form = self.form
            if form.kinds is None and task is None:
                return form, 0
            if form.kinds is not None and task in form.kinds:
                return form, form.kinds.index(task)
            before = form.kinds or (None,)
            if self._change(form, (task,), [lib.ATOS_NO_KIND] * len(before)):  # if nothing is waiting
                continue
            if len([name for name in (*before, task) if name is not None]) > lib.ATOS_MAX_KINDS:
                known = ", ".join(name for name in before if name)
                raise InvalidArgumentError(
                    f"items for {lib.ATOS_MAX_KINDS} tasks at most can wait in a queue: there are {known}; launch them first"
                )
            self._change(form, (*before, task), list(range(len(before))))

    def for_launch(self, tasks: tuple[str, ...], with_kinds: bool = False) -> Form:
        """Return a form whose kinds are the tasks of a launch, in their order; without kinds if one task needs none.

        Parameters
        ----------
        tasks : tuple of str
        with_kinds : bool
            Whether items shall have a kind also where there is one task.

        Raises
        ------
        InvalidArgumentError
            If items are waiting for a task that the launch lacks.
        """
        while True:
            form = self.form
            if form.kinds == tasks or (form.kinds is None and len(tasks) == 1 and not with_kinds):
                return form
            before = form.kinds or (None,)
            places: dict[str | None, int] = {None: 0, **{name: number for number, name in enumerate(tasks)}}
            numbers = [places.get(name, lib.ATOS_NO_KIND) for name in before]
            if not self._change(form, tasks, numbers) and self.form is form:
                raise lacks_tasks(tasks, [name for name in before if name is not None and name not in places])

    def _change(self, form: Form, kinds: tuple[str | None, ...], numbers: list[int]) -> bool:
        """Put a form with other kinds in the place of one; false if an item that is waiting would get no number.

        True also if another thread was first: look at the form anew.
        """
        if form.dtype.itemsize >= ITEM_BYTES[-1]:
            raise UnsupportedTypeError(
                f"items of {form.dtype.itemsize} bytes have no room for their kind, which takes one byte of {ITEM_BYTES[-1]} at"
                " most; use smaller items for several tasks"
            )
        after = form._replace(kinds=kinds)
        table = bytes([*numbers, *range(len(numbers), _KINDS)])
        while (status := self._replace(form, after, table)) == lib.ATOS_HELD:
            pass  # handlers of signals run
        if is_replaced(status):
            return True
        check(status)
        return self.form is not form

    # No handler of a signal may come between the core's change and the note of it.
    @uninterrupted
    def _replace(self, form: Form, after: Form, table: bytes) -> int:
        slot, end = ffi.new("atos_queue **"), self._end  # before the change, since it may fail for want of memory
        status = int(lib.atos_queue_convert(form.handle, after.stride, table, slot))
        if status == lib.ATOS_OK and slot[0]:
            self.form = after._replace(handle=ffi.gc(slot[0], end))
        return status

    @property
    def _end(self) -> Any:
        """What ends a queue of the core."""
        return lib.atos_queue_destroy


def _pointer(priorities: NDArray[np.float64]) -> Any:
    return ffi.cast("double *", priorities.ctypes.data)
