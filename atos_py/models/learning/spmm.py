"""Product of a sparse matrix, the graph with its weights, and a dense one of a few columns.

Source: Yang, Buluç and Owens, "Design principles for sparse matrix multiplication on the GPU", Euro-Par 2018: threads are
mapped to columns of the dense matrix, whose rows are read at once.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ...arrays.array import Array, asarray, empty, to_host
from ...arrays.array_library import as_library, library_of
from ...compile.host_kernels import compile_kernel, even_rows, parallel_map
from ...compile.vector_access import WIDTH, load4, store4
from ...errors import InvalidArgumentError, UnsupportedTypeError, VerificationError
from ...graph.csr import CSR
from ...graph.graph import Graph
from ...graph.graph_arrays import check_graph
from ...runtime.queue import Queue
from ...support.host_memory import host_memory_for
from ...support.validation import as_host_array
from .feature_gather import MOST_FEATURES, RANGES_AT_ONCE, feature_gather, gather_items
from .row_lengths import rows_of

__all__ = ["dense_rows", "spmm", "verify_spmm"]


def _neighbor(f, v, u, edge, weights, x, y, shift):  # type: ignore[no-untyped-def]
    return x[u, f + shift]


def _weighted_neighbor(f, v, u, edge, weights, x, y, shift):  # type: ignore[no-untyped-def]
    return x.dtype.type(weights[edge]) * x[u, f + shift]


def _store(f, v, total, weights, x, y, shift):  # type: ignore[no-untyped-def]
    y[v, f + shift] = total


def _neighbor4(f, v, u, edge, weights, x, y, shift):  # type: ignore[no-untyped-def]
    return load4(x, (u, f + shift))


def _weighted_neighbor4(f, v, u, edge, weights, x, y, shift):  # type: ignore[no-untyped-def]
    weight, (a, b, c, d) = np.float32(weights[edge]), load4(x, (u, f + shift))
    return weight * a, weight * b, weight * c, weight * d


def _store4(f, v, total, weights, x, y, shift):  # type: ignore[no-untyped-def]
    store4(y, (v, f + shift), *total)


def _functions(graph: Graph, x: Array) -> tuple[int, Any, Any]:
    """Return how many features a term has, and the functions of terms and sums: of 4 where a GPU can load them at once."""
    is_weighted = graph.weights is not None
    if x.device.kind == "cuda" and x.dtype == np.float32 and x.shape[1] % WIDTH == 0 and x.pointer % (4 * WIDTH) == 0:
        return WIDTH, _weighted_neighbor4 if is_weighted else _neighbor4, _store4
    return 1, _weighted_neighbor if is_weighted else _neighbor, _store


def dense_rows(name: str, x: Any, graph: Graph, *, readonly: bool = True) -> Array:
    """Return a matrix with a row of floats for each vertex, on the device of a graph."""
    values = asarray(x, device=graph.device, readonly=readonly)
    if values.dtype not in (np.float32, np.float64):
        raise UnsupportedTypeError(f"{name} must be of float32 or float64, not {values.dtype}; convert it")
    if values.ndim not in (1, 2) or values.shape[0] != graph.num_vertices:
        raise InvalidArgumentError(
            f"{name} must have a row for each of {graph.num_vertices} vertices, and one or two dimensions"
            f" (got shape {values.shape})"
        )
    return values


def _as_matrix(values: Array) -> Array:
    """Return an array of one or two dimensions as one of two, which shares its memory."""
    if values.ndim == 2:
        return values
    shape = values.size, 1
    made = Array(values.pointer, shape, values.dtype, values.device, readonly=values.readonly, owner=values)
    made.library = values.library  # whose stream a launch takes
    return made


@host_memory_for("atos.spmm")
def spmm(graph: Graph, x: Any) -> Any:
    """Multiply the adjacency matrix of a graph with a dense matrix: row v of the result is the sum of w(v, u) x[u].

    Parameters
    ----------
    graph : Graph
        A sparse matrix with a row for each vertex; edges without weights count 1.
    x : array
        Of shape (n, k), row by row, or (n,); float32 or float64, of NumPy or any library that `asarray` takes.

    Returns
    -------
    array
        Of the shape and type of `x`, of the library that it is of. The sums are computed in that type, in an order that is the
        same in every run.

    Raises
    ------
    UnsupportedTypeError
        If `x` is not of float32 or float64.
    InvalidArgumentError
        If `x` has not as many rows as the graph has vertices.

    References
    ----------
    Yang, Buluç and Owens, "Design principles for sparse matrix multiplication on the GPU", Euro-Par 2018.

    Examples
    --------
    >>> graph = atos.Graph.from_edges([0, 0, 1], [1, 2, 2], weights=[1.0, 2.0, 3.0])
    >>> atos.spmm(graph, np.array([[1.0, 0.0], [10.0, 0.0], [100.0, 1.0]]))
    array([[210.,   2.],
           [300.,   3.],
           [  0.,   0.]])
    """
    check_graph(graph)
    values = dense_rows("x", x, graph)
    kind, n = graph.device.kind, graph.num_vertices
    # On the CPU memory of NumPy, which is not filled with zeros first.
    shape, dtype = values.shape, values.dtype
    where = graph.device
    result = empty(shape, dtype=dtype, device=where) if kind == "cuda" else asarray(np.empty(shape, dtype), device=where)
    rows, out = _as_matrix(values), _as_matrix(result)
    width, term, store = _functions(graph, rows)
    sparsity = rows_of(graph)
    columns, type_of_sums = rows.shape[1], cast(Any, values.dtype.type)
    for shift in range(0, columns, MOST_FEATURES):
        k = min(MOST_FEATURES, columns - shift)
        items = gather_items(n, k, kind, width, sparsity)
        queue = Queue(max(len(items), 1), device=graph.device)
        queue.push(items)
        task = feature_gather(term, store, k, type_of_sums, kind, width=width, rows=sparsity)
        queue.launch_cta(task, graph.indptr, graph.indices, graph.weights, rows, out, shift, fetch_size=RANGES_AT_ONCE)
    if isinstance(x, np.ndarray):
        return result.to_numpy()
    return as_library(result, library_of(x))


def _product_kernel(
    indptr: Any, indices: Any, weights: Any, x: Any, y: Any, tolerance: float, first: int, end: int
) -> int:  # pragma: no cover - compiled
    """Return v * k + f of the first wrong element in rows `first` to `end`, or -1; `weights` may have one."""
    for v in range(first, end):
        for f in range(x.shape[1]):
            total, size = 0.0, 0.0
            for edge in range(indptr[v], indptr[v + 1]):
                part = weights[min(edge, weights.size - 1)] * x[indices[edge], f]
                total += part
                size += abs(part)
            if not abs(y[v, f] - total) <= tolerance * size * (indptr[v + 1] - indptr[v] + 1) ** 0.5:
                return v * x.shape[1] + f
    return -1


@host_memory_for("atos.verify_spmm")
def verify_spmm(graph: Graph, x: Any, y: Any) -> None:
    """Check that y is the product of the adjacency matrix and x, up to the rounding of its type.

    Each element is compared with the sum in float64; it may be off by as much as rounding makes likely: 8 units in the last
    place of the sum of absolute values, times the square root of the number of edges.

    Parameters
    ----------
    graph : Graph
    x, y : array

    Raises
    ------
    VerificationError
        The message names the first element that is wrong.

    Examples
    --------
    >>> graph, x = atos.Graph.from_edges([0, 0, 1], [1, 2, 2]), np.ones((3, 2))
    >>> atos.verify_spmm(graph, x, [[2.0, 2.0], [1.0, 1.0], [0.0, 0.0]])
    >>> atos.verify_spmm(graph, x, [[2.0, 2.0], [1.0, 1.5], [0.0, 0.0]])
    Traceback (most recent call last):
    atos_py.errors.VerificationError: y[1, 1] is 1.5, which is not the sum over the edges of vertex 1
    """
    check_graph(graph)
    given, found = as_host_array("x", to_host(x)), as_host_array("y", to_host(y))
    if given.shape != found.shape or given.ndim not in (1, 2) or given.shape[0] != graph.num_vertices:
        raise InvalidArgumentError(
            f"x and y must be of one shape with a row for each vertex (got {given.shape} and {found.shape})"
        )
    if found.dtype.kind != "f" or given.dtype.kind != "f":
        raise UnsupportedTypeError(f"x and y must be floats, not {given.dtype} and {found.dtype}")
    tolerance = 8 * float(np.finfo(found.dtype).eps)
    wide, rows = (np.ascontiguousarray(each, np.float64).reshape(graph.num_vertices, -1) for each in (given, found))
    csr: CSR = graph._on_host()
    weights: NDArray[Any] = np.ones(1) if csr.weights is None else csr.weights.astype(np.float64)
    indptr, indices, kernel = np.asarray(csr.indptr), np.asarray(csr.indices), compile_kernel(_product_kernel)
    pieces = even_rows(indptr, 1 << 20)
    for wrong in parallel_map(lambda piece: int(kernel(indptr, indices, weights, wide, rows, tolerance, *piece)), pieces):
        if wrong >= 0:
            v, f = divmod(wrong, wide.shape[1])
            place = f"{v}, {f}" if found.ndim == 2 else f"{v}"
            raise VerificationError(f"y[{place}] is {rows[v, f]}, which is not the sum over the edges of vertex {v}")
