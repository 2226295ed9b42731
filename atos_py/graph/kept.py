"""Memory of what was derived from a graph, such as its transpose: made once, and kept as long as the arrays of the graph."""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

from ..arrays.array import Array
from ..support.remembered import Remembered
from .graph_arrays import GraphArrays

__all__ = ["GraphReference", "forget", "kept"]


class GraphReference(NamedTuple):
    """A graph as far as it is still there: nothing here keeps its arrays alive."""

    indptr: weakref.ref[Array]
    indices: weakref.ref[Array]
    weights: weakref.ref[Array] | None

    @classmethod
    def to(cls, graph: GraphArrays) -> GraphReference:
        """Return the reference to a graph."""
        return cls(*(None if part is None else weakref.ref(part) for part in graph))  # type: ignore[arg-type]

    def is_to(self, graph: GraphArrays) -> bool:
        """Whether it is the reference to a graph of these arrays, and not to one of equal ones."""
        indptr, indices, weights = graph
        if self.indptr() is not indptr or self.indices() is not indices:
            return False
        return weights is None if self.weights is None else weights is not None and self.weights() is weights

    def parts(self) -> tuple[Array, Array, Array | None] | None:
        """Return the arrays of the graph; None if one of them is gone."""
        indptr, indices, weights = self.indptr(), self.indices(), None if self.weights is None else self.weights()
        if indptr is None or indices is None or (weights is None and self.weights is not None):
            return None
        return indptr, indices, weights


# By the part of a graph that others are the least likely to share.
_kept: Remembered[tuple[GraphReference, dict[str, Any]]] = Remembered()


def kept(graph: GraphArrays) -> dict[str, Any]:
    """Return what was derived from a graph, by name, to be looked up and added to.

    What is added must not hold all arrays of the graph itself, which would then live for ever; a `GraphReference` may.
    """
    key = graph.indices if graph.weights is None else graph.weights
    entry = _kept.get(key)
    if entry is None or not entry[0].is_to(graph):
        entry = _kept.set(key, (GraphReference.to(graph), {}))
    return entry[1]


def forget(name: str) -> None:
    """Forget what was derived from any graph under a name."""
    for _, found in _kept.values():
        found.pop(name, None)
