"""Tasks that delete edges from rows: a stable compaction of each row in place, by the sorted edges that are to go.

Each edge of a row is looked for among the keys of that row, by binary search. A thread of a GPU does four searches at once. A
thread of the CPU does one, and has a filter of the keys that spares most edges the search.

Sources: Bloom, "Space/time trade-offs in hash coding with allowable errors", CACM 1970, for the filter; Billeter, Olsson and
Assarsson, "Efficient stream compaction on wide SIMD many-core architectures", HPG 2009.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from ...compile.atomics import atomic_add
from ...compile.task import Task, task
from .row_edits import UNDER_WAY, DynamicRows, copy_element
from .row_keys import source_of
from .row_lists import AT, EDGES_PER_ITEM, GROUP, append_all, by_length, every, pushing

__all__ = ["DELETION", "Deletion"]

_GROUPS = 32  # of a worker, at most
_COUNTS = 2 * _GROUPS
_THREAD_BITS = 14  # of a place in the filter of a thread that works alone, with a byte for each place
_THREAD_BYTES = 1 << _THREAD_BITS
_SUMS, _SUMS_BEFORE = 0x01010101, 0x01010100  # factors that make prefix sums of four numbers of 8 bits
_HASH = 0x9E3779B1  # an odd number near 2**32 divided by the golden ratio


class Deletion(NamedTuple):
    """A batch of edges to delete."""

    keys: Any  # the edges (source, target) in words of 64 bits, sorted
    firsts: Any  # the list of the rows, by the first key of each
    rows: DynamicRows
    room: Any


# A deletion takes as long with 64 registers as with the 120 that it asks for, and needs one link instead of four.
@task(max_registers={"cta": 64})
def list_rows(worker, item, state, batch):  # type: ignore[no-untyped-def]
    """List the first place of each source in sorted edges."""
    group = worker.group(GROUP)
    keys, first = batch.keys, np.int64(item) * EDGES_PER_ITEM
    last = min(first + EDGES_PER_ITEM, keys.size)
    for base in range(first, last, worker.size):
        k = base + worker.rank
        is_first = False
        if k < last:
            is_first = k == 0 or source_of(keys[k]) != source_of(keys[max(k - 1, 0)])
        append_all(group, batch.firsts, state, is_first, k)


def target_at(keys, place):  # type: ignore[no-untyped-def]
    """Return the target of a key."""
    return np.uint32(keys[place] & np.uint64(0xFFFFFFFF))


def last_up_to(keys, low, offset, half, target):  # type: ignore[no-untyped-def]
    """Return `offset` plus `half` if the key there has a target up to this one, else `offset`."""
    return np.int32(offset + half if target_at(keys, low + offset + half) <= target else offset)


def find_four(keys, low, number, a, b, c, d):  # type: ignore[no-untyped-def]
    """Return which of four targets are among those of the `number` sorted keys from `low` on, in words of four of 8 bits.

    Four binary searches side by side, which take as many steps in each thread.
    """
    h, i, j, k = np.int32(0), np.int32(0), np.int32(0), np.int32(0)
    while number > 1:
        half = np.int32(number >> 1)
        h, i = last_up_to(keys, low, h, half, a), last_up_to(keys, low, i, half, b)
        j, k = last_up_to(keys, low, j, half, c), last_up_to(keys, low, k, half, d)
        number = np.int32(number - half)
    found = np.uint32(target_at(keys, low + h) == a) | np.uint32(target_at(keys, low + i) == b) << 8
    return np.uint32(found | np.uint32(target_at(keys, low + j) == c) << 16 | np.uint32(target_at(keys, low + k) == d) << 24)


def count_keys(group, keys, low):  # type: ignore[no-untyped-def]
    """Return how many keys have the source of the one at `low`, which is its first; collective."""
    source = source_of(keys[low])
    k = low + group.rank
    while k < keys.size and source_of(keys[k]) == source:
        k += group.size
    return group.min(np.int32(k - low))  # the threads go on in steps of their number, so one of them has stopped at the end


def of_group(group):  # type: ignore[no-untyped-def]
    """Return the counts of a group that works alone, the group, and which of the groups on the row it is."""
    return None, group, 0


def sum_in_group(group, count, counts, odd):  # type: ignore[no-untyped-def]
    """Return how many edges stay in groups before this one, and in all."""
    group.sync()
    return np.int32(0), count


def of_worker(worker):  # type: ignore[no-untyped-def]
    """Return the same of a worker, all groups of which work on the row."""
    group = worker.group(GROUP)
    return worker.scratch(np.int32, _COUNTS), group, group.index


def sum_in_worker(worker, count, counts, odd):  # type: ignore[no-untyped-def]
    """Return the same; every other step uses the same counts, so that one barrier is enough for a step."""
    group = worker.group(GROUP)
    first = _GROUPS if odd else 0
    if group.rank == 0:
        counts[first + group.index] = count
    worker.sync()
    of_one = np.int32(counts[first + group.rank] if group.rank < group.count else 0)
    return group.sum(np.int32(of_one if group.rank < group.index else 0)), group.sum(of_one)


def read_four(values, first, at, size, last):  # type: ignore[no-untyped-def]
    """Return a thread's four elements from `at` on, each `size` after the one before; the last one of the row behind that."""
    a, b = values[first + min(at, last)], values[first + min(np.int32(at + size), last)]
    return a, b, values[first + min(np.int32(at + 2 * size), last)], values[first + min(np.int32(at + 3 * size), last)]


