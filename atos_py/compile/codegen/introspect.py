"""References of a function to values outside itself, and a hash of them: for compiling helpers and naming cache entries."""

from __future__ import annotations

import dis
import enum
import functools
import hashlib
import importlib
import importlib.metadata
import linecache
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from ..task import Task
from .numba_private import compiler_of, given_signatures, overload_of

__all__ = [
    "LARGEST_CONSTANT",
    "UnhashableError",
    "attribute_names",
    "bytecode_of",
    "codes",
    "definition_line",
    "fingerprint",
    "first_return",
    "global_names",
    "is_library",
    "line_of",
    "members_of",
    "plain_function",
    "reads_parameter",
    "watched_names",
]

LARGEST_CONSTANT = 4096  # bytes of an array that is a global or captured variable: launches compare what it holds
# Of this package: words of tasks, which Numba is taught, and nothing of which Numba compiles itself.
_WORDS = "atomics", "cached_load", "local_array", "packing", "random_numbers", "returned", "task", "vector_access"
_OURS = ("atos_py", *(f"atos_py.compile.{name}" for name in _WORDS))
_LIBRARIES = ("builtins", "math", "numba", "numpy", "operator")


class UnhashableError(Exception):
    """A function refers to a value whose content cannot be named."""


def codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of a function and of the functions defined inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


@functools.lru_cache(4096)
def global_names(code: CodeType) -> frozenset[str]:
    """Return the names of the global variables that a function reads."""
    return frozenset(
        instruction.argval
        for part in codes(code)
        for instruction in dis.get_instructions(part)
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    )


@functools.lru_cache(4096)
def attribute_names(code: CodeType) -> frozenset[str]:
    """Return the names of attributes that a function may read, among which are those of its global variables."""
    return frozenset(name for part in codes(code) for name in part.co_names)


def definition_line(code: CodeType) -> int:
    """Return the line with the name of a function, below those of its decorators."""
    lines = linecache.getlines(code.co_filename)[code.co_firstlineno - 1 :]
    if lines and lines[0].lstrip().startswith("@"):
        for below, line in enumerate(lines):
            if re.match(r"\s*(async\s+)?def\s", line):
                return code.co_firstlineno + below
    return code.co_firstlineno


def first_return(code: CodeType) -> tuple[str, int] | None:
    """Return the place of the first line that begins with a return of a value, or None if the source does not tell."""
    for line in sorted({line for _, _, line in code.co_lines() if line}):
        if re.match(r"\s*return\s+(?!None\b)\S", linecache.getline(code.co_filename, line)):
            return code.co_filename, line
    return None


def line_of(code: CodeType, offset: int) -> int:
    """Return the line of an instruction, or of the next one that has any: the first of a handler has none."""
    return next((line for _, end, line in code.co_lines() if offset < end and line), code.co_firstlineno)


def plain_function(value: Any) -> FunctionType | None:
    """Return the Python function that `value` is or, as a Numba dispatcher, stands for; None if it is something else."""
    function = getattr(value, "py_func", value)
    return function if isinstance(function, FunctionType) else None


def reads_parameter(function: Any, place: int) -> bool:
    """Whether a function may read one of its parameters: the argument of one that it does not need not be loaded."""
    plain = plain_function(function)
    if plain is None or place >= plain.__code__.co_argcount:
        return True
    name = plain.__code__.co_varnames[place]
    read = [instruction.argval for part in codes(plain.__code__) for instruction in dis.get_instructions(part)]
    return any(name == each or (isinstance(each, tuple) and name in each) for each in read)


def bytecode_of(code: CodeType) -> tuple[Any, ...]:
    """Return all that a function's code consists of."""
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return (code.co_code, *counts, *names, code.co_consts)


class _Seen(dict[Any, int]):
    """Functions by number, those under way by -1, and how their code is described."""

    def __init__(self, describe_code: Callable[[CodeType], tuple[Any, ...]]) -> None:
        self.describe_code = describe_code


def fingerprint(*values: Any, describe_code: Callable[[CodeType], tuple[Any, ...]] = bytecode_of) -> str:
    """Return a hash of everything that the compiled form of `values` depends on, functions followed into what they use.

    Raises
    ------
    UnhashableError
        If a value is met whose content cannot be named.
    """
    hasher = hashlib.sha256()
    seen = _Seen(describe_code)
    for value in (*values, tuple(_overloads())):
        for part in _parts(value, seen):
            hasher.update(len(part).to_bytes(8, "little") + part)
    return hasher.hexdigest()


