"""Verifiers of eccentricities and diameters: bounds proved by serial searches on the host, from one vertex at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...compile.host_kernels import compile_kernel, parallel_map, ranges
from ...errors import InvalidArgumentError, VerificationError
from ...graph.graph import Graph
from ...graph.graph_arrays import check_graph
from ...support.validation import check_int
from ..arguments import first_of, per_vertex, rows_on_host
from ..frame import verifier

__all__ = ["verify_diameter", "verify_eccentricity"]

_SMALL = 64  # vertices of a component from all of which there is a search
_FAR = 64  # vertices far from a center from which there is a search too
_Integers = NDArray[np.int64]


def _depths_kernel(indptr: Any, indices: Any, source: int, depth: Any, order: Any) -> int:  # pragma: no cover - compiled
    """Store the depth of each vertex that a source reaches, and list these; return how many they are."""
    depth[source], order[0] = 0, source
    at, count = 0, 1
    while at < count:
        u = order[at]
        at += 1
        for edge in range(indptr[u], indptr[u + 1]):
            v = indices[edge]
            if depth[v] < 0:
                depth[v] = depth[u] + 1
                order[count] = v
                count += 1
    return count


def _exact_kernel(
    indptr: Any, indices: Any, sources: Any, first: int, end: int, exact: Any, most: int
) -> None:  # pragma: no cover - compiled
    """Store the eccentricities of some vertices, by a search from each that lists no more than about `most` vertices.

    Where a search would list more, what was there is left.
    """
    n = indptr.size - 1
    depth, order = np.full(n, -1), np.empty(n, np.int64)
    for k in range(first, end):
        source = sources[k]
        depth[source], order[0] = 0, source
        at, count = 0, 1
        while at < count <= most:
            u = order[at]
            at += 1
            for edge in range(indptr[u], indptr[u + 1]):
                v = indices[edge]
                if depth[v] < 0:
                    depth[v] = depth[u] + 1
                    order[count] = v
                    count += 1
        if at == count:
            exact[source] = depth[order[count - 1]]
        for place in range(count):
            depth[order[place]] = -1


class _Prover:
    """What serial searches have proved: no vertex has less than `low`, or more than the larger one of `low` and `high`.

    Where paths have no direction, a search from c proves more than the eccentricity of c. A vertex w at the distance d from c
    has at least d. And if there was a search from each vertex farther from c than k, then w has at most d + k, or the largest
    of its distances to those vertices.
    """

    def __init__(self, graph: Graph) -> None:
        check_graph(graph)
        self.indptr, self.indices = rows_on_host(graph)
        self.n = self.indptr.size - 1
        self.undirected = graph.is_symmetric()
        self.low, self.high = np.zeros(self.n, np.int64), np.full(self.n, self.n)
        self.is_exact = np.zeros(self.n, np.bool_)
        self.is_counted = np.zeros(self.n, np.bool_)  # whether the distances from a vertex count for `low` of the others
        if self.undirected:
            self._search_alone(np.arange(self.n), _SMALL)

    def _search_alone(self, sources: _Integers, most: int) -> None:
        """Find the eccentricities of vertices by themselves, of those alone that reach few others."""
        exact = np.full(self.n, -1)

        def search(piece: tuple[int, int]) -> None:
            compile_kernel(_exact_kernel)(self.indptr, self.indices, sources, *piece, exact, most)

        list(parallel_map(search, ranges(sources.size, max(sources.size // 16, 1))))
        found = exact >= 0
        self.low[found] = self.high[found] = exact[found]
        self.is_exact |= found

    def _depths(self, source: int) -> tuple[_Integers, _Integers]:
        """Return the depth of each vertex, and those that are reached, the nearest first."""
        depth, order = np.full(self.n, -1), np.empty(self.n, np.int64)
        count = compile_kernel(_depths_kernel)(self.indptr, self.indices, source, depth, order)
        return depth, order[:count]

    def _search(self, sources: _Integers) -> tuple[_Integers, _Integers]:
        """Search from vertices side by side, and return what the last one has found."""
        for source, (depth, order) in zip(sources, parallel_map(self._depths, sources.tolist()), strict=True):
            self.low[order] = np.maximum(self.low[order], depth[order])
            self.low[source] = self.high[source] = depth[order[-1]]
            self.is_exact[source] = self.is_counted[source] = True
        return depth, order

    def eccentricity_of(self, vertex: int) -> int:
        """Return the eccentricity of a vertex."""
        self._search_alone(np.array([vertex]), self.n)
        return int(self.low[vertex])

    def prove(self, claimed: _Integers, also_least: bool) -> None:
        """Search until it is proved that vertices have no more than claimed, and maybe no less, or that one has not.

        What is claimed decides where searches begin, and is not trusted.
        """
        degrees, before, alone = np.diff(self.indptr), self.n + 1, _FAR
        while True:
            is_open = (np.maximum(self.low, self.high) > claimed) & ~self.is_exact
            if also_least:
                is_open |= (self.low < claimed) & ~self.is_exact
            places = np.flatnonzero(is_open)
            if places.size == 0 or (self.low > claimed).any():
                return
            if not self.undirected:
                self._search_alone(places, self.n)
                return
            if places.size > before - _FAR:
                self._search_alone(places[:alone], self.n)
                before, alone = self.n + 1, 2 * alone
                continue
            before = places.size
            guess = claimed[places] if also_least else self.low[places]
            center = places[np.lexsort((-degrees[places], guess))[0]]
            depth, order = self._search(np.array([center]))
            left = order[~self.is_counted[order]]
            far = left[-_FAR:]
            if far.size:
                self._search(far)
            beyond = int(depth[left[-_FAR - 1]]) if left.size > _FAR else 0
            self.high[order] = np.minimum(self.high[order], depth[order] + beyond)


@verifier
def verify_eccentricity(graph: Graph, eccentricity: Any) -> None:
    """Prove that each eccentricity is the largest distance from its vertex to one that this reaches.

    Serial searches on the host, from one vertex at a time, prove lower and upper bounds until they meet. What is claimed says
    from where to search, so that a right claim of an undirected graph takes few searches. In a directed graph there is a search
    from each vertex.

    Parameters
    ----------
    graph : Graph
        The graph; directed or not.
    eccentricity : array of int
        One for each vertex.

    Raises
    ------
    VerificationError
        An eccentricity is wrong. The message names the vertex.

    Examples
    --------
    >>> path = atos.Graph.from_edges([0, 1], [1, 2], symmetrize=True)
    >>> atos.verify_eccentricity(path, [2, 1, 2])
    >>> atos.verify_eccentricity(path, [2, 2, 2])
    Traceback (most recent call last):
    atos_py.errors.VerificationError: the eccentricity of vertex 1 is 2, but ...
    """
    prover = _Prover(graph)
    claimed = per_vertex("eccentricity", eccentricity, prover.n).astype(np.int64)
    prover.prove(claimed, also_least=True)
    wrong = (prover.low > claimed) | (prover.is_exact & (prover.low != claimed))
    if (v := first_of(wrong)) >= 0:
        said = "it is" if prover.is_exact[v] else "it is at least"
        raise VerificationError(f"the eccentricity of vertex {v} is {claimed[v]}, but {said} {prover.low[v]}")


@verifier
def verify_diameter(graph: Graph, diameter: int, vertex: int) -> None:
    """Prove that a diameter is the eccentricity of a vertex, and that no vertex has a larger one.

    Parameters
    ----------
    graph : Graph
        The graph; directed or not.
    diameter : int
        The largest distance between two vertices with a path from one to the other; 0 if there are no vertices.
    vertex : int
        A vertex of this eccentricity; -1 if there are no vertices.

    Raises
    ------
    VerificationError
        The vertex has another eccentricity, or some vertex has a larger one. The message names the vertex.

    Examples
    --------
    >>> path = atos.Graph.from_edges([0, 1], [1, 2], symmetrize=True)
    >>> atos.verify_diameter(path, 2, 0)
    >>> atos.verify_diameter(path, 2, 1)
    Traceback (most recent call last):
    atos_py.errors.VerificationError: the eccentricity of vertex 1 is 1, not 2
    """
    prover = _Prover(graph)
    claimed, v = check_int("diameter", diameter, 0, 2**63 - 1), check_int("vertex", vertex, -1, 2**63 - 1)
    if not prover.n and (claimed, v) == (0, -1):
        return
    if not 0 <= v < prover.n:
        raise InvalidArgumentError(f"vertex {v} is not a vertex: there are {prover.n}, numbered from 0")
    found = prover.eccentricity_of(v)
    if found != claimed:
        raise VerificationError(f"the eccentricity of vertex {v} is {found}, not {claimed}")
    prover.prove(np.full(prover.n, claimed), also_least=False)
    if (v := first_of(prover.low > claimed)) >= 0:
        raise VerificationError(f"the diameter is {claimed}, but vertex {v} has an eccentricity of at least {prover.low[v]}")
