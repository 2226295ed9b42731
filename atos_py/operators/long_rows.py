"""Long rows: rows with so many edges that one worker would keep all others waiting, gathered in pieces by several of them.

For launches in rounds that gather for ranges of vertices (`edge_map.range_gather`), which leave the long rows out. Pieces are
numbered behind the ranges, so that workers take them from the same counter. A worker adds the sum of a piece to that of its row
by an atomic, and the function between rounds gives the vertices their new values: `settle`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays.array import Array, asarray
from ..compile.atomics import atomic_add
from ..core.devices import Device
from .reductions import plus

__all__ = ["HUB_DEGREE", "LongRows", "gather_pieces", "make_long_rows"]

#: Edges from which on a vertex is a hub, for which a worker takes long to gather; and of a piece, at most.
HUB_DEGREE = 4096
_SHARES = 16  # parts of all edges for each multiprocessor, of which a long row has more than one


class LongRows(NamedTuple):
    """Rows that are gathered in pieces."""

    longest: int  # edges of a row up to which it is none
    first_piece: int  # the number of the first piece
    edges_of_piece: int  # at most
    vertices: Array  # of each row
    ends: Array  # and the end of its edges
    degrees: Array  # and how many there are
    rows: Array  # of each piece
    begins: Array  # and the first edge


def make_long_rows(hubs: NDArray[Any], num_edges: int, num_ranges: int, device: Device, devices: int = 1) -> LongRows:
    """Return the long ones among the rows of all hubs, each with its vertex, first edge and end.

    They are fewer than 16 for each multiprocessor of `devices` such as `device`, since all of them together have `num_edges`.
    """
    longest = max(HUB_DEGREE, num_edges // (_SHARES * device.processors * devices))
    vertices, begins, ends = hubs[hubs[:, 2] - hubs[:, 1] > longest].T
    pieces = -(-(ends - begins) // HUB_DEGREE)
    rows = np.repeat(np.arange(len(vertices)), pieces)
    places = np.arange(len(rows)) - np.repeat(np.cumsum(pieces) - pieces, pieces)  # of each piece in its row
    arrays = vertices, ends, ends - begins, rows, begins[rows] + places * HUB_DEGREE
    numbers = longest, num_ranges, HUB_DEGREE
    return LongRows(*numbers, *[asarray(each.astype(np.int64), device=device, readonly=True) for each in arrays])


def gather_pieces(
    accumulate: Callable[..., Any], update: Callable[..., Any], zero: Any, count: int
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return two functions, by which a worker gathers for a piece, and gives all long rows their new values.

    The parameters are those of `edge_map.range_gather`. All threads of a worker call the first as
    ``gather_piece(worker, item, long_rows, sums, indptr, indices, *args)``: `item` is the number of a piece, and `sums` has for
    each row a number, 0 at first. The second is for the function between rounds: ``settle(worker, long_rows, sums, *args)``
    returns the part of this thread of the numbers that `update` returns, and sets `sums` to 0 again.
    """
    add = plus(count)
    zeros = (zero,) * count

    def gather_piece(worker, item, long_rows, sums, indptr, indices, *args):  # type: ignore[no-untyped-def]
        piece = item - long_rows.first_piece
        row, begin = long_rows.rows[piece], long_rows.begins[piece]
        # Of the type that ranges have it, for which Numba has compiled `accumulate`.
        end = indptr.dtype.type(min(begin + long_rows.edges_of_piece, long_rows.ends[row]))
        received = worker.sum(accumulate(long_rows.vertices[row], begin + worker.rank, end, worker.size, indices, *args))
        if worker.rank == 0:
            atomic_add(sums, row, received)

    def settle(worker, long_rows, sums, *args):  # type: ignore[no-untyped-def]
        total = zeros
        for row in worker.split(long_rows.vertices.size):
            received = sums[row]
            sums[row] = zero
            total = add(total, update(long_rows.vertices[row], long_rows.degrees[row], received, *args))
        return total

    return gather_piece, settle
