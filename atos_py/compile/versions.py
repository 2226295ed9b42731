"""Versions of the tasks of a launch: one for each set of values that the variables outside of their functions have had.

Compiled code holds the values of global and captured variables as constants. A launch compares them with those of the launch
before, by identity, and where one has changed goes on with another version: a copy of the tasks, which is compiled under a key
of its own, or was when the variables had these values before.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from types import CellType, FunctionType, ModuleType
from typing import Any

import numpy as np

from ..support.memory_cache import drop_oldest, find, keep
from .codegen.introspect import LARGEST_CONSTANT, attribute_names, global_names, is_library, plain_function, watched_names
from .kinds import Launchable, Tasks, tasks_of

__all__ = ["Versions", "versions_of"]

_MOST_KEPT = 256  # versions of the tasks of a launch
_SCALARS = (type(None), bool, int, float, complex, str, bytes)
# Of several cells or functions at once.
_contents, _codes, _defaults = (
    functools.partial(map, operator.attrgetter(name)) for name in ("cell_contents", "__code__", "__defaults__")
)
_bytes_of, _form_of = operator.methodcaller("tobytes"), operator.attrgetter("dtype", "shape")


def versions_of(
    launched: Launchable, idle: Callable[..., Any] | None = None, each_round: Callable[..., Any] | None = None
) -> Versions:
    """Return the versions of a launch's tasks, which all its launches have in common."""
    key = "versions", launched, idle, each_round
    found: Versions | None = find(key)
    return found or keep(key, Versions(launched, idle, each_round))


class _Identity:
    """A value as a key by which it is found again itself, and nothing that is equal to it."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def _key_of(value: Any) -> Hashable:
    """Return a key of what a task makes of a variable: of numbers, texts, tuples and small arrays the content."""
    if type(value) in _SCALARS:
        return type(value), repr(value)  # which tells -0.0 from 0.0
    if isinstance(value, tuple):
        return type(value), tuple(map(_key_of, value))
    if isinstance(value, (np.ndarray, np.generic)) and value.nbytes <= LARGEST_CONSTANT and not value.dtype.hasobject:
        return type(value), value.dtype, value.shape, value.tobytes()
    return _Identity(value)  # a function whose code is the same is found by its content, once it is to be compiled


class _Variables:
    """The variables that functions read, however deep, with their values at the time that this object was made."""

    def __init__(self, functions: Iterable[Any]) -> None:
        self._namespaces: dict[int, tuple[dict[str, Any], set[str]]] = {}
        self._cells: dict[int, CellType] = {}
        self._functions: dict[int, FunctionType] = {}
        self._arrays: dict[int, Any] = {}
        self._followed: set[tuple[int, frozenset[str]]] = set()
        self._has_unset = False
        for function in functions:
            self._follow(function, frozenset())
        # In the fewest steps of the interpreter, since each launch looks: functions in C that read many variables at once.
        self._reads: list[tuple[Callable[[Any], Iterable[Any]], Any, tuple[Any, ...]]] = []
        self._absent = []
        names: list[tuple[str, ...]] = []
        for namespace, watched in self._namespaces.values():
            present = tuple(sorted(watched & namespace.keys()))
            names.append(present)
            if present:
                get = operator.itemgetter(*present, present[0])  # of two names or more, which makes a tuple
                self._reads.append((get, namespace, get(namespace)))
            if absent := watched.difference(present):
                self._absent.append((namespace.keys(), absent))
        for read, of in ((_contents, self._cells), (_codes, self._functions), (_defaults, self._functions)):
            holders = tuple(of.values())
            values = tuple(read(holders))
            if any(value is not None for value in values) or read is _contents:
                self._reads.append((read, holders, values))
        self._constants = tuple(self._arrays.values())
        self._bytes, self._forms = tuple(map(_bytes_of, self._constants)), tuple(map(_form_of, self._constants))
        self.key: Hashable = tuple(names), tuple(tuple(map(_key_of, values)) for _, _, values in self._reads)

    def are_current(self) -> bool:
        """Whether each variable is what it was, and no array among them has other elements."""
        if self._has_unset:
            return False
        try:
            for get, holder, values in self._reads:
                if not all(map(operator.is_, get(holder), values)):
                    return False
        except (KeyError, ValueError):  # a variable that is deleted
            return False
        for names, absent in self._absent:
            if not names.isdisjoint(absent):
                return False
        arrays = self._constants
        return not arrays or (
            all(map(operator.eq, map(_bytes_of, arrays), self._bytes))
            and all(map(operator.eq, map(_form_of, arrays), self._forms))
        )

    def _follow(self, value: Any, attributes: frozenset[str]) -> None:
        """Note the variables that a value has, of a module those with a name that is one of `attributes`."""
        function = plain_function(value)
        if function is not None:
            self._follow_function(function)
        elif isinstance(value, ModuleType):
            self._follow_names(vars(value), watched_names(value, attributes), attributes)
        elif isinstance(value, tuple):
            for member in value:
                self._follow(member, attributes)
        elif isinstance(value, (np.ndarray, np.void)) and value.nbytes <= LARGEST_CONSTANT:
            self._arrays[id(value)] = value

    def _follow_function(self, function: FunctionType) -> None:
        if id(function) in self._functions or is_library(function):
            return
        self._functions[id(function)] = function
        attributes = attribute_names(function.__code__)
        self._follow(function.__defaults__, attributes)
        self._follow_names(function.__globals__, global_names(function.__code__), attributes)
        for cell in function.__closure__ or ():
            try:
                value = cell.cell_contents
            except ValueError:
                self._has_unset = True  # and the function refused, until the variable has a value
                continue
            self._cells[id(cell)] = cell
            self._follow(value, attributes)

    def _follow_names(self, namespace: dict[str, Any], names: Iterable[str], attributes: frozenset[str]) -> None:
        self._namespaces.setdefault(id(namespace), (namespace, set()))[1].update(names)
        for name in sorted(names):
            value = namespace.get(name)
            if not isinstance(value, ModuleType):
                self._follow(value, attributes)
            elif (id(value), attributes) not in self._followed:
                self._followed.add((id(value), attributes))
                self._follow(value, attributes)


class Versions:
    """The versions of the tasks of a launch.

    Attributes
    ----------
    newest : tuple of _Variables and Launchable
        What was looked at last, and the version for it.
    """

    def __init__(self, launched: Launchable, idle: Callable[..., Any] | None, each_round: Callable[..., Any] | None) -> None:
        self._launched = launched
        bodies = [function for task in tasks_of(launched) for function in (task.body, task.workload)]
        self._functions = *bodies, idle, each_round
        self._kept: dict[Hashable, Launchable] = {}
        self.look()

    def current(self) -> Launchable:
        """Return the version for the values that the variables of all functions of the launch have now."""
        variables, version = self.newest
        return version if variables.are_current() else self.look()

    def look(self) -> Launchable:
        """Return the version for these values, one or more of which has changed."""
        variables = _Variables(self._functions)
        version = self._kept.get(variables.key)
        if version is None:
            version = self._kept[variables.key] = _copy(self._launched)
            drop_oldest(self._kept, _MOST_KEPT)
        self.newest = variables, version
        return version


def _copy(launched: Launchable) -> Launchable:
    """Return tasks that do the same and are equal to no others, so that whatever is kept for them is theirs alone."""
    return Tasks(tuple(map(replace, launched.members))) if isinstance(launched, Tasks) else replace(launched)
