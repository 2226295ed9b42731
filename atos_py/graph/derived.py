"""Graphs that are made of one that is there, on its device: the methods by which `Graph` has them.

Each has a module of its own for how it is made; here are the words, what is kept (`kept`), and the checks.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, cast, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays.any_array import AnyArray
from ..arrays.array import Array, asarray
from ..arrays.array_library import as_library
from ..arrays.compute import compute
from ..core.devices import Device
from ..core.host_group import current_hosts
from ..support.host_memory import host_memory_for
from ..support.validation import check_bool, check_int
from .components import largest_component
from .edge_arrays import edge_numbers, kept_arrays, number_edges, take_edges, turn_arrays
from .exports import GraphExports
from .host_partition import HostPartition, make_host_partition
from .kept import GraphReference, kept
from .partition import Partition, check_partition_order, devices_of, make_partition, order_by_degree
from .reorder import check_order, order_vertices
from .reverse import reverse_edges
from .simplify import simplify_array, simplify_rows
from .subgraph import choose_vertices, induce_rows
from .symmetry import is_symmetric, remember_symmetric
from .transpose import transpose_rows
from .weights import check_combine

if TYPE_CHECKING:
    from typing_extensions import Self  # of typing from Python 3.11 on

__all__ = ["DerivedGraphs"]


class DerivedGraphs(GraphExports):
    """The rows of a CSR, and the graphs that can be made of them."""

    __slots__ = ()

    @overload
    def transpose(self) -> Self: ...
    @overload
    def transpose(self, *, return_edges: Literal[False]) -> Self: ...
    @overload
    def transpose(self, *, return_edges: Literal[True]) -> tuple[Self, AnyArray]: ...
    @host_memory_for("Graph.transpose")
    def transpose(self, *, return_edges: bool = False) -> Self | tuple[Self, AnyArray]:
        """Return the graph with every edge turned round, and neighbors in ascending order.

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
        if not check_bool("return_edges", return_edges) and not self._edge_arrays:
            return self._transpose()
        edges = self._transpose_edges()
        turned = self._transpose()
        if self._edge_arrays:
            turned = turned._carrying(turn_arrays(self, turned, edges))
        return (turned, as_library(edges, self.library)) if return_edges else turned

    def _transpose(self) -> Self:
        found = kept(self)
        origin = found["transpose of"].parts() if "transpose of" in found else None
        if origin is not None:
            return type(self)(*origin)
        if "transpose" not in found:
            self._keep_transpose(*transpose_rows(self, with_edges=False))
        return cast("Self", found["transpose"])

    def _keep_transpose(self, indptr: Array, indices: Array, weights: Array | None) -> None:
        turned = kept(self)["transpose"] = self._made(indptr, indices, weights, self.labels)
        kept(turned)["transpose of"] = GraphReference.to(self)

    def _transpose_edges(self) -> Array:
        found = kept(self)
        if "transpose edges" not in found:
            if "transpose of" in found and (origin := found["transpose of"].parts()) is not None:
                (edges,) = compute(_inverse, type(self)(*origin)._transpose_edges())
            else:
                indptr, indices, numbers = transpose_rows(self, with_edges=True)
                edges = cast(Array, numbers)
                if "transpose" not in found:
                    weights = None if self.weights is None else compute(_take, self.weights, edges)[0]
                    self._keep_transpose(indptr, indices, weights)
            found["transpose edges"] = edges
        return cast(Array, found["transpose edges"])

    @host_memory_for("Graph.reverse_edges")
    def reverse_edges(self) -> AnyArray:
        """Return the number of the reverse of each edge of a symmetric graph without parallel edges; a loop is its own.

        They are found once, on the device of the graph, and kept as long: do not change them.

        Returns
        -------
        Array, or an array of the library that the graph's arrays came from
            int32, or int64 if `indptr` has to be.

        Raises
        ------
        InvalidArgumentError
            If an edge has no reverse, or there are parallel edges.

        Examples
        --------
        >>> path = atos.Graph.from_edges([0, 1], [1, 2], symmetrize=True)
        >>> print(path.indices[:], path.reverse_edges()[:])
        [1 0 2 1] [1 0 3 2]
        """
        found = kept(self)
        if "reverse edges" not in found:
            found["reverse edges"] = reverse_edges(self)
        return as_library(found["reverse edges"], self.library)

    @host_memory_for("Graph.with_weights")
    def with_weights(self, weights: ArrayLike | Array | None) -> Self:
        """Return the graph with other weights, or with none; it shares the rows.

        Parameters
        ----------
        weights : array of numbers, of shape (num_edges,), or None
            In the order of the edges. They are checked, and copied only where dtype, layout or device require it: do not change
            them afterwards.

        Raises
        ------
        InvalidArgumentError
            If there are too few or too many weights, or one is NaN.
        UnsupportedTypeError
            If they are no integers or floats of at most 64 bits.

        Examples
        --------
        >>> graph = atos.Graph.from_edges([0, 1], [1, 2]).with_weights([0.5, 2])
        >>> graph
        Graph(3 vertices, 2 directed edges, float64 weights, on cpu)
        """
        given = None if weights is None else edge_numbers("weights", weights, self.indices)
        return type(self)(self.indptr, self.indices, given)._labeled(self.labels)._carrying(self._edge_arrays)

    @host_memory_for("Graph.subgraph")
    def subgraph(self, vertices: ArrayLike | Array) -> tuple[Self, AnyArray]:
        """Return some vertices with all edges between them, made on the device of the graph.

        Parameters
        ----------
        vertices : array of int, or of bool with one for each vertex
            Which vertices; ids in the order that they shall have, each once.

        Returns
        -------
        subgraph : Graph
            Neighbors are in the order that they had.
        vertices : Array, or an array of the library that the graph's arrays came from
            The id that each vertex of the subgraph has in this graph, uint32.

        Raises
        ------
        InvalidArgumentError
            If there is no such vertex, one is there twice, or a mask has not one bool for each vertex.
        UnsupportedTypeError
            If they are neither integers nor bool.

        Examples
        --------
        >>> graph = atos.Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0])
        >>> part, vertices = graph.subgraph([3, 2, 0])
        >>> print(part, vertices[:])
        Graph(3 vertices, 2 directed edges, no weights, on cpu) [3 2 0]
        >>> print(part.indices[part.indptr[0] : part.indptr[1]])  # 3 -> 0
        [2]
        """
        chosen = choose_vertices(self, vertices)
        return self._induced(chosen), as_library(chosen, self.library)

    @host_memory_for("Graph.largest_component")
    def largest_component(self) -> tuple[Self, AnyArray]:
        """Return the largest component with all its edges, made on the device of the graph; of a directed graph the weak one.

        Of several as large, it is the one with the smallest vertex.

        Returns
        -------
        component : Graph
        vertices : Array, or an array of the library that the graph's arrays came from
            The id that each of its vertices has in this graph, ascending, uint32.

        Examples
        --------
        >>> graph = atos.Graph.from_edges([0, 2, 3], [1, 3, 5])
        >>> component, vertices = graph.largest_component()
        >>> print(component, vertices[:])
        Graph(3 vertices, 2 directed edges, no weights, on cpu) [2 3 5]
        """
        chosen = largest_component(self)
        return self._induced(chosen), as_library(chosen, self.library)

    @host_memory_for("Graph.reorder")
    def reorder(self, order: str, *, seed: int = 0) -> tuple[Self, AnyArray]:
        """Return the graph with its vertices in another order, and neighbors ascending, made on the device of the graph.

        Where neighbors have similar ids, what is read of them is often in a cache.

        Parameters
        ----------
        order : {"bfs", "rcm", "degree", "random"}
            That of a breadth-first search from the smallest vertex of each component; reverse Cuthill-McKee, which makes the
            bandwidth small, the largest difference of the ids of neighbors; by degree, the largest first; or a random one. The
            first two take edges in either direction, and components in the order of their smallest vertices, or from the last
            to the first; their time grows with the number of levels.
        seed : int
            Of the random order, which is the same on every machine.

        Returns
        -------
        reordered : Graph
        vertices : Array, or an array of the library that the graph's arrays came from
            The id that each vertex of it has in this graph, uint32.

        Raises
        ------
        InvalidArgumentError
            If there is no such order, or the seed is not from 0 to 2**64 - 1.

        Examples
        --------
        >>> path = atos.Graph.from_edges([3, 0, 2], [0, 2, 1], symmetrize=True)
        >>> reordered, vertices = path.reorder("rcm")
        >>> print(vertices[:], reordered.indices[:])
        [1 2 0 3] [1 0 2 1 3 2]
        """
        chosen = order_vertices(self._bare().to_symmetric() if check_order(order) in ("bfs", "rcm") else self, order, seed)
        return self._induced(chosen).simplify(sort=True), as_library(chosen, self.library)

    @overload
    def partition(
        self, devices: Sequence[Device | str] | Literal["auto"], order: str = "keep", *, seed: int = 0
    ) -> Partition: ...
    @overload
    def partition(self, devices: None = None, order: str = "keep", *, seed: int = 0) -> Any: ...
    @host_memory_for("Graph.partition")
    def partition(
        self, devices: Sequence[Device | str] | Literal["auto"] | None = None, order: str = "keep", *, seed: int = 0
    ) -> Partition | HostPartition:
        """Return the graph in parts, one for each device, which owns a range of the vertices and their edges.

        Parameters
        ----------
        devices : sequence of Device or str, or "auto", optional
            GPUs that reach each other's memory, or CPU devices of this process, such as ``["cuda:0", "cuda:1"]``. By default
            a CPU device of each process, after `atos_py.distributed.init`: all processes then call this with the same graph,
            and share the parts, or, where they exchange messages, get one each, on the device of their graph. A GPU that is
            named several times counts as several devices, for tests on one. "auto": all GPUs for a graph that does not fit
            the free memory of one, with what algorithms need beside it, and the best device alone for any other.
        order : {"keep", "random", "degree"}
            How vertices are numbered inside tasks, of which each device owns as many: as they are, for meshes and roads, whose
            neighbors have similar ids; at random, for scale-free graphs, so that each device gets about as many edges; or
            by falling degree, dealt to the devices in turns, which balances the counts of edges best, and keeps what is read
            most often in few cache lines. On one device there is nothing to balance, and they keep their ids.
        seed : int
            Of the random order, which is the same on every machine.

        Returns
        -------
        Partition, or HostPartition of processes that exchange messages
            What tasks take in place of the graph.

        Raises
        ------
        InvalidArgumentError
            If a CPU device is there twice, two GPUs have no access to each other's memory, there is no such order, or the
            processes give different graphs.

        Notes
        -----
        The host always speaks the ids of this graph: in `Queue.push` and `peek`, and where it indexes arrays of the partition.
        In a random order a vertex has another number inside tasks, and ``parts.original[v]`` is its id.

        See Also
        --------
        Queue : a queue over these devices has the parts as its owner.

        Examples
        --------
        >>> path = atos.Graph.from_edges([3, 0, 2], [0, 2, 1], device="cpu")
        >>> path.partition(["cpu:0", "cpu:1"], order="random")
        Partition(4 vertices, 3 directed edges, over cpu, cpu:1)
        """
        hosts = current_hosts() if devices is None else None
        where, group = devices_of(devices, self.num_vertices, self.num_edges) if hosts is None else ((), None)
        check_partition_order(order)
        seed = check_int("seed", seed, 0, 2**64 - 1)
        count = len(where) if hosts is None else hosts.world_size
        chosen = None
        if order == "random" and count > 1:
            chosen = order_vertices(self, order, seed)
        elif order == "degree" and count > 1:
            chosen = asarray(order_by_degree(np.diff(self.indptr.to_numpy()), count), device=self.device)
        rows = self if chosen is None else self._bare()._induced(chosen).simplify(sort=True)
        if hosts is not None:
            return make_host_partition((rows.indptr, rows.indices, rows.weights), chosen, hosts)
        return make_partition((rows.indptr, rows.indices, rows.weights), where, chosen, group)._labeled(self.labels)

    def _induced(self, vertices: Array) -> Self:
        labels = None if self.labels is None else self.labels[np.asarray(vertices)]
        if not self._edge_arrays:
            return self._made(*induce_rows(self, vertices), labels)
        return self._of_edges(*induce_rows(number_edges(self), vertices), labels)

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
            symmetric = self._bare().simplify(symmetrize=True, deduplicate=True)
            remember_symmetric(symmetric.indptr, symmetric.indices)
            found["symmetric"] = symmetric
        made = cast("Self", found["symmetric"])
        if not self._edge_arrays:
            return made
        return made._carrying(kept_arrays(self, "symmetric arrays", partial(simplify_array, self, symmetrize=True)))

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
            which integers get 64 bits, or that of the first of them. So it is for each of the `edge_arrays`, by itself.

        Raises
        ------
        InvalidArgumentError
            If there is no such rule, or a sum does not fit its dtype, or is one of infinite weights with both signs.

        Examples
        --------
        >>> graph = atos.Graph.from_edges([0, 0, 1], [1, 1, 1], weights=[5, 6, 7])
        >>> simple = graph.simplify(deduplicate=True, remove_loops=True, combine="sum")
        >>> print(simple, simple.weights[:])
        Graph(2 vertices, 1 directed edges, int64 weights, on cpu) [11]
        """
        ways: dict[str, Any] = {"symmetrize": symmetrize, "remove_loops": remove_loops, "sort": sort}
        check_combine(combine)
        if self._edge_arrays and not check_bool("deduplicate", deduplicate):
            return self._of_edges(*simplify_rows(number_edges(self), **ways, deduplicate=False, combine="first"), self.labels)
        made = self._made(*simplify_rows(self, **ways, deduplicate=deduplicate, combine=combine), self.labels)
        arrays = self._edge_arrays.items()
        return made._carrying({name: simplify_array(self, name, array, **ways, combine=combine) for name, array in arrays})

    def _of_edges(self, indptr: Array, indices: Array, edges: Array | None, labels: NDArray[np.int64] | None) -> Self:
        """Return a graph whose edges are those of this one with these numbers, with their weights and edge arrays."""
        chosen = cast(Array, edges)
        weights = None if self.weights is None else take_edges(self.weights, chosen)
        arrays = {name: take_edges(array, chosen) for name, array in self._edge_arrays.items()}
        return self._made(indptr, indices, weights, labels)._carrying(arrays)

    def _made(self, indptr: Array, indices: Array, weights: Array | None, labels: NDArray[np.int64] | None) -> Self:
        """Return a graph of new arrays on the same device, whose results are of the same library."""
        parts = [asarray(part, device=self.device, readonly=True) for part in (indptr, indices, weights) if part is not None]
        for part in parts:
            part.library = self.library
        return type(self)(parts[0], parts[1], None if weights is None else parts[2])._labeled(labels)


def _take(xp: Any, values: Any, places: Any) -> tuple[Any]:
    return (values[places],)


def _inverse(xp: Any, permutation: Any) -> tuple[Any]:
    """Return the permutation that undoes another."""
    inverse = xp.empty_like(permutation)
    inverse[permutation] = xp.arange(permutation.size, dtype=permutation.dtype)
    return (inverse,)
