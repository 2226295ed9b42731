"""Graphs that are made of one that is there, on its device: the methods by which `Graph` has them.

Each has a module of its own for how it is made; here are the words, what is kept (`kept`), and the checks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast, overload

from ..arrays.array import Array, asarray
from ..arrays.array_library import as_library
from ..arrays.compute import compute
from ..support.host_memory import host_memory_for
from ..support.validation import check_bool
from .graph_arrays import GraphArrays
from .kept import GraphReference, kept
from .simplify import simplify_rows
from .symmetry import is_symmetric, remember_symmetric
from .transpose import transpose_rows

if TYPE_CHECKING:
    from typing_extensions import Self  # of typing from Python 3.11 on

__all__ = ["DerivedGraphs"]


class DerivedGraphs(GraphArrays):
    """The rows of a CSR, and the graphs that can be made of them."""

    __slots__ = ()

    @overload
    def transpose(self) -> Self: ...
    @overload
    def transpose(self, *, return_edges: Literal[False]) -> Self: ...
    @overload
    def transpose(self, *, return_edges: Literal[True]) -> tuple[Self, Any]: ...
    @host_memory_for("Graph.transpose")
    def transpose(self, *, return_edges: bool = False) -> Self | tuple[Self, Any]:
        """Return the graph with every edge turned round, and neighbours in ascending order.

        It is made once, on the device of the graph, and kept as long as that. The transpose of the transpose is the graph
        itself while that is there.

        Parameters
        ----------
        return_edges : bool
            Whether to return the numbers of the edges too.

        Returns
        -------
        transpose : Graph
        edges : Array, or an array of the library that the graph's arrays came from
            If asked for: the number that each edge of the transpose has in this graph, so that
            ``transpose.weights == graph.weights[edges]``. Parallel edges stay in order.

        Examples
        --------
        >>> graph = atos.Graph.from_edges([0, 0, 1], [2, 1, 2], weights=[5, 6, 7])
        >>> turned, edges = graph.transpose(return_edges=True)
        >>> print(turned.indices[:], turned.weights[:], edges[:])
        [0 0 1] [6 5 7] [1 0 2]
        """
        if not check_bool("return_edges", return_edges):
            return self._transpose()
        return self._transpose(), as_library(self._transpose_edges(), self.library)

    @host_memory_for("Graph.is_symmetric")
    def is_symmetric(self) -> bool:
        """Return whether every edge has its reverse, as often as it is there: whether the graph is undirected.

        Weights are not looked at. The answer is remembered as long as the arrays of the graph live.

        Notes
        -----
        Hashes of 64 bits of all edges are added up, and those of their reverses taken off. A graph that is not symmetric is
        taken for one that is with a probability of 2**-64.

        Examples
        --------
        >>> graph = atos.Graph.from_edges([0, 1], [1, 2])
        >>> print(graph.is_symmetric(), graph.to_symmetric().is_symmetric())
        False True
        """
        return is_symmetric(self.indptr, self.indices)

    @host_memory_for("Graph.to_symmetric")
    def to_symmetric(self) -> Self:
        """Return this graph if every edge has its reverse, otherwise one with the reverse of every edge, and each edge once.

        Of the weights of parallel edges the least counts. The graph is made once, on the device of this one, and kept as long.

        Examples
        --------
        >>> graph = atos.Graph.from_edges([0, 1], [1, 2])
        >>> graph.to_symmetric()
        Graph(3 vertices, 4 directed edges, no weights, on cpu)
        """
        if self.is_symmetric():
            return self
        found = kept(self)
        if "symmetric" not in found:
            symmetric = self.simplify(symmetrize=True, deduplicate=True)
            remember_symmetric(symmetric.indptr, symmetric.indices)
            found["symmetric"] = symmetric
        return cast("Self", found["symmetric"])

    @host_memory_for("Graph.simplify")
    def simplify(
        self,
        *,
        symmetrize: bool = False,
        deduplicate: bool = False,
        remove_loops: bool = False,
        sort: bool = False,
        combine: str = "min",
    ) -> Self:
        """Return a graph changed as the options say, made on the device of this one.

        Parameters
        ----------
        symmetrize, deduplicate, remove_loops, sort : bool
            As in `Graph.from_edges`.
        combine : {"min", "max", "sum", "first"}
            With `deduplicate`, what the weight of one edge that is left of several is: the least, the greatest, their sum, in
            which integers get 64 bits, or that of the first of them.

        Examples
        --------
        >>> graph = atos.Graph.from_edges([0, 0, 1], [1, 1, 1], weights=[5, 6, 7])
        >>> simple = graph.simplify(deduplicate=True, remove_loops=True, combine="sum")
        >>> print(simple, simple.weights[:])
        Graph(2 vertices, 1 directed edges, int64 weights, on cpu) [11]
        """
        return self._made(
            *simplify_rows(
                self, symmetrize=symmetrize, deduplicate=deduplicate, remove_loops=remove_loops, sort=sort, combine=combine
            )
        )

    def _transpose(self) -> Self:
        found = kept(self)
        origin = found["transpose of"].parts() if "transpose of" in found else None
        if origin is not None:
            return type(self)(*origin)
        if "transpose" not in found:
            indptr, indices, edges = transpose_rows(self, with_edges=self.weights is not None)
            weights = None
            if self.weights is not None and edges is not None:
                found["transpose edges"] = edges
                (weights,) = compute(_take, self.weights, edges)
            turned = found["transpose"] = self._made(indptr, indices, weights)
            kept(turned)["transpose of"] = GraphReference.to(self)
        return cast("Self", found["transpose"])

    def _transpose_edges(self) -> Array:
        found = kept(self)
        if "transpose edges" not in found:
            if "transpose of" in found and (origin := found["transpose of"].parts()) is not None:
                (edges,) = compute(_inverse, type(self)(*origin)._transpose_edges())
            else:
                edges = cast(Array, transpose_rows(self, with_edges=True)[2])
            found["transpose edges"] = edges
        return cast(Array, found["transpose edges"])

    def _made(self, indptr: Array, indices: Array, weights: Array | None) -> Self:
        """Return a graph of new arrays on the same device, whose results are of the same library."""
        parts = [asarray(part, device=self.device, readonly=True) for part in (indptr, indices, weights) if part is not None]
        for part in parts:
            part.library = self.library
        return type(self)(parts[0], parts[1], None if weights is None else parts[2])


def _take(xp: Any, values: Any, places: Any) -> tuple[Any]:
    return (values[places],)


def _inverse(xp: Any, permutation: Any) -> tuple[Any]:
    """Return the permutation that undoes another."""
    inverse = xp.empty_like(permutation)
    inverse[permutation] = xp.arange(permutation.size, dtype=permutation.dtype)
    return (inverse,)
