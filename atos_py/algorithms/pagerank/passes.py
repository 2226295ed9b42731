"""The tasks of PageRank that go over all vertices once: first ranks, residues without edges, sums, and the result."""

from __future__ import annotations

from ...task import atomic_add, task
from ..spans import span_of

__all__ = ["HUB", "finish", "measure", "set_ranks", "set_residues", "survey"]

HUB = 4096  # edges beyond which a warp takes long to gather


@task
def survey(worker, span, graph, teleport, hubs, totals):  # type: ignore[no-untyped-def]
    """Sum the teleport distribution over vertices without edges; count and list hubs."""
    dangling = 0.0
    for v in span_of(worker, span, graph.indptr.size - 1):
        degree = graph.indptr[v + 1] - graph.indptr[v]
        if degree == 0:
            dangling += teleport[min(v, teleport.size - 1)]
        if degree > HUB:
            hubs[1 + atomic_add(hubs, 0, 1)] = v
    dangling = worker.sum(dangling)
    if worker.rank == 0:
        atomic_add(totals, 0, dangling)


@task
def set_ranks(worker, span, graph, start, per_vertex, per_edge, rank):  # type: ignore[no-untyped-def]
    """Set ranks to `per_vertex * start + per_edge * degree`."""
    for v in span_of(worker, span, rank.size):
        rank[v] = per_vertex * start[min(v, start.size - 1)] + per_edge * (graph.indptr[v + 1] - graph.indptr[v])


@task
def set_residues(worker, span, rank, residue, teleport, kept):  # type: ignore[no-untyped-def]
    """Set residues to the part of theirs that comes along no edge: that of the jumps, less the ranks."""
    for v in span_of(worker, span, rank.size):
        residue[v] = kept * teleport[min(v, teleport.size - 1)] - rank[v]


@task
def measure(worker, span, rank, residue, teleport, shift, totals):  # type: ignore[no-untyped-def]
    """Take `shift` times the teleport distribution from the residues; sum ranks, residues, and these without their signs."""
    p = 0.0
    r = 0.0
    size = 0.0
    for v in span_of(worker, span, rank.size):
        if shift != 0:
            residue[v] -= shift * teleport[min(v, teleport.size - 1)]
        p += rank[v]
        r += residue[v]
        size += abs(residue[v])
    p = worker.sum(p)
    r = worker.sum(r)
    size = worker.sum(size)
    if worker.rank == 0:
        atomic_add(totals, 0, p)
        atomic_add(totals, 1, r)
        atomic_add(totals, 2, size)


@task
def finish(worker, span, rank, residue, teleport, shift, factor, result):  # type: ignore[no-untyped-def]
    """Add the residues, less `shift` times the teleport distribution, to the ranks, and normalise."""
    for v in span_of(worker, span, rank.size):
        result[v] = factor * (rank[v] + residue[v] - shift * teleport[min(v, teleport.size - 1)])
