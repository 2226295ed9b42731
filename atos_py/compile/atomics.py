"""The atomic operations on array elements that a task may use, and the fence between them."""

from __future__ import annotations

from typing import Any

from .task import _inside_only

__all__ = [
    "accumulate",
    "atomic_add",
    "atomic_add2",
    "atomic_add4",
    "atomic_and_",
    "atomic_cas",
    "atomic_exch",
    "atomic_load",
    "atomic_max",
    "atomic_min",
    "atomic_mul",
    "atomic_or_",
    "atomic_store",
    "atomic_xor",
    "fence",
]


def atomic_min(array: Any, index: Any, value: Any, /, *, memory_order: str = "relaxed") -> Any:
    """Lower `array[index]` to `value` where `value` is smaller.

    Parameters
    ----------
    array : writable array
        Of integers of 8 to 64 bits, signed or not, or of floats of 32 or 64 bits. Scratch arrays do as well.
    index : int or tuple of int
        One number for each dimension.
    value : number
        Cast to the type of the elements. An integer above the range of elements of up to 32 bits lowers nothing.
    memory_order : {'relaxed', 'acquire', 'release', 'acq_rel'}
        Of the operation, in the terms of C++, between all threads of the launch. A release is seen by who reads what the
        operation has stored, so not where it left the element as it was.

    Returns
    -------
    number
        The element before.

    Notes
    -----
    The element is read first, and the atomic operation is left out where it could change nothing. That is exact: the
    value read is one that the atomic operation could have returned. A NaN, be it the value or the element, changes nothing.

    GPUs have atomics on 32 and 64 bits. On elements of 8 and 16 bits, this and most others are a loop of compare-and-swaps of
    the 32 bits around the element, in which its neighbors keep what others store there meanwhile.

    Examples
    --------
    >>> @atos.task
    ... def change(worker, v, a):
    ...     atos.atomic_min(a, 0, v)
    >>> a, queue = atos.full(1, 9), atos.Queue(capacity=10)
    >>> queue.push([7, 3, 5])
    >>> print(queue.launch_thread(change, a).tasks_run, a[0])
    3 3
    """
    raise _inside_only("atomic_min")


def atomic_max(array: Any, index: Any, value: Any, /, *, memory_order: str = "relaxed") -> Any:
    """Raise `array[index]` to `value` where `value` is larger; otherwise as `atomic_min`.

    Examples
    --------
    >>> @atos.task
    ... def change(worker, v, a):
    ...     atos.atomic_max(a, 0, v)
    >>> a, queue = atos.full(1, 0), atos.Queue(capacity=10)
    >>> queue.push([7, 3, 5])
    >>> print(queue.launch_thread(change, a).tasks_run, a[0])
    3 7
    """
    raise _inside_only("atomic_max")


def atomic_add(array: Any, index: Any, value: Any, /, *, memory_order: str = "relaxed") -> Any:
    """Add `value` to `array[index]`; otherwise as `atomic_min`.

    Returns
    -------
    number
        The element before.

    Examples
    --------
    >>> @atos.task
    ... def change(worker, v, a):
    ...     atos.atomic_add(a, 0, v)
    >>> a, queue = atos.full(1, 0), atos.Queue(capacity=10)
    >>> queue.push([7, 3, 5])
    >>> print(queue.launch_thread(change, a).tasks_run, a[0])
    3 15
    """
    raise _inside_only("atomic_add")


def accumulate(array: Any, index: Any, value: Any, /, *, memory_order: str = "relaxed") -> None:
    """Add `value` to `array[index]`, atomically, and return nothing; otherwise as `atomic_add`.

    Use it where the element before is not needed: on a GPU it is a reduction, for which a thread does not wait. It takes
    ``memory_order="release"`` beside "relaxed".

    Examples
    --------
    >>> @atos.task
    ... def change(worker, v, a):
    ...     atos.accumulate(a, 0, v)
    >>> a, queue = atos.full(1, 0), atos.Queue(capacity=10)
    >>> queue.push([7, 3, 5])
    >>> print(queue.launch_thread(change, a).tasks_run, a[0])
    3 15
    """
    raise _inside_only("accumulate")


