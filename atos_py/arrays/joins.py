"""Joins: records on a device that count what a task waits for, and combine the values that arrive."""

from __future__ import annotations

from threading import Lock
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..core.devices import Device
from ..core.devices import device as device_of
from ..errors import InvalidArgumentError, JoinsFullError, LaunchConfigError, TaskError, UnsupportedTypeError
from ..support.host_memory import host_memory_for
from ..support.validation import as_dtype, check_int
from .array import Array, zeros
from .join_kinds import JoinKinds
from .join_layout import (
    BLOCK,
    CLASSES,
    CODES,
    FIRST_GENERATION,
    GENERATIONS,
    GENERATIONS_OF_RESET,
    HANDLE_GENERATION,
    INDEX,
    INFO,
    INFO_CODE,
    INFO_GENERATION,
    IS_OPEN,
    LINK,
    LISTS,
    MISSING,
    MOST_MISSING,
    PUSHES,
    UNDECLARED,
    handles_of,
    identity,
    is_in_word,
    list_free,
    missing_of,
    value_in_word,
    words_with,
)
from .pool import Pool
from .shown import ShownJoins

__all__ = ["ArrayForm", "Joins", "WaitingJoins"]

_DTYPES = (np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.float32), np.dtype(np.float64))
_ITEM_WORDS = 4
_THREADS_OF_SM = 2048
_CPU_WORKERS = 4096
_MOST = 2**32 - 2
_NONE_FAILED = 2**63 - 1  # as in Pool


