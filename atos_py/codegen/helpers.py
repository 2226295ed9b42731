"""Plain Python helpers of a task: compiled along with it, without any decoration."""

from __future__ import annotations

import dis
from collections.abc import Callable
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

from .references import codes, global_names, is_library, plain_function

# What Python compiles raise, assert, try and with to.
_EXCEPTIONS = ("PUSH_EXC_INFO", "RAISE_VARARGS", "SETUP_FINALLY", "SETUP_WITH")


class ExceptionsUsedError(Exception):
    """A function deals in exceptions, for which a task has no place to go; `line` is where."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


class Specialiser:
    """Rebuilds functions so that every plain function that they use, however deep, is replaced by a compiled one.

    Parameters
    ----------
    wrap : callable
        Makes a dispatcher of the target from a Python function.
    is_known : callable
        Whether Numba has a meaning for a function of its own, such as NumPy's.
    """

    def __init__(self, wrap: Callable[[FunctionType], Any], is_known: Callable[[Any], bool]) -> None:
        self._wrap = wrap
        self._is_known = is_known
        self._done: dict[int, Any] = {}

    def __call__(self, function: FunctionType) -> Any:
        """Return the dispatcher of a function."""
        if id(function) in self._done:
            return self._done[id(function)]
        for code in codes(function.__code__):
            for instruction in dis.get_instructions(code):
                if instruction.opname in _EXCEPTIONS:
                    raise ExceptionsUsedError(_line_of(code, instruction.offset))
        variables = dict(function.__globals__)
        cells = tuple(CellType(cell.cell_contents) for cell in function.__closure__ or ())
        copy = FunctionType(function.__code__, variables, function.__name__, function.__defaults__, cells)
        copy.__kwdefaults__ = function.__kwdefaults__
        copy.__module__, copy.__qualname__ = function.__module__, function.__qualname__
        # Before what it uses is looked at: functions may call each other.
        self._done[id(function)] = self._wrap(copy)
        attributes = {name for code in codes(function.__code__) for name in code.co_names}
        for name in global_names(function.__code__) & variables.keys():
            variables[name] = self._replacement(variables[name], attributes)
        for cell in cells:
            cell.cell_contents = self._replacement(cell.cell_contents, attributes)
        return self._done[id(function)]

    def _replacement(self, value: Any, attributes: set[str]) -> Any:
        function = plain_function(value)
        if function is not None:
            return value if self._is_known(value) else self(function)
        if isinstance(value, ModuleType) and not is_library(value):
            used = {name: vars(value)[name] for name in attributes & vars(value).keys()}
            helpers = {
                name: self._replacement(member, attributes)
                for name, member in used.items()
                if plain_function(member) is not None and not self._is_known(member)
            }
            if helpers:
                stand_in = ModuleType(value.__name__)
                vars(stand_in).update(vars(value), **helpers)
                return stand_in
        return value


def _line_of(code: CodeType, offset: int) -> int:
    lines = (line for start, end, line in code.co_lines() if start <= offset < end)
    return next(lines, None) or code.co_firstlineno