def atomic_add2(array: Any, first: Any, x: Any, y: Any, /) -> None:
    """Add `x` and `y` to two elements of float32 beside each other, `array[first]` and `array[first + 1]`.

    Each element is added to atomically, and not both at once: others may see one changed and the other not yet. GPUs of compute
    capability 9.0 or newer do it in one instruction, `red.global.add.v2.f32`, in less time than two. Nothing is returned.

    Parameters
    ----------
    array : writable array of float32
        Or a scratch array. In a task, it begins at a multiple of 8 bytes, as arrays do that are no part of another.
    first : int or tuple of int
        The number of the element in memory, such as the index in one dimension, has to be a multiple of 2. Otherwise the launch
        may fail on such a GPU; with `debug=True` it is a `TaskError`.
    x, y : number

    Examples
    --------
    >>> @atos.task
    ... def gather(worker, v, sums):
    ...     atos.atomic_add2(sums, 0, v, v * v)
    >>> sums, queue = atos.zeros(2, dtype=np.float32), atos.Queue(capacity=10)
    >>> queue.push([7, 3, 5])
    >>> print(queue.launch_thread(gather, sums).tasks_run, sums[:])
    3 [15. 83.]
    """
    raise _inside_only("atomic_add2")


def atomic_add4(array: Any, first: Any, x: Any, y: Any, z: Any, w: Any, /) -> None:
    """Add to four elements of float32 beside each other, the first of which has a number that is a multiple of 4.

    Otherwise as `atomic_add2`; the array begins at a multiple of 16 bytes.

    Examples
    --------
    >>> @atos.task
    ... def gather(worker, v, sums):
    ...     atos.atomic_add4(sums, (v % 2, 0), 1, v, v * v, 0.5)
    >>> sums, queue = atos.zeros((2, 4), dtype=np.float32), atos.Queue(capacity=10)
    >>> queue.push([7, 3, 5])
    >>> print(queue.launch_thread(gather, sums).tasks_run, sums[1])
    3 [ 3.  15.  83.   1.5]
    """
    raise _inside_only("atomic_add4")


def atomic_mul(array: Any, index: Any, value: Any, /, *, memory_order: str = "relaxed") -> Any:
    """Multiply `array[index]` by `value`; otherwise as `atomic_min`.

    No processor has this as one instruction, so it is a loop of compare-and-swaps: slower than the others where many threads
    change the same element.

    Returns
    -------
    number
        The element before.

    Examples
    --------
    >>> @atos.task
    ... def change(worker, v, a):
    ...     atos.atomic_mul(a, 0, v)
    >>> a, queue = atos.full(1, 2.0), atos.Queue(capacity=10)
    >>> queue.push([7, 3, 5])
    >>> print(queue.launch_thread(change, a).tasks_run, a[0])
    3 210.0
    """
    raise _inside_only("atomic_mul")


def atomic_exch(array: Any, index: Any, value: Any, /, *, memory_order: str = "relaxed") -> Any:
    """Store `value` in `array[index]`.

    Returns
    -------
    number
        The element before.

    Examples
    --------
    >>> @atos.task
    ... def take(worker, v, gathered, taken):
    ...     taken[v] = atos.atomic_exch(gathered, v, 0)
    >>> gathered, taken = atos.full(2, 8), atos.zeros(2, dtype=np.int64)
    >>> queue = atos.Queue(capacity=10)
    >>> queue.push(1)
    >>> print(queue.launch_thread(take, gathered, taken).tasks_run, gathered[:], taken[:])
    1 [8 0] [0 8]
    """
    raise _inside_only("atomic_exch")


def atomic_cas(array: Any, index: Any, expected: Any, desired: Any, /, *, memory_order: str = "relaxed") -> Any:
    """Store `desired` in `array[index]` if the element is `expected`.

    Floats are compared bit by bit: a NaN equals the same NaN, and 0.0 is not -0.0.

    Returns
    -------
    number
        The element before. The store happened if that is `expected`.

    Examples
    --------
    >>> @atos.task
    ... def claim(worker, v, owner, claims):
    ...     if atos.atomic_cas(owner, 0, -1, v) == -1:
    ...         atos.atomic_add(claims, 0, 1)
    >>> owner, claims, queue = atos.full(1, -1), atos.full(1, 0), atos.Queue(capacity=10)
    >>> queue.push([4, 5, 6])
    >>> print(queue.launch_thread(claim, owner, claims).tasks_run, claims[0], owner[0] in (4, 5, 6))
    3 1 True
    """
    raise _inside_only("atomic_cas")


def atomic_or_(array: Any, index: Any, value: Any, /, *, memory_order: str = "relaxed") -> Any:
    """Set the bits of `value` in `array[index]`, integers and bool only.

    Returns
    -------
    int
        The element before.

    Examples
    --------
    >>> @atos.task
    ... def change(worker, v, a):
    ...     atos.atomic_or_(a, 0, 1 << v)
    >>> a, queue = atos.full(1, 0), atos.Queue(capacity=10)
    >>> queue.push([0, 3])
    >>> print(queue.launch_thread(change, a).tasks_run, a[0])
    2 9
    """
    raise _inside_only("atomic_or_")


