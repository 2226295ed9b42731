"""What a colouring runs on the device: assigning a colour to a vertex, and checking it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...array import Array
from ...task import atomic_add, atomic_cas, atomic_exch, atomic_or_, task

__all__ = ["BLOCK", "COLOR", "LAST", "LOST", "TENTATIVE", "UNCOLORED", "Order", "assign_or_check"]

# An entry of `colors` is a final colour, or a colour with these bits, or the turn of a vertex that has none: UNCOLORED plus its
# place in the order, or LAST if nobody waits for it.
UNCOLORED, TENTATIVE, LOST, LAST = 1 << 31, 1 << 30, 1 << 29, (1 << 32) - 1
COLOR = LOST - 1
BLOCK = 512  # vertices


class Order(NamedTuple):
    """What is the same for all tasks of a launch."""

    vertices: Array | None  # in the order of their turns; None if that is the order of ids
    end: int  # how many there are
    window: int  # vertices that are under way at once
    patience: int


def vertex_at(place, vertices):  # type: ignore[no-untyped-def]
    """Return the vertex at a place of the order."""
    return place if vertices is None else vertices[place]


def mixed(v):  # type: ignore[no-untyped-def]
    """Hash a vertex id, one to one."""
    h = v * 0x9E3779B1 & 0xFFFFFFFF
    h = (h ^ h >> 15) * 0x85EBCA77 & 0xFFFFFFFF
    return h ^ h >> 13


def unmixed(h):  # type: ignore[no-untyped-def]
    """Return the vertex id that `mixed` makes a hash of."""
    h = (h ^ h >> 13 ^ h >> 26) * pow(0x85EBCA77, -1, 1 << 32) & 0xFFFFFFFF
    return (h ^ h >> 15 ^ h >> 30) * pow(0x9E3779B1, -1, 1 << 32) & 0xFFFFFFFF


def outranks(u, v, graph):  # type: ignore[no-untyped-def]
    """Whether u keeps a colour that both have."""
    difference = graph.indptr[u + 1] - graph.indptr[u] - graph.indptr[v + 1] + graph.indptr[v]
    return difference > 0 or (difference == 0 and mixed(u) < mixed(v))


def four(e, step, end, graph, colors):  # type: ignore[no-untyped-def]
    """Return the entries of four neighbours, by the edges e, e + step, ...; the first again in place of those past the end.

    Four at a time since a GPU then has four loads under way at once.
    """
    near = graph.indices
    a = near[e]
    b = near[e + step] if e + step < end else a
    c = near[e + 2 * step] if e + 2 * step < end else a
    d = near[e + 3 * step] if e + 3 * step < end else a
    return colors[a], colors[b], colors[c], colors[d]


def forbid(worker, entry, low, span, bits, words):  # type: ignore[no-untyped-def]
    """Mark the colour of a neighbour as taken, if it is in the range of colours from `low` on."""
    place = (entry & COLOR) - low
    if entry < UNCOLORED and place >= 0 and place < span:
        bit, word = 1 << (place & 31), bits + (place >> 5)
        if worker.size == 1:
            words[word] |= bit
        elif words[word] & bit == 0:
            atomic_or_(words, word, bit)


def precedes(entry, turn):  # type: ignore[no-untyped-def]
    """Whether an entry is that of a vertex without a colour that is before `turn` in the queue."""
    return entry >= UNCOLORED and entry < turn


def note(worker, u, turn, colors, low, span, bits, words):  # type: ignore[no-untyped-def]
    """Note a neighbour that has to be waited for, or, if it has a colour by now, that."""
    entry = colors[u]
    if precedes(entry, turn):
        k = atomic_add(words, 0, 1) + 1
        if k < bits:
            words[k] = u
    else:
        forbid(worker, entry, low, span, bits, words)


def lowest_zero(word):  # type: ignore[no-untyped-def]
    """Return the number of the lowest bit that is 0."""
    bit = 0
    for step in (16, 8, 4, 2, 1):
        if word & (1 << step) - 1 == (1 << step) - 1:
            word >>= step
            bit += step
    return bit


def smallest_free(worker, v, turn, graph, colors, patience):  # type: ignore[no-untyped-def]
    """Return the smallest colour that no neighbour of v has; `turn` is the entry of v, or 0 if it has a colour.

    The scratch memory holds a number of vertices to wait for, those vertices, and a bit for each colour of a range. A vertex
    needs one colour more than it has neighbours at most; if those of a range are all taken, the next range is looked at.
    """
    first, end = graph.indptr[v], graph.indptr[v + 1]
    words = worker.scratch(np.uint32)
    bits, low = words.size // 2, 0
    while True:
        span = min(end - first + 1 - low, 32 * (words.size - bits))
        for w in worker.split((span + 31) >> 5):
            words[bits + w] = 0
        if worker.rank == 0:
            words[0] = 0
        worker.sync()
        e = first + worker.rank
        while e < end:  # a range whose step is not known would take a division
            a, b, c, d = four(e, worker.size, end, graph, colors)
            forbid(worker, a, low, span, bits, words)
            forbid(worker, b, low, span, bits, words)
            forbid(worker, c, low, span, bits, words)
            forbid(worker, d, low, span, bits, words)
            waits = precedes(a, turn) or precedes(b, turn) or precedes(c, turn) or precedes(d, turn)
            for _ in range(4):
                if waits and e < end:
                    note(worker, graph.indices[e], turn, colors, low, span, bits, words)
                e += worker.size
        worker.sync()
        for k in worker.split(min(words[0], bits - 1)):
            entry, polls = colors[words[k + 1]], 0
            while entry >= UNCOLORED and polls < patience:
                entry = colors[words[k + 1]]
                polls += 1
            forbid(worker, entry, low, span, bits, words)
        worker.sync()
        free = COLOR
        for w in worker.split((span + 31) >> 5):
            if words[bits + w] != 0xFFFFFFFF and free == COLOR:
                free = low + 32 * w + lowest_zero(words[bits + w])
        free = worker.min(free)
        if free < low + span:
            return free
        low = low + span if low + span <= end - first else 0  # start anew: colours changed meanwhile


def has(entry, color):  # type: ignore[no-untyped-def]
    """Whether an entry is this colour, final or not."""
    return entry & ~(TENTATIVE | LOST) == color


def loses(v, u, color, graph, colors):  # type: ignore[no-untyped-def]
    """Whether v has to give up its colour because its neighbour u has it too; if u has to, that is marked."""
    entry = colors[u]
    if not has(entry, color) or u == v or entry & LOST != 0:
        return False
    if entry == color or outranks(u, v, graph):
        return True
    return atomic_cas(colors, u, TENTATIVE | color, TENTATIVE | LOST | color) == color


def is_final(worker, v, graph, colors):  # type: ignore[no-untyped-def]
    """Make the colour of v final, and tell so, unless it has to be given up."""
    first, end = graph.indptr[v], graph.indptr[v + 1]
    entry = colors[v]
    color, lost = entry & COLOR, entry & LOST != 0
    e = first + worker.rank
    while e < end:
        a, b, c, d = four(e, worker.size, end, graph, colors)
        clash = has(a, color) or has(b, color) or has(c, color) or has(d, color)
        for _ in range(4):
            if clash and e < end:
                lost |= loses(v, graph.indices[e], color, graph, colors)
            e += worker.size
    lost = worker.any(lost)
    if worker.rank == 0 and not lost:  # final, unless v has been told to give it up
        lost = atomic_cas(colors, v, TENTATIVE | color, color) != TENTATIVE | color
    return not worker.any(lost)


def advance_vertex(worker, item, graph, colors, order):  # type: ignore[no-untyped-def]
    """Give the vertex at place item // 2 of the order a colour, or check the one it has: the lowest bit tells."""
    place = item >> 1
    v = vertex_at(place, order.vertices)
    turn = 0
    if item & 1:
        final = is_final(worker, v, graph, colors)
    else:
        final = graph.indptr[v] == graph.indptr[v + 1]
        if final:
            colors[v] = 0
        else:
            turn = colors[v]
            final = turn <= COLOR  # since a launch before
    if not final:
        color = smallest_free(worker, v, turn, graph, colors, order.patience)
        if worker.rank == 0 and atomic_exch(colors, v, TENTATIVE | color) > COLOR:  # always; asked to be sure that it is stored
            worker.push(item | 1)
    elif worker.rank == 0 and place + order.window < order.end:
        worker.push((place + order.window) << 1)


@task
def assign_or_check(worker, item, graph, colors, order):  # type: ignore[no-untyped-def]
    """Advance one vertex; or, if the place is past the end, push those of a block."""
    place = item >> 1
    if place < order.end:
        advance_vertex(worker, item, graph, colors, order)
    else:
        first = (place - order.end) * BLOCK
        for k in worker.split(min(BLOCK, order.end - first)):
            worker.push((first + k) << 1)
