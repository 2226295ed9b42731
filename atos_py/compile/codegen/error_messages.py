"""Numba's errors, made short: which task, where, for which arguments, and what was wrong."""

from __future__ import annotations

import contextlib
import difflib
import dis
import linecache
import os
import re
import traceback
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from ...errors import AtosError, TaskCompileError
from .introspect import codes, definition_line, line_of

_COLORS = re.compile(r"\x1b\[[0-9;]*m")
_OURS = re.compile(r"«(.*?)»", re.DOTALL)
_PLACE = re.compile(r'File "(?P<path>[^"]+)", line (?P<line>\d+)|Raised from (?P<from>.+) \((?P<at>\d+)\)')
# What Numba says about itself rather than about the task.
_NOISE = re.compile(
    r"^(Failed in |There are \d+ candidate|- Of which|Overload (of|in) |File: |Enable logging|TypingError: Failed)"
)
_DETAILS = re.compile(r"^(With argument|Rejected as)")
_MOST_LINES = 4
_ALLOCATING = (
    *("BUILD_LIST", "BUILD_MAP", "BUILD_SET", "BUILD_CONST_KEY_MAP", "BUILD_STRING"),
    *("FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC"),
)
_ALLOCATES = (
    "it allocates memory (an array, a list, a dict, a set, a string), which tasks cannot do; use arrays given as arguments of"
    " the launch, or worker.scratch"
)
_OUTSIDE = "arrays reach a task as arguments of the launch, and its global variables are numbers, tuples and functions"
_MAKERS = r"zeros|ones|empty|full|array|arange|linspace|asarray|concatenate|stack|repeat|tile|copy|sort|argsort|unique|\w+_like"
_BUILTINS = ("list", "dict", "set", "bytearray", "str", "sorted")
_FUNCTION = r"Function\(<(?:built-in )?function"
_ARRAY = r"(?:checked )?(?:shared|readonly|scratch|local) array\("
# In Numba's words, and in plain ones; the first that matches.
_PLAIN = [
    (
        "Cannot modify readonly array",
        "it sets an element of a global or captured array, which is a constant in a task; pass the array as an argument of the"
        " launch",
    ),
    (r"assigned to variable '(\w+)' in globals", f"its global variable {{0!r}} is a list or a set; {_OUTSIDE}"),
    (r"OverloadSelector object .*\((?:List|Set)\(", f"its global variable is a list or a set; {_OUTSIDE}"),
    (rf"\bNRT|{_FUNCTION} (?:{_MAKERS}|sorted)\b", _ALLOCATES),
    (rf"Untyped global name '(?:{'|'.join(_BUILTINS)})'|has no attribute 'build_(?:list|set|map)'", _ALLOCATES),
    (
        r"getitem\([^\n]*, Literal\[str\]\((\w+)\)",
        "the text {0!r} is used as an index; a field of an item is an attribute, as in item.{0}",
    ),
    (r"\b(?:list|set|DictType)[(\[]|Literal\[str\]", _ALLOCATES),
    (
        r"getitem\(none\b",
        "it takes an element of None: an argument or a part of one is None, as graph.weights is where a graph has no weights",
    ),
    (
        r"Use of unsupported NumPy function 'numpy\.([\w.]+)'",
        "numpy.{0} cannot be used in a task, or not like this; a task works on numbers and on elements of arrays: write a loop",
    ),
    (r"Unknown attribute '(\w+)' of type Graph\(", "a graph in a task has no {0!r}; it has indptr, indices and weights"),
    (
        r"NameError: name '(\w+)' is not defined",
        "the name {0!r} is not defined where it is used; a helper gets what it uses, the worker too, as arguments",
    ),
    (
        r"use of yield in a closure|'NoneType' object has no attribute 'get_function_type'",
        "it uses a generator (a yield, a generator expression, map or filter); write a loop",
    ),
    (
        rf"Unknown attribute '(\w+)' of type {_ARRAY}",
        "an array in a task has no {0!r}; it has elements, len(), shape, size, ndim and dtype: write a loop",
    ),
    (
        rf"getiter with parameters \({_ARRAY}",
        "a loop goes over an array; let it go over range(len(array)), and take the elements",
    ),
    (
        rf"{_FUNCTION} (\w+)[^>]*>\) found for signature:\s*>>> \w+\([^\n]*{_ARRAY}",
        "{0!r} is used on a whole array, and in tasks there are only elements: write a loop",
    ),
    (
        r"returned by `@overload` has an unexpected type",
        "it calls a function in a way that tasks cannot, such as sorted, which makes a list",
    ),
    (r"Function\(<class 'tuple'>\)", "it makes a tuple of a length that is not known before the task runs"),
    (r"Unknown attribute '(\w+)' of type Module\(<module '([\w.]+)'", "{1}.{0} cannot be used in a task on this device"),
    (r"Untyped (?:global name|freevar) '(\w+)':.*<class 'type'>", f"it uses {{0!r}}, a class, which tasks cannot; {_OUTSIDE}"),
    (
        r"Untyped (?:global name|freevar) '(\w+)':? ?Cannot determine Numba type of <class '([\w.]+)'>",
        f"it uses {{0!r}}, of type {{1}}, which tasks cannot; {_OUTSIDE}",
    ),
]


