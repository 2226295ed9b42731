"""Short tracebacks of tasks that cannot be compiled: the call of the library, and then the line of the task.

What lies between are frames of the package, which say nothing about the task.
"""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Callable
from types import TracebackType
from typing import ParamSpec, TypeVar

from ..errors import TaskCompileError
from ..support.host_memory import host_memory_for

__all__ = ["as_launch", "ends_in_task"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


def ends_in_task(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorate a function of the package, so that the traceback of a `TaskCompileError` goes on in the line of the task."""

    @functools.wraps(function)
    def wrapper(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return function(*args, **kwargs)
        except TaskCompileError as error:
            raise error.with_traceback(_traceback_in(error)) from None

    return wrapper


class _LaunchCall(host_memory_for):
    def _raise_shortage(self, error: BaseException) -> None:
        if isinstance(error, TaskCompileError):
            raise error.with_traceback(_traceback_in(error)) from None
        super()._raise_shortage(error)


as_launch = _LaunchCall("a launch")
"""Decorate a launch of a user's: its tracebacks end in the task, and a host without memory raises `DeviceMemoryError`."""


def _traceback_in(error: TaskCompileError) -> TracebackType | None:
    """Return a traceback of one frame, in the line that an error is about, or None if it is about no line.

    As in template engines, code of that line raises the error. Nothing else makes a frame.
    """
    if error.place is None:
        return None
    path, line, name = error.place
    source = linecache.getline(path, line).rstrip().encode()
    tree = ast.parse("raise error")
    for node in ast.walk(tree):
        if isinstance(node, (ast.stmt, ast.expr)):  # all of the line, so that nothing in it is underlined
            node.lineno = node.end_lineno = line
            node.col_offset, node.end_col_offset = len(source) - len(source.lstrip()), len(source)
    variables = {"error": error.with_traceback(None)}
    try:
        exec(compile(tree, path, "exec").replace(co_name=name), variables)
    except TaskCompileError:
        variables.clear()  # the frame would keep the error, which has the frame
        assert error.__traceback__ is not None
        return error.__traceback__.tb_next
    raise AssertionError
