"""Graph files: reading edges or a CSR from them, writing a CSR to one.

`atos_py.graph.formats` has a module for each format. Three steps, each usable alone::

    file ──► EdgeList (chunks of parsed edges) ──► build_csr ──► CSR

Blocks of a text file are parsed by threads while the next ones are read; see `atos_py.graph.csr` for what follows.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

from ..errors import GraphFormatError, InvalidArgumentError
from ..support.atomic_files import as_path
from ..support.host_memory import host_memory_for
from ..support.validation import check_bool
from .csr import CSR, EdgeList, Renumber, build_csr, csr_to_chunks, renumber_edges
from .formats.dimacs import read_dimacs
from .formats.edge_list import read_edge_list
from .formats.matrix_market import read_matrix_market
from .formats.npz import read_npz, save_npz
from .formats.text import Text, open_text
from .weights import convert_weights, weight_dtype

__all__ = ["load_csr", "read_edges", "save_csr"]

_READERS: dict[str, Callable[[Text], EdgeList]] = {
    "dimacs": read_dimacs,
    "matrix-market": read_matrix_market,
    "edge-list": read_edge_list,
}
_FORMATS = {
    ".gr": "dimacs",
    ".mtx": "matrix-market",
    ".txt": "edge-list",
    ".el": "edge-list",
    ".wel": "edge-list",
    ".edges": "edge-list",
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
    if not isinstance(format, str) or format not in (*_READERS, "npz"):
        raise InvalidArgumentError(f"format must be one of {', '.join([*_READERS, 'npz'])} (got {format!r})")
    return format


def read_edges(path: str | os.PathLike[str], *, format: str | None = None) -> EdgeList:
    """Read a text file of edges; see `Graph.load` for what it may be."""
    path = as_path(path)
    known = _choose_format(path, format)
    if known == "npz":
        raise InvalidArgumentError(f"'{path}' is no text file; read it with Graph.load")
    with open_text(path) as text:
        return _READERS[known](text)


def load_csr(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    weights: bool | DTypeLike = True,
    symmetrize: bool = False,
    deduplicate: bool = False,
    remove_loops: bool = False,
    sort: bool = False,
    renumber: Renumber | None = None,
) -> CSR:
    """Read a graph file; see `Graph.load`.

    If `renumber` gives vertices other numbers, neighbors are sorted by them.
    """
    path = as_path(path)
    with host_memory_for(f"graph file '{path}'"):
        return _load(path, format, weights, symmetrize, deduplicate, remove_loops, sort, renumber)


def _load(
    path: Path,
    format: str | None,
    weights: bool | DTypeLike,
    symmetrize: bool,
    deduplicate: bool,
    remove_loops: bool,
    sort: bool,
    renumber: Renumber | None,
) -> CSR:
    changes = (
        check_bool("symmetrize", symmetrize) | check_bool("deduplicate", deduplicate) | check_bool("remove_loops", remove_loops)
    )
    changes |= check_bool("sort", sort)
    dtype = None if isinstance(weights, bool) else weight_dtype(weights)
    format = _choose_format(path, format)
    graph = read_npz(path) if format == "npz" else read_edges(path, format=format)
    numbers = None if renumber is None else renumber(*_largest_size(graph, symmetrize))
    if isinstance(graph, CSR):
        if weights is False:
            graph = graph._replace(weights=None)
        if changes or numbers is not None:
            graph = EdgeList(list(csr_to_chunks(graph)), graph.indptr.size - 1, symmetric=False)
    if isinstance(graph, EdgeList):
        chunks = graph.chunks
        if weights is False:
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
    if dtype is not None and graph.weights is not None:
        if (
            format != "npz"
            and dtype.kind in "iu"
            and graph.weights.dtype.kind == "f"
            and np.abs(graph.weights).max(initial=0) > 2**53
        ):
            raise GraphFormatError(
                str(path),
                None,
                f"whole numbers beyond {2**53} among weights that are floats may be rounded, so none are made {dtype}",
            )
        graph = graph._replace(weights=convert_weights(graph.weights, dtype))
    return graph


def _largest_size(graph: CSR | EdgeList, symmetrize: bool) -> tuple[int, int]:
    """Return how many vertices a graph has, and how many edges at most, of those that a file has."""
    if isinstance(graph, CSR):
        n, edges = graph.indptr.size - 1, graph.indices.size
    else:
        n, edges = graph.num_vertices, sum([chunk.sources.size for chunk in graph.chunks])
        symmetrize = symmetrize or graph.symmetric
    return n, 2 * edges if symmetrize else edges


def save_csr(path: str | os.PathLike[str], csr: CSR, *, compress: bool = False) -> None:
    """Write a CSR to an .npz archive, which appears under its name only once it is whole."""
    path, compress = as_path(path), check_bool("compress", compress)
    if path.suffix != ".npz":
        raise InvalidArgumentError(f"a graph is saved to a file that ends in .npz (got '{path}')")
    save_npz(path, csr, compress=compress)
