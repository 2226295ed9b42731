"""The proof that a coloring is one."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...compile.host_kernels import first_found, parallel_map, ranges
from ...errors import VerificationError
from ...graph.graph import Graph
from ...graph.graph_arrays import check_graph
from ..arguments import ends_of, per_vertex, rows_on_host
from ..frame import verifier

__all__ = ["verify_coloring"]

_CHUNK_VERTICES = 1 << 20


def _clash_kernel(indptr: Any, indices: Any, colors: Any, first: int, end: int) -> int:  # pragma: no cover - compiled
    """Return the first edge that joins equal colors and is no loop, or -1."""
    for u in range(first, end):
        for edge in range(indptr[u], indptr[u + 1]):
            if colors[indices[edge]] == colors[u] and indices[edge] != u:
                return edge
    return -1


@verifier
def verify_coloring(graph: Graph, colors: Any) -> None:
    """Prove that `colors` is a coloring: every edge but loops joins different colors, none larger than the largest degree.

    Parameters
    ----------
    graph : Graph
        Directed or not. The degree of a vertex is the number of its edges, of those that lead to it too if some edge lacks
        its reverse.
    colors : array
        The colors, of any integer type; one for each vertex.

    Examples
    --------
    >>> triangle = atos.Graph.from_edges([0, 1, 2], [1, 2, 0], symmetrize=True)
    >>> atos.verify_coloring(triangle, [0, 1, 2])
    >>> atos.verify_coloring(triangle, [0, 1, 1])
    Traceback (most recent call last):
    atos_py.errors.VerificationError: ...
    """
    check_graph(graph)
    indptr, indices = rows_on_host(graph)
    n = indptr.size - 1
    found = per_vertex("colors", colors, n)
    if (edge := first_found(_clash_kernel, indptr, indices, found)) >= 0:
        u, v = ends_of(indptr, indices, edge)
        raise VerificationError(f"edge {u} -> {v} (number {edge}) joins two vertices of color {found[u]}")
    pieces = ranges(n, _CHUNK_VERTICES)
    most = max(parallel_map(lambda piece: int(np.diff(indptr[piece[0] : piece[1] + 1]).max()), pieces), default=0)
    if found.max(initial=0) > most and not graph.is_symmetric():
        most = int((np.diff(indptr) + np.bincount(indices, minlength=n)).max())
    if found.min(initial=0) < 0 or found.max(initial=0) > most:
        v = int(np.argmax((found < 0) | (found > most)))
        raise VerificationError(f"colors[{v}] is {found[v]}, but colors lie in 0..{most}, the largest degree")
