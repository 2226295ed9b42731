"""Hash table of vertices, with a count for each, in the scratch memory of a worker (``worker.scratch(np.uint32)``).

The first half of the memory is for vertices, the second one for counts. Of each half, the first 2**bits places are in use: as
many as `table_bits` says. A vertex is at the place that its hash names, or in the next one that was free.
"""

from __future__ import annotations

import numpy as np

from ..compile.atomics import atomic_add, atomic_cas

__all__ = ["EMPTY", "add_to_count", "clear_table", "fill_table", "find_slot", "insert", "table_bits"]

EMPTY = 0xFFFF_FFFF  # no vertex


def table_bits(number, most):  # type: ignore[no-untyped-def]
    """Return the bits of a place in a table of at most `most` places, so that if possible an eighth of them is used."""
    bits = 3
    while 1 << bits < 8 * number and 2 << bits <= most:
        bits += 1
    return bits


def clear_table(worker, table, bits):  # type: ignore[no-untyped-def]
    """Empty a table, by all threads of the worker."""
    for slot in worker.split(1 << bits):
        table[slot] = EMPTY
        table[(table.size >> 1) + slot] = 0
    worker.sync()


def find_slot(v, table, bits):  # type: ignore[no-untyped-def]
    """Return the place of v in a table, or the free one where it would be, and what is there."""
    slot = (v * 0x9E3779B1 & 0xFFFFFFFF) >> (32 - bits)
    entry = table[slot]
    while (entry ^ v) * (entry ^ EMPTY) != 0:  # one branch, which is predicted, where two conditions would take two
        slot = (slot + 1) & ((1 << bits) - 1)
        entry = table[slot]
    return slot, entry


def insert(v, table, bits):  # type: ignore[no-untyped-def]
    """Put v into a table that has room, unless it is there; return its place."""
    slot, entry = find_slot(v, table, bits)
    while entry != v:
        entry = atomic_cas(table, slot, EMPTY, v)
        if entry == EMPTY:
            entry = v
        elif entry != v:
            slot, entry = find_slot(v, table, bits)  # another thread has put something else there
    return slot


def fill_table(worker, vertices, first, end, table, bits):  # type: ignore[no-untyped-def]
    """Make a table of a part of an array, by all threads of the worker."""
    clear_table(worker, table, bits)
    for k in worker.split(range(first, end)):
        insert(np.int64(vertices[k]), table, bits)
    worker.sync()


def add_to_count(worker, table, slot, number):  # type: ignore[no-untyped-def]
    """Add to the count of a place; without a branch where there is one thread, since nothing would predict it."""
    if worker.size == 1:
        table[(table.size >> 1) + slot] += number
    elif number > 0:
        atomic_add(table, (table.size >> 1) + slot, number)
