"""The pages stay few: how many words those of the navigation have, and the lab notes.

A word is what stands between two spaces; code blocks have none. The lab notes, the papers' tables, the pages of the protocol
and the reference, most of which is generated, do not count among the pages of the navigation.
"""

from __future__ import annotations

import re
from pathlib import Path

from repository import ROOT

DOCS = ROOT / "docs"
MOST_WORDS, MOST_WORDS_OF_LAB = 70_000, 25_000
ASIDE = ("api", "gallery", "lab", "papers", "protocol")
CODE = re.compile(r"^( *)(```|~~~)(?!\{).*?^\1\2 *$", re.MULTILINE | re.DOTALL)
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```", re.MULTILINE | re.DOTALL)
INCLUDE = re.compile(r"^```\{include\} (\S+)\n.*?^```", re.MULTILINE | re.DOTALL)
DIRECTIVE = re.compile(r"^( *)```\{.*?^\1``` *$", re.MULTILINE | re.DOTALL)


def text_of(page: Path) -> str:
    """Return a page with what it includes."""
    return INCLUDE.sub(lambda found: text_of(page.parent / found[1]), page.read_text())


def words(text: str) -> int:
    """Return how many words a text has outside of code blocks and tables of contents."""
    return len(DIRECTIVE.sub("", CODE.sub("", text)).split())


def navigation() -> list[Path]:
    """Return the pages that the tables of contents lead to from the first one on, but for those `ASIDE`."""
    found: list[Path] = []
    ahead = [DOCS / "index.md"]
    while ahead:
        page = ahead.pop()
        if page in found or not page.exists():  # as the gallery, which is generated
            continue
        found.append(page)
        for entries in TOCTREE.findall(page.read_text()):
            names = [re.sub(r".*<(.*)>", r"\1", line.strip()) for line in entries.splitlines()]
            ahead += [page.parent / f"{name}.md" for name in names if name and not name.startswith(":")]
    return [page for page in found if page.relative_to(DOCS).parts[0] not in ASIDE]


def test_the_pages_of_the_navigation_are_not_too_long():
    pages = navigation()
    assert len(pages) > 60
    assert {DOCS / name for name in ("trust.md", "cookbook/trees.md", "algorithms/cores.md")} < set(pages)
    assert words(text_of(DOCS / "changelog.md")) > 1000
    total = sum(words(text_of(page)) for page in pages)
    assert total <= MOST_WORDS, f"{total} words; shorten what is there, or move it to docs/lab"


def test_the_lab_notes_are_not_too_long():
    total = sum(words(page.read_text()) for page in (DOCS / "lab").glob("*.md"))
    assert total <= MOST_WORDS_OF_LAB, f"{total} words; shorten older notes"


def test_no_page_is_outside_of_the_navigation():
    """Every page counts, or lies in a folder that is left out."""
    others = [page for page in DOCS.rglob("*.md") if page.relative_to(DOCS).parts[0] not in ASIDE]
    assert set(others) == set(navigation())


def test_words_are_counted():
    text = "# A title\n\nTwo words.\n\n```python\nnot = these\n```\n\n```{toctree}\nnor\n```\n\n    atos bench\n"
    assert words(text) == 2 + 1 + 2 + 2
    assert words("a\n" * 70_001) > MOST_WORDS
