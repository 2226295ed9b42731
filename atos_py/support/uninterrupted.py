"""Work that no handler of a signal cuts in half: compiling, which takes locks and fills tables of Numba and LLVM.

A handler that raises there, as that of Ctrl-C does, could leave a lock closed, for which every later compilation would wait. So
the handlers, which Python runs in the main thread between two instructions, are put off until the work is done. In a thread of
its own the work could go on while they run at once, but each fork and the end of the program would have to wait for it, and it
would wait for ever for a module that the main thread is importing.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # that of `signal` makes enums of all that it returns
import functools
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, ParamSpec, TypeVar

__all__ = ["uninterrupted"]

_SIGNALS = sorted(signal.valid_signals())  # which takes long to ask for
_P = ParamSpec("_P")
_R = TypeVar("_R")


def uninterrupted(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Return a function that does the same, after which the handlers of the signals that came meanwhile run."""

    @functools.wraps(function)
    def wrapper(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        if threading.current_thread() is not threading.main_thread():
            return function(*args, **kwargs)
        came: dict[int, None] = {}
        putting_off = False

        # It hands on what comes when nothing is to be put off, so it does no harm wherever a handler raises below.
        def put_off(number: int, frame: FrameType | None) -> None:
            if putting_off:
                came[number] = None
            else:
                handlers[number](number, frame)

        found = {number: _signal.getsignal(number) for number in _SIGNALS}
        handlers: dict[int, Any] = {number: handler for number, handler in found.items() if callable(handler)}
        try:
            for number in handlers:
                signal.signal(number, put_off)
            putting_off = True
            return function(*args, **kwargs)
        finally:
            putting_off = False
            try:
                for number, handler in handlers.items():
                    signal.signal(number, handler)
            finally:
                _run([functools.partial(handlers[number], number) for number in came])

    return wrapper


def _run(handlers: list[Callable[[FrameType], Any]]) -> None:
    """Run all handlers, whichever of them raises."""
    if handlers:
        try:
            handlers[0](sys._getframe(1))
        finally:
            _run(handlers[1:])
