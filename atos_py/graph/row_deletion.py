"""Tasks that delete edges from rows: a stable compaction of each row in place, by the sorted edges that are to go.

Sources: Bloom, "Space/time trade-offs in hash coding with allowable errors", CACM 1970, whose filter spares most edges a
search; Billeter, Olsson and Assarsson, "Efficient stream compaction on wide SIMD many-core architectures", HPG 2009.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..compile.atomics import atomic_add, atomic_or_
from ..compile.task import task
from .row_edits import UNDER_WAY, DynamicRows, element, set_element
from .row_keys import source_of
from .row_lists import EDGES_PER_ITEM, FOUND, GROUP, STAGE, append_all, by_length, every, pushing

__all__ = ["DELETION", "Deletion"]

_GROUPS = 32  # of a worker, at most
_COUNTS = 2 * _GROUPS
_GROUP_BITS, _WORKER_BITS = 10, 16  # of a place in the filter of a short row, and of a long one
_THREAD_BITS = 14  # the same of a thread that works alone, with a byte for each place
_THREAD_BYTES = 1 << _THREAD_BITS
_GROUP_WORDS, _WORKER_WORDS = 1 << _GROUP_BITS >> 5, 1 << _WORKER_BITS >> 5
_SUMS, _SUMS_BEFORE = 0x01010101, 0x01010100  # factors that make prefix sums of four numbers of 8 bits
_HASH = 0x9E3779B1  # an odd number near 2**32 divided by the golden ratio


class Deletion(NamedTuple):
    """A batch of edges to delete."""

    keys: Any  # the edges (source, target) in words of 64 bits, sorted
    firsts: Any  # the list of the rows, by the first key of each
    rows: DynamicRows
    room: Any


@task
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


def is_among(keys, first, count, target):  # type: ignore[no-untyped-def]
    """Whether a target is one of those of the `count` sorted keys of a source from `first` on: a binary search."""
    low, high = np.int32(0), count
    while low < high:
        middle = np.int32((low + high) >> 1)
        found = np.uint32(keys[first + middle] & np.uint64(0xFFFFFFFF))
        if found == target:
            return True
        if found < target:
            low = np.int32(middle + 1)
        else:
            high = middle
    return False


def place_in_filter(target, bits):  # type: ignore[no-untyped-def]
    """Return the bit of a target in a filter of 2**bits bits."""
    return (np.int64(target) * _HASH & 0xFFFFFFFF) >> (32 - bits)


def fill_filter(team, filter, bits, keys, low):  # type: ignore[no-untyped-def]
    """Set the bits of the targets of all keys of a source, which begin at `low`; return how many; collective."""
    for k in team.split(1 << bits >> 5):
        filter[k] = 0
    team.sync()
    source = source_of(keys[low])
    k = low + team.rank
    while k < keys.size and source_of(keys[k]) == source:
        place = place_in_filter(keys[k] & np.uint64(0xFFFFFFFF), bits)
        atomic_or_(filter, place >> 5, np.uint32(1 << (place & 31)))
        k += team.size
    count = team.min(np.int32(k - low))  # the threads go on in steps of their number, so one of them has stopped at the end
    team.sync()
    return count


def is_in_filter(filter, bits, target):  # type: ignore[no-untyped-def]
    """Return 1 if the bit of a target is set, else 0."""
    place = place_in_filter(target, bits)
    return np.int64(filter[place >> 5]) >> (place & 31) & 1


def of_group(group):  # type: ignore[no-untyped-def]
    """Return the filter and the counts of a group that works alone, and which of the groups on the row it is."""
    return group.scratch(np.uint32, _GROUP_WORDS), None, group, 0


def sum_in_group(group, count, counts, odd):  # type: ignore[no-untyped-def]
    """Return how many edges stay in groups before this one, and in all."""
    group.sync()
    return np.int32(0), count


def of_worker(worker):  # type: ignore[no-untyped-def]
    """Return the same of a worker, all groups of which work on the row."""
    group = worker.group(GROUP)
    return worker.scratch(np.uint32, _WORKER_WORDS), worker.scratch(np.int32, _COUNTS), group, group.index


def sum_in_worker(worker, count, counts, odd):  # type: ignore[no-untyped-def]
    """Return the same; every other step uses the same counts, so that one barrier is enough for a step."""
    group = worker.group(GROUP)
    first = _GROUPS if odd else 0
    if group.rank == 0:
        counts[first + group.index] = count
    worker.sync()
    before, total = np.int32(0), np.int32(0)
    for k in range(np.int32(0), np.int32(group.count)):
        if k == group.index:
            before = total
        total = np.int32(total + counts[first + k])
    return before, total


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
        values[first + (before & 255)] = a
    if stay & 1 << 8:
        values[first + (before >> 8 & 255)] = b
    if stay & 1 << 16:
        values[first + (before >> 16 & 255)] = c
    if stay & 1 << 24:
        values[first + (before >> 24)] = d


def move_weights(team, weights, first, before, stay, old, size, last):  # type: ignore[no-untyped-def]
    """Do the same with the weights of those edges, if there are any; collective."""
    if weights is not None:
        a, b = weights[min(old, last)], weights[min(old + size, last)]
        c, d = weights[min(old + 2 * size, last)], weights[min(old + 3 * size, last)]
        team.sync()
        store_staying(weights, first, before, stay, a, b, c, d)


def row_deletion(parts_of: Callable[..., Any], sums: Callable[..., Any], bits: int) -> Callable[..., Any]:
    """Return the function by which a team, a group or a worker, deletes from a row: a stable compaction in place.

    Most edges stay, as a filter of the row's keys says; only others are looked for among the keys.
    """

    def delete_in_row(team, place, batch):  # type: ignore[no-untyped-def]
        """Delete the edges of a row that are among the sorted keys; return how many, of one thread."""
        filter, sizes, group, index = parts_of(team)
        keys, rows, low = batch.keys, batch.rows, np.int64(batch.firsts[place])
        number = fill_filter(team, filter, bits, keys, low)
        first = rows.start[source_of(keys[low])]
        count = np.int32(rows.degree[source_of(keys[low])])
        last = np.int32(count - 1)
        size = np.int32(group.size)
        skipped, kept = np.int32(index * UNDER_WAY * size + group.rank), np.int32(0)
        odd = False
        # Each thread reads four edges; a step ends when those that stay are written, before the next ones.
        for base in range(np.int32(0), count, np.int32(UNDER_WAY * team.size)):
            at = np.int32(base + skipped)
            h, i = min(at, last), min(np.int32(at + size), last)
            j, k = min(np.int32(at + 2 * size), last), min(np.int32(at + 3 * size), last)
            a, b, c, d = rows.indices[first + h], rows.indices[first + i], rows.indices[first + j], rows.indices[first + k]
            # Words of four numbers of 8 bits each.
            stay = np.uint32(h == at) | np.uint32(i == at + size) << 8
            stay = np.uint32(stay | np.uint32(j == at + 2 * size) << 16 | np.uint32(k == at + 3 * size) << 24)
            left = is_in_filter(filter, bits, a) | is_in_filter(filter, bits, b) << 8
            left = np.uint32(left | is_in_filter(filter, bits, c) << 16 | is_in_filter(filter, bits, d) << 24)
            while left != 0:
                rest = np.uint32(left & (left - 1))
                bit = np.uint32(left ^ rest)
                target = a if bit == 1 else b if bit == 1 << 8 else c if bit == 1 << 16 else d
                if is_among(keys, low, number, target):
                    stay = np.uint32(stay & ~bit)
                left = rest
            up_to = edges_up_to(group, stay)
            of_all = group.shuffle(up_to, size - 1)
            # The first, second, third and fourth edges of all threads, one after the other.
            before = np.uint32(of_all * _SUMS_BEFORE + up_to - stay)
            of_others, total = sums(team, np.int32(np.uint32(of_all * _SUMS) >> 24), sizes, odd)
            odd = not odd
            to = first + kept + of_others
            kept = np.int32(kept + total)
            if kept < min(base + UNDER_WAY * team.size, count):  # otherwise every edge is where it was
                store_staying(rows.indices, to, before, stay, a, b, c, d)
                move_weights(team, rows.weights, to, before, stay, first + at, size, first + last)
        team.sync()
        if team.rank != 0:
            return np.int64(0)
        rows.degree[source_of(keys[low])] = kept
        return count - np.int64(kept)

    return delete_in_row


def room_of_listed(place, batch):  # type: ignore[no-untyped-def]
    """Return the room of the row of a listed edge, which stays the same in a deletion."""
    return batch.room[source_of(batch.keys[batch.firsts[place]])]


def add_deleted(worker, total, state, batch):  # type: ignore[no-untyped-def]
    """Add up how many edges have been deleted."""
    total = worker.sum(total)
    if worker.rank == 0 and total > 0:
        atomic_add(state, FOUND, total)


delete_in_rows = by_length(
    every,
    room_of_listed,
    row_deletion(of_group, sum_in_group, _GROUP_BITS),
    row_deletion(of_worker, sum_in_worker, _WORKER_BITS),
    add_deleted,
)
push_rows = pushing(delete_in_rows)


def end_deletion_round(worker, state, batch):  # type: ignore[no-untyped-def]
    """Have edges deleted from the rows once they are listed."""
    stage = state[STAGE]
    worker.sync()  # all threads have read it
    if worker.rank == 0:
        state[STAGE] = stage + 1
    if stage == 0:
        push_rows(worker, state)


def move_edges(rows, old, new, count):  # type: ignore[no-untyped-def]
    """Move edges that follow each other to another place before theirs, if that is another one."""
    if new < old:
        for k in range(count):
            rows.indices[new + k] = rows.indices[old + k]
            set_element(rows.weights, new + k, element(rows.weights, old + k))


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
        filter[place_in_filter(keys[k] & np.uint64(0xFFFFFFFF), bits)] = True
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


#: Tasks of a deletion, and what follows each round. A thread of the CPU has no others to share a row with, nor to wait for.
DELETION = {"cuda": ((list_rows, *delete_in_rows), end_deletion_round), "cpu": ((delete_by_thread,), None)}
