"""The layout of joins in memory: the words of a record, the bits of a handle, and the lists of free records."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .array import Array

__all__ = [
    "BLOCK",
    "CLASSES",
    "CODES",
    "COUNT",
    "FIRST_GENERATION",
    "GENERATIONS",
    "GENERATIONS_OF_RESET",
    "HANDLE_CODE",
    "HANDLE_GENERATION",
    "HEAD",
    "INDEX",
    "INFO",
    "INFO_CODE",
    "INFO_GENERATION",
    "IS_OPEN",
    "LINK",
    "LISTS",
    "MISSING",
    "NEGATES",
    "NEXT",
    "PUSHES",
    "RESERVED",
    "TAG",
    "UNDECLARED",
    "JoinsParts",
    "combine_of",
    "handles_of",
    "identity",
]

# The words of a record: arrivals that are missing; the parent's handle, the priority of the item that ends it or, of a free
# record, the next one in its block; what it is (below); whether a value has arrived or, of the first record of a free block,
# the next block.
MISSING, LINK, INFO, NEXT = range(4)
# What a record is, in its word INFO: open, ended by a push, with a value that is negated for the parent; how it combines; and
# above that its generation, which is another one each time that it is opened.
IS_OPEN, PUSHES, NEGATES = 1, 2, 4
INFO_CODE, INFO_GENERATION = 3, 5  # bits below
# A handle: the record's index and 1 in 32 bits, how it combines in 2, and its generation in 29. 0 is the root.
INDEX, HANDLE_CODE, HANDLE_GENERATION = 0xFFFF_FFFF, 32, 34
GENERATIONS = 2**29 - 1
TAG = 1 << 32  # added to the head of a list of free blocks whenever a block is taken from it
CODES = {None: 0, "sum": 1, "min": 2, "max": 3}
BLOCK = 8  # free records that come and go together
LISTS = 1024  # of free blocks
UNDECLARED, FIRST_GENERATION = LISTS, LISTS + 1  # beside their heads: joins that found no record, and what new records are of
GENERATIONS_OF_RESET = 1_000_003
# Of a thread's own free records: the first one and 1, how many, and how many it keeps for tasks that open more than a block.
HEAD, COUNT, RESERVED = range(3)


class JoinsParts(NamedTuple):
    """The memory of joins, as tasks use it.

    `records` is a pool, whose elements have four words, a value, and the item that is pushed at the end. `own` has a row for
    each thread, with its free records. `free` has the heads of lists of free blocks, how many joins found no record within a
    task, and the generation of new records. `root` has the value of the root.
    """

    records: Any
    own: Array
    free: Array
    root: Array


class _PartsNone(JoinsParts):
    __slots__ = ()


class _PartsSum(JoinsParts):
    __slots__ = ()


class _PartsMin(JoinsParts):
    __slots__ = ()


class _PartsMax(JoinsParts):
    __slots__ = ()


CLASSES: dict[str | None, type[JoinsParts]] = {None: _PartsNone, "sum": _PartsSum, "min": _PartsMin, "max": _PartsMax}


def combine_of(parts: type) -> str | None:
    """Return how joins whose parts are of this class combine values."""
    return next(combine for combine, cls in CLASSES.items() if cls is parts)


def identity(dtype: np.dtype[Any], combine: str | None) -> Any:
    """Return the value that changes nothing when it is combined with others."""
    if combine not in ("min", "max"):
        return dtype.type(0)
    if dtype.kind == "f":
        return dtype.type(np.inf if combine == "min" else -np.inf)
    limits = np.iinfo(dtype)
    return dtype.type(limits.max if combine == "min" else limits.min)


def handles_of(index: NDArray[np.int64], info: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the handles of records, from their indices and what they are."""
    code = info >> INFO_CODE & 3
    return (info >> INFO_GENERATION) << HANDLE_GENERATION | code << HANDLE_CODE | (index + 1)
