"""Files of the 9th DIMACS challenge."""

from __future__ import annotations

from ...errors import GraphFormatError
from ..csr import MAX_VERTICES, EdgeList
from .lines import Layout, quote
from .plausible import explain_implausible
from .text import Text, header_count, header_lines

__all__ = ["read_dimacs"]


def read_dimacs(text: Text, renumber: bool = False) -> EdgeList:
    """Read a header with the numbers of vertices and arcs, and a line for each arc."""
    for number, line, start in header_lines(text.path, text.first):  # noqa: B007 - the header is where this loop ends
        if line and not line.startswith(b"c"):
            break
    fields = line.split()
    if len(fields) != 4 or fields[:2] != [b"p", b"sp"]:
        raise GraphFormatError(text.path, number, f"expected the header 'p sp VERTICES ARCS', found {quote(line)}")
    num_vertices = header_count(text.path, number, "vertices", fields[2], MAX_VERTICES)
    promised = header_count(text.path, number, "arcs", fields[3], text.max_edges(len("a 1 1 0\n")))
    if not renumber and (reason := explain_implausible("the header promises", num_vertices, promised)):
        raise GraphFormatError(text.path, number, reason)
    cure = "; an edge list, without header and letters, may have any number"
    layout = Layout(3, 1, num_vertices, promised, b"c", prefix=b"a", weights="int", cure=cure)
    return EdgeList(text.edges(layout, start), num_vertices, symmetric=False, base=1)
