"""Headings of columns: which line is one, and whether the columns are those of edges in their order."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["explain_headings", "is_heading"]

_WORD = re.compile(rb"""(["']?)[A-Za-z_:~][\w:~.\-]*\1""")
_NUMBERS = (b"nan", b"inf", b"infinity")
_NAMES = (
    {"source", "sourceid", "src", "from", "fromid", "fromnode", "fromnodeid", "u", "node1", "id1"},
    {"target", "targetid", "destination", "dest", "dst", "to", "toid", "tonode", "tonodeid", "v", "node2", "id2"},
    {"weight", "weights", "w"},
)
_WANTED = "the columns are source, target and, if there are weights, weight, in this order and no others"


def is_heading(fields: Sequence[bytes]) -> bool:
    """Whether the fields of the first line are names of columns."""
    return len(fields) >= 2 and all(_WORD.fullmatch(field) and field.lower() not in _NUMBERS for field in fields)


def explain_headings(names: Sequence[str]) -> str | None:
    """Say why columns of these names are not read as edges; None if they are.

    Names that nothing is known of go by their places, but no name that is known stands in another's place.
    """
    shown = ", ".join(names)
    if not all(names):
        place = list(names).index("") + 1
        return f"heading {place} is empty, as that of the index of a pandas table: write the table with index=False"
    if not 2 <= len(names) <= 3:
        return f"there are {len(names)} headings, {shown:.80}; {_WANTED}"
    for place, name in enumerate(names):
        plain = re.sub("[^a-z0-9]", "", name.lower())
        for right, known in enumerate(_NAMES):
            if plain in known and place != right:
                return f"heading {name!r:.40} is number {place + 1} of {shown:.80}; {_WANTED}"
    return None
