"""Named words of an array that the tasks of a launch share, as the level of a search and the number of its vertices.

A record is a `NamedTuple` of numbers of words, by default of one each:

    class LevelState(NamedTuple):
        level: int = 1
        found: int = 1
        sums: int = 64  # words that a sum is spread over

    AT = places(LevelState)  # a constant of tasks and of the host: AT.level is 0, AT.sums is 2
    state = new_record(LevelState, device, level=1)
    begin_record(LevelState, state, level=1)  # again

A task then reads ``state[AT.level]``, and the host ``read_record(LevelState, state).level`` of all words at once.
"""

from __future__ import annotations

import functools
from itertools import accumulate
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..core.devices import Device
from .array import Array, zeros
from .memory import copy_bytes

__all__ = ["begin_record", "first_words", "new_record", "places", "read_record", "record_size"]

R = TypeVar("R", bound=tuple[Any, ...])


@functools.cache
def _borders(kind: Any) -> tuple[int, ...]:
    """Return the place of the first word of each field, and the number of all words."""
    return tuple(accumulate(kind._field_defaults.values(), initial=0))


def places(kind: type[R]) -> R:
    """Return the places of the fields in an array: of each field that of its first word."""
    return cast(R, cast(Any, kind)._make(_borders(kind)[:-1]))


def record_size(kind: type[tuple[Any, ...]]) -> int:
    """Return the number of words of all fields together."""
    return _borders(kind)[-1]


def first_words(kind: type[tuple[Any, ...]], dtype: DTypeLike = np.int64, **begin: Any) -> NDArray[Any]:
    """Return the words of a record on the host, in which some fields have a value to begin with and the others are 0."""
    words, at = np.zeros(record_size(kind), dtype), places(kind)
    for name, value in begin.items():
        words[getattr(at, name)] = value
    return words


def begin_record(kind: type[tuple[Any, ...]], state: Array, **begin: Any) -> None:
    """Set all fields, those that are not given a value to `begin` with to 0."""
    words = first_words(kind, state.dtype, **begin)
    copy_bytes(state.device, state.pointer, words, words.nbytes)


def new_record(kind: type[tuple[Any, ...]], device: Device, dtype: DTypeLike = np.int64, **begin: Any) -> Array:
    """Return a new array that has the fields, as `begin_record` sets them."""
    made = zeros(record_size(kind), dtype=dtype, device=device)
    if any(begin.values()):
        begin_record(kind, made, **begin)
    return made


def read_record(kind: type[R], state: Array) -> R:
    """Return the fields of an array, of each its first word as a number of Python."""
    words = state.to_numpy().tolist()
    return cast(R, cast(Any, kind)._make(map(words.__getitem__, _borders(kind)[:-1])))
