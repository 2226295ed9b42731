"""The graph that tasks walk: compressed sparse rows in read-only arrays on one device."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..arrays.array import Array, asarray, to_host
from ..arrays.array_library import library_of
from ..arrays.import_external import is_on_gpu
from ..core.devices import Device
from ..core.devices import device as device_of
from ..support.host_memory import host_memory_for
from .conversions import check_matrix, read_attributes, read_networkx
from .csr import check_csr, chunk_edges
from .derived import DerivedGraphs
from .device_validation import csr_on_device
from .edge_arrays import check_arrays
from .graph_arrays import check_graph
from .graph_input import edge_index_rows
from .io import load_labeled, save_csr, wrong_file
from .largest_degree import largest_degree
from .partition import Partition, placement_of
from .weights import convert_weights, weight_dtype

if TYPE_CHECKING:
    import networkx
    import scipy.sparse

__all__ = ["Graph"]


class Graph(DerivedGraphs):
    """A directed graph as compressed sparse rows: the edges of vertex ``v`` lead to ``indices[indptr[v]:indptr[v + 1]]``.

    Make one with `load`, `from_edges`, `from_edge_index`, `from_csr`, `from_scipy`, `from_networkx` or `atos_py.generate`.
    An undirected graph is one that has every edge in both directions. Parallel edges, loops and the order of neighbors are
    kept as they come; see `simplify`.

    Arrays may be those of NumPy, CuPy, PyTorch, JAX or Numba. A graph made from arrays of CuPy, PyTorch or JAX gives results
    (depths, ranks, colors) as arrays of that library, which share the memory; any other graph gives an `Array`.

    The dtypes are chosen for 4-byte loads on a GPU. Row offsets are signed although none is negative, because the sum of an
    unsigned 64-bit and a signed integer is a float to Numba, as it is to NumPy.

    Attributes
    ----------
    indptr : Array
        ``num_vertices + 1`` offsets; int64 if there are 2**31 edges or more, otherwise int32 unless int64 was given on a GPU.
    indices : Array
        Targets of the edges, uint32.
    weights : Array or None
        Weights of the edges, if they have any: int32, int64, uint32, uint64, float32 or float64, and never NaN.

    Examples
    --------
    >>> graph = atos.Graph.from_edges([0, 0, 1], [1, 2, 2])
    >>> graph
    Graph(3 vertices, 3 directed edges, no weights, on cpu)
    >>> graph.indices[graph.indptr[0] : graph.indptr[1]]  # the neighbors of vertex 0
    array([1, 2], dtype=uint32)
    """

    __slots__ = ()

    def __new__(cls, indptr: Array, indices: Array, weights: Array | None) -> Graph:
        """Make a graph of arrays on a device, which are not looked at; `from_csr` takes any and checks them."""
        graph = super().__new__(cls, indptr, indices, weights)
        check_graph(graph)
        return graph

    @overload
    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        device: Device | str | None = None,
        devices: None = None,
        order: str = "keep",
        format: str | None = None,
        weights: bool | DTypeLike = True,
        symmetrize: bool = False,
        simplify: bool = False,
        renumber: bool = False,
        deduplicate: bool = False,
        remove_loops: bool = False,
        sort: bool = False,
    ) -> Graph: ...
    @overload
    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        device: None = None,
        devices: Sequence[Device | str] | Literal["auto"],
        order: str = "keep",
        format: str | None = None,
        weights: bool | DTypeLike = True,
        symmetrize: bool = False,
        simplify: bool = False,
        renumber: bool = False,
        deduplicate: bool = False,
        remove_loops: bool = False,
        sort: bool = False,
    ) -> Partition: ...
    @classmethod
    @host_memory_for("Graph.load")
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        device: Device | str | None = None,
        devices: Sequence[Device | str] | Literal["auto"] | None = None,
        order: str = "keep",
        format: str | None = None,
        weights: bool | DTypeLike = True,
        symmetrize: bool = False,
        simplify: bool = False,
        renumber: bool = False,
        deduplicate: bool = False,
        remove_loops: bool = False,
        sort: bool = False,
    ) -> Graph | Partition:
        """Read a graph from a file, which may be gzipped.

        ====================  =============  ============================================================================
        ending                format         content
        ====================  =============  ============================================================================
        .gr                   dimacs         9th DIMACS challenge, directed, with whole numbers as weights
        .mtx                  matrix-market  coordinates; pattern, integer or real; general, symmetric or skew-symmetric
        .txt .el .wel .edges  edge-list      a line "source target" or "source target weight" per edge, separated by
        .csv                                 blanks or a comma, below one with headings or none, or what
                                             networkx.write_edgelist wrote; comments start with # or %
        .parquet              parquet        columns source, target and, if there are weights, weight (by PyArrow)
        .npz                  npz            what `save` or scipy.sparse.save_npz wrote
        ====================  =============  ============================================================================

        Text is ASCII, or UTF-8 in comments; its lines end with a line feed, or as on Windows. Vertex ids of edge lists and
        tables count from 0 and stay as they are, unless `renumber` is given.

        Whole weights become int32, or int64 where one does not fit; others float64. A whole number that its type would round is
        refused. Symmetric matrices give both directions of every edge; all other files are read as directed. Many files of
        undirected graphs, such as some of SNAP, have each edge once: give `symmetrize`.

        Parameters
        ----------
        path : path-like
            The file.
        device : Device or str, optional
            Where the graph goes; the best device there is unless given.
        devices : sequence of Device or str, or "auto", optional
            Several devices among which the graph is divided, as by `partition`, in place of one. It is built in the memory of
            the host, of which each device then gets its own rows.
        order : {"keep", "random"}
            How vertices are numbered on several devices, as in `partition`.
        format : str, optional
            One of the formats above, for a file whose name does not tell.
        weights : bool or dtype
            Whether to keep weights if the file has any; a dtype keeps and converts them, to integers without any rounding.
        symmetrize, deduplicate, remove_loops, sort : bool
            As in `from_edges`.
        simplify : bool
            `deduplicate` and `remove_loops` in one. With `symmetrize` too, the graph has each edge once in each direction,
            whatever the file has.
        renumber : bool
            Number the vertices that edges name from 0 on, in the order of their ids, which may have up to 18 digits, and leave
            the others out. `labels` has the id of each vertex in the file.

        Warns
        -----
        UserWarning
            If more than half of the vertices that the largest id of an edge list or a table makes have no edge, without
            `renumber`.

        Raises
        ------
        GraphFormatError
            The file is malformed; the message has its path, the line and the reason. So is one whose header or ids ask for
            more than 1 GiB of row offsets although it has fewer edges than 1/64 of the vertices, except in format npz.
        MissingFileError
            There is no such file.

        Examples
        --------
        >>> np.savetxt("triangle.txt", [[0, 1], [1, 2], [2, 0]], fmt="%d")
        >>> atos.Graph.load("triangle.txt", symmetrize=True)
        Graph(3 vertices, 6 directed edges, no weights, on cpu)
        >>> atos.Graph.load("triangle.txt", devices=["cpu:0", "cpu:1"])
        Partition(3 vertices, 3 directed edges, over cpu, cpu:1)
        """
        placement = placement_of(device, devices, order)
        arrays: dict[str, Any] = {}
        how: dict[str, Any] = {"symmetrize": symmetrize, "deduplicate": deduplicate, "remove_loops": remove_loops, "sort": sort}
        csr, labels = load_labeled(
            path,
            placement.renumber if placement is not None else None,
            format=format,
            weights=weights,
            simplify=simplify,
            renumber=renumber,
            edge_arrays=arrays if placement is None else None,
            **how,
        )
        if placement is not None:
            return placement.parts(csr, labels)
        if not arrays:
            return cls._on(csr, device)._labeled(labels)
        with wrong_file(path):
            graph = cls._on(csr, "cpu").with_edge_arrays(**arrays)._labeled(labels)
        if simplify:
            how |= {"deduplicate": True, "remove_loops": True}
        return (graph.simplify(**how) if any(how.values()) else graph).to(device)

    @classmethod
    @host_memory_for("Graph.from_csr")
    def from_csr(
        cls,
        indptr: ArrayLike,
        indices: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        device: Device | str | None = None,
    ) -> Graph:
        """Take the arrays of a CSR, of any integer dtype.

        Parameters
        ----------
        indptr : array of int, of shape (num_vertices + 1,)
            Where the edges of each vertex begin.
        indices : array of int, of shape (num_edges,)
            Their targets.
        weights : array of numbers, of shape (num_edges,), optional
        device : Device or str, optional
            Where the graph goes; the best device there is unless given.

        Notes
        -----
        The arrays are checked, and copied only where dtype, layout or device require it: do not change them afterwards. On the
        CPU, offsets of the dtype of `indptr` and ids of uint32 or int32 are not copied; on a GPU, nor are offsets of int64.
        Arrays on a GPU are checked there, and `device` is that GPU unless given.

        Examples
        --------
        >>> atos.Graph.from_csr([0, 2, 3, 3], [1, 2, 2])
        Graph(3 vertices, 3 directed edges, no weights, on cpu)
        """
        library = library_of(indices)
        if is_on_gpu(indices):
            target = asarray(indices).device if device is None else device_of(device)
            if target.kind == "cuda":
                return cls._on(csr_on_device(indptr, indices, weights, target), target, library)
        return cls._on(check_csr(to_host(indptr), to_host(indices), to_host(weights)), device, library)

    @classmethod
    @host_memory_for("Graph.from_edges")
    def from_edges(
        cls,
        sources: ArrayLike,
        targets: ArrayLike,
        weights: ArrayLike | None = None,
        num_vertices: int | None = None,
        *,
        symmetrize: bool = False,
        deduplicate: bool = False,
        remove_loops: bool = False,
        sort: bool = False,
        edge_arrays: Mapping[str, ArrayLike] | None = None,
        device: Device | str | None = None,
    ) -> Graph:
        """Make a graph of the edges ``sources[i] -> targets[i]``.

        Parameters
        ----------
        sources, targets : array of int
            Vertex ids; also columns of a table, in the order of its rows.
        weights : array, optional
            Weights of the edges.
        num_vertices : int, optional
            The largest id plus one unless given.
        symmetrize : bool
            Add the reverse of every edge that is not a loop, with the same weight. If the edges hold both directions
            already, deduplicate too.
        deduplicate : bool
            Keep one of several edges with the same source and target, the lightest; neighbors are then sorted as well.
        remove_loops : bool
            Drop edges from a vertex to itself.
        sort : bool
            Put the neighbors of every vertex in ascending order; otherwise they keep the order of the edges.
        edge_arrays : dict of arrays, optional
            More numbers of the edges, by name, which become `edge_arrays` of the graph; a reverse has the numbers of its edge.
            With `deduplicate` the least number counts, in each array by itself.
        device : Device or str, optional
            Where the graph goes; the best device there is unless given, or the GPU where `targets` is. Edges are sorted on the
            host in any case.

        Examples
        --------
        >>> atos.Graph.from_edges([0, 1], [1, 2], weights=[5, 6], symmetrize=True)
        Graph(3 vertices, 4 directed edges, int64 weights, on cpu)
        """
        library = library_of(targets)
        if device is None and is_on_gpu(targets):
            device = asarray(targets).device
        edges = chunk_edges(to_host(sources), to_host(targets), to_host(weights), num_vertices)
        arrays = check_arrays(edge_arrays, edges)
        ways = {"symmetrize": symmetrize, "deduplicate": deduplicate, "remove_loops": remove_loops, "sort": sort}
        return cls._built(edges, arrays, device, library, **ways)

    @classmethod
    @host_memory_for("Graph.from_edge_index")
    def from_edge_index(
        cls,
        edge_index: ArrayLike,
        weights: ArrayLike | None = None,
        num_vertices: int | None = None,
        **options: Any,
    ) -> Graph:
        """Make a graph of an array of two rows, the sources and the targets, as PyTorch Geometric's `edge_index` is.

        Parameters
        ----------
        edge_index : array of int, of shape (2, number of edges)
            For a table with a row for each edge there is `from_edges`.
        weights, num_vertices, **options
            As in `from_edges`. PyTorch Geometric has `edge_weight` or `edge_attr`, and `num_nodes`.

        Examples
        --------
        >>> atos.Graph.from_edge_index([[0, 1, 2], [1, 2, 0]])
        Graph(3 vertices, 3 directed edges, no weights, on cpu)
        """
        sources, targets = edge_index_rows(edge_index)
        return cls.from_edges(sources, targets, weights, num_vertices, **options)

    @classmethod
    @host_memory_for("Graph.from_scipy")
    def from_scipy(
        cls,
        matrix: scipy.sparse.sparray | scipy.sparse.spmatrix | Any,
        *,
        weights: bool | DTypeLike = True,
        device: Device | str | None = None,
    ) -> Graph:
        """Make a graph of a square sparse matrix of SciPy or CuPy, of any format: entry ``[u, v]`` is an edge from u to v.

        Stored zeros are edges too, except in formats that store blocks or diagonals. Boolean matrices have no weights;
        of others `weights` can be False to leave them out, or a dtype to convert them.

        Examples
        --------
        >>> import scipy.sparse
        >>> atos.Graph.from_scipy(scipy.sparse.eye_array(3, k=1), weights=False)
        Graph(3 vertices, 2 directed edges, no weights, on cpu)
        """
        rows = check_matrix(matrix)
        keep = weights is not False and matrix.dtype != bool
        if matrix.format == "csr":
            graph = cls.from_csr(matrix.indptr, matrix.indices, matrix.data if keep else None, device=device)
        else:
            entries = matrix.tocoo()
            if matrix.format == "bsr":
                entries.eliminate_zeros()
            graph = cls.from_edges(entries.row, entries.col, entries.data if keep else None, rows, device=device)
        if isinstance(weights, bool) or graph.weights is None:
            return graph
        converted = convert_weights(np.asarray(graph.weights), weight_dtype(weights))
        return graph._replace(weights=asarray(converted, device=graph.device, readonly=True))

    @classmethod
    @host_memory_for("Graph.from_networkx")
    def from_networkx(
        cls,
        graph: networkx.Graph[Any],
        *,
        weight: str | None = "weight",
        edge_arrays: Sequence[str] = (),
        device: Device | str | None = None,
    ) -> Graph:
        """Make a graph of one of NetworkX, of any kind; vertex ``i`` is the ``i``-th node in iteration order.

        Edges of an undirected graph appear in both directions. If any edge has the attribute `weight`, the graph has
        weights, and 1 stands in where it is missing, as usual in NetworkX. Attributes that `edge_arrays` names become
        `edge_arrays` of the graph; every edge has to have them.

        Examples
        --------
        >>> import networkx as nx
        >>> atos.Graph.from_networkx(nx.path_graph(3))
        Graph(3 vertices, 4 directed edges, no weights, on cpu)
        """
        edges = read_networkx(graph, weight)
        arrays = check_arrays(read_attributes(graph, edge_arrays), edges)
        return cls._built(edges, arrays, device, symmetrize=not graph.is_directed())

    @host_memory_for("Graph.degrees")
    def degrees(self) -> NDArray[Any]:
        """Return the number of edges that leave each vertex, as a NumPy array.

        Examples
        --------
        >>> atos.Graph.from_edges([0, 0, 1], [1, 2, 2]).degrees()
        array([2, 1, 0], dtype=int32)
        """
        return np.diff(np.asarray(self.indptr))

    @property
    def max_degree(self) -> int:
        """The largest number of edges that leave a vertex; 0 if there are no vertices."""
        return largest_degree(self)

    @host_memory_for("Graph.to")
    def to(self, device: Device | str | None) -> Graph:
        """Return the graph on `device`: itself if it is there already, otherwise a copy.

        Examples
        --------
        >>> atos.generate.road(3).to("cpu").device
        Device(kind='cpu', index=0)
        """
        target = device_of(device)
        if target == self.device:
            return self
        arrays = {name: asarray(array, device=target, readonly=True) for name, array in self._edge_arrays.items()}
        return self._on(self._on_host(), target, self.library)._labeled(self.labels)._carrying(arrays)

    @host_memory_for("Graph.save")
    def save(self, path: str | os.PathLike[str], *, compress: bool = False) -> None:
        """Write the graph, with its `labels` and `edge_arrays` if it has some, to a file that ends in .npz, for `load`.

        Examples
        --------
        >>> atos.generate.road(3, 1.0).save("grid.npz")
        >>> atos.Graph.load("grid.npz")
        Graph(9 vertices, 24 directed edges, no weights, on cpu)
        """
        arrays = {name: np.asarray(array) for name, array in self._edge_arrays.items()}
        save_csr(path, self._on_host(), self.labels, compress=compress, edge_arrays=arrays)

    def __repr__(self) -> str:
        if not self._is_of_arrays():
            return super().__repr__()
        weights = f"{self.weights.dtype} weights" if self.weights is not None else "no weights"
        return f"Graph({self.num_vertices:,} vertices, {self.num_edges:,} directed edges, {weights}, on {self.device})"
