"""Other libraries' graphs and tables: the call that takes one, and the two rows of an `edge_index`.

They are told by what they have, so that no library is imported here.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ..arrays.array import to_host
from ..arrays.array_library import library_of
from ..arrays.import_external import is_on_gpu
from ..errors import InvalidArgumentError
from ..support.validation import as_host_array

__all__ = ["describe_kind", "edge_index_rows", "way_to_graph"]


def describe_kind(value: Any) -> str:
    """Return the type of something with the library that it is of, such as "networkx.DiGraph"."""
    library = type(value).__module__.partition(".")[0]
    return type(value).__name__ if library == "builtins" else f"{library}.{type(value).__name__}"


def way_to_graph(value: Any) -> str:
    """Return advice on how to make a graph of something that is none, for the end of a message."""
    shape = getattr(value, "shape", None)
    if hasattr(value, "ownership"):
        return "pass the graph itself and not its parts: this is not for several devices"
    if hasattr(value, "to_graph"):
        return "pass its to_graph()"
    if _is_table(value):
        sources, targets = (*list(value.columns)[:2], "source", "target")[:2]
        way = f"Graph.from_edges(table[{sources!r}], table[{targets!r}])"
    elif hasattr(value, "is_directed") and hasattr(value, "edges"):
        way = "Graph.from_networkx(graph)"
    elif hasattr(value, "tocoo") and hasattr(value, "format"):
        way = "Graph.from_scipy(matrix)"
    elif hasattr(value, "edge_index"):
        way = "Graph.from_edge_index(data.edge_index, num_vertices=data.num_nodes)"
    elif hasattr(value, "indptr") and hasattr(value, "indices"):
        way = "Graph.from_csr(it.indptr, it.indices)"
    elif isinstance(value, (str, os.PathLike)):
        way = "Graph.load(path)"
    elif shape is not None and len(shape) == 2 and shape[0] == 2:
        way = "Graph.from_edge_index(array)"
    elif shape is not None and len(shape) == 2 and shape[1] == 2:
        way = "Graph.from_edge_index(array.T)"
    elif shape is not None and len(shape) == 2 and shape[0] == shape[1]:
        way = "Graph.from_scipy(scipy.sparse.csr_array(array))"
    else:
        return "Graph.from_edges, from_csr, from_scipy, from_networkx and load make one"
    return f"make one with {way}"


def edge_index_rows(edge_index: Any) -> tuple[Any, Any]:
    """Return the sources and the targets of an `edge_index`, as arrays of the library that it is of.

    A table has its rows by place, since indexing it gives columns. One of two rows and two named columns could be meant either
    way, and is refused.
    """
    rows = edge_index
    if hasattr(edge_index, "iloc"):
        rows = edge_index.iloc
    elif library_of(edge_index) is None and not is_on_gpu(edge_index):
        rows = as_host_array("edge_index, of two rows,", to_host(edge_index))
        if not rows.size and not isinstance(edge_index, np.ndarray):
            rows = rows.astype(np.int64)  # empty lists say nothing of their type, and NumPy calls it float64
    shape = tuple(edge_index.shape if hasattr(edge_index, "shape") else rows.shape)
    named = _is_table(edge_index) and any(isinstance(name, str) for name in edge_index.columns)
    if len(shape) != 2 or shape[0] != 2 or (named and shape == (2, 2)):
        raise InvalidArgumentError(
            f"edge_index must have two rows, the sources and the targets (got {describe_kind(edge_index)} of shape {shape}); "
            + way_to_graph(edge_index)
        )
    return rows[0], rows[1]


def _is_table(value: Any) -> bool:
    """Whether something is a table, as of pandas or polars."""
    return hasattr(value, "columns") and hasattr(value, "dtypes")
