"""The callback of the core during a launch: runs Python's handlers of signals, and passes progress on."""

from __future__ import annotations

import os
import threading
from typing import Any

from ..core.library import ffi
from .progress import Observer

__all__ = ["finish_callback", "run_handlers", "start_callback", "thread_launch"]


def _keep_error(_type: type[BaseException], error: BaseException, _traceback: Any) -> None:
    thread_launch.error = error


@ffi.callback("int32_t(const atos_sample *)", error=1, onerror=_keep_error)  # type: ignore[untyped-decorator]
def run_handlers(now: Any) -> int:
    """Run the handlers of pending signals, as the interpreter does at the start of a function; what they raise is kept."""
    if now and thread_launch.observer is not None:
        thread_launch.observer.see(now.ran, now.tail - now.claimed)
    return 0


class _ThreadLaunch(threading.local):
    """The launch of this thread.

    Attributes
    ----------
    observer : Observer or None
        What shows how the launch goes.
    error : BaseException or None
        What a handler raised, KeyboardInterrupt as a rule, or the observer.
    callback : cdata
        What the core calls during a launch without an observer: null in other threads than the main one, where no handlers run.
    """

    observer: Observer | None = None
    error: BaseException | None = None

    def __init__(self) -> None:
        self.look()

    def look(self) -> None:
        """Say which callback the thread has."""
        self.callback = run_handlers if threading.current_thread() is threading.main_thread() else ffi.NULL


thread_launch = _ThreadLaunch()
os.register_at_fork(after_in_child=lambda: thread_launch.look())  # the thread that forks is the main thread of the child


def start_callback(observer: Observer | None) -> Any:
    """Return the callback for a launch of this thread, or null if there would be nothing to do; then `finish_callback`."""
    if observer is None:
        return thread_launch.callback
    thread_launch.observer = observer
    return run_handlers


def finish_callback() -> BaseException | None:
    """End the launch of this thread; return what a handler or the observer raised during it, once."""
    error, observer = thread_launch.error, thread_launch.observer
    if error is not None:
        thread_launch.error = None
    if observer is not None:
        thread_launch.observer = None
        observer.close()
    return error
