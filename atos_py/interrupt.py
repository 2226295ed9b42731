"""Signals during a launch: the core asks now and then whether one has come, and Python's handlers run."""

from __future__ import annotations

import threading
from typing import Any

from ._core import ffi

__all__ = ["question", "raised"]

# What a handler raised, KeyboardInterrupt as a rule. Only the main thread runs handlers, so there is one at most.
_raised: list[BaseException] = []


def _keep(_type: type[BaseException], error: BaseException, _traceback: Any) -> None:
    _raised[:] = [error]


@ffi.callback("int32_t(void)", error=1, onerror=_keep)  # type: ignore[untyped-decorator]
def _interrupted() -> int:
    """Run the handlers of pending signals, as the interpreter does at the start of a function; what they raise is kept."""
    return 0


def question() -> Any:
    """Return what the core shall ask during a launch of this thread."""
    return _interrupted if threading.current_thread() is threading.main_thread() else ffi.NULL


def raised() -> BaseException | None:
    """Return what a handler raised during the launch that has just ended in this thread, once."""
    if _raised and threading.current_thread() is threading.main_thread():
        return _raised.pop()
    return None
