"""The calls for eccentricities and the diameter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays.array import asarray, to_host
from ...graph.graph import Graph
from ...runtime.launch_options import LaunchOptions, Unpack
from ...runtime.stats import LaunchStats
from ...support.host_memory import host_memory_for
from ...support.shown import ShownFields
from ..bit_notes import WORD
from ..bit_search import BitSearches
from ..frame import algorithm
from ..registry import register
from .bounds import find_eccentricities
from .verify import verify_diameter, verify_eccentricity

__all__ = ["DiameterResult", "EccentricityResult", "diameter", "eccentricity"]


@dataclass(frozen=True, eq=False)
class EccentricityResult(ShownFields):
    """Result of `eccentricity`.

    Attributes
    ----------
    eccentricity : Array, or an array of the library that the graph's arrays came from
        Of each vertex, in edges, uint32.
    searches : int
        How many searches there were, each from up to 64 sources at once.
    stats : LaunchStats

    Examples
    --------
    >>> path = atos.Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4], symmetrize=True)
    >>> result = atos.eccentricity(path)
    >>> print(result.diameter, result.radius, result.center(), result.periphery())
    4 2 [2] [0 4]
    """

    eccentricity: Any
    searches: int
    stats: LaunchStats

    def _on_host(self) -> NDArray[Any]:
        return np.asarray(to_host(self.eccentricity))

    @property
    @host_memory_for("EccentricityResult.diameter")
    def diameter(self) -> int:
        """The largest eccentricity; 0 if there are no vertices."""
        return int(self._on_host().max(initial=0))

    @property
    @host_memory_for("EccentricityResult.radius")
    def radius(self) -> int:
        """The smallest eccentricity, which is 0 if there is an isolated vertex, or no vertex."""
        found = self._on_host()
        return int(found.min()) if found.size else 0

    @host_memory_for("EccentricityResult.center")
    def center(self) -> NDArray[np.intp]:
        """Return the vertices whose eccentricity is the radius, as a NumPy array.

        Examples
        --------
        >>> path = atos.Graph.from_edges([0, 1, 1, 2], [1, 0, 2, 1])
        >>> print(atos.eccentricity(path).center())
        [1]
        """
        return np.flatnonzero(self._on_host() == self.radius)

    @host_memory_for("EccentricityResult.periphery")
    def periphery(self) -> NDArray[np.intp]:
        """Return the vertices whose eccentricity is the diameter, as a NumPy array.

        Examples
        --------
        >>> path = atos.Graph.from_edges([0, 1, 1, 2], [1, 0, 2, 1])
        >>> print(atos.eccentricity(path).periphery())
        [0 2]
        """
        return np.flatnonzero(self._on_host() == self.diameter)


@dataclass(frozen=True, eq=False)
class DiameterResult(ShownFields):
    """Result of `diameter`.

    Attributes
    ----------
    diameter : int
        The largest distance between two vertices with a path from one to the other, in edges; 0 if there are no vertices.
    vertex : int
        A vertex of this eccentricity; -1 if there are no vertices.
    searches : int
        How many searches there were, each from up to 64 sources at once.
    stats : LaunchStats

    Examples
    --------
    >>> result = atos.diameter(atos.generate.road(10, 1.0))
    >>> print(result.diameter)
    18
    """

    diameter: int
    vertex: int
    searches: int
    stats: LaunchStats


@algorithm()
def eccentricity(graph: Graph, *, worker: str | None = None, **launch_options: Unpack[LaunchOptions]) -> EccentricityResult:
    """Return the eccentricity of every vertex: the largest distance, by edges, from it to a vertex that it reaches.

    Where all vertices reach each other, this is the eccentricity of networkx, which otherwise refuses the graph. The smallest
    is the radius, and the largest the diameter.

    Parameters
    ----------
    graph : Graph
        Its out-edges are followed. Where each edge has its reverse (`Graph.is_symmetric`), or all vertices reach each other, a
        few searches give bounds that settle all vertices. In other directed graphs there is a search from each vertex.
    {launch_options}
        A level of a search is a round, whatever `barrier` says.

    Raises
    ------
    LaunchConfigError
        If `each_round` is given: a search has a function between rounds of its own.

    See Also
    --------
    diameter : the largest alone, in fewer searches.

    References
    ----------
    Takes and Kosters, "Determining the diameter of small world networks", CIKM 2011.

    Crescenzi, Grossi, Habib, Lanzi and Marino, "On computing the diameter of real-world undirected graphs", Theoretical
    Computer Science 514 (2013).

    Dragan, Habib and Viennot, "Revisiting radius, diameter, and all eccentricity computation in graphs through certificates",
    arXiv:1803.04660 (2018).

    Examples
    --------
    >>> path = atos.Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4], symmetrize=True)
    >>> print(atos.eccentricity(path).eccentricity[:])
    [4 3 2 3 4]
    """
    searches = BitSearches("eccentricity", graph, WORD, launch_options, worker)
    found, count = find_eccentricities(graph, searches, True)
    values = asarray(found.astype(np.uint32), device=graph.device)
    return EccentricityResult(values, count, searches.finish())


@algorithm()
def diameter(graph: Graph, *, worker: str | None = None, **launch_options: Unpack[LaunchOptions]) -> DiameterResult:
    """Return the diameter: the largest distance, by edges, between two vertices with a path from one to the other.

    Parameters
    ----------
    graph : Graph
        As for `eccentricity`. Of several components the largest diameter is returned; networkx refuses such a graph.
    {launch_options}
        A level of a search is a round, whatever `barrier` says.

    Raises
    ------
    LaunchConfigError
        If `each_round` is given: a search has a function between rounds of its own.

    See Also
    --------
    eccentricity : of every vertex, and with it the radius.

    References
    ----------
    Crescenzi, Grossi, Habib, Lanzi and Marino, "On computing the diameter of real-world undirected graphs", Theoretical
    Computer Science 514 (2013).

    Examples
    --------
    >>> ring = atos.Graph.from_edges([0, 1, 2, 3, 4], [1, 2, 3, 4, 0])
    >>> atos.diameter(ring).diameter, atos.diameter(ring.to_symmetric()).diameter
    (4, 2)
    """
    searches = BitSearches("diameter", graph, WORD, launch_options, worker)
    found, count = find_eccentricities(graph, searches, False)
    vertex = int(found.argmax()) if found.size else -1
    return DiameterResult(int(found.max(initial=0)), vertex, count, searches.finish())


register(
    run=eccentricity,
    verify=lambda graph, result, _: verify_eccentricity(graph, result.eccentricity),
    describe=lambda result: {"diameter": result.diameter, "radius": result.radius, "searches": result.searches},
    arrays=lambda result: {"eccentricity": result.eccentricity},
    help="find how far the farthest vertex is from each one",
    description="""\
Finds the eccentricity of each vertex: the largest distance, by edges, to a vertex that it reaches. Bounds from searches, each
from up to 64 sources at once, settle all vertices of an undirected graph. Serial searches on the host check the result.""",
    examples=("rmat:16:16 --out eccentricity.npy", "road:300:0.62"),
)
register(
    run=diameter,
    verify=lambda graph, result, _: verify_diameter(graph, result.diameter, result.vertex),
    describe=lambda result: {"diameter": result.diameter, "of vertex": result.vertex, "searches": result.searches},
    arrays=lambda _: {},
    help="find the largest distance between two vertices",
    description="""\
Finds the largest distance, by edges, between two vertices with a path from one to the other, by bounds from a few searches,
each from up to 64 sources at once. Serial searches on the host check the result.""",
    examples=("rmat:16:16", "road:300:0.62 --worker warp"),
)
