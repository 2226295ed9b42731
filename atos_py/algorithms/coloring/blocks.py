"""Colouring blocks of vertices with few neighbours: a thread has a vertex, and an item a whole block of them."""

from __future__ import annotations

from ...task import atomic_cas, atomic_exch, task
from .tasks import BLOCK, COLOR, LOST, TENTATIVE, UNCOLORED, advance_vertex, loses, lowest_zero, vertex_at

__all__ = ["FEW", "assign_or_check_block"]

FEW = 31  # neighbours, whose colours fit a word


def taken_by(v, graph, colors):  # type: ignore[no-untyped-def]
    """Return the colours of the neighbours of v, as bits."""
    bits = 0
    for e in range(graph.indptr[v], graph.indptr[v + 1]):
        entry = colors[graph.indices[e]]
        if entry < UNCOLORED and entry & COLOR <= FEW:
            bits |= 1 << (entry & COLOR)
    return bits


def settle(v, entry, graph, colors):  # type: ignore[no-untyped-def]
    """Make the colour of v final, or give it another one, which is to be checked again: whether it is final."""
    color, lost = entry & COLOR, entry & LOST != 0
    for e in range(graph.indptr[v], graph.indptr[v + 1]):
        lost |= loses(v, graph.indices[e], color, graph, colors)
    if not lost and atomic_cas(colors, v, TENTATIVE | color, color) == TENTATIVE | color:
        return True
    return atomic_exch(colors, v, TENTATIVE | lowest_zero(taken_by(v, graph, colors))) <= COLOR  # never; asked as below


@task
def assign_or_check_block(worker, item, graph, colors, order):  # type: ignore[no-untyped-def]
    """Give the vertices of block item // 2 - end colours, or check those that they have; or one vertex, as without blocks.

    Vertices with consecutive places are often neighbours: those with even places come first, then those with odd ones.
    A vertex with more than `FEW` neighbours becomes an item of its own.
    """
    if item >> 1 < order.end:
        advance_vertex(worker, item, graph, colors, order)
        return
    first = ((item >> 1) - order.end) * BLOCK
    size = min(BLOCK, order.end - first)
    left = False
    for turn in range(2):
        for k in worker.split((size + 1 - turn) >> 1):
            place = first + 2 * k + turn
            v = vertex_at(place, order.vertices)
            degree = graph.indptr[v + 1] - graph.indptr[v]
            if item & 1:
                entry = colors[v]
                if entry > COLOR and degree <= FEW:
                    left |= not settle(v, entry, graph, colors)
            elif degree > FEW:
                worker.push(place << 1)
            elif degree == 0:
                colors[v] = 0
            else:  # what was there is looked at, to be sure that the colour is stored before its check is pushed
                left |= atomic_exch(colors, v, TENTATIVE | lowest_zero(taken_by(v, graph, colors))) > COLOR
        worker.sync()
    if worker.any(left) and worker.rank == 0:
        worker.push(item | 1)