def edges_up_to(group, stay):  # type: ignore[no-untyped-def]
    """Return how many edges stay in threads up to this one: an inclusive scan of four numbers of 8 bits each; collective."""
    distance = 1
    while distance < group.size:
        below = group.shuffle(stay, group.rank - distance)
        if group.rank >= distance:
            stay = np.uint32(stay + below)
        distance *= 2
    return stay


def store_staying(values, first, before, stay, a, b, c, d):  # type: ignore[no-untyped-def]
    """Store those of a thread's four elements that stay where they belong now."""
    if stay & 1:
        values[first + np.int32(before & 255)] = a
    if stay & 1 << 8:
        values[first + np.int32(before >> 8 & 255)] = b
    if stay & 1 << 16:
        values[first + np.int32(before >> 16 & 255)] = c
    if stay & 1 << 24:
        values[first + np.int32(before >> 24)] = d


def move_weights(team, weights, first, at, size, last, to, before, stay):  # type: ignore[no-untyped-def]
    """Do the same with the weights of those edges, if there are any; collective."""
    if weights is not None:
        a, b, c, d = read_four(weights, first, at, size, last)
        team.sync()
        store_staying(weights, to, before, stay, a, b, c, d)


def row_deletion(parts_of: Callable[..., Any], sums: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function by which a team, a group or a worker, deletes from a row: a stable compaction in place."""

    def delete_in_row(team, place, batch):  # type: ignore[no-untyped-def]
        """Delete the edges of a row that are among the sorted keys; return how many, of one thread."""
        keys, rows, low = batch.keys, batch.rows, np.int64(batch.firsts[place])
        sizes, group, index = parts_of(team)
        source = source_of(keys[low])
        first, count = rows.start[source], np.int32(rows.degree[source])
        last, size = np.int32(count - 1), np.int32(group.size)
        at, kept = np.int32(index * UNDER_WAY * size + group.rank), np.int32(0)
        step = np.int32(UNDER_WAY * team.size)
        a, b, c, d = read_four(rows.indices, first, at, size, max(last, 0))
        number = count_keys(group, keys, low)
        odd = False
        # Each thread has four edges; a step ends when those that stay are written. The next ones are read meanwhile.
        for base in range(np.int32(0), count, step):
            # Words of four numbers of 8 bits each.
            stay = np.uint32(at <= last) | np.uint32(at + size <= last) << 8
            stay = np.uint32(stay | np.uint32(at + 2 * size <= last) << 16 | np.uint32(at + 3 * size <= last) << 24)
            stay = np.uint32(stay & ~find_four(keys, low, number, a, b, c, d))
            e, f, g, h = a, b, c, d
            if base + step < count:
                e, f, g, h = read_four(rows.indices, first, np.int32(at + step), size, last)
            up_to = edges_up_to(group, stay)
            of_all = group.shuffle(up_to, size - 1)
            # The first, second, third and fourth edges of all threads, one after the other.
            before = np.uint32(of_all * _SUMS_BEFORE + up_to - stay & 0xFFFFFFFF)
            of_others, total = sums(team, np.int32(np.uint32(of_all * _SUMS & 0xFFFFFFFF) >> 24), sizes, odd)
            odd = not odd
            to = first + kept + of_others
            kept = np.int32(kept + total)
            if kept < min(base + step, count):  # otherwise every edge is where it was
                store_staying(rows.indices, to, before, stay, a, b, c, d)
                move_weights(team, rows.weights, first, at, size, last, to, before, stay)
            a, b, c, d = e, f, g, h
            at = np.int32(at + step)
        team.sync()
        if team.rank != 0:
            return np.int64(0)
        rows.degree[source] = kept
        return count - np.int64(kept)

    return delete_in_row


def room_of_listed(place, batch):  # type: ignore[no-untyped-def]
    """Return the room of the row of a listed edge, which stays the same in a deletion."""
    return batch.room[source_of(batch.keys[batch.firsts[place]])]


def add_deleted(worker, total, state, batch):  # type: ignore[no-untyped-def]
    """Add up how many edges have been deleted."""
    total = worker.sum(total)
    if worker.rank == 0 and total > 0:
        atomic_add(state, AT.found, total)


delete_in_rows = by_length(
    every,
    room_of_listed,
    row_deletion(of_group, sum_in_group),
    row_deletion(of_worker, sum_in_worker),
    add_deleted,
)
push_rows = pushing(delete_in_rows)


def end_deletion_round(worker, state, batch):  # type: ignore[no-untyped-def]
    """Have edges deleted from the rows once they are listed."""
    stage = state[AT.stage]
    worker.sync()  # all threads have read it
    if worker.rank == 0:
        state[AT.stage] = stage + 1
    if stage == 0:
        push_rows(worker, state)


def move_edges(rows, old, new, count):  # type: ignore[no-untyped-def]
    """Move edges that follow each other to another place before theirs, if that is another one."""
    if new < old:
        for k in range(count):
            rows.indices[new + k] = rows.indices[old + k]
            copy_element(rows.weights, new + k, rows.weights, old + k)


def is_among(keys, low, number, target):  # type: ignore[no-untyped-def]
    """Whether a target is one of those of the `number` sorted keys from `low` on."""
    at = np.int32(0)
    while number > 1:
        half = np.int32(number >> 1)
        at = last_up_to(keys, low, at, half, target)
        number = np.int32(number - half)
    return target_at(keys, low + at) == target


def place_in_filter(target, bits):  # type: ignore[no-untyped-def]
    """Return the place of a target in a filter of 2**bits places."""
    return (np.int64(target) * _HASH & 0xFFFFFFFF) >> (32 - bits)


def may_be_gone(filter, bits, edge, count, rows):  # type: ignore[no-untyped-def]
    """Whether the filter has one of the targets of edges that follow each other."""
    found = False
    for k in range(count):
        found |= filter[place_in_filter(rows.indices[edge + k], bits)]
    return found


def delete_alone(filter, low, number, batch):  # type: ignore[no-untyped-def]
    """Delete the edges of a row that are among so many keys from `low` on, by one thread; return how many."""
    keys, rows = batch.keys, batch.rows
    bits = 6
    while bits < _THREAD_BITS and number >> (bits - 6):  # so that few of the edges that stay are looked for
        bits += 1
    for k in range(1 << bits):
        filter[k] = False
    for k in range(low, low + number):
        filter[place_in_filter(target_at(keys, k), bits)] = True
    edge = left = rows.start[source_of(keys[low])]
    end = edge + rows.degree[source_of(keys[low])]
    while edge < end:
        while edge + UNDER_WAY <= end and not may_be_gone(filter, bits, edge, UNDER_WAY, rows):
            move_edges(rows, edge, left, UNDER_WAY)
            edge += UNDER_WAY
            left += UNDER_WAY
        for k in range(edge, min(edge + UNDER_WAY, end)):
            target = rows.indices[k]
            if not (filter[place_in_filter(target, bits)] and is_among(keys, low, np.int32(number), target)):
                move_edges(rows, k, left, 1)
                left += 1
        edge += UNDER_WAY
    rows.degree[source_of(keys[low])] -= end - left
    return end - left


@task
def delete_by_thread(worker, item, state, batch):  # type: ignore[no-untyped-def]
    """Delete from the rows whose keys begin in a range, one row after the other, by one thread."""
    filter, keys = worker.scratch(np.bool_, _THREAD_BYTES), batch.keys
    low = np.int64(item) * EDGES_PER_ITEM
    last, total = min(low + EDGES_PER_ITEM, keys.size), 0
    while 0 < low < last and source_of(keys[low]) == source_of(keys[low - 1]):
        low += 1
    while low < last:
        number = 1
        while low + number < keys.size and source_of(keys[low + number]) == source_of(keys[low]):
            number += 1
        total += delete_alone(filter, low, number, batch)
        low += number
    add_deleted(worker, total, state, batch)


#: Tasks of a deletion, what follows each round, and the worker. A thread of the CPU has no others to share a row with, nor to
#: wait for.
DELETION: dict[str, tuple[tuple[Task, ...], Any, Literal["thread", "cta"]]] = {
    "cuda": ((list_rows, delete_in_rows), end_deletion_round, "cta"),
    "cpu": ((delete_by_thread,), None, "thread"),
}
