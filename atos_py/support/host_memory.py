"""One error for a host that has no memory left, in whichever of several ways the system, NumPy or Python says so.

Any line that makes something can fail for want of memory, so this is looked at where calls enter the package, not line by line.
"""

from __future__ import annotations

import errno
import functools
from collections.abc import Callable
from types import TracebackType
from typing import ParamSpec, TypeVar

from ..errors import AtosError, DeviceMemoryError

__all__ = ["host_memory_for", "is_shortage"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


class host_memory_for:  # noqa: N801 - used as a function is
    """Raise `DeviceMemoryError` where a block, or a function that this decorates, finds too little memory on the host.

    Parameters
    ----------
    what : str
        What the memory is for, as the message names it.
    """

    def __init__(self, what: str) -> None:
        self._what = what

    def __call__(self, function: Callable[_P, _R]) -> Callable[_P, _R]:
        """Decorate a function, which costs less than `contextlib.ContextDecorator`: a call has several of them."""

        @functools.wraps(function)
        def wrapper(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            try:
                return function(*args, **kwargs)
            except BaseException as error:
                self._raise_shortage(error)
                raise

        return wrapper

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None:
            self._raise_shortage(error)

    def _raise_shortage(self, error: BaseException) -> None:
        if is_shortage(error):
            reason = f": {error}" if str(error) else ""
            raise DeviceMemoryError(
                f"the host has too little free memory for {self._what}, or this process may take no more (ulimit -v){reason}"
            ) from error


def is_shortage(error: BaseException) -> bool:
    """Whether an error says that memory is short, and is none of this package yet.

    A thread that cannot be started is one too: it is its stack that there is no memory for, or a limit of the like.
    """
    if isinstance(error, AtosError):
        return False
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, MemoryError) or (type(error) is RuntimeError and str(error) == "can't start new thread")
