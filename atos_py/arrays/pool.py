"""Pools: append-only storage on a device, whose elements tasks allocate while they run."""

from __future__ import annotations

import keyword
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..core.devices import Device
from ..core.devices import device as device_of
from ..core.library import check, ffi, lib
from ..errors import InvalidArgumentError, PoolFullError, UnsupportedTypeError
from ..support.host_memory import host_memory_for
from ..support.validation import as_dtype, as_host_array, check_int
from .array import Array, zeros
from .casting import cast_values
from .import_external import kept_dtype
from .memory import clear_bytes
from .on_host import Elementwise
from .shown import ShownPool

__all__ = ["Pool", "PoolParts"]

_MOST = 1 << 48  # elements: more than there are addresses for
_PAGE = 4096  # bytes, of which ranges are made
_NONE_FAILED = 2**63 - 1  # where the first element is that was refused


class PoolParts(NamedTuple):
    """The memory of a pool, as tasks use it: two counters, and an array of `max_capacity` elements for each field.

    The first counter is how many elements were asked for so far. It never goes down during a launch, so that all that were
    refused lie behind all that were given out; the second is the first one that was refused.
    """

    counters: Array
    arrays: dict[str, Array]


class Pool(ShownPool):
    """Append-only storage on a device, whose elements tasks take while they run.

    ``first = pool.take(n)``, in a task, takes `n` elements beside each other by one atomic addition, and returns the number of
    the first. They are read and written through the fields, which are arrays: ``pool.x[first] = 1``.

    A pool grows to `max_capacity` by itself: it has addresses for so many elements from the beginning, and memory comes where
    a task writes for the first time, so that nothing moves. Only `resize` raises that limit, between launches. If a pool is
    full, `take` returns -1, and the launch ends in order with `PoolFullError`. A task that takes before it changes anything,
    and then pushes its item again, loses nothing; otherwise the item counts as done.

    Parameters
    ----------
    dtype : dtype
        Of an element: a number, whose only field is called ``values``, or a record, with an array for each field. A field may
        have a shape: ``("corner", np.int32, 3)`` is an array of rows, ``pool.corner[k, 0]``. What an element holds when it is
        taken is not defined.
    capacity : int
        Elements for which there is memory from the beginning.
    max_capacity : int, optional
        Elements at most: as many as half of the free memory has space for unless given. There may be fewer, since a pool takes
        addresses for at most half of the host's free memory. On a GPU that cannot map memory on demand there are `capacity`.
        Leave it out unless you want a limit.
    device : Device or str, optional
        Where it is; the best device there is unless given.

    Attributes
    ----------
    dtype : numpy.dtype
    device : Device
    max_capacity : int
        Elements that it can have; `resize` changes it.

    Raises
    ------
    InvalidArgumentError
        If `capacity` is not at least 1, `max_capacity` is less, or a field has the name of something else of a pool.
    UnsupportedTypeError
        If a field is no number.

    Examples
    --------
    >>> @atos.task
    ... def divide(worker, v, found):
    ...     if worker.rank == 0:  # otherwise each thread of a warp or CTA would take elements
    ...         first = found.take(2)
    ...         if first < 0:
    ...             worker.push(v)
    ...         else:
    ...             found.divisor[first], found.of[first] = 1, v
    ...             found.divisor[first + 1], found.of[first + 1] = v, v
    >>> found, queue = atos.Pool([("divisor", np.int32), ("of", np.int32)], 100), atos.Queue(10)
    >>> queue.push([6, 7])
    >>> print(queue.launch_thread(divide, found).tasks_run, np.sort(found.divisor[:]), len(found))
    2 [1 1 6 7] 4
    """

    __slots__ = ("__weakref__", "_capacity", "_parts", "device", "dtype", "max_capacity")

    @host_memory_for("atos.Pool")
    def __init__(
        self,
        dtype: DTypeLike,
        capacity: int,
        *,
        max_capacity: int | None = None,
        device: Device | str | None = None,
    ) -> None:
        self.dtype = as_dtype(dtype)
        fields = _fields_of(self.dtype)
        least = check_int("capacity", capacity, 1, _MOST)
        self.device = device_of(device)
        if max_capacity is None:
            most = max(self.device.memory[0] // 2 // sum(field.itemsize for field in fields.values()), least)
        else:
            most = check_int("max_capacity", max_capacity, least, _MOST)
        counters = zeros(2, dtype=np.int64, device=self.device)
        counters[1] = _NONE_FAILED
        self._allocate(counters, least, most)

    def _allocate(self, counters: Array, least: int, most: int) -> None:
        """Make the arrays of the fields, for at most `most` elements, and for as many as there are addresses for."""
        fields = _fields_of(self.dtype)
        ranges = [_Range(self.device, field.itemsize, least, most) for field in fields.values()]
        size = min([part.elements for part in ranges])
        arrays = {
            name: Array(part.pointer, (size, *field.shape), field.base, self.device, readonly=False, owner=part)
            for (name, field), part in zip(fields.items(), ranges, strict=True)
        }
        self._parts, self._capacity, self.max_capacity = PoolParts(counters, arrays), least, size

    @host_memory_for("a copy of a Pool")
    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle the elements in use, and not the addresses for more."""
        used = {name: getattr(self, name).to_numpy() for name in self._parts.arrays}
        return _remade, (self.dtype, self._capacity, self.max_capacity, str(self.device), used)

    def __len__(self) -> int:
        """Return how many elements are in use."""
        counter, refused = self._parts.counters[:].tolist()
        return int(min(counter, refused))

    def __eq__(self, other: object) -> bool:
        """Whether it is the same pool. What has elements is a field, such as ``pool.values == 1``."""
        if isinstance(other, (int, float, np.generic, np.ndarray, list, Elementwise)):
            field = next(iter(self._parts.arrays))
            raise UnsupportedTypeError(f"a pool is not compared with {other!r:.80}: compare a field, as in pool.{field} == ...")
        return self is other

    __hash__ = object.__hash__

    def __getattr__(self, name: str) -> Array:
        """Return a field of the elements that are in use, which shares their memory; a later `resize` moves them elsewhere."""
        arrays = {} if name.startswith("_") else self._parts.arrays
        if name not in arrays:
            raise AttributeError(f"a pool of {', '.join(arrays)} has no {name!r}")
        whole = arrays[name]
        return Array(whole.pointer, (len(self), *whole.shape[1:]), whole.dtype, self.device, readonly=False, owner=whole._owner)

    @host_memory_for("Pool.take")
    def take(self, n: int = 1, /) -> int:
        """Take `n` elements beside each other; return the number of the first. In tasks, and on the host between launches.

        In a task it is one atomic addition, and -1 if the pool is full. The task should return then, having changed nothing
        before and pushed its item again: it runs in the next launch, for which the pool has to be larger. The queue has room
        for that item. Other tasks see what was written to the elements if they run on an item that was pushed afterwards; where
        elements are found in another way, such as through a list, only later launches and the host do.

        Raises
        ------
        PoolFullError
            On the host, if the pool is full.

        Examples
        --------
        >>> @atos.task
        ... def halves(worker, v, pool):
        ...     if worker.rank == 0:
        ...         first = pool.take(v // 2)
        ...         if first < 0:
        ...             worker.push(v)
        >>> pool, queue = atos.Pool(np.float32, 10, max_capacity=10), atos.Queue(10)
        >>> pool.take(4)
        0
        >>> queue.push(20)
        >>> try:
        ...     queue.launch_thread(halves, pool)
        ... except atos.PoolFullError as error:
        ...     pool.resize(2 * error.needed)
        >>> print(queue.launch_thread(halves, pool).tasks_run, len(pool))
        1 14
        """
        count, first = check_int("n", n, 0, _MOST), len(self)
        if first + count > self.max_capacity:
            raise _full(f"the pool has {first} elements in use", first + count, self.max_capacity)
        self._parts.counters[0] = first + count
        return first

    @host_memory_for("Pool.append")
    def append(self, values: ArrayLike | None = None, /, **fields: ArrayLike) -> int:
        """Append elements from the host, between launches; return the number of the first.

        Parameters
        ----------
        values : array_like
            The elements of a pool of numbers.
        **fields : array_like
            Those of each field of a pool of records, all of one length.

        Raises
        ------
        PoolFullError
            If there is no room for all of them; none is appended then.

        Examples
        --------
        >>> pool = atos.Pool([("place", np.float32, 2), ("mass", np.float32)], 10)
        >>> pool.append(place=[[0, 0], [1, 2]], mass=[5, 6])
        0
        >>> print(pool.append(place=[[3, 3]], mass=[7]), pool.mass[:])
        2 [5. 6. 7.]
        """
        given: dict[str, Any] = dict(fields) if values is None else {"values": values, **fields}
        arrays = self._parts.arrays
        if given.keys() != arrays.keys():
            raise InvalidArgumentError(f"the elements of the pool have {', '.join(arrays)} (got {', '.join(given) or 'none'})")
        made = {name: cast_values(as_host_array(name, each), arrays[name].dtype) for name, each in given.items()}
        for name, each in made.items():
            row = arrays[name].shape[1:]
            if each.ndim == 0 or each.shape[1:] != row:
                raise InvalidArgumentError(f"{name} must have the shape {('n', *row)} (got {each.shape})")
        counts = {len(each) for each in made.values()}
        if len(counts) > 1:
            raise InvalidArgumentError(f"all fields are of one length (got {', '.join(map(str, sorted(counts)))})")
        (count,) = counts
        first = self.take(count)
        for name, each in made.items():
            if count:
                arrays[name][first : first + count] = each
        return first

    @host_memory_for("Pool.clear")
    def clear(self) -> None:
        """Let all elements be free again, between launches.

        Examples
        --------
        >>> pool = atos.Pool(np.int32, 10)
        >>> pool.append([7, 8])
        0
        >>> pool.clear()
        >>> len(pool)
        0
        """
        self._set_used(0)

    @host_memory_for("Pool.resize")
    def resize(self, max_capacity: int) -> None:
        """Give the pool memory for `max_capacity` elements at once, between launches; those in use are copied.

        Fields that were taken from the pool before still show the old memory.

        Raises
        ------
        InvalidArgumentError
            If more are in use.
        DeviceMemoryError
            If there is too little of it.

        Examples
        --------
        >>> pool = atos.Pool(np.int32, 2, max_capacity=2)
        >>> pool.append([7, 8])
        0
        >>> pool.resize(3)
        >>> print(pool.append([9]), pool.values[:])
        2 [7 8 9]
        """
        used = len(self)
        most = check_int("max_capacity", max_capacity, max(used, 1), _MOST)
        before = {name: getattr(self, name) for name in self._parts.arrays} if used else {}
        self._allocate(self._parts.counters, most, most)
        for name, array in before.items():
            self._parts.arrays[name][:used] = array

    def _set_used(self, used: int) -> None:
        self._parts.counters[...] = [used, _NONE_FAILED]

    def _check_full(self, what: str) -> None:
        """Raise an error if a task found the pool full, which is then as if that task had not asked."""
        counter, refused = self._parts.counters[:].tolist()
        if refused == _NONE_FAILED:
            return
        self._set_used(min(counter, refused))
        raise _full(f"{what} was full: tasks asked for {counter:,} elements", counter, self.max_capacity)


def _remade(dtype: np.dtype[Any], capacity: int, most: int, device: str, used: dict[str, NDArray[Any]]) -> Pool:
    """Return the pool that was copied or pickled."""
    least = max(capacity, *map(len, used.values()))
    made = Pool(dtype, least, max_capacity=max(most, least), device=device)
    made.append(**used)
    return made


class _Range:
    """Addresses for up to `most` elements, of which `least` have memory from the beginning and the others where written."""

    def __init__(self, device: Device, itemsize: int, least: int, most: int) -> None:
        number, needed = device.number, -(-least * itemsize // _PAGE) * _PAGE
        size, slot = ffi.new("uint64_t *", -(-most * itemsize // _PAGE) * _PAGE), ffi.new("void **")
        check(lib.atos_reserve(number, size, needed, slot))
        reserved = size[0]
        self._owner = ffi.gc(slot[0], lambda pointer: lib.atos_release_reserved(number, pointer, reserved, needed))
        self.pointer = int(ffi.cast("uintptr_t", self._owner))
        self.elements = min(reserved // itemsize, most)
        if device.kind == "cuda" and reserved > needed:  # otherwise tasks would have to wait for it at every page
            clear_bytes(device, self.pointer, needed)


def _fields_of(dtype: np.dtype[Any]) -> dict[str, np.dtype[Any]]:
    """Return the dtype of each field of a pool, of which one of numbers has one field."""
    names = dtype.names
    fields = {"values": dtype} if names is None else {name: dtype.fields[name][0] for name in names}  # type: ignore[index]
    if not fields:
        raise UnsupportedTypeError("an element of a pool is a number or a record of at least one field (got none)")
    for name, field in fields.items():
        if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
            raise UnsupportedTypeError(f"field {name!r} has a name that a task could not write as pool.NAME; rename it")
        if hasattr(Pool, name):
            raise InvalidArgumentError(f"field {name!r} has the name of something else of a pool; rename it")
        kept_dtype(field.base)
        if field.itemsize == 0:
            raise InvalidArgumentError(f"field {name!r} has the shape {field.shape}, which holds nothing; leave it out")
    return fields


def _full(what: str, needed: int, capacity: int) -> PoolFullError:
    """Return the error of a pool that cannot give what is asked for."""
    advice = f"call pool.resize(...) with more than {needed:,}, such as {2 * needed:,}"
    return PoolFullError(
        f"{what}, and it can have {capacity:,} at most; {advice}, or make it with a larger max_capacity=",
        capacity=capacity,
        needed=needed,
    )
