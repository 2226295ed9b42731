"""PageRank, by pushing residues: every vertex hands on, in any order, what it has not handed on yet.

A vertex has a rank p and a residue r, which is what came in and was not passed on. A task takes the residue out, adds it to the
rank, and adds damping x residue / degree to the residue of every neighbour. At any time, and in any order,

    r = (1 - damping) v + damping P'p - p        (P: step along a random edge; v: the teleport distribution, sum 1)

so that nothing is lost by working with residues that are still growing, and the residues say how wrong the ranks are.

*Vertices without out-edges* pass nothing on here, while the PageRank of networkx sends their rank back to v. Both have the same
solution but for its scale: if y = d (P'y + m v) + (1 - d) v, where m is the rank of those vertices, then y = dP'y + (1 - d + dm) v,
a multiple of the solution x of x = dP'x + (1 - d) v. So ranks are normalised to sum 1 at the end, and no residue of such a
vertex is ever sent to everybody. By the same argument v may have any factor: r and r - c v belong to the same normalised ranks.

*The error.* Let Q be the chain with those vertices redirected to v, y = p / sum(p), and f = dQ'y + (1 - d) v - y. From the formula
above f = (r - sum(r) v) / sum(p). As y - y* = -(I - dQ')^-1 f, the error |y - y*| is at most |f| / (1 - d) in the 1-norm, and that of
y + f, whose f is dQ'f, is at most d |f| / (1 - d). The driver measures |f|, goes on until the latter is small enough, and
returns y + f. Rounding could make the residues wrong: at the end they are computed anew, in float64, from the ranks alone.

*Which vertices have work?* `find="sweep"`: blocks of vertices are checked one after the other, as in the paper's check; a residue
above a limit that grows with the degree is handed on, at once if there are few edges, else by a task of its own. A launch checks
each vertex once, and the next one is made while the error is too large. `find="push"`: the one atomic add that lifts a residue
over a limit, the same for all, pushes its vertex, and one launch goes on until no residue is above it.

In either case the end does not rest on any vertex having been found: it rests on residues measured after the launch. And the
launches go on for as long as needed: while the error is above the goal some residue is above its limit, the check at the start
of the next launch finds it, and taking r away from the residues and giving back at most d|r| lowers their sum.

Source: Chen et al., "Atos: A Task-Parallel GPU Scheduler for Graph Analytics", ICPP 2022, Algorithms 3 and 4. Signed residues allow
any start; over-relaxation is Young, "Iterative Methods for Solving Partial Difference Equations of Elliptic Type", 1954.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..array import Array, asarray, zeros
from ..errors import InvalidArgumentError, UnsupportedTypeError, VerificationError
from ..graph import Graph
from ..parallel import compiled, num_threads, parallel_map
from ..program import WORKERS
from ..queue import Queue
from ..stats import LaunchStats
from ..task import Task, atomic_add, atomic_exch, task

__all__ = ["PageRankResult", "pagerank", "verify"]

BLOCK = 256  # vertices that a check looks at
SPAN = 4096  # vertices that a sum goes over at once
LIGHT = 16  # a vertex of at most so many edges is handed on by the thread that checks it; on the CPU, any


class Step(NamedTuple):
    """What is the same for all tasks of a launch; numbers are of the type of the residues."""

    damping: Any
    omega: Any  # how much of a residue is taken at once: more than 1 is over-relaxation
    limit: Any  # residues below limit + limit_per_edge * degree stay where they are
    limit_per_edge: Any
    light: int
    num_vertices: int
    initial: bool  # hand on the rank and not the residue: makes residues from ranks


def is_above(r, degree, step):  # type: ignore[no-untyped-def]
    """Whether a residue is worth handing on."""
    return step.initial or abs(r) > step.limit + step.limit_per_edge * degree


def take(v, degree, rank, residue, step):  # type: ignore[no-untyped-def]
    """Move the residue of v, if it is worth it, to its rank; return what each neighbour gets."""
    if step.initial:
        return step.damping * rank[v] / max(degree, 1)
    if not is_above(residue[v], degree, step):
        return step.damping * 0
    r = atomic_exch(residue, v, 0)
    taken = step.omega * r
    if taken != r:
        atomic_add(residue, v, r - taken)
    atomic_add(rank, v, taken)
    return step.damping * taken / max(degree, 1)


def edges_or_block(item, graph, rank, residue, queued, step):  # type: ignore[no-untyped-def]
    """Return the edges of a vertex, where they begin and what they carry; or the vertices of a block and the first of them."""
    if item >= step.num_vertices:
        first = (item - step.num_vertices) * BLOCK
        return min(BLOCK, step.num_vertices - first), first, step.damping * 0
    if queued is not None:
        atomic_exch(queued, item, 0)  # before the residue: what comes after it was taken pushes the vertex again
    first = graph.indptr[item]
    degree = graph.indptr[item + 1] - first
    share = take(item, degree, rank, residue, step)
    return degree if share != 0 else 0, first, share


@task(workload=edges_or_block)
def sweep(worker, item, i, first, share, graph, rank, residue, queued, step):  # type: ignore[no-untyped-def]
    """Hand on along edge i of a vertex; or hand on vertex i of a block, or push it if it has many edges."""
    if item < step.num_vertices:
        atomic_add(residue, graph.indices[first + i], share)
        return
    v = first + i
    begin = graph.indptr[v]
    end = graph.indptr[v + 1]
    if end - begin > step.light:
        if is_above(residue[v], end - begin, step):
            worker.push(v)
    else:
        share = take(v, end - begin, rank, residue, step)
        if share != 0:
            for edge in range(begin, end):
                atomic_add(residue, graph.indices[edge], share)


@task(workload=edges_or_block)
def push(worker, item, i, first, share, graph, rank, residue, queued, step):  # type: ignore[no-untyped-def]
    """Hand on along edge i of a vertex, and push the neighbour if that made the difference; or check vertex i of a block."""
    v = first + i
    if item < step.num_vertices:
        v = graph.indices[first + i]
        old = atomic_add(residue, v, share)
        found = abs(old) <= step.limit and abs(old + share) > step.limit
    else:
        found = abs(residue[v]) > step.limit
    if found and atomic_exch(queued, v, 1) == 0:
        worker.push(v)


@task
def prepare(worker, span, graph, start, per_vertex, per_edge, teleport, kept, rank, residue, totals):  # type: ignore[no-untyped-def]
    """Set ranks to `per_vertex * start + per_edge * degree`, and residues to the part of theirs that needs no edges."""
    dangling = 0.0
    for v in worker.split(range(span * SPAN, min(span * SPAN + SPAN, rank.size))):
        degree = graph.indptr[v + 1] - graph.indptr[v]
        p = per_vertex * start[v % start.size] + per_edge * degree
        rank[v] = p
        residue[v] = kept * teleport[v % teleport.size] - rank[v]
        if degree == 0:
            dangling += teleport[v % teleport.size]
    dangling = worker.sum(dangling)
    if worker.rank == 0:
        atomic_add(totals, 0, dangling)


@task
def measure(worker, span, rank, residue, teleport, shift, totals):  # type: ignore[no-untyped-def]
    """Take `shift` times the teleport distribution from the residues; sum ranks, residues, and these without their signs."""
    p = 0.0
    r = 0.0
    size = 0.0
    for v in worker.split(range(span * SPAN, min(span * SPAN + SPAN, rank.size))):
        if shift != 0:
            residue[v] -= shift * teleport[v % teleport.size]
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
def finish(worker, span, rank, residue, factor, result):  # type: ignore[no-untyped-def]
    """Add what is left of the residues to the ranks, and normalise."""
    for v in worker.split(range(span * SPAN, min(span * SPAN + SPAN, rank.size))):
        result[v] = factor * (rank[v] + residue[v])