@contextlib.contextmanager
def translated(name: str, function: Any, arguments: str) -> Iterator[None]:
    """Turn an error of Numba's, raised while `function` is compiled for `arguments`, into a `TaskCompileError`."""
    try:
        yield
    except AtosError:
        raise
    except Exception as error:  # Numba's own errors, and what its lowering raises about code that it did not foresee
        text = _COLORS.sub("", str(error))
        essence = _essence(error, text)
        place = _place(error, text) or _place_of_culprit(function, text, essence == _ALLOCATES)
        # Numba's traceback is a hundred lines about Numba; `__context__` has it.
        raise failure(name, function, arguments, essence, place) from None


def failure(name: str, function: Any, arguments: str, reason: str, place: tuple[str, int] | None = None) -> TaskCompileError:
    """Return the error of a task that cannot be compiled, with the line that it is about."""
    path, line = place or (function.__code__.co_filename, definition_line(function.__code__))
    source = linecache.getline(path, line).strip()
    where = f"{path}, line {line}" + (f": {source}" if source else "")
    message = f"task {name!r} cannot be compiled: {reason}\n  in {function.__name__}, {where}\n  for {arguments}"
    return TaskCompileError(message, (path, line, function.__name__))


def _essence(error: Exception, text: str) -> str:
    ours = _OURS.search(text)
    if ours:
        return " ".join(ours.group(1).split())
    for pattern, plain in _PLAIN:
        if match := re.search(pattern, text):
            return plain.format(*match.groups())
    if isinstance(error, AttributeError) and isinstance(error.obj, ModuleType):
        near = difflib.get_close_matches(str(error.name), dir(error.obj), 1)
        return f"module {error.obj.__name__!r} has no {error.name!r}" + (f"; did you mean {near[0]!r}?" if near else "")
    if isinstance(error, KeyError):
        return f"{text} is not there on this device; use what the math module has"
    lines: list[str] = []
    for line in (line.strip() for line in text.splitlines()):
        if line.startswith(("During: ", 'File "')) or (lines and _DETAILS.match(line)):
            break
        if line and not _NOISE.match(line):
            lines.append(line)
    essence = " ".join(lines[:_MOST_LINES]) or type(error).__name__
    essence = re.sub(r"\.? Raised from .+ \(\d+\)$", "", essence)
    if "Untyped global name" in essence or "Untyped freevar" in essence:
        essence += f"; {_OUTSIDE}"
    return essence


def _place(error: Exception, text: str) -> tuple[str, int] | None:
    """Return the innermost place that Numba names, which may lie in a helper of the task."""
    for match in _PLACE.finditer(text):
        given, line = match["path"] or match["from"], match["line"] or match["at"]
        path = os.path.abspath(given)
        if f"{os.sep}numba{os.sep}" in path:
            continue
        for name in (path, given):  # a cell of a notebook has a name and lines, but no file
            if os.path.exists(name) or name in linecache.cache:
                return name, int(line)
    # numba-cuda lets errors of Numba's own pass without adding the place; it was at work on some constraint then.
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    constraint = next((f.f_locals["constraint"] for f in reversed(frames) if "constraint" in f.f_locals), None)
    return (constraint.loc.filename, constraint.loc.line) if constraint else None


def _place_of_culprit(function: Any, text: str, allocates: bool) -> tuple[str, int] | None:
    """Return the first line that may have led to an error of which Numba names no place."""
    for code in codes(function.__code__):
        for instruction in dis.get_instructions(code):
            name = instruction.argval if instruction.opname == "LOAD_GLOBAL" else None
            if (
                (name and f"name {name!r} is not defined" in text)
                or f"variable {instruction.argval!r} is an array" in text
                or (allocates and (instruction.opname in _ALLOCATING or name in _BUILTINS))
                or ("OverloadSelector" in text and isinstance(getattr(function, "__globals__", {}).get(name), (list, set)))
            ):
                return code.co_filename, line_of(code, instruction.offset)
    return None
