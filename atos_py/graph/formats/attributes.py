"""Lines of `networkx.write_edgelist`, which end with a dictionary of attributes: ``0 1 {'weight': 3}``.

The weight of an edge is its attribute "weight", and 1 stands in where it is missing, as for `Graph.from_networkx`. Other
attributes are left out.
"""

from __future__ import annotations

import ast
import re

from ..csr import EdgeChunk
from .lines import BadLineError, Layout, explain, parse_block, quote

__all__ = ["explain_attributes", "parse_attributes"]


def parse_attributes(block: bytes, start: int, layout: Layout, capacity: int | None = None) -> EdgeChunk:
    """Parse a block as `parse_block` does; without weights if no line of the block has one."""
    weighted = False
    rows: list[bytes] = []
    at = start
    for line in block[start:].split(b"\n"):
        try:
            head, weight = _split(line)
        except ValueError:
            raise BadLineError(at) from None
        weighted |= weight is not None
        is_edge = bool(head.strip(b" \t\r")) and head.lstrip(b" \t\r")[:1] not in (b"#", b"%")
        rows.append(head + b" " + (weight or b"1") if is_edge else head)
        at += len(line) + 1
    text = b"\n".join(rows)
    try:
        chunk = parse_block(text, 0, layout._replace(columns=3), capacity)
    except BadLineError as bad:
        position = start
        for _ in range(text.count(b"\n", 0, bad.position)):
            position = block.index(b"\n", position) + 1
        raise BadLineError(position) from None
    return chunk if weighted else chunk._replace(weights=None)


def explain_attributes(line: bytes, layout: Layout) -> str:
    """Say what is wrong with a line that the parser refused."""
    try:
        head, weight = _split(line)
    except ValueError as error:
        return str(error)
    if len(head.replace(b",", b" ").split()) != 2:
        return f"expected 'SOURCE TARGET {{ATTRIBUTES}}', as the first edge has it, found {quote(line.strip())}"
    return explain(head + b" " + (weight or b"1"), layout._replace(columns=3))


def _split(line: bytes) -> tuple[bytes, bytes | None]:
    """Return what comes before the attributes, and the weight among them, if there is one; ValueError says what is wrong."""
    line = line.rstrip(b" \t\r")
    begin = line.find(b"{")
    if begin < 0 or not line.endswith(b"}"):
        return line, None
    head, attributes = line[:begin].rstrip(b" \t,"), line[begin:]
    if b"weight" not in attributes:
        return head, None
    try:
        # What is escaped in names does not matter here, and Python warns of escapes that it does not know.
        found = ast.literal_eval(re.sub(rb"\\.", b"_", attributes).decode("utf-8", "replace"))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ValueError(
            f"attributes {quote(attributes)} are no dictionary of Python's own words and numbers;"
            " networkx.write_weighted_edgelist writes weights alone"
        )
    weight = found.get("weight")
    if weight is not None and (isinstance(weight, bool) or not isinstance(weight, (int, float))):
        raise ValueError(f"attribute 'weight' is {weight!r:.40}, which is not a number")
    return head, None if weight is None else repr(weight).encode()
