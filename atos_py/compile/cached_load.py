"""A load through the L1 cache of an array that tasks may write."""

from __future__ import annotations

from typing import Any

from .task import _inside_only

__all__ = ["load_cached"]


def load_cached(array: Any, index: Any, /) -> Any:
    """Return `array[index]`, or an older value of that element, through the L1 cache of a GPU.

    A plain read of an array that tasks may write goes past the L1 cache, so that it returns nothing out of date. That costs
    much where a few elements are read by many edges, such as those of vertices with many neighbors. Use this function where
    an older value does no harm: nobody writes the element in this round of a launch with barriers; or the value only saves an
    atomic operation, which decides.

    Parameters
    ----------
    array : array
        Of any type. A read-only or scratch array is read as by ``array[index]``, and so is every array on the CPU.
    index : int or tuple of int
        One number for each dimension.

    Returns
    -------
    number
        A value that was stored there: the one that a plain read would return, or an earlier one, as long ago as the last
        barrier of the launch, or as the push of the item that the task runs on.

    Notes
    -----
    On a GPU this is a relaxed load of the scope of a block (``ld.relaxed.cta``). A bit for each vertex that is looked at so,
    and set by an atomic operation, is the best-effort bitmask of Merrill, Garland and Grimshaw, "Scalable GPU graph
    traversal", PPoPP 2012.

    Examples
    --------
    >>> @atos.task
    ... def mark(worker, v, flags):
    ...     if atos.load_cached(flags, v % 3) == 0 and atos.atomic_exch(flags, v % 3, 1) == 0:
    ...         worker.push(v + 1)
    >>> flags, queue = atos.zeros(3, dtype=np.int32), atos.Queue(capacity=10)
    >>> queue.push([0, 3])
    >>> print(queue.launch_thread(mark, flags).tasks_run, flags[:])
    5 [1 1 1]
    """
    raise _inside_only("load_cached")
