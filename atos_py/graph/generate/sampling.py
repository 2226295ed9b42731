"""Random samples of a graph, the same on every machine, made where the graph is."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays.compute import compute
from ...errors import InvalidArgumentError
from ...support.host_memory import host_memory_for
from ...support.splitmix64 import splitmix64
from ...support.validation import check_float
from ..graph import Graph
from ..graph_arrays import check_graph
from ..row_arrays import row_offsets, row_sources
from .hashing import check_seed, hash_seeds, to_fraction

__all__ = ["sample_edges"]


@host_memory_for("generate.sample_edges")
def sample_edges(graph: Graph, probability: float, seed: int = 0) -> Graph:
    """Return a graph that has each edge of another with some probability, made on the device of that.

    An undirected graph has two edges for each pair of neighbors, one in each direction. Each is kept or left out by itself, so
    that the sample is directed.

    Parameters
    ----------
    graph : Graph
        Vertices stay, and edges that stay keep their weights and `edge_arrays`.
    probability : float
        From 0 to 1.
    seed : int
        The same seed gives the same graph on every machine and device.

    Returns
    -------
    Graph
        On the device of `graph`.

    Raises
    ------
    InvalidArgumentError
        If `probability` is not from 0 to 1.

    Examples
    --------
    >>> grid = atos.generate.grid2d(100, 100)
    >>> directed = atos.generate.sample_edges(grid, 0.5)
    >>> print(grid.num_edges, directed.num_edges, directed.is_symmetric())
    39600 19814 False
    """
    check_graph(graph)
    (start,) = hash_seeds(check_seed(seed), 1)
    if not 0 <= check_float("probability", probability) <= 1:
        raise InvalidArgumentError(f"probability must be from 0 to 1 (got {probability})")

    def draw(xp: Any, indptr: Any, indices: Any, *weights: Any) -> tuple[Any, ...]:
        edges = xp.arange(indices.size, dtype=np.uint64)
        kept = to_fraction(splitmix64(edges ^ start)) < probability
        sources = row_sources(xp, indptr, indices.size)
        return row_offsets(xp, sources[kept], indptr.size - 1), indices[kept], *(each[kept] for each in weights)

    names, given = list(graph.edge_arrays), list(graph.edge_arrays.values())
    if graph.weights is not None:
        given.append(graph.weights)
    indptr, indices, *made = compute(draw, graph.indptr, graph.indices, *given)
    sample = Graph.from_csr(indptr, indices, *made[len(names) :], device=graph.device)
    return sample.with_edge_arrays(**dict(zip(names, made, strict=False)))._labeled(graph.labels)
