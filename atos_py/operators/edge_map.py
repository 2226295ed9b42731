"""Edge maps: a function of every edge of the active vertices, mapped to threads, warps and CTAs by degree.

Two directions. `gather` (pull): every vertex combines what its neighbors have. `push`: active vertices change their
neighbors, which may become active. `row_pull` has the pull with early exit, for tasks that do several things with a range.
`range_gather` is the body of `gather` with a limit of edges, beyond which `long_rows` gathers in pieces.

*Mapping by degree.* A vertex of low degree, with at most `thread_max_degree` edges, is mapped to one thread; one of high degree
to all threads of the worker, or, in `push`, to all that share the inner loop of a nested task: its warp, its CTA, or, where it
is long, all of them. A serial loop over many edges in one thread would hold up the others of its worker.

*Items* are range items for `gather`, and mixed items for `push`: see `ranges`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..compile.task import Task
from .ranges import mixed_range_bounds
from .reductions import plus, store_sums
from .vertex_map import named

__all__ = ["THREAD_MAX_DEGREE", "gather", "push", "range_gather", "row_sum", "weight_of"]

#: Degree up to which one thread takes a vertex. On the CPU a worker is a thread.
THREAD_MAX_DEGREE = {"cuda": 16, "cpu": 1 << 62}
_NO_LIMIT = 1 << 62  # edges of a vertex


def weight_of(weights, edge):  # type: ignore[no-untyped-def]
    """Return the weight of an edge, 1 without weights; for tasks."""
    if weights is None:
        return 1
    return weights[edge]


def _term_without_edge(term: Callable[..., Any]) -> Callable[..., Any]:
    def edge_term(v, u, edge, *args):  # type: ignore[no-untyped-def]
        return term(v, u, *args)

    return edge_term


def row_sum(
    term: Callable[..., Any], empty: Callable[..., Any], zero: Any = 0.0, with_edge: bool = False
) -> Callable[..., Any]:
    """Return the function by which a thread sums up every so many terms of a row, for `gather`, whose parameters these are.

    It is called as ``function(v, edge, end, step, indices, *args)``.
    """
    wide = np.dtype(type(zero)).type  # as Numba converts: float() of a float32 would stay one
    edge_term = term if with_edge else _term_without_edge(term)

    def accumulate(v, edge, end, step, indices, *args):  # type: ignore[no-untyped-def]
        # Four edges at a time, since a GPU then has four loads of `term` under way at once.
        total = zero
        none = empty(*args)
        while edge < end:
            a = edge_term(v, indices[edge], edge, *args)
            b = edge_term(v, indices[edge + step], edge + step, *args) if edge + step < end else none
            c = edge_term(v, indices[edge + 2 * step], edge + 2 * step, *args) if edge + 2 * step < end else none
            d = edge_term(v, indices[edge + 3 * step], edge + 3 * step, *args) if edge + 3 * step < end else none
            total += wide(a) + wide(b) + (wide(c) + wide(d))
            edge += 4 * step
        return total

    return accumulate


def gather(
    term: Callable[..., Any],
    update: Callable[..., Any],
    empty: Callable[..., Any] = lambda *args: 0,
    zero: Any = 0.0,
    count: int = 1,
    with_edge: bool = False,
) -> Task:
    """Return the flat task by which every vertex gathers along its edges, like a product of a sparse matrix with a vector.

    For each vertex v, ``received`` is the sum, in the type of `zero`, of ``term(v, u, *args)`` over its edges (v, u), and one
    thread calls ``update(v, degree, received, *args)``, whose `count` numbers, a tuple, are added up over all vertices.
    ``empty(*args)`` is the term of no edge: 0, of the type of the others. With `with_edge`, ``term(v, u, edge, *args)`` gets
    the number of the edge too, as for its weight.

    The items are range items (`ranges.range_items`), and the arguments of a launch ``(size, thread_max_degree, indptr,
    indices, totals, *args)``: vertices of a range; edges up to which one thread gathers alone; the rows of the graph; and an
    array of the type of `zero` that the sums of `update` are added to.
    """
    gather_range = range_gather(row_sum(term, empty, zero, with_edge), update, zero, count)

    def run(worker, item, size, thread_max_degree, indptr, indices, totals, *args):  # type: ignore[no-untyped-def]
        first = item * size
        last = min(first + size, indptr.size - 1)
        gather_range(worker, first, last, thread_max_degree, _NO_LIMIT, indptr, indices, totals, *args)

    return Task(named(run, update))


def range_gather(
    accumulate: Callable[..., Any], update: Callable[..., Any], zero: Any, count: int, together: bool = False
) -> Callable[..., Any]:
    """Return the function by which a worker gathers for a range of vertices, but not for those with very many edges.

    It is called as ``gather_range(worker, first, last, thread_max_degree, longest, indptr, indices, totals, *args)``, with the
    first vertex and the end of the range, and the edges from which on a vertex has too many. The others are the arguments of
    the task of `gather`, of which `accumulate` is the `row_sum`.

    Vertices of high degree, for which all threads gather, are updated one after the other, or, `together`, as many at once as
    there are threads: what is stored of them at other devices then crosses the link together.
    """
    add, store = plus(count), store_sums(count)
    zeros = (zero,) * count

    def one_by_one(worker, sums, first, last, thread_max_degree, longest, indptr, indices, *args):  # type: ignore[no-untyped-def]
        for v in range(first, last):
            begin = indptr[v]
            end = indptr[v + 1]
            if thread_max_degree < end - begin <= longest:
                received = worker.sum(accumulate(v, begin + worker.rank, end, worker.size, indices, *args))
                if worker.rank == 0:
                    sums = add(sums, update(v, end - begin, received, *args))
        return sums

    def all_at_once(worker, sums, first, last, thread_max_degree, longest, indptr, indices, *args):  # type: ignore[no-untyped-def]
        for base in range(first, last, worker.size):
            own = base + worker.rank
            received = zero
            for v in range(base, min(base + worker.size, last)):
                begin = indptr[v]
                end = indptr[v + 1]
                if thread_max_degree < end - begin <= longest:
                    total = worker.sum(accumulate(v, begin + worker.rank, end, worker.size, indices, *args))
                    if v == own:
                        received = total
            if own < last:
                degree = indptr[own + 1] - indptr[own]
                if thread_max_degree < degree <= longest:
                    sums = add(sums, update(own, degree, received, *args))
        return sums

    gather_high = all_at_once if together else one_by_one

    def run(  # type: ignore[no-untyped-def]
        worker, first, last, thread_max_degree, longest, indptr, indices, totals, *args
    ):
        sums = zeros
        any_high = False
        for v in worker.split(range(first, last)):
            begin = indptr[v]
            end = indptr[v + 1]
            if end - begin > thread_max_degree:
                any_high |= end - begin <= longest
            else:
                # int64 as below, where it comes from the rank: Numba compiles `accumulate` for each type of its arguments.
                sums = add(sums, update(v, end - begin, accumulate(v, np.int64(begin), end, 1, indices, *args), *args))
        if worker.any(any_high):
            sums = gather_high(worker, sums, first, last, thread_max_degree, longest, indptr, indices, *args)
        store(worker, sums, totals)

    return run


def _without_edge(relax: Callable[..., Any]) -> Callable[..., Any]:
    def relax_edge(worker, v, u, edge, value, *args):  # type: ignore[no-untyped-def]
        relax(worker, v, u, value, *args)

    return relax_edge


def push(
    active: Callable[..., Any],
    begin: Callable[..., Any],
    relax: Callable[..., Any],
    empty: Callable[..., Any] = lambda *args: 0,
    low_degree_inline: bool = False,
    with_edge: bool = False,
) -> Task:
    """Return the nested task by which active vertices change their neighbors.

    The items are mixed items (`ranges`). A vertex v calls ``begin(v, degree, *args)`` once, which returns whether to go on, and
    a value; then ``relax(worker, v, u, value, *args)`` for each of its edges (v, u), spread over threads, which may push u. Of
    a range, each vertex v with ``active(v, degree, *args)`` is pushed.

    With `low_degree_inline`, the thread that looks at a vertex of a range begins and relaxes it at once if it has at most
    `thread_max_degree` edges, without asking whether it is active; that number then is the third argument of a launch.
    ``empty(*args)`` is a value of the type of those of `begin`.

    With `with_edge`, ``relax(worker, v, u, edge, value, *args)`` gets the number of the edge too, as for its weight.

    The arguments of a launch are ``(indptr, indices, *args)``, or ``(indptr, indices, thread_max_degree, *args)``.
    """
    relax_edge = relax if with_edge else _without_edge(relax)

    def trip_count(item, indptr, indices, *args):  # type: ignore[no-untyped-def]
        n = indptr.size - 1
        if item >= n:
            first, size = mixed_range_bounds(item, n)
            return size, first, empty(*args)
        first = indptr[item]
        degree = indptr[item + 1] - first
        goes_on, value = begin(item, degree, *args)
        return degree if goes_on else 0, first, value

    def run(worker, item, i, first, value, indptr, indices, *args):  # type: ignore[no-untyped-def]
        if item < indptr.size - 1:
            relax_edge(worker, item, indices[first + i], first + i, value, *args)
        else:
            v = first + i
            if active(v, indptr[v + 1] - indptr[v], *args):
                worker.push(v)

    def trip_count_inline(item, indptr, indices, thread_max_degree, *args):  # type: ignore[no-untyped-def]
        return trip_count(item, indptr, indices, *args)

    def run_inline(worker, item, i, first, value, indptr, indices, thread_max_degree, *args):  # type: ignore[no-untyped-def]
        if item < indptr.size - 1:
            relax_edge(worker, item, indices[first + i], first + i, value, *args)
            return
        v = first + i
        edge = indptr[v]
        end = indptr[v + 1]
        if end - edge > thread_max_degree:
            if active(v, end - edge, *args):
                worker.push(v)
        else:
            goes_on, own = begin(v, end - edge, *args)
            if goes_on:
                while edge < end:
                    relax_edge(worker, v, indices[edge], edge, own, *args)
                    edge += 1

    if low_degree_inline:
        return Task(named(run_inline, relax), trip_count_inline)
    return Task(named(run, relax), trip_count)
