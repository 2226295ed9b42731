"""The layout of joins in memory: the words of a record, the bits of a handle, and the lists of free records."""

from __future__ import annotations

from collections.abc import Sized
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
    "MOST_MISSING",
    "NEGATES",
    "NEXT",
    "PUSHES",
    "RESERVED",
    "TAG",
    "UNDECLARED",
    "JoinsParts",
    "combine_of",
    "explain_stray",
    "handles_of",
    "identity",
    "is_in_word",
    "list_free",
    "missing_of",
    "value_in_word",
    "words_with",
]

# The words of a record: arrivals that are missing; whether a value has arrived or, of the first record of a free block, the
# next block; the parent's handle, the priority of the item that ends it or, of a free record, the next one in its block; what
# it is (below). The words are read and written two at a time.
MISSING, NEXT, LINK, INFO = range(4)
# A value of 32 bits is the upper half of the word MISSING, so that one atomic operation changes both; the lower half counts.
# What a record is, in its word INFO: open, ended by a push, with a value that is negated for the parent; how it combines; and
# above that its generation, which is another one each time that it is opened.
IS_OPEN, PUSHES, NEGATES = 1, 2, 4
INFO_CODE, INFO_GENERATION = 3, 5  # bits below
# A handle: the record's index and 1 in 32 bits, how it combines in 2, and its generation in 29. 0 is the root.
INDEX, HANDLE_CODE, HANDLE_GENERATION = 0xFFFF_FFFF, 32, 34
GENERATIONS = 2**29 - 1
MOST_MISSING = {False: 2**62, True: 2**31 - 1}  # by whether a value is in the word
TAG = 1 << 32  # added to the head of a list of free blocks whenever a block is taken from it
CODES = {None: 0, "sum": 1, "min": 2, "max": 3}
BLOCK = 16  # free records that come and go together
LISTS = 1024  # of free blocks
UNDECLARED, FIRST_GENERATION = LISTS, LISTS + 1  # beside their heads: joins that found no record, and what new records are of
GENERATIONS_OF_RESET = 1_000_003
# Of a thread's own free records: the first one and 1, how many, and how many it keeps for tasks that open more than a block.
HEAD, COUNT, RESERVED = range(3)


class JoinsParts(NamedTuple):
    """The memory of joins, as tasks use it.

    `records` is a pool, whose elements have four words, a value of 64 bits, and the item that is pushed at the end. `own` has a
    column for each thread, with its free records: the threads of a warp read theirs side by side. `free` has the heads of lists
    of free blocks, how many joins found no record within a task, and the generation of new records. `root` has the value of the
    root.
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


def is_in_word(dtype: np.dtype[Any]) -> bool:
    """Whether values of this type share the word MISSING of their record."""
    return dtype.itemsize == 4


def words_with(missing: int, value: Any) -> int:
    """Return the word MISSING of a join, from the arrivals that are missing and a value of 32 bits."""
    return int(value.view(np.int32)) << 32 | missing


def value_in_word(word: int, dtype: np.dtype[Any]) -> Any:
    """Return the value of 32 bits in the word MISSING of a join."""
    return np.int32(word >> 32).view(dtype)


def missing_of(words: NDArray[np.int64], dtype: np.dtype[Any]) -> NDArray[np.int64]:
    """Return the arrivals that are missing, from the words MISSING of joins with values of this type."""
    return words.astype(np.int32).astype(np.int64) if is_in_word(dtype) else words.copy()


def handles_of(index: NDArray[np.int64], info: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the handles of records, from their indices and what they are."""
    code = info >> INFO_CODE & 3
    return (info >> INFO_GENERATION) << HANDLE_GENERATION | code << HANDLE_CODE | (index + 1)


def explain_stray(words: NDArray[np.int64], items: NDArray[np.int64], kinds: Sized | None, place: int) -> str | None:
    """Say which open record of a file would have a launch write beside its arrays, or return None.

    `items` are those that the records push, with the number of one of `kinds` in the byte `place`, unless items have no kind.
    """
    state = words[:, INFO] & (IS_OPEN | PUSHES)
    parents = words[state == IS_OPEN, LINK]
    parents = parents[parents != 0]
    index = parents & INDEX
    if np.any((parents < 0) | (index == 0) | (index > len(words))):
        return "a join arrives at a join that is not there"
    if kinds is not None and np.any(items[state == IS_OPEN | PUSHES].view(np.uint8)[:, place] >= len(kinds)):
        return "the item of a join is of a kind that is not there"
    return None


def list_free(words: NDArray[np.int64], heads: NDArray[np.int64], own: NDArray[np.int64]) -> None:
    """Put the records that are not open on the lists of free blocks; the first thread gets what makes no whole block.

    `words` are those of all records, `heads` begin with the heads of the lists, and `own` has a column for each thread.
    """
    free = np.flatnonzero(words[:, INFO] & IS_OPEN == 0)
    links = np.append(free[1:] + 1, 0)
    blocks = np.arange(0, len(free) - BLOCK + 1, BLOCK)
    links[blocks + BLOCK - 1] = 0
    words[free, LINK] = links
    rest = len(blocks) * BLOCK
    if rest < len(free):
        own[:2, 0] = free[rest] + 1, len(free) - rest
    firsts, numbers = free[blocks] + 1, np.arange(len(blocks))
    words[firsts - 1, NEXT] = np.where(numbers < LISTS, 0, firsts[np.maximum(numbers - LISTS, 0)])
    last = numbers[-LISTS:]
    heads[last % LISTS] = firsts[last]