class ArrayForm(NamedTuple):
    """The type, the shape and the access of an array in a checkpoint."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    readonly: bool = False


class WaitingJoins(NamedTuple):
    """Joins that wait, an element of each array for a join.

    Attributes
    ----------
    handle : numpy.ndarray
        Their handles, int64.
    missing : numpy.ndarray
        How many arrivals they lack, int64.
    parent : numpy.ndarray
        The handles at which they will arrive, int64; 0 is the root.

    Examples
    --------
    >>> joins = atos.Joins(10)
    >>> handles = joins.open(3, n=2)
    >>> bool((joins.waiting().handle == handles).all())
    True
    """

    handle: NDArray[np.int64]
    missing: NDArray[np.int64]
    parent: NDArray[np.int64]


class _Records(Pool):
    """The records of joins, of which a launch that has too few says so."""

    __slots__ = ("free",)

    free: Array

    def _check_full(self, what: str) -> None:
        counter, refused = self._parts.counters[:].tolist()
        if refused == _NONE_FAILED:
            return
        self._set_used(min(counter, refused))
        undeclared = int(self.free[UNDECLARED])
        self.free[UNDECLARED] = 0
        lost = f"; {undeclared:,} found none within a task, which opens more than its opens= says: their arrivals are lost"
        raise JoinsFullError(
            f"{what.replace('the pool', 'the joins', 1)} were full: there are records for {self.max_capacity:,}, with"
            f" up to {2 * BLOCK} that each thread keeps{lost if undeclared else ''}; make joins with a larger max_capacity=",
            capacity=self.max_capacity,
            needed=counter,
        )


class Joins(ShownJoins):
    """Records that tasks open to wait for other tasks, whose values they combine: fork and join.

    ``j = worker.open(joins, 2, parent=up)``, in a task, opens a join of two arrivals; tasks that are given its handle, in
    items that are pushed, arrive by ``worker.arrive_at(joins, j, value)``. The last one to arrive closes the join and arrives
    at its parent with the combined value, and so on up to the root, whose handle is 0 and whose value is `result`.

    Parameters
    ----------
    capacity : int
        Joins for which there is memory from the beginning.
    dtype : {int64, int32, float32, float64}
        Of the values. Joins with values of 32 bits are faster, and wait for at most 2**31 - 1 arrivals.
    combine : {'sum', 'min', 'max', None}
        How values that arrive are combined, unless `Worker.open` says otherwise; with None there are no values.
    max_capacity : int, optional
        Joins that can be open at once: as many as half of the free memory has space for unless given. Memory comes as they
        are opened.
    device : Device or str, optional
        Where they are; the best device there is unless given.

    Attributes
    ----------
    dtype : numpy.dtype
    combine : str or None
    device : Device

    Raises
    ------
    InvalidArgumentError
        If `capacity` is not at least 1, `max_capacity` is less, or `combine` is something else.
    UnsupportedTypeError
        If values cannot be of `dtype`.

    Notes
    -----
    A launch ends when nothing is left to run, whether or not joins are open. A thread keeps the free records of up to 32 joins
    for itself, for which there is room beside `max_capacity`; more if a task opens more. Joins belong to one launch at a time.

    A queue runs a tree breadth first, so that most of the tree's joins are open at once, unless it is made with
    ``take="newest"``: the 25th number of Fibonacci takes about 100 records on two CPU threads then, and 70,000 without.

    Examples
    --------
    >>> fib = np.dtype([("n", np.int64), ("up", np.int64)])
    >>> @atos.task
    ... def fibonacci(worker, item, joins):
    ...     if item.n < 2:
    ...         worker.arrive_at(joins, item.up, item.n)
    ...     else:
    ...         j = worker.open(joins, 2, parent=item.up)
    ...         worker.push((item.n - 1, j))
    ...         worker.push((item.n - 2, j))
    >>> joins, queue = atos.Joins(1000), atos.Queue(1000, dtype=fib)
    >>> queue.push([(20, 0)])
    >>> print(queue.launch_thread(fibonacci, joins).tasks_run, joins.result)
    21891 6765
    """

    __slots__ = ("__weakref__", "_kinds", "_lock", "_parts", "_records", "combine", "device", "dtype")

    @host_memory_for("atos.Joins")
    def __init__(
        self,
        capacity: int,
        dtype: DTypeLike = np.int64,
        *,
        combine: str | None = "sum",
        max_capacity: int | None = None,
        device: Device | str | None = None,
    ) -> None:
        self.dtype = as_dtype(dtype)
        if self.dtype not in _DTYPES:
            raise UnsupportedTypeError(f"values of joins are of {', '.join(map(str, _DTYPES))} (got {self.dtype})")
        if not (combine is None or isinstance(combine, str)) or combine not in CODES:
            raise InvalidArgumentError(f"combine must be 'sum', 'min', 'max' or None (got {combine!r})")
        least = check_int("capacity", capacity, 1, _MOST)
        most = None if max_capacity is None else check_int("max_capacity", max_capacity, least, _MOST)
        self.combine, self.device = combine, device_of(device)
        threads = self.device.processors * _THREADS_OF_SM if self.device.kind == "cuda" else _CPU_WORKERS
        spare = 2 * BLOCK * threads
        values = [] if is_in_word(self.dtype) else [("value", self.dtype)]
        words = [("words", np.int64, 4), *values, ("item", np.int64, _ITEM_WORDS)]
        most = None if most is None else min(most + spare, _MOST)
        self._records = _Records(words, least, max_capacity=most, device=self.device)
        if self._records.max_capacity < least + spare:  # a device without memory on demand
            self._records = _Records(words, least + spare, max_capacity=least + spare, device=self.device)
        own = zeros((3, threads), dtype=np.int64, device=self.device)
        free = self._records.free = zeros(LISTS + 2, dtype=np.int64, device=self.device)
        root = zeros(1, dtype=self.dtype, device=self.device)
        self._lock, self._kinds = Lock(), JoinKinds()  # held by a launch that runs
        self._parts = CLASSES[combine](self._records, own, free, root)
        self._set_root()

    def _set_root(self) -> None:
        self._parts.root[0] = identity(self.dtype, self.combine)

    @property
    def result(self) -> Any:
        """The combined value of all arrivals at the root, in all launches since the joins were made or reset.

        Raises
        ------
        InvalidArgumentError
            If the joins have no values, since they were made with ``combine=None``.
        """
        if self.combine is None:
            raise InvalidArgumentError("the joins have no values: they were made with combine=None")
        return self._parts.root[0]

    @property
    def pending(self) -> int:
        """The number of joins that are open."""
        return int(np.count_nonzero(self._words()[:, INFO] & IS_OPEN))

    def _words(self) -> NDArray[np.int64]:
        """Return the words of all records that were ever used."""
        found: NDArray[np.int64] = self._records.words.to_numpy()
        return found

    @host_memory_for("Joins.waiting")
    def waiting(self) -> WaitingJoins:
        """Return the joins that are open, which after a launch wait for arrivals that did not come.

        Examples
        --------
        >>> joins = atos.Joins(10)
        >>> j = joins.open(2)
        >>> print(joins.pending, joins.waiting().missing)
        1 [2]
        """
        words = self._words()
        found = np.flatnonzero(words[:, INFO] & IS_OPEN)
        rows = words[found]
        pushes = rows[:, INFO] & PUSHES != 0
        missing = missing_of(rows[:, MISSING], self.dtype)
        return WaitingJoins(handles_of(found, rows[:, INFO]), missing, np.where(pushes, 0, rows[:, LINK]))

    @host_memory_for("Joins.open")
    def open(self, count: int, *, n: int | None = None) -> Any:
        """Open joins from the host, between launches, that arrive at the root.

        Parameters
        ----------
        count : int
            Arrivals for which each of them waits, at least 1.
        n : int, optional
            How many joins; one unless given.

        Returns
        -------
        int or numpy.ndarray
            The handle, or `n` of them, int64.

        Raises
        ------
        JoinsFullError
            If there is no room for them.

        Examples
        --------
        >>> @atos.task
        ... def arrive(worker, v, joins, handles):
        ...     worker.arrive_at(joins, handles[v % 2], v)
        >>> joins, queue = atos.Joins(10, combine="max"), atos.Queue(10)
        >>> handles = atos.asarray(joins.open(2, n=2))
        >>> queue.push([1, 2, 3, 4])
        >>> print(queue.launch_thread(arrive, joins, handles).tasks_run, joins.result, joins.pending)
        4 4 0
        """
        missing, in_word = check_int("count", count, 1, MOST_MISSING[is_in_word(self.dtype)]), is_in_word(self.dtype)
        number = 1 if n is None else check_int("n", n, 0, _MOST)
        first, generation = self._take(number), int(self._parts.free[FIRST_GENERATION]) + 1 & GENERATIONS
        infos = np.full(number, generation << INFO_GENERATION | CODES[self.combine] << INFO_CODE | IS_OPEN, np.int64)
        words = np.zeros((number, 4), np.int64)
        value = identity(self.dtype, self.combine)
        words[:, MISSING], words[:, INFO] = words_with(missing, value) if in_word else missing, infos
        if number:
            arrays = self._records._parts.arrays
            arrays["words"][first : first + number] = words
            if not in_word:
                arrays["value"][first : first + number] = value
        handles = handles_of(np.arange(first, first + number), infos)
        return int(handles[0]) if n is None else handles

    def _place(self, j: int) -> int:
        """Return the index of the record of a handle."""
        index = (check_int("j", j, 0, 2**63 - 1) & INDEX) - 1
        info = int(self._records.words[index, INFO]) if 0 <= index < len(self._records) else 0
        if not info & IS_OPEN or info >> INFO_GENERATION != j >> HANDLE_GENERATION:
            raise InvalidArgumentError(f"{j} is the handle of no open join")
        return index

    @host_memory_for("Joins.peek")
    def peek(self, j: int, /) -> Any:
        """Return the combined value of the arrivals at a join so far; in tasks, and on the host between launches.

        Before a value has arrived it is 0, or of a minimum the largest number of the type and of a maximum the least, to which
        a task should add nothing. Tasks that search may compare it with what they can reach, and arrive without a value.

        Parameters
        ----------
        j : int
            The handle; in tasks also 0, the root.

        Raises
        ------
        InvalidArgumentError
            On the host, if no such join is open.

        Examples
        --------
        >>> joins = atos.Joins(10, combine="max")
        >>> print(joins.peek(joins.open(2)) == np.iinfo(np.int64).min)
        True
        """
        i = self._place(j)
        if is_in_word(self.dtype):
            return value_in_word(int(self._records.words[i, MISSING]), self.dtype)
        return self._records.value[i]

    @host_memory_for("Joins.expect")
    def expect(self, j: int, n: int, /) -> None:
        """Let a join wait for `n` more arrivals; in tasks, and on the host between launches.

        A task may call it while an arrival is missing that the task itself owes.

        Parameters
        ----------
        j : int
            The handle.
        n : int
            How many more.

        Raises
        ------
        InvalidArgumentError
            On the host, if no such join is open.

        Examples
        --------
        >>> joins = atos.Joins(10)
        >>> j = joins.open(2)
        >>> joins.expect(j, 3)
        >>> print(joins.waiting().missing)
        [5]
        """
        index, words, most = self._place(j), self._records.words, MOST_MISSING[is_in_word(self.dtype)]
        waits = int(missing_of(np.array([words[index, MISSING]]), self.dtype)[0])
        words[index, MISSING] = int(words[index, MISSING]) + check_int("n", n, 0, most - waits)

    def reset(self) -> None:
        """Forget all joins, and what has arrived at the root, between launches.

        Examples
        --------
        >>> joins = atos.Joins(10)
        >>> j = joins.open(2)
        >>> joins.reset()
        >>> print(joins.pending, joins.result)
        0 0
        """
        self._make_room("", 0)
        self._set_root()

    def _saved(self, name: str) -> dict[str, Array]:
        """Return the arrays that a checkpoint has of the joins, by their names in it."""
        fields = {field: getattr(self._records, field) for field in self._records._parts.arrays}
        return dict(zip(self._forms(name, len(self._records)), [*fields.values(), self._parts.root], strict=True))

    def _forms(self, name: str, used: int) -> dict[str, ArrayForm]:
        """Return the dtypes and shapes of these arrays where so many records are in use."""
        arrays = self._records._parts.arrays
        forms = {f"{name}.{field}": ArrayForm(each.dtype, (used, *each.shape[1:])) for field, each in arrays.items()}
        return {**forms, f"{name}.{self.combine or 'none'}": ArrayForm(self.dtype, (1,))}

    def _make_room(self, name: str, used: int) -> dict[str, Array]:
        """Return arrays to be filled with those of a checkpoint, in place of all that the joins have."""
        generation = (int(self._parts.free[FIRST_GENERATION]) + GENERATIONS_OF_RESET) & GENERATIONS
        self._parts.own[...] = 0
        self._parts.free[...] = 0
        self._parts.free[FIRST_GENERATION] = generation
        self._records.clear()
        self._take(used)
        return self._saved(name)

    def _find_free(self, kinds: JoinKinds) -> None:
        """Put the records that are not open on the lists of free blocks, after the records have been filled."""
        words, heads, own = self._words(), self._parts.free.to_numpy(), self._parts.own.to_numpy()
        list_free(words, heads, own)
        if len(words):
            self._records._parts.arrays["words"][: len(words)] = words
        self._parts.free[...], self._parts.own[...], self._kinds = heads, own, kinds

    def _take(self, number: int) -> int:
        """Return the first of so many records, of which none was used before."""
        used, most = len(self._records), self._records.max_capacity
        if used + number > most:
            raise JoinsFullError(
                f"there are records for {most:,} joins, {used:,} of them in use; {number:,} more do not fit: make joins with a"
                " larger max_capacity=",
                capacity=most,
                needed=used + number,
            )
        return self._records.take(number)

    def _check_threads(self, number: int) -> None:
        """Raise an error if a launch may have more threads than have records of their own."""
        rows = self._parts.own.shape[1]
        if number > rows:
            raise LaunchConfigError(f"a launch with joins has at most {rows:,} threads on {self.device} (got {number:,})")

    def _check_closed(self, task: Any, position: int) -> None:
        """Raise an error if joins are open after a launch that has ended by itself."""
        found = self.waiting()
        if len(found.handle):
            shown = ", ".join(
                f"{handle} lacks {lack:,}" for handle, lack in zip(found.handle[:5], found.missing[:5], strict=True)
            )
            code = task.body.__code__
            raise TaskError(
                f"{len(found.handle):,} of the joins in argument {position} of {task.name} are open after the launch:"
                f" {shown}{', ...' if len(found.handle) > 5 else ''}; joins.waiting() has them all",
                task=task.name,
                kind="join",
                function=code.co_name,
                filename=code.co_filename,
                line=code.co_firstlineno,
                item=None,
                index=None,
                bound=None,
                lost=0,
            )

    def __reduce__(self) -> NoReturn:
        raise UnsupportedTypeError("joins are neither copied nor pickled: tasks hold handles of their records; make others")
