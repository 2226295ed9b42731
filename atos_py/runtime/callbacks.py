"""The callback of the core during a launch: runs Python's handlers of signals, and passes progress on."""

from __future__ import annotations

import threading
from typing import Any

from ..core.library import ffi
from .progress import Observer

__all__ = ["finish_callback", "start_callback"]


class _Launch(threading.local):
    observer: Observer | None = None
    error: BaseException | None = None


_launch = _Launch()  # what this thread's launch shows, and what a handler raised, KeyboardInterrupt as a rule, or the observer


def _keep_error(_type: type[BaseException], error: BaseException, _traceback: Any) -> None:
    _launch.error = error


@ffi.callback("int32_t(const atos_sample *)", error=1, onerror=_keep_error)  # type: ignore[untyped-decorator]
def _run_handlers(now: Any) -> int:
    """Run the handlers of pending signals, as the interpreter does at the start of a function; what they raise is kept."""
    if now and _launch.observer is not None:
        _launch.observer.see(now.ran, now.tail - now.claimed)
    return 0


def start_callback(observer: Observer | None) -> Any:
    """Return the callback for a launch of this thread, or null if there would be nothing to do; then `finish_callback`."""
    if observer is not None:
        _launch.observer = observer
        return _run_handlers
    return _run_handlers if threading.current_thread() is threading.main_thread() else ffi.NULL


def finish_callback() -> BaseException | None:
    """End the launch of this thread; return what a handler or the observer raised during it, once."""
    error, observer = _launch.error, _launch.observer
    if error is not None:
        _launch.error = None
    if observer is not None:
        _launch.observer = None
        observer.close()
    return error
