"""Arrays of distances, of sums and of eccentricities that a search from many sources fills, level by level.

The functions are for tasks of `bit_search`, in which one thread settles a place, and `s` is the search (`BitSearch`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays.array import Array
from ..compile.atomics import atomic_or_

__all__ = [
    "WORD",
    "BitNotes",
    "add_up",
    "count_bits",
    "forget_reached",
    "note_bound",
    "note_by_source",
    "note_each",
    "note_farthest",
    "note_last",
]

WORD = 64


class BitNotes(NamedTuple):
    """What a search notes of the levels at which bits reach vertices, in arrays that are not None."""

    distance: Array | None = None  # a row for each bit, in which the level of each vertex is stored
    first_row: int = 0  # of the first bit
    by_source: int | None = None
    sums: Array | None = None  # of each place, to which the level is added for each new bit, or its inverse
    inverse: int | None = None
    last: Array | None = None  # the last level at which each place got a new bit, plus one
    farthest: Array | None = None  # for each part of the graph and each bit, the last level at which a place there got it
    reached: Array | None = None  # for each part of the graph the bits that were new at this level, and those of the other one
    part: Array | None = None  # of each vertex; without it there is one
    bound: Array | None = None  # the least sum of a level at which a bit reached a place, and what `within` has for the bit
    within: Array | None = None  # of each part of the graph and each bit, an upper bound of distances


def count_bits(word):  # type: ignore[no-untyped-def]
    """Return how many bits of a uint64 are set; compilers know these lines as one instruction."""
    word = word - ((word >> 1) & np.uint64(0x5555_5555_5555_5555))
    word = (word & np.uint64(0x3333_3333_3333_3333)) + ((word >> 2) & np.uint64(0x3333_3333_3333_3333))
    word = (word + (word >> 4)) & np.uint64(0x0F0F_0F0F_0F0F_0F0F)
    return np.int64((word * np.uint64(0x0101_0101_0101_0101)) >> 56)


def note_each(place, fresh, level, s, distance):  # type: ignore[no-untyped-def]
    """Store the level as the distance from the sources of some bits, one bit after the other."""
    if distance is not None:
        v, row = place >> s.log_words, s.notes.first_row + (place & s.last_word) * WORD
        while fresh != 0:
            below = fresh - np.uint64(1)
            distance[row + count_bits(~fresh & below), v] = level
            fresh &= below


def note_by_source(place, fresh, level, s, distance, by_source):  # type: ignore[no-untyped-def]
    """Do the same, for threads that have neighboring places: they write next to each other, source by source."""
    if distance is not None:
        if by_source is None:
            note_each(place, fresh, level, s, distance)
        elif fresh != 0:
            v, row = place >> s.log_words, s.notes.first_row + (place & s.last_word) * WORD
            for lane in range(WORD):
                if fresh >> lane & 1 != 0:
                    distance[row + lane, v] = level


def add_up(place, fresh, level, sums, inverse):  # type: ignore[no-untyped-def]
    """Add the level, or its inverse, to the sum of the place, for each bit."""
    if sums is not None:
        if inverse is None:
            sums[place] += count_bits(fresh) * level
        elif level > 0:
            sums[place] += count_bits(fresh) / level


def note_last(place, level, last):  # type: ignore[no-untyped-def]
    """Store the level as the last one of the place, plus one, so that 0 stands for none."""
    if last is not None:
        last[place] = level + 1


def part_of(v, part):  # type: ignore[no-untyped-def]
    """Return the part of the graph that a vertex is in."""
    return 0 if part is None else np.int64(part[v])


def note_farthest(place, fresh, level, s, farthest):  # type: ignore[no-untyped-def]
    """Store the level for each bit that reaches a part of the graph at this level; nearly always others have done so."""
    if farthest is not None:
        notes = s.notes
        at = (part_of(place >> s.log_words, notes.part) << s.log_words) + (place & s.last_word)
        here = at + (level & 1) * (notes.reached.size >> 1)
        first = fresh & ~notes.reached[here]
        if first != 0:
            first &= ~atomic_or_(notes.reached, here, first)
            while first != 0:
                below = first - np.uint64(1)
                farthest[at * WORD + count_bits(~first & below)] = level
                first &= below


def note_bound(place, fresh, level, s, bound):  # type: ignore[no-untyped-def]
    """Lower the bound of a place to the level and the least distance that holds for one of the bits."""
    if bound is not None:
        notes, least = s.notes, np.int64(bound[place]) - level
        at = ((part_of(place >> s.log_words, notes.part) << s.log_words) + (place & s.last_word)) * WORD
        while fresh != 0:
            below = fresh - np.uint64(1)
            least = min(least, np.int64(notes.within[at + count_bits(~fresh & below)]))
            fresh &= below
        bound[place] = least + level


def forget_reached(worker, level, reached):  # type: ignore[no-untyped-def]
    """Forget which bits were new two levels before."""
    if reached is not None:
        half = reached.size >> 1
        for k in worker.split(half):
            reached[(level & 1) * half + k] = 0
