"""Tasks of a coloring, a range of low-degree vertices at a time: a worker takes the range, each of its threads a vertex."""

from __future__ import annotations

from ...compile.atomics import atomic_cas
from ...compile.task import task
from ...operators.ranges import mixed_range_bounds
from .tasks import (
    COLOR,
    LOST,
    TENTATIVE,
    UNCOLORED,
    assign,
    is_final,
    lowest_zero,
    resolve_clash,
    store_tentative,
    vertex_at,
)

__all__ = ["MAX_DEGREE", "assign_range", "check_range"]

MAX_DEGREE = 31  # neighbors, whose colors fit a word


def find_smallest_free(v, graph, colors):  # type: ignore[no-untyped-def]
    """Return the smallest color that no neighbor of v has, by one thread."""
    bits = 0
    for e in range(graph.indptr[v], graph.indptr[v + 1]):
        entry = colors[graph.indices[e]]
        if entry < UNCOLORED and entry & COLOR <= MAX_DEGREE:
            bits |= 1 << (entry & COLOR)
    return lowest_zero(bits)


def finalize_or_recolor(v, entry, graph, colors):  # type: ignore[no-untyped-def]
    """Make the color of v final, or give it another one, which is to be checked again; return whether it is final."""
    color, lost = entry & COLOR, entry & LOST != 0
    for e in range(graph.indptr[v], graph.indptr[v + 1]):
        lost |= resolve_clash(v, graph.indices[e], color, graph, colors)
    if not lost and atomic_cas(colors, v, TENTATIVE | color, color) == TENTATIVE | color:
        return True
    return not store_tentative(v, find_smallest_free(v, graph, colors), colors)


@task(max_registers={"cta": 40})  # rounds of road4900 take 1.10 ms instead of 1.20
def assign_range(worker, item, graph, colors, params):  # type: ignore[no-untyped-def]
    """Give the vertices of a range colors.

    Vertices with consecutive places are often neighbors: those with even places come first, then those with odd ones.
    A vertex with more than `MAX_DEGREE` neighbors becomes an item of its own.
    """
    first, size = mixed_range_bounds(item, params.end)
    unfinished = False
    for turn in range(2):
        for k in worker.split((size + 1 - turn) >> 1):
            place = first + 2 * k + turn
            v = vertex_at(place, params.vertices)
            degree = graph.indptr[v + 1] - graph.indptr[v]
            if degree > MAX_DEGREE:
                worker.push(place, task=assign)
            elif degree == 0:
                colors[v] = 0
            else:
                unfinished |= store_tentative(v, find_smallest_free(v, graph, colors), colors)
        worker.sync()
    if worker.any(unfinished) and worker.rank == 0:
        worker.push(item, task=check_range)


@task
def check_range(worker, item, graph, colors, params):  # type: ignore[no-untyped-def]
    """Check the colors of the vertices of a range that have no item of their own, in the order of `assign_range`."""
    first, size = mixed_range_bounds(item, params.end)
    unfinished = False
    for turn in range(2):
        for k in worker.split((size + 1 - turn) >> 1):
            v = vertex_at(first + 2 * k + turn, params.vertices)
            entry = colors[v]
            if not is_final(entry) and graph.indptr[v + 1] - graph.indptr[v] <= MAX_DEGREE:
                unfinished |= not finalize_or_recolor(v, entry, graph, colors)
        worker.sync()
    if worker.any(unfinished) and worker.rank == 0:
        worker.push(item, task=check_range)
