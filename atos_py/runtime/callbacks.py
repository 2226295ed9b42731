"""What the core asks now and then during a launch: Python's handlers of signals run then, and progress is shown."""

from __future__ import annotations

import threading
from typing import Any

from ..core.library import ffi
from .progress import Observer

__all__ = ["question", "raised"]


class _Launch(threading.local):
    observer: Observer | None = None
    error: BaseException | None = None


_launch = _Launch()  # what this thread's launch shows, and what a handler raised, KeyboardInterrupt as a rule, or the observer


def _keep(_type: type[BaseException], error: BaseException, _traceback: Any) -> None:
    _launch.error = error


@ffi.callback("int32_t(const atos_sample *)", error=1, onerror=_keep)  # type: ignore[untyped-decorator]
def _interrupted(now: Any) -> int:
    """Run the handlers of pending signals, as the interpreter does at the start of a function; what they raise is kept."""
    if now and _launch.observer is not None:
        _launch.observer.see(now.ran, now.tail - now.claimed)
    return 0


def question(observer: Observer | None) -> Any:
    """Return what the core shall ask during a launch of this thread, which `raised` ends."""
    if observer is not None:
        _launch.observer = observer
        return _interrupted
    return _interrupted if threading.current_thread() is threading.main_thread() else ffi.NULL


def raised() -> BaseException | None:
    """Return what was raised, by a handler or the observer, during the launch that has just ended in this thread, once."""
    error, observer = _launch.error, _launch.observer
    if error is not None:
        _launch.error = None
    if observer is not None:
        _launch.observer = None
        observer.close()
    return error
