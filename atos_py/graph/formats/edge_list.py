"""Files with an edge on each line and no header but, where there is one, a line of headings."""

from __future__ import annotations

import numpy as np

from ...errors import GraphFormatError
from ..csr import MAX_VERTICES, EdgeList
from .headings import explain_headings, is_heading
from .lines import MAX_WIDE_ID, Layout
from .text import Text

__all__ = ["read_edge_list"]


def read_edge_list(text: Text, renumber: bool = False) -> EdgeList:
    """Read a line for each edge; the first one tells whether they have weights, the largest id how many vertices there are."""
    columns, start = _find_columns(text)
    layout = Layout(columns or 2, 0, MAX_WIDE_ID if renumber else MAX_VERTICES, None, b"#%", commas=True, wide=renumber)
    chunks = text.edges(layout._replace(attributes=columns == 0), start)
    largest = max(int(ids.max(initial=0)) for chunk in chunks for ids in (chunk.sources, chunk.targets))
    if not any(chunk.sources.size for chunk in chunks):
        raise GraphFormatError(text.path, None, "the file has no edges, so nothing says how many vertices there are")
    if any(chunk.weights is not None for chunk in chunks):
        for k, chunk in enumerate(chunks):  # attributes of which some have weights
            if chunk.weights is None:
                chunks[k] = chunk._replace(weights=np.ones(chunk.sources.size, np.int32))
    return EdgeList(chunks, largest + 1, symmetric=False, by_ids=True)


def _find_columns(text: Text) -> tuple[int, int]:
    """Return how many columns there are, 0 for attributes in place of a third one, and where the line after headings starts."""
    headings, start, begin = 0, 0, 0
    for number, line in enumerate(text.first.split(b"\n"), start=1):
        start += len(line) + 1
        fields = line.replace(b",", b" ").split()
        if not fields or fields[0][:1] in (b"#", b"%"):
            continue
        if not headings and is_heading(fields):
            between = [name.strip(b" \t\r") for name in line.split(b",")]
            names = [name.strip(b"\"'").decode() for name in (fields if all(between) else between)]
            if reason := explain_headings(names):
                raise GraphFormatError(text.path, number, reason)
            headings, begin = len(fields), start
            continue
        if len(fields) > 2 and fields[2].startswith(b"{"):
            return 0, begin
        # What else a line may hold, the parser refuses with the line's number.
        return headings or (3 if len(fields) >= 3 else 2), begin
    return headings or 2, begin
