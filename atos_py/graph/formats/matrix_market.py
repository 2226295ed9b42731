"""Matrix Market files with coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import GraphFormatError
from ..csr import MAX_VERTICES, EdgeChunk, EdgeList
from .lines import Layout, quote
from .plausible import explain_implausible
from .text import Text, header_count, header_lines

__all__ = ["read_matrix_market"]


_CURES = {
    b"pattern": "; FIELD pattern in line 1 says that entries have no values, so write integer or real there",
    b"integer": "; with FIELD real in line 1 a value may be any number",
}


def read_matrix_market(text: Text, renumber: bool = False) -> EdgeList:
    """Read a banner, a line of sizes, and a line for each entry of a square matrix."""
    lines = header_lines(text.path, text.first)
    number, line, start = next(lines)
    banner = line.lower().split()
    if len(banner) != 5 or banner[0] not in (b"%%matrixmarket", b"%matrixmarket") or banner[1] != b"matrix":
        raise GraphFormatError(text.path, 1, f"expected '%%MatrixMarket matrix coordinate FIELD SYMMETRY', found {quote(line)}")
    kind, field, symmetry = banner[2:]
    for name, found, known in (
        ("format", kind, (b"coordinate",)),
        ("field", field, (b"pattern", b"integer", b"unsigned-integer", b"real", b"double")),
        ("symmetry", symmetry, (b"general", b"symmetric", b"skew-symmetric")),
    ):
        if found not in known:
            readable = ", ".join(word.decode() for word in known)
            raise GraphFormatError(text.path, 1, f"{name} {quote(found)} cannot be read as a graph, only {readable}")
    if field == b"pattern" and symmetry == b"skew-symmetric":
        raise GraphFormatError(text.path, 1, "a pattern has no signs, so it cannot be skew-symmetric")
    for number, line, start in lines:  # noqa: B007 - the size line is where it ends
        if line and not line.startswith(b"%"):
            break
    fields = line.split()
    if len(fields) != 3:
        raise GraphFormatError(text.path, number, f"expected the size line 'ROWS COLUMNS ENTRIES', found {quote(line)}")
    num_vertices = header_count(text.path, number, "rows", fields[0], MAX_VERTICES)
    num_columns = header_count(text.path, number, "columns", fields[1], MAX_VERTICES)
    if num_vertices != num_columns:
        raise GraphFormatError(
            text.path, number, f"the matrix of a graph is square, but this one is {num_vertices} x {num_columns}"
        )
    weighted = field != b"pattern"
    shortest = len("1 1 0\n") if weighted else len("1 1\n")
    promised = header_count(text.path, number, "entries", fields[2], text.max_edges(shortest))
    if not renumber and (reason := explain_implausible("the header promises", num_vertices, promised)):
        raise GraphFormatError(text.path, number, reason)
    weights = "float" if field in (b"real", b"double") else "int"
    cure = _CURES.get(field.removeprefix(b"unsigned-"), "")
    layout = Layout(3 if weighted else 2, 1, num_vertices, promised, b"%", weights=weights, cure=cure)
    chunks = text.edges(layout, start)
    if symmetry == b"skew-symmetric":
        for chunk in list(chunks):
            if (chunk.sources == chunk.targets).any():
                at = int(np.argmax(chunk.sources == chunk.targets))
                entry = int(chunk.sources[at]) + 1
                raise GraphFormatError(
                    text.path, None, f"entry ({entry}, {entry}) is on the diagonal of a skew-symmetric matrix"
                )
            chunks.append(EdgeChunk(chunk.targets, chunk.sources, None if chunk.weights is None else _negative(chunk.weights)))
    return EdgeList(chunks, num_vertices, symmetric=symmetry == b"symmetric", base=1)


def _negative(weights: NDArray[Any]) -> NDArray[Any]:
    if weights.dtype.kind == "i" and weights.min(initial=0) == np.iinfo(weights.dtype).min:  # of which it has no negative
        weights = weights.astype(np.int64)
    return -weights
