"""Most frequent value among the neighbors of a vertex, by one thread or by a table in scratch memory; for tasks.

Loops do not count, and parallel edges count each. The value of the vertex itself stays if it is among the most frequent.
Otherwise that of the largest hash of them is found, so that the result is the same whoever finds it.

The values are ids of vertices. A table has room for four times as many as it is meant for, which are a part of them by another
hash: it is certain enough that none runs over if a worker has 512 bytes of scratch memory or more.
"""

from __future__ import annotations

import numpy as np

from ...operators.scratch_table import add_to_count, clear_table, insert, table_bits
from ...support.splitmix64 import splitmix64

__all__ = ["find_by_table", "find_by_thread"]


def rank(value, count, base):  # type: ignore[no-untyped-def]
    """Return a number that is the larger the more often a value occurs, and else by its hash; not negative."""
    return np.int64(count) << 31 | np.int64(splitmix64(base + np.uint64(value)) >> np.uint64(33))


def find_by_thread(v, graph, values, base):  # type: ignore[no-untyped-def]
    """Return the most frequent value, by one thread, which compares all values with each other."""
    begin, end = np.int64(graph.indptr[v]), np.int64(graph.indptr[v + 1])
    own = np.int64(values[v])
    kept, best, chosen = 0, np.int64(-1), own
    for edge in range(begin, end):
        u = graph.indices[edge]
        value = np.int64(values[u])
        if u != v:
            count = 0
            for other in range(begin, end):
                w = graph.indices[other]
                count += w != v and values[w] == value
            if value == own:
                kept = count
            found = rank(value, count, base)
            if found > best or (found == best and value < chosen):
                best, chosen = found, value
    return own if kept == best >> 31 else chosen


def find_by_table(worker, v, graph, values, base):  # type: ignore[no-untyped-def]
    """Return the most frequent value, by all threads of a worker; the table has a part of the values at a time."""
    table = worker.scratch(np.uint32)
    most = table.size >> 1
    room = 1 << table_bits(most, most)
    begin, end, own = np.int64(graph.indptr[v]), np.int64(graph.indptr[v + 1]), np.int64(values[v])
    parts = (end - begin + (room >> 2) - 1) // (room >> 2)
    bits = table_bits(min(end - begin, room >> 2), most)
    kept, best, chosen = np.int64(0), np.int64(-1), own
    for part in range(parts):
        clear_table(worker, table, bits)
        for edge in worker.split(range(begin, end)):
            u = graph.indices[edge]
            value = np.int64(values[u])
            if u != v and (parts == 1 or splitmix64(np.uint64(value)) % np.uint64(parts) == np.uint64(part)):
                add_to_count(worker, table, insert(value, table, bits), 1)
        worker.sync()
        for slot in worker.split(1 << bits):
            value, count = np.int64(table[slot]), np.int64(table[most + slot])
            if count > 0:
                if value == own:
                    kept = count
                found = rank(value, count, base)
                if found > best or (found == best and value < chosen):
                    best, chosen = found, value
        worker.sync()  # before the next part overwrites the table
    highest, kept = worker.max(best), worker.max(kept)
    chosen = worker.min(chosen if best == highest else np.int64(1 << 32))
    return own if kept == highest >> 31 else chosen
