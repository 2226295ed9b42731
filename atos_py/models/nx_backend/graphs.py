"""Graphs of networkx as this backend holds them: nodes of any kind, numbered, and rows of neighbors in networkx's order."""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from ...graph.csr import indptr_dtype
from ...graph.graph import Graph

__all__ = ["AtosGraph", "convert_from_nx", "convert_to_nx"]


class AtosGraph:
    """A graph that networkx hands to this backend; of attributes it has those that a function asks for.

    Attributes
    ----------
    nodes : list
        What networkx calls the vertices 0, 1, ...
    number : dict
        The vertex of each node.
    indptr, indices : numpy.ndarray
        A CSR with the neighbors, or successors, in networkx's order.
    original : networkx.Graph or None
        The graph that this one was made of, where a function asked for its attributes.
    """

    __networkx_backend__ = "atos"

    def __init__(self, graph: nx.Graph[Any], edge_attrs: Mapping[str, Any] | None = None, *, preserve: bool = False) -> None:
        self.original = graph if preserve else None
        self._directed, self._multigraph = graph.is_directed(), graph.is_multigraph()
        self.nodes = list(graph)
        self.number = {node: i for i, node in enumerate(self.nodes)}
        # Lists, since a filtered view of networkx may not know how many neighbors it shows.
        if self._multigraph:
            rows = [[node for node, keys in row.items() for _ in keys] for _, row in graph.adjacency()]
        else:
            rows = [list(row) for _, row in graph.adjacency()]
        degrees = np.fromiter(map(len, rows), np.int64, len(rows))
        number = self.number
        indices = np.fromiter((number[node] for row in rows for node in row), np.uint32, int(degrees.sum()))
        indptr = np.zeros(len(rows) + 1, indptr_dtype(indices.size))
        np.cumsum(degrees, out=indptr[1:])
        self.indptr: NDArray[Any] = indptr
        self.indices: NDArray[np.uint32] = indices
        self._attributes = {name: self._read(graph, name, default) for name, default in (edge_attrs or {}).items()}
        self._graphs: dict[str, Graph] = {}

    def _read(self, graph: nx.Graph[Any], name: str, default: Any) -> NDArray[Any] | None:
        edges = (data for _, row in graph.adjacency() for data in row.values())
        if self._multigraph:
            edges = (data for parallel in edges for data in parallel.values())
        values = [data.get(name, default) for data in edges]
        if not all(isinstance(value, (int, float, np.integer, np.floating)) for value in values):
            return None
        dtype = np.float64 if any(isinstance(value, (float, np.floating)) for value in values) else np.int64
        try:
            return np.array(values, dtype)
        except OverflowError:
            return None

    def attribute(self, name: str) -> NDArray[Any] | None:
        """Return an attribute of the edges: int64, or float64 if some are floats; None if some are no numbers; 1 by default."""
        if name not in self._attributes:
            ones = np.ones(self.indices.size, np.int64)
            self._attributes[name] = ones if self.original is None else self._read(self.original, name, 1)
        return self._attributes[name]

    def __len__(self) -> int:
        return len(self.nodes)

    def __contains__(self, node: object) -> bool:
        try:
            return node in self.number
        except TypeError:  # it cannot be hashed
            return False

    def is_directed(self) -> bool:
        """Return whether edges have a direction."""
        return self._directed

    def is_multigraph(self) -> bool:
        """Return whether there may be parallel edges."""
        return self._multigraph

    @functools.cached_property
    def forward(self) -> Graph:
        """The graph on the best device there is."""
        return Graph.from_csr(self.indptr, self.indices)

    @functools.cached_property
    def both(self) -> Graph:
        """The undirected graph; of a directed one, with each edge in both directions, so that degrees are those in and out."""
        return self.forward.simplify(symmetrize=True) if self._directed else self.forward

    @functools.cached_property
    def has_loops(self) -> bool:
        """Whether an edge joins a node to itself."""
        return bool((np.repeat(np.arange(len(self)), np.diff(self.indptr)) == self.indices).any())

    def to_networkx(self) -> nx.Graph[Any]:
        """Return the graph of networkx that this was made of, or one without attributes if none were asked for."""
        return convert_to_nx(self) if self.original is None else self.original

    @functools.cached_property
    def backward(self) -> Graph:
        """The same with all edges turned round."""
        return self.forward.transpose() if self._directed else self.forward

    @functools.cached_property
    def simple(self) -> Graph:
        """The graph with one of several parallel edges."""
        return self.forward.simplify(deduplicate=True) if self._multigraph else self.forward

    def weighted(self, name: str | None) -> Graph:
        """Return the graph with an attribute of the edges as weights, or without any."""
        if name is None:
            return self.forward
        if name not in self._graphs:
            self._graphs[name] = self.forward.with_weights(self.attribute(name))
        return self._graphs[name]

    def reversed(self, name: str | None = None) -> AtosGraph:
        """Return the graph, and an attribute, with all edges turned round, for one call; itself if they have no direction."""
        if not self._directed:
            return self
        values = None if name is None else self.attribute(name)
        turned = copy.copy(self)
        # By target, and by source among those: the order in which networkx turns edges round.
        order = np.argsort(self.indices, kind="stable")
        sources = np.repeat(np.arange(len(self), dtype=np.uint32), np.diff(self.indptr))
        turned.indices = sources[order]
        turned.indptr = np.zeros_like(self.indptr)
        np.cumsum(np.bincount(self.indices, minlength=len(self)), out=turned.indptr[1:])
        turned._attributes = {} if name is None or values is None else {name: values[order]}
        turned.original, turned._graphs = None, {}
        for name in ("forward", "backward", "both", "simple"):
            turned.__dict__.pop(name, None)
        return turned


def convert_from_nx(graph: Any, edge_attrs: Mapping[str, Any] | None = None, **options: Any) -> AtosGraph:
    """Return a graph of networkx as one of this backend; what else it has to preserve is looked at by `can_run`."""
    if isinstance(graph, AtosGraph):
        return graph
    preserve = bool(edge_attrs) or any(options.get(f"preserve_{kind}_attrs") for kind in ("edge", "node", "graph"))
    return AtosGraph(graph, edge_attrs, preserve=preserve)


def convert_to_nx(result: Any, *, name: str | None = None) -> Any:
    """Return a result as networkx has it: a graph as a graph of networkx, everything else as it is."""
    if not isinstance(result, AtosGraph):
        return result
    kinds = {(False, False): nx.Graph, (True, False): nx.DiGraph, (False, True): nx.MultiGraph, (True, True): nx.MultiDiGraph}
    graph = kinds[result.is_directed(), result.is_multigraph()]()
    graph.add_nodes_from(result.nodes)
    sources = np.repeat(np.arange(len(result)), np.diff(result.indptr))
    ends = zip(sources.tolist(), result.indices.tolist(), strict=True)
    once = result.is_directed()
    graph.add_edges_from((result.nodes[u], result.nodes[v]) for u, v in ends if once or u <= v)
    return graph
