"""Unrolling: a thread that has changed a vertex relaxes the edges of that too, some levels deep, before anything is pushed.

Values travel several edges in a round, so rounds are fewer, and less goes through the queue. It goes depth first, which takes
no memory for a list of its own; the code has a copy of the loop for each level. A vertex with many edges is pushed instead,
since the queue spreads them over threads.

Source: Nasre, Burtscher and Pingali, "Data-driven versus topology-driven irregular computations on GPUs", IPDPS 2013.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["FOLLOWED_EDGES", "unrolled"]

FOLLOWED_EDGES = 32  # of a vertex, which one thread relaxes itself


def unrolled(
    relax: Callable[..., Any], take: Callable[..., Any], pass_on: Callable[..., Any], levels: int
) -> Callable[..., Any]:
    """Return the function ``relax_on(worker, edge, sent, rows, *args)`` that relaxes an edge, and those that follow.

    ``relax(u, edge, sent, *args)`` relaxes an edge to u, and returns whether that makes u active, and its value, which is sent
    on. If it does, and there are levels left, ``take(u, value, *args)`` is called and then the edges of u are relaxed;
    otherwise ``pass_on(worker, u, value, *args)`` is called. The function returns whether the first edge made u active.
    """

    def relax_last(worker, edge, sent, rows, *args):  # type: ignore[no-untyped-def]
        u = rows.indices[edge]
        is_active, value = relax(u, edge, sent, *args)
        if is_active:
            pass_on(worker, u, value, *args)
        return is_active

    def one_more(relax_next: Callable[..., Any]) -> Callable[..., Any]:
        def relax_on(worker, edge, sent, rows, *args):  # type: ignore[no-untyped-def]
            u = rows.indices[edge]
            is_active, value = relax(u, edge, sent, *args)
            if is_active:
                first, last = np.int64(rows.indptr[u]), np.int64(rows.indptr[u + 1])
                if last - first > FOLLOWED_EDGES:
                    pass_on(worker, u, value, *args)
                else:
                    take(u, value, *args)
                    for following in range(first, last):
                        relax_next(worker, following, value, rows, *args)
            return is_active

        return relax_on

    function = relax_last
    for _ in range(levels - 1):
        function = one_more(function)
    return function
