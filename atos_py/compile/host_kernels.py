"""Running serial kernels, compiled by Numba with the GIL released, in threads.

That compiles several times faster than Numba's parallel target, and the result does not depend on the number of threads.
"""

from __future__ import annotations

import contextlib
import functools
import mmap
import resource
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import FunctionType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..core.devices import device
from ..support.uninterrupted import uninterrupted
from .codegen.introspect import global_names, is_library
from .toolchain import import_numba

__all__ = ["compile_kernel", "even_rows", "first_found", "num_threads", "parallel_map", "ranges", "returnable", "threads"]

_MOST_STACK = 8 << 20  # of a thread, where the system says no less
_ROOM = 4 << 20  # that a thread needs besides, until it runs
_PIECE_EDGES = 1 << 20  # of `first_found`

_T = TypeVar("_T")
_R = TypeVar("_R")


def num_threads() -> int:
    """Return how many threads this process may keep busy: those that the CPU backend has."""
    return device("cpu").processors


def parallel_map(function: Callable[[_T], _R], items: Sequence[_T]) -> list[_R]:
    """Return ``[function(item) for item in items]``, computed by threads; `function` should release the GIL."""
    workers = min(num_threads(), len(items))
    if workers <= 1:
        return [function(item) for item in items]
    with threads(workers) as pool:
        return list(pool.map(function, items))


def first_found(kernel: Callable[..., int], indptr: NDArray[Any], *arguments: Any) -> int:
    """Return the first edge or vertex that fails a check of all rows, or -1.

    ``kernel(indptr, *arguments, first, end)`` returns the first of the rows from `first` to `end` that does, or -1.
    """
    compiled = compile_kernel(kernel)
    found = parallel_map(lambda piece: int(compiled(indptr, *arguments, *piece)), even_rows(indptr, _PIECE_EDGES))
    return next((number for number in found if number >= 0), -1)


@contextlib.contextmanager
def threads(count: int) -> Iterator[ThreadPoolExecutor]:
    """Give a pool of threads that have all begun before the first of them works.

    To start a thread, Python waits until it says that it runs, and so for ever for one that finds no memory to say it. So there
    has to be some before they start, and nothing else takes it until they have.
    """
    stack = resource.getrlimit(resource.RLIMIT_STACK)[0]
    mmap.mmap(-1, count * ((stack if 0 < stack < _MOST_STACK else _MOST_STACK) + _ROOM)).close()
    begun = threading.Barrier(count)
    with ThreadPoolExecutor(count) as pool:
        try:
            for _ in range(count):
                pool.submit(begun.wait)
        except BaseException:
            begun.abort()
            raise
        yield pool


@functools.cache
@uninterrupted
def compile_kernel(kernel: FunctionType) -> Callable[..., Any]:
    """Compile a kernel by Numba, once it is called, along with the plain functions that it calls.

    Returns
    -------
    callable
        To be called instead of the kernel.
    """
    function = import_numba().njit(nogil=True)(_compile_helpers(kernel))
    with contextlib.suppress(ImportError):  # another Numba
        from .codegen.numba_private import set_cache
        from .host_kernel_cache import KernelCache

        set_cache(function, KernelCache(kernel))
    function.compile = uninterrupted(function.compile)
    return function  # type: ignore[no-any-return]


def _compile_helpers(kernel: FunctionType) -> FunctionType:
    """Return the kernel as a function of compiled ones, where it calls plain ones by the names of global variables."""
    helpers = {
        name: _compile_helper(value)
        for name in sorted(global_names(kernel.__code__) & kernel.__globals__.keys())
        if isinstance(value := kernel.__globals__[name], FunctionType) and not is_library(value)
    }
    if not helpers:
        return kernel
    variables = {**kernel.__globals__, **helpers}
    return FunctionType(kernel.__code__, variables, kernel.__name__, kernel.__defaults__, kernel.__closure__)


@functools.cache
def _compile_helper(function: FunctionType) -> Callable[..., Any]:
    """Compile a function that kernels call, to be inlined there: so it has no entry of its own in the cache."""
    return import_numba().njit(nogil=True, forceinline=True)(_compile_helpers(function))  # type: ignore[no-any-return]


def ranges(total: int, step: int) -> list[tuple[int, int]]:
    """Cut ``range(total)`` into pieces of `step`, as pairs of first and end."""
    return [(first, min(first + step, total)) for first in range(0, total, step)]


def even_rows(indptr: NDArray[Any], step: int) -> list[tuple[int, int]]:
    """Cut the rows of a CSR into pieces of about `step` entries, as pairs of first and end."""
    cuts = np.searchsorted(indptr, np.arange(step, int(indptr[-1]), step), side="left")
    bounds = np.unique(np.concatenate([[0], cuts, [indptr.size - 1]]))
    return list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))


def returnable(size: int, dtype: DTypeLike) -> NDArray[Any]:
    """Return a new array that takes memory page by page as it is filled, and gives it back to the system once released.

    NumPy's own arrays take it in huge pages, so that filling one from many places at once takes all of it, and what is
    freed in pieces of less than 32 MB stays with the allocator. For an array that is there to stay, huge pages are better.
    """
    kind = np.dtype(dtype)
    memory = mmap.mmap(-1, max(size * kind.itemsize, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return np.frombuffer(memory, kind, count=size)
