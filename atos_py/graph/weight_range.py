"""Range of a graph's weights: one pass on the graph's device, of which the result is remembered."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays.array import Array, asarray, zeros
from ..errors import InvalidArgumentError
from ..operators.ranges import range_items
from ..operators.vertex_map import vertex_range
from ..runtime.queue import Queue
from ..support.remembered import Remembered

__all__ = ["WeightRange", "check_not_negative", "refuse_negative", "weight_range"]


class WeightRange(NamedTuple):
    """Least and greatest weight, and the mean as far as float64 can tell it: NaN if a weight is NaN."""

    least: Any
    most: Any
    mean: float


_known: Remembered[WeightRange] = Remembered()


def weight(edge, weights):  # type: ignore[no-untyped-def]
    """Return the weight of an edge."""
    return weights[edge]


find_range = vertex_range(weight)


def weight_range(weights: Array) -> WeightRange:
    """Return the range of weights, 0 where there are none; remembered for this array."""
    found = _known.get(weights) if weights.size else WeightRange(0, 0, 0.0)
    if found is None:
        device, kind = weights.device, weights.dtype
        extremes = (np.inf, -np.inf) if kind.kind == "f" else (np.iinfo(kind).max, np.iinfo(kind).min)
        ends = asarray(np.array(extremes, kind), device=device, copy=True)
        total = zeros(1, dtype=np.float64, device=device)
        queue = Queue(len(items := range_items(weights.size)), device=device)
        queue.push(items)
        queue.launch_warp(find_range, weights.size, ends, total, weights)
        least, most = ends.to_numpy().tolist()
        found = _known.set(weights, WeightRange(least, most, float(total[0]) / weights.size))
    return found


def check_not_negative(weights: Array, rows: tuple[Array, Array] | None = None) -> WeightRange:
    """Return the range of weights; `rows` are the offsets and the targets of the edges, for the message.

    Raises
    ------
    InvalidArgumentError
        If one is negative or NaN; the message names the first such edge.
    """
    found = weight_range(weights)
    if not (found.least >= 0 and found.mean >= 0):
        refuse_negative(np.asarray(weights), rows)
    return found


def refuse_negative(weights: NDArray[Any], rows: tuple[Any, Any] | None = None) -> None:
    """Raise if a weight is negative or NaN."""
    if weights.size and not weights.min() >= 0:
        edge = int(np.argmin(weights >= 0))
        ends = ""
        if rows is not None:
            offsets, targets = map(np.asarray, rows)
            ends = f", from {np.searchsorted(offsets, edge, 'right') - 1} to {targets[edge]},"
        raise InvalidArgumentError(
            f"the weight of edge {edge}{ends} is {weights[edge]}, but shortest paths need weights of at least 0; "
            "leave such edges out, or use scipy.sparse.csgraph.bellman_ford"
        )
