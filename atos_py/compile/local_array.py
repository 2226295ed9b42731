"""`local_array`: an array of a task that is one thread's own."""

from __future__ import annotations

from typing import Any

from ..errors import TaskCallError

__all__ = ["MAX_LOCAL_BYTES", "local_array"]

MAX_LOCAL_BYTES = 16384  # of one array: the stack of a thread is small


def local_array(dtype: Any, n: int, /) -> Any:
    """Return, in a task, an array of `n` elements that belongs to this thread alone, filled with zeros.

    It lies in registers if all indices are known when the task is compiled, such as those of short loops that are unrolled;
    otherwise, on a GPU, in the thread's local memory, which is slower but goes through the L1 cache. Other threads have one of
    their own, so the atomics do not take it, and it costs nothing to read and write.

    Parameters
    ----------
    dtype : NumPy type
        Such as `np.int32`: an integer, float or bool.
    n : int
        From 1 to as many as make 16,384 bytes. It has to be known when the task is compiled: a number, or the name of a global
        variable that is an int.

    Returns
    -------
    array
        Of one dimension. It has elements, `len()`, `shape`, `size`, `ndim` and `dtype` as other arrays do, and may be passed to
        helpers. It cannot be pushed nor returned. A call that runs again, such as in a loop, returns the same memory, again
        filled with zeros.

    Examples
    --------
    >>> @atos.task
    ... def digits(worker, v, out):
    ...     count = atos.local_array(np.int32, 10)
    ...     while v:
    ...         count[v % 10] += 1
    ...         v //= 10
    ...     for digit in range(10):
    ...         out[digit] = count[digit]
    >>> out, queue = atos.zeros(10, dtype=np.int32), atos.Queue(capacity=10)
    >>> queue.push(1233)
    >>> print(queue.launch_thread(digits, out).tasks_run, out[:])
    1 [0 1 1 2 0 0 0 0 0 0]
    """
    raise TaskCallError("local_array works inside tasks only; on the host, use numpy.zeros")
