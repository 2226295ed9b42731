"""Tables in Parquet files, read by PyArrow where it is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ...errors import GraphFormatError, InvalidArgumentError, MissingPackageError, UnsupportedTypeError
from ...support.atomic_files import open_regular
from ..csr import MAX_VERTICES, EdgeChunk, EdgeList, chunk_edges
from ..weights import check_weights
from .headings import explain_headings
from .lines import MAX_WIDE_ID
from .plausible import explain_implausible

__all__ = ["read_parquet"]


def read_parquet(path: Path, renumber: bool = False) -> EdgeList:
    """Read the columns source, target and, if there is a third one, weight of a table."""
    with open_regular(path, "graph file") as file:
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError as error:
            raise MissingPackageError("reading .parquet needs PyArrow: python -m pip install pyarrow") from error
        try:
            table = pyarrow.parquet.ParquetFile(file)
            if reason := explain_headings(table.schema_arrow.names):
                raise GraphFormatError(path, None, reason)
            columns = [_numbers_of(column, name) for name, column in zip(table.schema_arrow.names, table.read(), strict=True)]
        except (InvalidArgumentError, UnsupportedTypeError) as error:
            raise GraphFormatError(path, None, str(error)) from error
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            if isinstance(error, (GraphFormatError, MemoryError)):
                raise
            raise GraphFormatError(path, None, str(error) or type(error).__name__) from error
    try:
        if renumber:
            edges = _wide_edges(*columns)
        else:
            _check_width(*columns[:2])
            edges = chunk_edges(*columns)
    except (InvalidArgumentError, UnsupportedTypeError) as error:
        raise GraphFormatError(path, None, str(error)) from error
    num_edges = columns[0].size
    if not num_edges:
        raise GraphFormatError(path, None, "the table has no rows, so nothing says how many vertices there are")
    if not renumber and (
        reason := explain_implausible(f"vertex id '{edges.num_vertices - 1}' makes", edges.num_vertices, num_edges)
    ):
        raise GraphFormatError(path, None, reason)
    return edges._replace(by_ids=True)


def _numbers_of(column: Any, name: str) -> Any:
    """Return a column as an array of NumPy; refuse values that are missing, which NumPy would take for NaN."""
    if column.null_count:
        raise InvalidArgumentError(f"column {name!r} has {column.null_count} rows without a value; drop them, or fill them")
    values = column.to_numpy()
    if values.dtype.kind not in "iuf":
        raise UnsupportedTypeError(
            f"column {name!r} is of type {column.type}, and not of numbers; pandas.factorize makes numbers of names"
        )
    return values


def _check_width(*columns: Any) -> None:
    """Raise if an id does not fit 32 bits, but could be renumbered."""
    for ids in columns:
        largest = int(ids.max(initial=0)) if ids.dtype.kind in "iu" else 0
        if MAX_VERTICES <= largest < MAX_WIDE_ID:
            raise InvalidArgumentError(
                f"vertex id '{largest}' is outside 0..{MAX_VERTICES - 1};"
                " with renumber=True (--renumber) vertices get other numbers"
            )


def _wide_edges(sources: Any, targets: Any, weights: Any = None) -> EdgeList:
    """Return edges with ids of 64 bits."""
    for name, ids in (("source", sources), ("target", targets)):
        if ids.dtype.kind not in "iu":
            raise UnsupportedTypeError(f"column {name!r} holds vertex ids, which are integers, not {ids.dtype}")
        for id in (ids.min(initial=0), ids.max(initial=0)):
            if not 0 <= int(id) < MAX_WIDE_ID:
                raise InvalidArgumentError(f"vertex id '{id}' is outside 0..{MAX_WIDE_ID - 1}")
    costs = None if weights is None else check_weights(weights, sources.size)
    chunk = EdgeChunk(sources.astype(np.uint64), targets.astype(np.uint64), costs)  # type: ignore[arg-type]
    return EdgeList([chunk], 0, symmetric=False)