def atomic_and_(array: Any, index: Any, value: Any, /, *, memory_order: str = "relaxed") -> Any:
    """Clear the bits of `array[index]` that are not in `value`, integers and bool only.

    Returns
    -------
    int
        The element before.

    Examples
    --------
    >>> @atos.task
    ... def change(worker, v, a):
    ...     atos.atomic_and_(a, 0, ~(1 << v))
    >>> a, queue = atos.full(1, 15), atos.Queue(capacity=10)
    >>> queue.push([0, 3])
    >>> print(queue.launch_thread(change, a).tasks_run, a[0])
    2 6
    """
    raise _inside_only("atomic_and_")


def atomic_xor(array: Any, index: Any, value: Any, /, *, memory_order: str = "relaxed") -> Any:
    """Flip the bits of `value` in `array[index]`, integers and bool only.

    Returns
    -------
    int
        The element before.

    Examples
    --------
    >>> @atos.task
    ... def change(worker, v, a):
    ...     atos.atomic_xor(a, 0, 1 << v)
    >>> a, queue = atos.full(1, 15), atos.Queue(capacity=10)
    >>> queue.push([0, 3])
    >>> print(queue.launch_thread(change, a).tasks_run, a[0])
    2 6
    """
    raise _inside_only("atomic_xor")


def atomic_load(array: Any, index: Any, /, *, memory_order: str = "relaxed") -> Any:
    """Return `array[index]`; with ``memory_order="acquire"``, what the thread reads later is no older than the element.

    A plain read, `array[index]`, is a relaxed load already.

    Parameters
    ----------
    array : writable array
        As for `atomic_exch`.
    index : int or tuple of int
        One number for each dimension.
    memory_order : {'relaxed', 'acquire'}
        An acquire that reads what a release has stored sees all that the releasing thread wrote before.

    Returns
    -------
    number

    Examples
    --------
    A task that waits for another one by pushing its item again, and then sees what that one wrote:

    >>> @atos.task
    ... def pass_on(worker, v, ready, data, out):
    ...     if v == 0:
    ...         data[0] = 42
    ...         atos.atomic_store(ready, 0, 1, memory_order="release")
    ...     elif atos.atomic_load(ready, 0, memory_order="acquire") == 1:
    ...         out[0] = data[0]
    ...     else:
    ...         worker.push(v)
    >>> ready, data, out = (atos.zeros(1, dtype=np.int32) for _ in range(3))
    >>> queue = atos.Queue(capacity=10)
    >>> queue.push([1, 0])
    >>> stats = queue.launch_thread(pass_on, ready, data, out)
    >>> print(out[0])
    42
    """
    raise _inside_only("atomic_load")


def atomic_store(array: Any, index: Any, value: Any, /, *, memory_order: str = "relaxed") -> None:
    """Store `value` in `array[index]`; with ``memory_order="release"``, after all that the thread wrote before.

    A plain assignment, `array[index] = value`, is a relaxed store already.

    Parameters
    ----------
    array : writable array
        As for `atomic_exch`.
    index : int or tuple of int
        One number for each dimension.
    value : number
        Cast to the type of the elements.
    memory_order : {'relaxed', 'release'}
        Who reads the value by an acquire sees all that this thread wrote before the release.

    Examples
    --------
    `atomic_load` has a program in which another task reads what was stored.

    >>> @atos.task
    ... def finish(worker, v, data, ready):
    ...     data[v] = 42
    ...     atos.atomic_store(ready, v, 1, memory_order="release")
    >>> data, ready = (atos.zeros(2, dtype=np.int32) for _ in range(2))
    >>> queue = atos.Queue(capacity=10)
    >>> queue.push([0, 1])
    >>> print(queue.launch_thread(finish, data, ready).tasks_run, ready[:])
    2 [1 1]
    """
    raise _inside_only("atomic_store")


def fence(*, memory_order: str = "acq_rel") -> None:
    """Order the reads and writes of this thread before the fence and those after it, for all threads of the launch.

    Before a relaxed store or atomic operation a fence makes a release of it, and after a relaxed read or atomic operation an
    acquire.

    Parameters
    ----------
    memory_order : {'acq_rel', 'acquire', 'release'}
        In the terms of C++. On a GPU all are ``fence.acq_rel``, of the device or, in a launch over several devices, of the
        system.

    Examples
    --------
    >>> @atos.task
    ... def publish(worker, v, data, ready):
    ...     data[v] = 42
    ...     atos.fence(memory_order="release")
    ...     atos.atomic_add(ready, 0, 1)
    >>> data, ready = atos.zeros(2, dtype=np.int32), atos.zeros(1, dtype=np.int32)
    >>> queue = atos.Queue(capacity=10)
    >>> queue.push([0, 1])
    >>> print(queue.launch_thread(publish, data, ready).tasks_run, ready[0])
    2 2
    """
    raise _inside_only("fence")
