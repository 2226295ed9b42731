"""Tables in HTML: what goes in can be read out of them again, whatever characters it has."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atos_py.support.shown import Shown, format_bytes, html_table

TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.just("\n"))


class Reader(HTMLParser):
    """Collects the text of each caption and cell; another tag would be markup that a value has brought in."""

    def __init__(self) -> None:
        super().__init__()
        self.cells: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ("table", "caption", "tr", "th", "td", "pre")
        if tag in ("caption", "th", "td"):
            self.cells.append("")

    def handle_data(self, data: str) -> None:
        self.cells[-1] += data


@given(TEXT, st.dictionaries(TEXT, TEXT))
def test_what_goes_in_is_read_out(caption, rows):
    reader = Reader()
    reader.feed(html_table(caption, rows))
    reader.close()
    assert reader.cells == [caption, *(text for row in rows.items() for text in row)]


def test_lines_stay_lines():
    assert "<pre" in html_table("t", {"a": "1\n2"})
    assert "<pre" not in html_table("t", {"a": "12"})


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 bytes"), (1, "1 byte"), (999, "999 bytes"), (1000, "1.0 kB"), (2_345_000, "2.3 MB"), (10**13, "10,000.0 GB")],
)
def test_sizes(count, text):
    assert format_bytes(count) == text


def test_a_class_without_rows_says_so():
    with pytest.raises(NotImplementedError):
        Shown()._repr_html_()
