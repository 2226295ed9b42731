"""The atomic operations on array elements that a task may use."""

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
    "atomic_max",
    "atomic_min",
    "atomic_mul",
    "atomic_or_",
    "atomic_xor",
]


def atomic_min(array: Any, index: Any, value: Any, /) -> Any:
    """Lower `array[index]` to `value` where `value` is smaller.

    Parameters
    ----------
    array : writable array
        Of integers of 8 to 64 bits, signed or not, or of floats of 32 or 64 bits. Scratch arrays do as well.
    index : int or tuple of int
        One number for each dimension.
    value : number
        Cast to the type of the elements. An integer above the range of elements of up to 32 bits lowers nothing.

    Returns
    -------
    number
        The element before.

    Notes
    -----
    The element is read first, and the atomic operation is left out where it could change nothing. That is exact: the
    value read is one that the atomic operation could have returned. A NaN, be it the value or the element, changes nothing.

    GPUs have atomics on 32 and 64 bits. On elements of 8 and 16 bits, this and most others are a loop of compare-and-swaps of
    the 32 bits around the element, in which its neighbours keep what others store there meanwhile.

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


def atomic_max(array: Any, index: Any, value: Any, /) -> Any:
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


def atomic_add(array: Any, index: Any, value: Any, /) -> Any:
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


def accumulate(array: Any, index: Any, value: Any, /) -> None:
    """Add `value` to `array[index]`, atomically, and return nothing; otherwise as `atomic_add`.

    Use it where the element before is not needed: on a GPU it is a reduction, for which a thread does not wait.

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


def atomic_mul(array: Any, index: Any, value: Any, /) -> Any:
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


def atomic_exch(array: Any, index: Any, value: Any, /) -> Any:
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


def atomic_cas(array: Any, index: Any, expected: Any, desired: Any, /) -> Any:
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


def atomic_or_(array: Any, index: Any, value: Any, /) -> Any:
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


def atomic_and_(array: Any, index: Any, value: Any, /) -> Any:
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


def atomic_xor(array: Any, index: Any, value: Any, /) -> Any:
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