def _parts(value: Any, seen: _Seen) -> Iterator[bytes]:
    """Yield an unambiguous description of a value, piece by piece; `seen` numbers functions, those under way by -1."""
    yield type(value).__qualname__.encode()
    function = plain_function(value)
    if function is not None:
        if value is not function:
            yield from _parts(_describe_dispatcher(value), seen)
        number = seen.get(id(function))
        if number == -1:  # native code that calls itself cannot be loaded in another process
            raise UnhashableError(f"{function.__qualname__} calls itself")
        if number is not None:
            yield str(number).encode()
            return
        seen[id(function)] = -1
        yield from _parts_of_function(function, seen)
        seen[id(function)] = len(seen)
    elif isinstance(value, Task):  # named in a push; which kind of the launch that is, its name says
        yield value.name.encode()
    elif value is None or isinstance(value, (bool, int, float, complex, str)):
        yield repr(value).encode()
    elif isinstance(value, bytes):
        yield value
    elif isinstance(value, (tuple, list, set, frozenset)):
        members = sorted(value, key=repr) if isinstance(value, (set, frozenset)) else value
        yield f"{len(value)} {getattr(value, '_fields', '')}".encode()
        for member in members:
            yield from _parts(member, seen)
    elif isinstance(value, dict):
        yield from _parts(sorted(value.items()), seen)
    elif isinstance(value, np.dtype):
        yield str(value.itemsize).encode()
        for name in value.names or ():
            yield f"{name} {value.fields[name]!r}".encode()  # type: ignore[index]
        yield value.str.encode()
    elif isinstance(value, (np.ndarray, np.generic)) and not value.dtype.hasobject:
        yield from _parts(value.dtype, seen)
        yield repr(value.shape).encode()
        yield value.tobytes()
    elif isinstance(value, CodeType):
        yield from _parts(seen.describe_code(value), seen)
    elif isinstance(value, ModuleType):
        yield value.__name__.encode()
    elif isinstance(value, type):
        yield f"{value.__module__}.{value.__qualname__} {getattr(value, '_fields', '')}".encode()
        yield from _parts(getattr(value, "_field_defaults", None), seen)
        if isinstance(value, enum.EnumMeta):
            members_of_enum: dict[str, Any] = dict(value.__members__)
            yield repr([(name, member.value) for name, member in members_of_enum.items()]).encode()
    elif _is_named_by_library(value):  # builtins, NumPy's ufuncs
        yield f"{value.__module__}.{value.__name__}".encode()
    else:
        raise UnhashableError(f"{type(value).__qualname__} {value!r}")


def _parts_of_function(function: FunctionType, seen: _Seen) -> Iterator[bytes]:
    if is_library(function):
        yield f"{function.__module__}.{function.__qualname__}".encode()
        return
    if _is_overloaded(function):
        raise UnhashableError(f"{function.__qualname__} stands for an overload")
    yield from _parts(function.__code__, seen)
    yield from _parts(function.__defaults__, seen)
    yield from _parts(function.__kwdefaults__, seen)
    attributes = attribute_names(function.__code__)
    for name in sorted(global_names(function.__code__) & function.__globals__.keys()):
        yield name.encode()
        yield from _parts_of_global(function.__globals__[name], attributes, seen)
    for cell in function.__closure__ or ():
        try:
            value = cell.cell_contents
        except ValueError:
            raise UnhashableError("a variable without a value") from None
        yield from _parts_of_global(value, attributes, seen)


def _describe_dispatcher(dispatcher: Any) -> tuple[Any, ...]:
    """Return what a Numba dispatcher adds to its function: options, types of variables, and the signatures given to it."""
    options = dict(getattr(dispatcher, "targetoptions", {}))
    if options.get("link"):
        raise UnhashableError(f"{dispatcher.__name__} links files")
    pipeline = compiler_of(dispatcher)
    if pipeline is not None and not _is_named_by_library(pipeline):
        raise UnhashableError(f"{dispatcher.__name__} is compiled by {pipeline.__name__}")
    variables = {name: str(kind) for name, kind in (getattr(dispatcher, "locals", None) or {}).items()}
    compiler = _version_of_numba_cuda() if type(dispatcher).__module__.startswith("numba.cuda.") else ""
    return options, variables, pipeline, given_signatures(dispatcher), compiler


@functools.cache
def _version_of_numba_cuda() -> str:
    """Return the version of what compiles device functions that use its names."""
    try:
        return importlib.metadata.version("numba-cuda")
    except importlib.metadata.PackageNotFoundError:
        return "absent"


