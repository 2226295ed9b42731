"""The page that repeats the tables: each command is one that runs, each table is there, and no page of tables is left out."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from repository import ROOT

from atos_py.__main__ import _make_parser
from atos_py.cli import find_commands

PAGE = ROOT / "docs" / "performance" / "repeat.md"
PERFORMANCE = ROOT / "docs" / "performance.md"
PAGES = [PERFORMANCE, *(ROOT / "docs" / name for name in ("trust.md", "protocol/stress.md")), *PAGE.parent.glob("*.md")]
TABLE = re.compile(r"^\|[ :|-]+\|$", re.MULTILINE)
MACHINES = {"machine", "H100", "H200", "H100, H200", "two H200s", "two cores"}


def rows(page: Path) -> list[list[str]]:
    """Return the cells of the rows that have a command or name one."""
    lines = [line for line in page.read_text().splitlines() if line.startswith("| ") and "---" not in line]
    return [cells for line in lines if len(cells := [cell.strip() for cell in line.strip("|").split("|")]) == 4]


def commands(page: Path) -> list[str]:
    """Return the commands of a page, those of indented lines and those that a row of a table begins with."""
    text = page.read_text().replace("\\\n", " ")
    start = r"(?:[A-Z_]+=\w+ )?(?:atos|python) "
    return re.findall(rf"^    ({start}.*)$", text, re.MULTILINE) + re.findall(rf"\| `({start}[^`]+)`", text)


def wrong_in(command: str) -> str | None:
    """Return what is wrong with a command, or None."""
    words = [word for word in shlex.split(command) if not re.fullmatch(r"[A-Z_]+=\w+", word)]
    if words[0] == "atos":
        try:
            _make_parser(find_commands(), "atos").parse_args(words[1:])
        except SystemExit:
            return "atos refuses it"
        return None
    if words[1:3] == ["-m", "pytest"]:
        words = ["python", words[3]]
    script = ROOT / words[1]
    if not script.is_file():
        return f"no {words[1]}"
    missing = [word for word in words[2:] if word.startswith("--") and word != "--" and f'"{word}"' not in script.read_text()]
    return f"{words[1]} has no {missing}" if missing else None


def test_the_commands_that_gave_the_tables_run():
    found = {command: page.name for page in PAGES for command in commands(page)}
    assert len(commands(PAGE)) > 20
    assert len(found) > 60
    assert {(page, command): wrong for command, page in found.items() if (wrong := wrong_in(command))} == {}


@pytest.mark.parametrize(
    "command",
    [
        "atos bench --algorithm bsf",
        "atos bensch",
        "python benchmarks/none.py",
        "python benchmarks/stress.py --lunches 5",
        "python -m pytest tests/project/test_none.py",
    ],
)
def test_a_command_that_does_not_run_is_noticed(command, capsys):
    assert wrong_in(command)


def section(page: Path, heading: str) -> str:
    """Return the part of a page below a heading, or all of a page."""
    parts = re.split(r"^#+ (.*)$", page.read_text(), flags=re.MULTILINE)
    names = [re.sub(r"[^\w\- ]", "", name.lower()).replace(" ", "-") for name in parts[1::2]]
    return parts[2 + 2 * names.index(heading)] if heading else page.read_text()


def test_each_row_names_a_table_that_is_there():
    named = [re.search(r"\]\(([^)#]*)(?:#([^)]*))?\)", cells[0]) for cells in rows(PAGE)]
    links = [link for link in named if link]
    assert len(links) > 20
    without = [link[0] for link in links if not TABLE.search(section((PAGE.parent / link[1]).resolve(), link[2] or ""))]
    assert without == []


def test_each_row_says_its_machine_and_its_minutes():
    last = [cells[2:] for cells in rows(PAGE)]
    assert len(last) > 20
    assert {machine for machine, _ in last} <= MACHINES
    assert [minutes for _, minutes in last if not re.fullmatch(r"\d+|-|minutes", minutes)] == []


def test_no_page_of_tables_is_left_out():
    pages = set(re.findall(r"\]\(performance/([\w-]+\.md)\)", PERFORMANCE.read_text())) - {PAGE.name}
    assert len(pages) > 12
    assert pages - set(re.findall(r"\]\(([\w-]+\.md)[)#]", PAGE.read_text())) == set()
