"""Which arguments of a launch are counters: the arrays at whose elements its functions, helpers included, arrive.

A function with arrivals and checks is compiled once more, with types that tell its integer arrays apart: a type has the
numbers of the arrays that a variable may be. Numba's inference so follows them through helpers, tuples and choices. Code made
of such types is not run. Where they cannot be told apart, such as in a loop over a tuple of arrays, nothing is found.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import lower_cast

from ...errors import TaskCompileError
from .lower_checks import arrivals
from .types import JoinsType, PoolType, TaskArray

__all__ = ["find_counters"]


def find_counters(
    compile_again: Callable[[FunctionType, tuple[types.Type, ...]], None],
    function: FunctionType,
    parameters: Sequence[types.Type],
    num_args: int,
) -> list[int]:
    """Return the numbers, among the launch's arrays, of those at whose elements a function arrives.

    Parameters
    ----------
    compile_again : callable
        Compiles a function for types of its parameters, and raises `TaskCompileError` if it cannot.
    function : function
    parameters : sequence of types.Type
        What it was compiled for.
    num_args : int
        How many of these, the last ones, are the arguments of the launch.
    """
    first = len(parameters) - num_args
    arrivals()  # of the function before
    with contextlib.suppress(TaskCompileError):
        compile_again(function, (*parameters[:first], *_numbered(parameters[first:], itertools.count())))
        return sorted(frozenset[int]().union(*arrivals()))
    return []


def _numbered(kinds: Sequence[types.Type], numbers: Iterator[int]) -> tuple[types.Type, ...]:
    """Return types of arguments in which arrays that may count have their numbers, which go on in the order of `unpack`."""

    def numbered(kind: types.Type) -> types.Type:
        if isinstance(kind, TaskArray):
            number = frozenset([next(numbers)])
            counts = kind.access != "readonly" and kind.dtype in (types.int32, types.int64)
            return kind.numbered(number) if counts else kind
        if isinstance(kind, JoinsType):
            return JoinsType(_numbered(tuple(kind), numbers), kind.instance_class)
        if isinstance(kind, types.BaseTuple):
            return types.BaseTuple.from_types(_numbered(tuple(kind), numbers), getattr(kind, "instance_class", None))
        if isinstance(kind, PoolType):
            return PoolType(tuple(kind.arrays), _numbered(tuple(kind.arrays.values()), numbers))  # type: ignore[arg-type]
        return kind

    return tuple(map(numbered, kinds))


@lower_cast(TaskArray, TaskArray)
def cast_array(context: Any, builder: ir.IRBuilder, given: TaskArray, wanted: TaskArray, value: ir.Value) -> ir.Value:
    """Lower an array that becomes one of several: its type alone changes."""
    return value
