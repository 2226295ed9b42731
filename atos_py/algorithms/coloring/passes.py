"""The tasks of a colouring that go over all vertices once: finding hubs, giving out turns, and the largest colour."""

from __future__ import annotations

from ...task import atomic_add, atomic_max, task
from ..spans import span_of
from .tasks import UNCOLORED, vertex_at

__all__ = ["give_turns", "largest", "survey"]


@task
def survey(worker, span, graph, least, hubs):  # type: ignore[no-untyped-def]
    """Count and list the vertices with `least` neighbours or more."""
    for v in span_of(worker, span, graph.indptr.size - 1):
        if graph.indptr[v + 1] - graph.indptr[v] >= least:
            hubs[1 + atomic_add(hubs, 0, 1)] = v


@task
def give_turns(worker, span, colors, order):  # type: ignore[no-untyped-def]
    """Write down the turn of each vertex that has no colour yet."""
    for place in span_of(worker, span, order.end):
        v = vertex_at(place, order.vertices)
        if colors[v] >= UNCOLORED:
            colors[v] = UNCOLORED + (place >> 1 if order.end > UNCOLORED else place)


@task
def largest(worker, span, colors, found):  # type: ignore[no-untyped-def]
    """Find the largest colour."""
    most = 0
    for v in span_of(worker, span, colors.size):
        most = max(most, colors[v])
    most = worker.max(most)
    if worker.rank == 0:
        atomic_max(found, 0, most)
