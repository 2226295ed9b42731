"""Plain Python helpers of a task: compiled along with it, without any decoration."""

from __future__ import annotations

import contextlib
import dis
import functools
import linecache
from collections.abc import Callable
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from .introspect import LARGEST_CONSTANT, attribute_names, codes, global_names, is_library, line_of, members_of, plain_function
from .lower_checks import add_checked, is_collecting
from .lower_print import print_line
from .numba_private import is_jitted, jit_alike
from .types import LargeConstant

_RAISE = "RAISE_VARARGS"  # what Python compiles raise and assert to
_WITH_HANDLER = "it has a try or with, and tasks handle no exceptions"
_NEVER = {
    "PUSH_EXC_INFO": _WITH_HANDLER,
    "SETUP_FINALLY": _WITH_HANDLER,
    "SETUP_WITH": _WITH_HANDLER,
    "IMPORT_NAME": "it imports a module; do that outside of it",
    "STORE_GLOBAL": "it assigns to a global variable; what tasks change are arrays, given as arguments of the launch",
}


class RefusedError(Exception):
    """A function does what no task can; `line` is where."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
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
        code, closure = function.__code__, function.__closure__ or ()
        if not is_collecting():
            code, closure = without_asserts(function)
        _refuse(code)
        for part in codes(code):
            add_checked(part)
        return self._rebuild(function, function, code, closure, self._wrap)

    def _rebuild(
        self,
        value: Any,
        function: FunctionType,
        code: CodeType,
        closure: tuple[CellType, ...],
        wrap: Callable[[FunctionType], Any],
    ) -> Any:
        """Return the dispatcher, made by `wrap`, of a copy of the function that `value` is or stands for."""
        variables = {"print": print_line, **function.__globals__}
        cells = tuple(
            CellType(_read_cell(name, cell, code.co_firstlineno)) for name, cell in zip(code.co_freevars, closure, strict=True)
        )
        copy = FunctionType(code, variables, function.__name__, function.__defaults__, cells)
        copy.__kwdefaults__ = function.__kwdefaults__
        copy.__module__, copy.__qualname__ = function.__module__, function.__qualname__
        # Before what it uses is looked at: functions may call each other.
        self._done[id(value)] = wrap(copy)
        attributes = attribute_names(code)
        for name in global_names(code) & variables.keys():
            variables[name] = self._replacement(name, variables[name], attributes)
        for name, cell in zip(code.co_freevars, cells, strict=True):
            cell.cell_contents = self._replacement(name, cell.cell_contents, attributes)
        return self._done[id(value)]

    def _jitted(self, dispatcher: Any, function: FunctionType) -> Any:
        """Return a dispatcher of Numba's like the user's own, which would keep the variables of its first compilation."""
        if id(dispatcher) in self._done:
            return self._done[id(dispatcher)]
        closure = function.__closure__ or ()
        return self._rebuild(dispatcher, function, function.__code__, closure, functools.partial(jit_alike, dispatcher))

    def _replacement(self, name: str, value: Any, attributes: frozenset[str]) -> Any:
        function = plain_function(value)
        if function is not None:
            if value is not function and is_jitted(value) and not is_library(function):
                return self._jitted(value, function)
            return value if self._is_known(value) else self(function)
        if _has_large_array(value):
            return LargeConstant(name)
        if isinstance(value, ModuleType):
            used = members_of(value, attributes)
            helpers = {}
            for name, member in used.items():  # of modules without their names, so that circles end
                rest = attributes - {name} if isinstance(member, ModuleType) else attributes
                helpers[name] = self._replacement(name, member, rest)
            helpers = {name: helper for name, helper in helpers.items() if helper is not used[name]}
            if helpers:
                stand_in = ModuleType(value.__name__)
                vars(stand_in).update(vars(value), **helpers)
                return stand_in
        return value


def _has_large_array(value: Any) -> bool:
    """Whether a variable is an array that is too large for a constant, or a tuple that has one."""
    if isinstance(value, tuple):
        return any(map(_has_large_array, value))
    return isinstance(value, np.ndarray) and value.nbytes > LARGEST_CONSTANT


def _refuse(code: CodeType) -> None:
    for part in codes(code):
        for instruction in dis.get_instructions(part):
            if instruction.opname in _NEVER:
                raise RefusedError(_NEVER[instruction.opname], line_of(part, instruction.offset))
            if instruction.opname == _RAISE and not is_collecting():
                reason = (
                    "it has a raise, which takes a launch with debug=True (or ATOS_DEBUG=1); an assert is left out of other"
                    " launches, if the source that it was made from can be read"
                )
                raise RefusedError(reason, line_of(part, instruction.offset))


def without_asserts(function: FunctionType) -> tuple[CodeType, tuple[CellType, ...]]:
    """Return a function's code and closure as Python makes them where it leaves out asserts (``python -O``).

    The code comes from the source; if that is not there, or not what the function was made from, the asserts stay.
    """
    code, closure = function.__code__, function.__closure__ or ()
    if not any(instruction.opname == _RAISE for part in codes(code) for instruction in dis.get_instructions(part)):
        return code, closure
    source = "".join(linecache.getlines(code.co_filename, function.__globals__))

    def compile_source(optimize: int) -> CodeType | None:
        with contextlib.suppress(SyntaxError, ValueError):
            for part in codes(compile(source, code.co_filename, "exec", 0, True, optimize)):
                if (part.co_name, part.co_firstlineno) == (code.co_name, code.co_firstlineno):
                    return part
        return None

    shorter = compile_source(1)
    if shorter is None or compile_source(-1) != code:
        return code, closure
    cells = dict(zip(code.co_freevars, closure, strict=True))
    return shorter, tuple(cells[name] for name in shorter.co_freevars)


def _read_cell(name: str, cell: CellType, line: int) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        raise RefusedError(f"it uses {name!r}, which has no value yet", line) from None
