"""Graphs of networkx as this backend holds them: nodes of any kind, numbered, and rows of neighbors in networkx's order."""

from __future__ import annotations

import contextlib
import copy
import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from ...graph.csr import indptr_dtype
from ...graph.graph import Graph

__all__ = ["AtosGraph", "convert_from_nx", "convert_to_nx"]


def _rows(graph: nx.Graph[Any]) -> list[Mapping[Any, Any]]:
    """Return the neighbors of each node with the data of the edges."""
    rows = [row for _, row in graph.adjacency()]
    if all(isinstance(row, dict) for row in rows):
        return rows
    # A filtered view of networkx may not know how many neighbors it shows, or how many parallel edges.
    several = graph.is_multigraph()
    return [{node: dict(data) if several else data for node, data in row.items()} for row in rows]


def _values(rows: Iterable[Mapping[Any, Any]]) -> Iterator[Any]:
    return itertools.chain.from_iterable(row.values() for row in rows)


def _numbers(neighbors: list[Any], nodes: list[Any], number: dict[Any, int]) -> NDArray[np.uint32]:
    """Return the number of each neighbor: for nodes that are integers of about as many values by a table, which is faster."""
    if nodes and set(map(type, nodes)) == {int} and max(nodes) - min(nodes) < 8 * (len(nodes) + len(neighbors)):
        least = min(nodes)
        table = np.zeros(max(nodes) - least + 1, np.uint32)
        table[np.array([node - least for node in nodes])] = np.arange(len(nodes), dtype=np.uint32)
        with contextlib.suppress(OverflowError):  # of integers beyond int64
            return table[np.array(neighbors, np.int64) - least]
    return np.fromiter(map(number.__getitem__, neighbors), np.uint32, len(neighbors))


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
        rows = _rows(graph)
        degrees = np.fromiter(map(len, rows), np.int64, len(rows))
        neighbors = list(itertools.chain.from_iterable(rows))
        indices = _numbers(neighbors, self.nodes, self.number)
        if self._multigraph:
            copies = np.fromiter(map(len, _values(rows)), np.int64, len(neighbors))
            indices = np.repeat(indices, copies)
            ends = np.concatenate([[0], np.cumsum(copies)])[np.concatenate([[0], np.cumsum(degrees)])]
        else:
            ends = np.concatenate([[0], np.cumsum(degrees)])
        self.indptr: NDArray[Any] = ends.astype(indptr_dtype(indices.size))
        self.indices: NDArray[np.uint32] = indices
        self._attributes = {name: self._read(graph, name, default) for name, default in (edge_attrs or {}).items()}
        self._graphs: dict[str, Graph] = {}

    def _read(self, graph: nx.Graph[Any], name: str, default: Any) -> NDArray[Any] | None:
        edges = _values(_rows(graph))
        values = [data.get(name, default) for data in (_values(edges) if self._multigraph else edges)]
        kinds = set(map(type, values))
        if not all(issubclass(kind, (int, float, np.integer, np.floating)) for kind in kinds):
            return None
        dtype = np.float64 if any(issubclass(kind, (float, np.floating)) for kind in kinds) else np.int64
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
