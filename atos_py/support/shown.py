"""Tables in HTML, by which notebooks show objects: a row for each pair of a name and a value."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

__all__ = ["Shown", "ShownFields", "format_bytes", "html_table"]


def html_table(caption: str, rows: Mapping[str, object]) -> str:
    """Return a table: values as text, and those of several lines as they stand."""
    cells = "".join(f"<tr><th>{html.escape(name)}</th><td>{_cell(str(value))}</td></tr>" for name, value in rows.items())
    return f"<table><caption>{html.escape(caption)}</caption>{cells}</table>"


def _cell(text: str) -> str:
    escaped = html.escape(text)
    return f'<pre style="text-align: left">{escaped}</pre>' if "\n" in text else escaped


def format_bytes(count: int) -> str:
    """Return a size in bytes, or in kB, MB or GB with a digit after the point."""
    for unit, size in ("GB", 10**9), ("MB", 10**6), ("kB", 10**3):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count} byte{'s' * (count != 1)}"


class Shown:
    """Base class of objects that notebooks show as a table, at once: without computing, and without waiting for a launch."""

    __slots__ = ()

    def _shown(self) -> Mapping[str, object]:
        """Return what the table has in its rows, by name."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return html_table(type(self).__name__, self._shown())


class ShownFields(Shown):
    """Base class of dataclasses that notebooks show as a table of their fields."""

    __slots__ = ()

    def _shown(self) -> Mapping[str, object]:
        found: Any = fields(self)  # type: ignore[arg-type]
        return {field.name: repr(getattr(self, field.name)) for field in found if field.repr}
