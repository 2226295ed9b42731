"""Tasks of a coloring, a vertex at a time: assigning a tentative color, and checking it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...arrays.array import Array
from ...compile.atomics import atomic_add, atomic_cas, atomic_exch, atomic_or_
from ...compile.task import task
from ...operators.ranges import mixed_range_bounds

__all__ = ["COLOR", "LAST", "LOST", "TENTATIVE", "UNCOLORED", "ColoringParams", "assign", "check", "is_final"]

# The state of a vertex, an entry of `colors`:
#
#     bit 31     bit 30     bit 29  bits 28 .. 0
#     0          0          0       color        final
#     0          TENTATIVE  0       color        to be checked
#     0          TENTATIVE  LOST    color        to be replaced: a neighbor keeps the same color
#     UNCOLORED  turn: the vertex's place in the order; with all bits set (LAST), nobody waits for the vertex
UNCOLORED, TENTATIVE, LOST, LAST = 1 << 31, 1 << 30, 1 << 29, (1 << 32) - 1
COLOR = LOST - 1  # the bits of a color; none is as large
INVERSE_OF_FIRST = pow(0x9E3779B1, -1, 1 << 32)  # of the factors of `hash32`, modulo 2**32
INVERSE_OF_SECOND = pow(0x85EBCA77, -1, 1 << 32)


class ColoringParams(NamedTuple):
    """Parameters that all tasks of a launch share."""

    vertices: Array | None  # in the order of their turns; None if that is the order of ids
    end: int  # how many there are
    max_in_flight: int  # vertices that are begun and not final
    spin_limit: int  # times that a vertex looks again at a neighbor without a color that comes before it


class Palette(NamedTuple):
    """A range of colors, and which of them neighbors have, in the scratch memory of a worker.

    ======================  ============================================================
    words[0]                number of neighbors to wait for
    words[1] to bits - 1    these neighbors
    words[bits] and on      a bit for each color from `low` on, set if a neighbor has it
    ======================  ============================================================
    """

    words: Any
    bits: Any
    low: Any  # the first color
    size: Any  # how many there are


def vertex_at(place, vertices):  # type: ignore[no-untyped-def]
    """Return the vertex at a place of the order."""
    return place if vertices is None else vertices[place]


def hash32(v):  # type: ignore[no-untyped-def]
    """Hash a vertex id, one to one."""
    h = v * 0x9E3779B1 & 0xFFFFFFFF
    h = (h ^ h >> 15) * 0x85EBCA77 & 0xFFFFFFFF
    return h ^ h >> 13


def unhash32(h):  # type: ignore[no-untyped-def]
    """Return the vertex id that `hash32` makes a hash of."""
    h = (h ^ h >> 13 ^ h >> 26) * INVERSE_OF_SECOND & 0xFFFFFFFF
    return (h ^ h >> 15 ^ h >> 30) * INVERSE_OF_FIRST & 0xFFFFFFFF


def outranks(u, v, graph):  # type: ignore[no-untyped-def]
    """Whether u keeps a color that both have."""
    difference = graph.indptr[u + 1] - graph.indptr[u] - graph.indptr[v + 1] + graph.indptr[v]
    return difference > 0 or (difference == 0 and hash32(u) < hash32(v))


def load4(e, step, end, graph, colors):  # type: ignore[no-untyped-def]
    """Return the entries of four neighbors, by the edges e, e + step, ...; the first again in place of those past the end.

    A GPU then has four loads under way at once.
    """
    near = graph.indices
    a = near[e]
    b = near[e + step] if e + step < end else a
    c = near[e + 2 * step] if e + 2 * step < end else a
    d = near[e + 3 * step] if e + 3 * step < end else a
    return colors[a], colors[b], colors[c], colors[d]


def is_final(entry):  # type: ignore[no-untyped-def]
    """Whether an entry is a final color."""
    return entry <= COLOR


def mark_forbidden(worker, palette, entry):  # type: ignore[no-untyped-def]
    """Mark the color of a neighbor, if it has one, as taken."""
    index = (entry & COLOR) - palette.low
    if entry < UNCOLORED and index >= 0 and index < palette.size:
        bit, word = 1 << (index & 31), palette.bits + (index >> 5)
        if worker.size == 1:
            palette.words[word] |= bit
        elif palette.words[word] & bit == 0:
            atomic_or_(palette.words, word, bit)


def has_earlier_turn(entry, turn):  # type: ignore[no-untyped-def]
    """Whether an entry is that of a vertex without a color that is before `turn` in the queue."""
    return entry >= UNCOLORED and entry < turn


def add_waiting(worker, palette, u, turn, colors):  # type: ignore[no-untyped-def]
    """List a neighbor that has to be waited for, or mark its color, if it has one by now."""
    entry = colors[u]
    if has_earlier_turn(entry, turn):
        k = atomic_add(palette.words, 0, 1) + 1
        if k < palette.bits:
            palette.words[k] = u
    else:
        mark_forbidden(worker, palette, entry)


def lowest_zero(word):  # type: ignore[no-untyped-def]
    """Return the number of the lowest bit that is 0."""
    bit = 0
    for step in (16, 8, 4, 2, 1):
        if word & (1 << step) - 1 == (1 << step) - 1:
            word >>= step
            bit += step
    return bit


def collect_forbidden(worker, palette, turn, first, end, graph, colors, spin_limit):  # type: ignore[no-untyped-def]
    """Mark the colors that the neighbors along edges `first` to `end` have, by all threads.

    A neighbor without a color whose turn is before `turn` is listed, and then looked at again, `spin_limit` times at most.
    """
    words, bits = palette.words, palette.bits
    for w in worker.split((palette.size + 31) >> 5):
        words[bits + w] = 0
    if worker.rank == 0:
        words[0] = 0
    worker.sync()
    e = first + worker.rank
    while e < end:  # a range whose step is not known would take a division
        a, b, c, d = load4(e, worker.size, end, graph, colors)
        mark_forbidden(worker, palette, a)
        mark_forbidden(worker, palette, b)
        mark_forbidden(worker, palette, c)
        mark_forbidden(worker, palette, d)
        waits = has_earlier_turn(a, turn) or has_earlier_turn(b, turn) or has_earlier_turn(c, turn) or has_earlier_turn(d, turn)
        for _ in range(4):
            if waits and e < end:
                add_waiting(worker, palette, graph.indices[e], turn, colors)
            e += worker.size
    worker.sync()
    for k in worker.split(min(words[0], bits - 1)):
        entry, polls = colors[words[k + 1]], 0
        while entry >= UNCOLORED and polls < spin_limit:
            entry = colors[words[k + 1]]
            polls += 1
        mark_forbidden(worker, palette, entry)
    worker.sync()


def find_unmarked(worker, palette):  # type: ignore[no-untyped-def]
    """Return the smallest color that is not marked, the same to all threads; `COLOR` if there is none."""
    free = COLOR
    for w in worker.split((palette.size + 31) >> 5):
        taken = palette.words[palette.bits + w]
        if taken != 0xFFFFFFFF and free == COLOR:
            free = palette.low + 32 * w + lowest_zero(taken)
    return worker.min(free)


def find_smallest_free(worker, v, turn, graph, colors, spin_limit):  # type: ignore[no-untyped-def]
    """Return the smallest color that no neighbor of v has; `turn` is the entry of v, or 0 if it has a color.

    A vertex needs one color more than it has neighbors at most; if those of a palette are all taken, the next ones are
    looked at.
    """
    first, end = graph.indptr[v], graph.indptr[v + 1]
    words = worker.scratch(np.uint32)
    bits, low = words.size // 2, np.int64(0)  # for a literal 0, Numba would compile what is called below once more
    while True:
        palette = Palette(words, bits, low, min(end - first + 1 - low, 32 * (words.size - bits)))
        collect_forbidden(worker, palette, turn, first, end, graph, colors, spin_limit)
        free = find_unmarked(worker, palette)
        if free < low + palette.size:
            return free
        low = low + palette.size if low + palette.size <= end - first else 0  # start anew: colors changed meanwhile


def has_color(entry, color):  # type: ignore[no-untyped-def]
    """Whether an entry is this color, final or tentative."""
    return entry & ~(TENTATIVE | LOST) == color


def resolve_clash(v, u, color, graph, colors):  # type: ignore[no-untyped-def]
    """Of two neighbors of one color, mark u if it loses; return whether v loses. Nothing to do if their colors differ."""
    entry = colors[u]
    if not has_color(entry, color) or u == v or entry & LOST != 0:
        return False
    if entry == color or outranks(u, v, graph):
        return True
    return atomic_cas(colors, u, TENTATIVE | color, TENTATIVE | LOST | color) == color


def try_finalize(worker, v, graph, colors):  # type: ignore[no-untyped-def]
    """Make the color of v final unless a neighbor takes precedence; return whether it is final now."""
    first, end = graph.indptr[v], graph.indptr[v + 1]
    entry = colors[v]
    color, lost = entry & COLOR, entry & LOST != 0
    e = first + worker.rank
    while e < end:
        a, b, c, d = load4(e, worker.size, end, graph, colors)
        clash = has_color(a, color) or has_color(b, color) or has_color(c, color) or has_color(d, color)
        for _ in range(4):
            if clash and e < end:
                lost |= resolve_clash(v, graph.indices[e], color, graph, colors)
            e += worker.size
    lost = worker.any(lost)
    if worker.rank == 0 and not lost:  # final, unless v has been marked meanwhile
        lost = atomic_cas(colors, v, TENTATIVE | color, color) != TENTATIVE | color
    return not worker.any(lost)


def store_tentative(v, color, colors):  # type: ignore[no-untyped-def]
    """Give v a tentative color; return true, but not before the color is stored, so that its check may be pushed."""
    # A final color is never replaced.
    return not is_final(atomic_exch(colors, v, TENTATIVE | color))  # race: who has read another color looks again in a check


def assign_color(worker, place, v, turn, graph, colors, params):  # type: ignore[no-untyped-def]
    """Give the vertex v at a place of the order the smallest color that is free, tentatively, and have it checked."""
    color = find_smallest_free(worker, v, turn, graph, colors, params.spin_limit)
    if worker.rank == 0 and store_tentative(v, color, colors):
        worker.push(place, task=check)


def begin_next(worker, place, params):  # type: ignore[no-untyped-def]
    """Push the vertex that is begun when the one at a place is final."""
    if worker.rank == 0 and place + params.max_in_flight < params.end:
        worker.push(place + params.max_in_flight, task=assign)


@task(max_registers={"cta": (64, None), "warp": (48, 64, None)})
def assign(worker, place, graph, colors, params):  # type: ignore[no-untyped-def]
    """Give the vertex at a place of the order a color; or, if the place is past the end, push those of a range."""
    if place >= params.end:
        first, size = mixed_range_bounds(place, params.end)
        for k in worker.split(size):
            worker.push(first + k, task=assign)
        return
    v = vertex_at(place, params.vertices)
    turn = colors[v]
    if graph.indptr[v] == graph.indptr[v + 1]:
        colors[v] = 0
        begin_next(worker, place, params)
    elif is_final(turn):  # since a launch before
        begin_next(worker, place, params)
    else:
        assign_color(worker, place, v, turn, graph, colors, params)


@task
def check(worker, place, graph, colors, params):  # type: ignore[no-untyped-def]
    """Make the color of the vertex at a place of the order final, or give it another one."""
    v = vertex_at(place, params.vertices)
    if try_finalize(worker, v, graph, colors):
        begin_next(worker, place, params)
    else:
        assign_color(worker, place, v, np.int64(0), graph, colors, params)  # as `assign` does: of the same types
