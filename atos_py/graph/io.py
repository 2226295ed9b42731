"""Graph files: reading edges or a CSR from them, writing a CSR to one.

`atos_py.graph.formats` has a module for each format. Three steps, each usable alone::

    file ──► EdgeList (chunks of parsed edges) ──► build_csr ──► CSR

Blocks of a text file are parsed by threads while the next ones are read; see `atos_py.graph.csr` for what follows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..errors import GraphFormatError, InvalidArgumentError, UnsupportedTypeError
from ..support.atomic_files import as_path
from ..support.host_memory import host_memory_for
from ..support.validation import check_bool
from .csr import CSR, EdgeList, Renumber, build_csr, csr_to_chunks, renumber_edges
from .formats.dimacs import read_dimacs
from .formats.edge_list import read_edge_list
from .formats.matrix_market import read_matrix_market
from .formats.npz import read_npz, save_npz
from .formats.parquet import read_parquet
from .formats.text import Text, open_text
from .ids import number_by_ids, warn_of_gaps
from .weights import convert_weights, weight_dtype

__all__ = ["load_csr", "load_labeled", "read_edges", "save_csr", "wrong_file"]

_READERS: dict[str, Callable[[Text, bool], EdgeList]] = {
    "dimacs": read_dimacs,
    "matrix-market": read_matrix_market,
    "edge-list": read_edge_list,
}
_BINARY = ("npz", "parquet")
_FORMATS = {
    ".gr": "dimacs",
    ".mtx": "matrix-market",
    ".txt": "edge-list",
    ".el": "edge-list",
    ".wel": "edge-list",
    ".edges": "edge-list",
    ".csv": "edge-list",
    ".parquet": "parquet",
    ".npz": "npz",
}


def _choose_format(path: Path, format: str | None) -> str:
    if format is None:
        suffix = Path(path.stem).suffix if path.suffix.lower() == ".gz" else path.suffix
        format = _FORMATS.get(suffix.lower())
        if format is None:
            known = ", ".join(_FORMATS)
            raise InvalidArgumentError(
                f"the name of '{path}' does not tell its format; known endings are {known}, each also with .gz; or give format="
            )
    if not isinstance(format, str) or format not in (*_READERS, *_BINARY):
        raise InvalidArgumentError(f"format must be one of {', '.join([*_READERS, *_BINARY])} (got {format!r})")
    return format


def read_edges(path: str | os.PathLike[str], *, format: str | None = None, renumber: bool = False) -> EdgeList:
    """Read a text file of edges; see `Graph.load` for what it may be.

    With `renumber`, ids may have up to 18 digits, and are kept in chunks of uint64, for `number_by_ids`.
    """
    path = as_path(path)
    known = _choose_format(path, format)
    if known in _BINARY:
        raise InvalidArgumentError(f"'{path}' is no text file; read it with Graph.load")
    with open_text(path) as text:
        return _READERS[known](text, renumber)


def load_csr(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    weights: bool | DTypeLike = True,
    symmetrize: bool = False,
    deduplicate: bool = False,
    remove_loops: bool = False,
    sort: bool = False,
) -> CSR:
    """Read a graph file without its labels; see `Graph.load`."""
    changes: dict[str, Any] = {"symmetrize": symmetrize, "deduplicate": deduplicate, "remove_loops": remove_loops, "sort": sort}
    return load_labeled(path, None, format=format, weights=weights, **changes)[0]


def load_labeled(
    path: str | os.PathLike[str],
    placed: Renumber | None,
    *,
    format: str | None,
    weights: bool | DTypeLike,
    simplify: bool = False,
    renumber: bool = False,
    edge_arrays: dict[str, NDArray[Any]] | None = None,
    **changes: bool,
) -> tuple[CSR, NDArray[np.int64] | None]:
    """Read a graph file, and the labels of its vertices, if they have any; see `Graph.load`.

    If `placed` gives vertices other numbers, after `renumber` has, neighbors are sorted by them, but labels are not.
    Edge arrays of the file are put into the dict `edge_arrays`, unchecked. Where there are any, the graph has the edges of the
    file in their order, whatever `changes` says, so that the caller can change both.
    """
    path = as_path(path)
    changes = {name: check_bool(name, value) for name, value in changes.items()}
    if check_bool("simplify", simplify):
        changes |= {"deduplicate": True, "remove_loops": True}
    check_bool("renumber", renumber)
    dtype = None if isinstance(weights, bool) else weight_dtype(weights)
    with host_memory_for(f"graph file '{path}'"):
        format = _choose_format(path, format)
        read, labels = _read(path, format, renumber, edge_arrays)
        csr = _build(read, weights is not False, placed, **({} if edge_arrays else changes))
        return csr if dtype is None else _converted(path, csr, dtype, is_text=format in _READERS), labels


def _read(
    path: Path, format: str, renumber: bool, edge_arrays: dict[str, NDArray[Any]] | None
) -> tuple[CSR | EdgeList, NDArray[np.int64] | None]:
    """Read a file, and number its vertices if asked for; warn if most of them have no edges otherwise."""
    graph: CSR | EdgeList
    labels: NDArray[np.int64] | None = None
    if format == "npz":
        graph, labels = read_npz(path, edge_arrays)
    else:
        graph = read_parquet(path, renumber) if format == "parquet" else read_edges(path, format=format, renumber=renumber)
    if renumber:
        edges = EdgeList(list(csr_to_chunks(graph)), 0, symmetric=False) if isinstance(graph, CSR) else graph
        ids = number_by_ids(edges.chunks, edges.base)
        return edges._replace(num_vertices=ids.size, base=0), ids if labels is None else labels[ids]
    if isinstance(graph, EdgeList) and graph.by_ids:
        warn_of_gaps(path, graph)
    return graph, labels


def _build(
    graph: CSR | EdgeList,
    weighted: bool,
    placed: Renumber | None,
    *,
    symmetrize: bool = False,
    deduplicate: bool = False,
    remove_loops: bool = False,
    sort: bool = False,
) -> CSR:
    changes = symmetrize or deduplicate or remove_loops or sort
    numbers = None if placed is None else placed(*_largest_size(graph, symmetrize))
    if isinstance(graph, CSR):
        if not weighted:
            graph = graph._replace(weights=None)
        if changes or numbers is not None:
            graph = EdgeList(list(csr_to_chunks(graph)), graph.indptr.size - 1, symmetric=False)
    if isinstance(graph, EdgeList):
        chunks = graph.chunks
        if not weighted:
            chunks[:] = [chunk._replace(weights=None) for chunk in chunks]
        if numbers is not None:
            renumber_edges(chunks, numbers)
        graph = build_csr(
            chunks,
            graph.num_vertices,
            symmetrize=symmetrize or graph.symmetric,
            deduplicate=deduplicate,
            remove_loops=remove_loops,
            sort=sort or numbers is not None,
        )
    return graph


def _converted(path: Path, csr: CSR, dtype: np.dtype[Any], is_text: bool) -> CSR:
    """Return a graph with weights of a dtype, if it has weights."""
    if csr.weights is None:
        return csr
    if is_text and dtype.kind in "iu" and csr.weights.dtype.kind == "f" and np.abs(csr.weights).max(initial=0) > 2**53:
        raise GraphFormatError(
            str(path),
            None,
            f"whole numbers beyond {2**53} among weights that are floats may be rounded, so none are made {dtype}",
        )
    return csr._replace(weights=convert_weights(csr.weights, dtype))


def _largest_size(graph: CSR | EdgeList, symmetrize: bool) -> tuple[int, int]:
    """Return how many vertices a graph has, and how many edges at most, of those that a file has."""
    if isinstance(graph, CSR):
        n, edges = graph.indptr.size - 1, graph.indices.size
    else:
        n, edges = graph.num_vertices, sum([chunk.sources.size for chunk in graph.chunks])
        symmetrize = symmetrize or graph.symmetric
    return n, 2 * edges if symmetrize else edges


@contextmanager
def wrong_file(path: str | os.PathLike[str]) -> Iterator[None]:
    """Say that a file is malformed where what it holds is refused."""
    try:
        yield
    except (InvalidArgumentError, UnsupportedTypeError) as error:
        raise GraphFormatError(as_path(path), None, str(error)) from error


def save_csr(
    path: str | os.PathLike[str],
    csr: CSR,
    labels: NDArray[np.int64] | None = None,
    *,
    compress: bool = False,
    edge_arrays: Mapping[str, NDArray[Any]] = {},
) -> None:
    """Write a CSR, labels of its vertices and other numbers of its edges to an .npz archive.

    The archive appears under its name only once it is whole.
    """
    path, compress = as_path(path), check_bool("compress", compress)
    if path.suffix != ".npz":
        raise InvalidArgumentError(f"a graph is saved to a file that ends in .npz (got '{path}')")
    save_npz(path, csr, labels, compress=compress, edge_arrays=edge_arrays)
