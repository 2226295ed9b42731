"""Graphs as what other libraries work on: sparse matrices, graphs of networkx, tables of edges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays.array import Array
from ..arrays.compute import compute
from ..errors import MissingPackageError
from ..support.host_memory import host_memory_for
from .edge_arrays import GraphEdgeArrays
from .kept import kept
from .row_arrays import row_sources

if TYPE_CHECKING:
    import networkx
    import pandas
    import scipy.sparse

__all__ = ["GraphExports"]


class GraphExports(GraphEdgeArrays):
    """The edges of a graph for other libraries."""

    __slots__ = ()

    @property
    @host_memory_for("Graph.sources")
    def sources(self) -> Array:
        """The source of each edge, uint32, in the order of `indices`; made once, and kept as long as the graph.

        Examples
        --------
        >>> graph = atos.Graph.from_edges([0, 0, 1], [1, 2, 2])
        >>> print(graph.sources[:], graph.indices[:])
        [0 0 1] [1 2 2]
        """
        found = kept(self)
        if "sources" not in found:
            (made,) = compute(lambda xp, indptr: (row_sources(xp, indptr, self.num_edges),), self.indptr)
            made.readonly = True
            found["sources"] = made
        sources: Array = found["sources"]
        return sources

    @host_memory_for("Graph.to_scipy")
    def to_scipy(self) -> scipy.sparse.csr_array:
        """Return a copy as the adjacency matrix, with the weights as entries, or True if there are none.

        Raises
        ------
        MissingPackageError
            If SciPy is not installed.

        Examples
        --------
        >>> atos.Graph.from_edges([0, 1], [1, 2], weights=[5, 6]).to_scipy().toarray()
        array([[0, 5, 0],
               [0, 0, 6],
               [0, 0, 0]])
        """
        try:
            import scipy.sparse
        except ImportError as error:
            raise MissingPackageError("to_scipy needs SciPy: python -m pip install scipy") from error
        # Copies, since SciPy may sort them in place.
        indptr, indices = self.indptr.to_numpy(), self.indices.to_numpy()
        weights = np.ones(self.num_edges, bool) if self.weights is None else self.weights.to_numpy()
        # SciPy wants signed indices; where the ids fit, the same memory will do.
        indices = indices.view(np.int32) if self.num_vertices <= 2**31 else indices.astype(np.int64)
        return scipy.sparse.csr_array((weights, indices, indptr), shape=(self.num_vertices, self.num_vertices))

    @host_memory_for("Graph.to_networkx")
    def to_networkx(self, *, create_using: Any = None) -> networkx.Graph:
        """Return a copy as a graph of networkx, whose nodes are the numbers of the vertices.

        Edges have the attribute "weight", if there are weights, and those of `edge_arrays`.

        Parameters
        ----------
        create_using : graph of networkx or its class, optional
            `networkx.DiGraph` unless given, in which parallel edges are one, with the last weight; ``networkx.Graph`` for an
            undirected graph, ``networkx.MultiDiGraph`` to keep parallel edges.

        Raises
        ------
        MissingPackageError
            If networkx is not installed.

        Examples
        --------
        >>> graph = atos.Graph.from_edges([0, 1], [1, 2], weights=[5, 6])
        >>> print(graph.to_networkx().edges(data="weight"))
        [(0, 1, 5), (1, 2, 6)]
        """
        try:
            import networkx
        except ImportError as error:
            raise MissingPackageError("to_networkx needs networkx: python -m pip install networkx") from error
        result = networkx.empty_graph(self.num_vertices, create_using or networkx.DiGraph)
        sources, targets = self.sources.tolist(), self.indices.tolist()
        columns = ({} if self.weights is None else {"weight": self.weights}) | dict(self._edge_arrays)
        names = list(columns)
        rows = zip(*[array.tolist() for array in columns.values()], strict=True) if names else [()] * self.num_edges
        edges = zip(sources, targets, rows, strict=True)
        result.add_edges_from((u, v, dict(zip(names, row, strict=True))) for u, v, row in edges)
        return result

    @host_memory_for("Graph.to_pandas_edgelist")
    def to_pandas_edgelist(self) -> pandas.DataFrame:
        """Return a copy as a table of edges: the columns "source", "target", "weight" if there are weights, and `edge_arrays`.

        Raises
        ------
        MissingPackageError
            If pandas is not installed.

        Examples
        --------
        >>> atos.Graph.from_edges([0, 1], [1, 2]).to_pandas_edgelist()
           source  target
        0       0       1
        1       1       2
        """
        try:
            import pandas
        except ImportError as error:
            raise MissingPackageError("to_pandas_edgelist needs pandas: python -m pip install pandas") from error
        columns = {"source": self.sources, "target": self.indices, "weight": self.weights, **self._edge_arrays}
        return pandas.DataFrame({name: array.to_numpy() for name, array in columns.items() if array is not None})