class _Overloads(NamedTuple):
    """The users' overloads in a typing registry of Numba, and how many entries of its three lists have been read."""

    entries_read: tuple[int, ...] = (0, 0, 0)
    templates: tuple[Any, ...] = ()
    functions: frozenset[int] = frozenset()  # `id` of functions with another implementation, which the registry keeps alive


_read: dict[str, _Overloads] = {}  # by the module of the registry


def _read_registry(name: str, registry: Any) -> _Overloads:
    """Return the users' overloads in a registry, and read the entries that were added at its end since the last call."""
    lists = registry.functions, registry.attributes, registry.globals
    lengths, before = tuple(map(len, lists)), _read.get(name, _Overloads())
    if lengths == before.entries_read:
        return before
    if any(now < then for now, then in zip(lengths, before.entries_read, strict=True)):
        before = _Overloads()
    new = [entries[begin:end] for entries, begin, end in zip(lists, before.entries_read, lengths, strict=True)]
    found = [(template, overload_of(template)) for template in (*new[0], *new[1])]
    templates = tuple(template for template, overload in found if overload is not None and not is_library(overload[0]))
    functions = before.functions | {id(value) for value, _ in new[2]}
    _read[name] = _Overloads(lengths, before.templates + templates, functions)
    return _read[name]


def _overloads() -> Iterator[tuple[Any, ...]]:
    """Yield what the user has told Numba about functions and attributes that only a library's name stands for."""
    for overloads in _registries():
        for template in overloads.templates:
            given = overload_of(template)
            assert given is not None
            function, options, attribute = given
            key = template.key
            if plain_function(key) is None or is_library(key):
                of = f"{key.__module__}.{key.__qualname__}" if hasattr(key, "__qualname__") else str(key)
                # Numba knows some of these functions by themselves too, which would be taken for functions that are overloaded.
                copy = FunctionType(function.__code__, function.__globals__, closure=function.__closure__)
                yield of, attribute, options, copy, function.__defaults__, function.__kwdefaults__


def _parts_of_global(value: Any, attributes: frozenset[str], seen: _Seen) -> Iterator[bytes]:
    yield from _parts(value, seen)
    if isinstance(value, ModuleType):
        for name, member in sorted(members_of(value, attributes).items()):  # each function uses others of them
            if (id(value), name) not in seen:
                seen[id(value), name] = len(seen)
                yield name.encode()
                yield from _parts_of_global(member, attributes, seen)


def is_library(value: FunctionType | ModuleType) -> bool:
    """Whether a name and a version say all there is to say about a function or module."""
    # Not by the function's __module__, which functools.wraps copies from another.
    name = value.__name__ if isinstance(value, ModuleType) else value.__globals__.get("__name__") or ""
    return name in _OURS or name.partition(".")[0] in _LIBRARIES


def members_of(module: ModuleType, attributes: frozenset[str]) -> dict[str, Any]:
    """Return what a function with such attributes may use of a module, by name; of this package the modules alone."""
    ours = module.__name__ == _OURS[0]
    if ours:  # which has some of its names only once they are asked for
        for name in attributes.intersection(module.__all__):
            getattr(module, name)
    used = {name: vars(module)[name] for name in attributes & vars(module).keys()}
    if not is_library(module):
        return used
    return {name: member for name, member in used.items() if ours and isinstance(member, ModuleType)}


def watched_names(module: ModuleType, attributes: frozenset[str]) -> Iterable[str]:
    """Return the names of a module that a function with such attributes may read, of which some may not be there yet."""
    return members_of(module, attributes) if is_library(module) else attributes


def _is_overloaded(function: FunctionType) -> bool:
    """Whether what Numba compiles for a function is another one, given by `numba.extending.overload` or the like."""
    return any(id(function) in overloads.functions for overloads in _registries())


def _registries() -> list[_Overloads]:
    """Return the users' overloads in the typing registries of Numba's targets, as far as these are imported."""
    # Another thread may be importing one, which import_module waits for.
    names = "numba.core.typing.templates", "numba.cuda.typing.templates"
    return [_read_registry(name, importlib.import_module(name).builtin_registry) for name in names if name in sys.modules]


def _is_named_by_library(value: Any) -> bool:
    """Whether a library has this very object under its name: what users make with its decorators is something else."""
    module, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
    if not isinstance(module, str) or not isinstance(name, str) or module.partition(".")[0] not in _LIBRARIES:
        return False
    return getattr(sys.modules.get(module), name, None) is value
