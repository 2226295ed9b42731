"""The tasks of PageRank that follow edges: handing residues on, and finding who has some."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...array import Array
from ...task import atomic_add, atomic_exch, task

__all__ = ["BLOCK", "LIGHT", "Step", "check", "push", "sweep"]

BLOCK = 256  # vertices that an item stands for which is no vertex
GLANCE = 8  # vertices that each thread of a worker without work looks at; what a CTA finds fits its buffer of pushed items
LIGHT = {"cuda": 16, "cpu": 1 << 62}  # a vertex of at most so many edges is handed on by the thread that checks it


class Step(NamedTuple):
    """What is the same for all tasks of a launch; numbers are of the type of the residues."""

    damping: Any
    omega: Any  # how much of a residue is taken at once: more than 1 is over-relaxation
    limit: Any  # residues below limit + limit_per_edge * degree stay where they are
    limit_per_edge: Any
    light: int
    initial: bool  # hand on the rank and not the residue: makes residues from ranks
    whole: bool  # a check does not end before it has come to every vertex
    cursor: Array | None  # how many vertices have been checked, again and again


def is_above(r, degree, step):  # type: ignore[no-untyped-def]
    """Whether a residue is worth handing on."""
    return step.initial or abs(r) > step.limit + step.limit_per_edge * degree


def take(v, first, degree, graph, rank, residue, step):  # type: ignore[no-untyped-def]
    """Move the residue of v, if it is worth it, to its rank; return what each neighbour gets."""
    number = residue.dtype.type
    edges = number(max(degree, 1))
    if step.initial:
        return step.damping * number(rank[v]) / edges
    if not is_above(residue[v], number(degree), step):
        return number(0)
    r = atomic_exch(residue, v, 0)
    taken = step.omega * r
    if degree == 1 and graph.indices[first] == v:
        taken = r / (number(1) - step.damping)  # all of it would come back, again and again
    if taken != r:
        atomic_add(residue, v, r - taken)
    atomic_add(rank, v, taken)
    return step.damping * taken / edges


def edges_or_block(item, graph, rank, residue, queued, step):  # type: ignore[no-untyped-def]
    """Return the edges of a vertex, where they begin and what they carry; or the vertices of a block and the first of them."""
    if item >= rank.size:
        first = (item - rank.size) * BLOCK
        return min(BLOCK, rank.size - first), first, residue.dtype.type(0)
    first = graph.indptr[item]
    degree = graph.indptr[item + 1] - first
    share = residue.dtype.type(0)
    # A vertex is marked while it is queued. The mark goes first, for sure since what was there is looked at: who adds to the
    # residue after it was taken has to find it gone.
    if queued is None or atomic_exch(queued, item, 0) != 0:
        share = take(item, first, degree, graph, rank, residue, step)
    return degree if share != 0 else 0, first, share


@task(workload=edges_or_block)
def sweep(worker, item, i, first, share, graph, rank, residue, queued, step):  # type: ignore[no-untyped-def]
    """Hand on along edge i of a vertex; or hand on vertex i of a block, or push it if it has many edges."""
    if item < rank.size:
        atomic_add(residue, graph.indices[first + i], share)
        return
    v = first + i
    begin = graph.indptr[v]
    end = graph.indptr[v + 1]
    if end - begin > step.light:
        if is_above(residue[v], residue.dtype.type(end - begin), step):
            worker.push(v)
    else:
        share = take(v, begin, end - begin, graph, rank, residue, step)
        if share != 0:
            for edge in range(begin, end):
                atomic_add(residue, graph.indices[edge], share)


@task(workload=edges_or_block)
def push(worker, item, i, first, share, graph, rank, residue, queued, step):  # type: ignore[no-untyped-def]
    """Hand on along edge i of a vertex, and push the neighbour if that made the difference; or check vertex i of a block."""
    v = first + i
    if item < rank.size:
        v = graph.indices[first + i]
        old = atomic_add(residue, v, share)
        found = abs(old) <= step.limit and abs(old + share) > step.limit
    else:
        found = abs(residue[v]) > step.limit
    if found and atomic_exch(queued, v, 1) == 0:
        worker.push(v)


def check(worker, graph, rank, residue, queued, step):  # type: ignore[no-untyped-def]
    """Push vertices with work, a glance at a time, until one is found, or the cursor has passed all since this began.

    The idle function of `sweep` with `find="idle"`.
    """
    n = rank.size
    part = min(GLANCE * worker.size, n)
    begin, ahead, found = 0, n, False
    while ahead > 0 and (step.whole or not found):
        at = atomic_add(step.cursor, 0, part) if worker.rank == 0 else 0
        at = worker.max(at)
        begin = at if ahead == n else begin
        ahead = begin + n - at - part
        for k in worker.split(range(at % n, at % n + part)):
            v = k - n if k >= n else k
            if abs(residue[v]) > step.limit and atomic_exch(queued, v, 1) == 0:
                worker.push(v)
                found = True
        found = worker.any(found)
