"""Plain Python helpers of a task: compiled along with it, without any decoration."""

from __future__ import annotations

import contextlib
import dis
import functools
import inspect
import linecache
from collections.abc import Callable
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, Protocol

import numpy as np

from .device_functions import is_device_function, names_of_numba_cuda
from .introspect import (
    LARGEST_CONSTANT,
    attribute_names,
    codes,
    definition_line,
    global_names,
    is_library,
    line_of,
    members_of,
    plain_function,
)
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
    """A function does what no task can; `place` is the file and the line."""

    def __init__(self, reason: str, code: CodeType, line: int) -> None:
        super().__init__(reason)
        self.place = code.co_filename, line


class Wrapper(Protocol):
    """What a target makes of functions that a task uses.

    `dispatcher` makes a dispatcher of a Python function, `is_known` tells whether Numba has a meaning for a function of its
    own, such as NumPy's, and `device_function` returns what stands for a function that numba-cuda has to compile, or None where
    there is no GPU to run it.
    """

    def dispatcher(self, function: FunctionType) -> Any: ...
    def is_known(self, value: Any) -> bool: ...
    def device_function(self, dispatcher: Any) -> Any: ...


class Specializer:
    """Rebuilds functions so that every plain function that they use, however deep, is replaced by a compiled one."""

    def __init__(self, target: Wrapper) -> None:
        self._target = target
        self._wrap, self._is_known = target.dispatcher, target.is_known
        self._done: dict[int, Any] = {}

    def __call__(self, function: FunctionType) -> Any:
        """Return the dispatcher of a function: of the task, or of a helper."""
        if id(function) in self._done:
            return self._done[id(function)]
        code, closure = function.__code__, function.__closure__ or ()
        if not is_collecting():
            code, closure = without_asserts(function)
        _refuse(code)
        _refuse_names_of_numba_cuda(function)
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
        cells = tuple(CellType(_read_cell(name, cell, code)) for name, cell in zip(code.co_freevars, closure, strict=True))
        copy = FunctionType(*_all_by_place(function, code, variables), cells)
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
            if is_device_function(value) and names_of_numba_cuda(function):
                return self._compiled_by_numba_cuda(value, function)
            if value is not function and is_jitted(value) and not is_library(function):
                return self._jitted(value, function)
            return value if self._is_known(value) else self(function)
        if _has_large_array(value):
            return LargeConstant(name)
        if isinstance(value, type) and issubclass(value, tuple) and getattr(value, "_field_defaults", None):
            return self._wrap(_with_defaults(value))
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

    def _compiled_by_numba_cuda(self, dispatcher: Any, function: FunctionType) -> Any:
        if id(dispatcher) not in self._done:
            self._done[id(dispatcher)] = self._target.device_function(dispatcher)
        found = self._done[id(dispatcher)]
        if found is None:
            code = function.__code__
            name = names_of_numba_cuda(function)[0]
            reason = f"{function.__name__!r} uses numba.cuda (as {name!r}), and so runs on GPUs alone"
            raise RefusedError(reason, code, definition_line(code))
        return found


def _has_large_array(value: Any) -> bool:
    """Whether a variable is an array that is too large for a constant, or a tuple that has one."""
    if isinstance(value, tuple):
        return any(map(_has_large_array, value))
    return isinstance(value, np.ndarray) and value.nbytes > LARGEST_CONSTANT


def _all_by_place(
    function: FunctionType, code: CodeType, variables: dict[str, Any]
) -> tuple[CodeType, dict[str, Any], str, tuple[Any, ...] | None]:
    """Return what a copy of a helper is made of, whose parameters can all be given by place.

    Numba mistakes parameters that are given by keyword alone for others. A call that gives one of them by place is taken too.
    """
    count, names = code.co_kwonlyargcount, code.co_varnames[code.co_argcount :]
    if not count:
        return code, variables, function.__name__, function.__defaults__
    missing = inspect.Parameter.empty
    defaults = [*(function.__defaults__ or ()), *((function.__kwdefaults__ or {}).get(name, missing) for name in names[:count])]
    with_default = tuple(default for default in defaults if default is not missing)
    if code.co_flags & inspect.CO_VARARGS or any(
        default is missing for default in defaults[len(defaults) - len(with_default) :]
    ):
        raise RefusedError(
            f"{function.__name__!r} has parameters that are given by keyword alone, after *args or after parameters with"
            " defaults, which tasks cannot use; let calls give them by place",
            code,
            definition_line(code),
        )
    code = code.replace(co_argcount=code.co_argcount + count, co_kwonlyargcount=0)
    return code, variables, function.__name__, with_default


def _with_defaults(cls: Any) -> FunctionType:
    """Return a function that makes a named tuple: Numba does not know defaults of the class itself."""
    fields = ", ".join(cls._fields)
    made: FunctionType = eval(f"lambda {fields}: _make({fields})", {"_make": cls})  # no field begins with an underscore
    made.__name__, made.__defaults__ = cls.__name__, tuple(cls._field_defaults.values())
    return made


def _refuse(code: CodeType) -> None:
    for part in codes(code):
        for instruction in dis.get_instructions(part):
            if instruction.opname in _NEVER:
                raise RefusedError(_NEVER[instruction.opname], part, line_of(part, instruction.offset))
            if instruction.opname == _RAISE and not is_collecting():
                reason = (
                    "it has a raise, which takes a launch with debug=True (or ATOS_DEBUG=1); an assert is left out of other"
                    " launches, if the source that it was made from can be read"
                )
                raise RefusedError(reason, part, line_of(part, instruction.offset))


def _refuse_names_of_numba_cuda(function: FunctionType) -> None:
    names = names_of_numba_cuda(function)
    if names:
        reason = (
            f"it uses numba.cuda (as {names[0]!r}), as only helpers with @cuda.jit(device=True) may; the worker has what a task"
            " needs, such as worker.rank and worker.size"
        )
        raise RefusedError(reason, function.__code__, definition_line(function.__code__))


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


def _read_cell(name: str, cell: CellType, code: CodeType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        raise RefusedError(f"it uses {name!r}, which has no value yet", code, definition_line(code)) from None
