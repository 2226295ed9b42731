"""Number of the reverse of each edge of a symmetric graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays.array import Array
from ..arrays.compute import compute
from ..errors import InvalidArgumentError
from .graph_arrays import GraphArrays
from .row_arrays import row_sources, stable_order
from .transpose import transpose_rows

__all__ = ["reverse_edges"]


def reverse_edges(graph: GraphArrays) -> Array:
    """Return the number of the reverse of each edge; see `Graph.reverse_edges`.

    Sorted by target and source, the edges are those of the transpose in its order. If that is the graph itself, with its edges
    sorted too, those in the same place are each other's reverse.
    """
    turned = transpose_rows(graph, with_edges=True)
    return compute(_match, graph.indptr, graph.indices, *(part for part in turned if part is not None))[0]


def _match(xp: Any, indptr: Any, indices: Any, turned_indptr: Any, turned_indices: Any, edges: Any) -> tuple[Any]:
    symmetric = bool((indptr == turned_indptr).all())
    order = None
    if symmetric and not (indices == turned_indices).all():  # neighbors may be in another order
        order = stable_order(xp, (row_sources(xp, indptr, indices.size).astype(np.uint64) << np.uint64(32)) | indices)
        symmetric = bool((indices[order] == turned_indices).all())
    if not symmetric:
        raise InvalidArgumentError("an edge has no reverse, or not as often as it is there: take graph.to_symmetric()")
    again = turned_indices[1:] == turned_indices[:-1]
    sources = row_sources(xp, indptr, indices.size)
    again &= sources[1:] == sources[:-1]
    if again.any():
        at = int(again.argmax())
        raise InvalidArgumentError(
            f"there are parallel edges from vertex {int(sources[at])} to {int(turned_indices[at])}: "
            "take graph.simplify(deduplicate=True)"
        )
    if order is None:
        return (edges,)
    reverse = xp.empty_like(edges)
    reverse[order] = edges
    return (reverse,)
