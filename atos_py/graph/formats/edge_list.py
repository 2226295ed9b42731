"""Files with an edge on each line and no header."""

from __future__ import annotations

from ...errors import GraphFormatError
from ..csr import MAX_VERTICES, EdgeList
from .lines import Layout
from .text import Text

__all__ = ["read_edge_list"]


def read_edge_list(text: Text) -> EdgeList:
    """Read a line for each edge; the first one tells whether they have weights, the largest id how many vertices there are."""
    columns = 2
    for line in text.first.split(b"\n"):
        fields = line.replace(b",", b" ").split()
        if fields and fields[0][:1] not in (b"#", b"%"):
            columns = 3 if len(fields) >= 3 else 2  # what else a line may hold, the parser refuses with the line's number
            break
    layout = Layout(columns, 0, MAX_VERTICES, None, b"#%", commas=True)
    chunks = text.edges(layout)
    largest = max(int(ids.max(initial=0)) for chunk in chunks for ids in (chunk.sources, chunk.targets))
    if not any(chunk.sources.size for chunk in chunks):
        raise GraphFormatError(text.path, None, "the file has no edges, so nothing says how many vertices there are")
    return EdgeList(chunks, largest + 1, symmetric=False)
