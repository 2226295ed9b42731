"""The code and the commands in the documents run as they stand, from top to bottom, and the documents keep to themselves."""

from __future__ import annotations

import doctest
import functools
import gzip
import importlib.util
import inspect
import os
import re
import runpy
import shlex
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from repository import ROOT

import atos_py
from atos_py import acc, distributed, errors, features, linalg
from atos_py.__main__ import main
from atos_py.algorithms.registry import find_algorithms
from atos_py.cli import find_commands
from atos_py.core.devices import why_no_gpu
from atos_py.graph import generate

DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
FENCED = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMANDS = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)#]*)(?:#([^)]*))?\)")

# A grid of 3 x 3 crossings as a DIMACS file, which stands in for New York.
GRID = [(v, v + 1) for v in (1, 2, 4, 5, 7, 8)] + [(v, v + 3) for v in range(1, 7)]


def name(document: Path) -> str:
    return str(document.relative_to(ROOT))


@pytest.fixture
def directory(tmp_path, monkeypatch):
    """Go to a directory that has the graph which the documents load."""
    arcs = [f"a {u} {v} {u + v}" for a, b in GRID for u, v in ((a, b), (b, a))]
    (tmp_path / "USA-road-d.NY.gr.gz").write_bytes(gzip.compress("\n".join(["p sp 9 24", *arcs, ""]).encode()))
    monkeypatch.chdir(tmp_path)
    for variable, value in {"RANK": "0", "WORLD_SIZE": "1", "MASTER_PORT": str(os.getpid())}.items():
        monkeypatch.setenv(variable, value)  # as torchrun does for the only process
    return tmp_path


# What is in command-line.md follows commands, and runs behind them.
PROGRAMS = [path for path in DOCUMENTS if BLOCK.search(path.read_text()) and path.name != "command-line.md"]


def can_run(block: str) -> bool:
    """Whether the libraries that a part of a program is about are there; CuPy needs a GPU too."""
    imported = set(re.findall(r"^import (cupy|torch)$", block, re.MULTILINE))
    return all(importlib.util.find_spec(name) for name in imported) and not ("cupy" in imported and why_no_gpu())


def run_code(document, directory):
    blocks = [block for block in BLOCK.findall(document.read_text()) if can_run(block)]
    # In a file, since a task's source is looked up where its compilation fails.
    path = directory / "document.py"
    path.write_text("\n\n".join(blocks))
    exec(compile(path.read_text(), str(path), "exec"), {"__name__": "document"})


@pytest.mark.part("pages")
@pytest.mark.parametrize("document", PROGRAMS, ids=name)
def test_code_runs(document, directory):
    run_code(document, directory)


# Their programs are calls of algorithms of the package, which have tests of their own with such workers.
WITHOUT_TASKS = {"guide.md", "ready-made.md", "features.md", "closeness.md", "simd-x.md", "networkx.md", "several-hosts.md"}


@pytest.mark.part("pages")
@pytest.mark.parametrize("document", [path for path in PROGRAMS if path.name not in WITHOUT_TASKS], ids=name)
def test_code_runs_by_workers_of_several_threads(document, directory, monkeypatch):
    """As on a GPU, on which the threads of a worker share each item of a flat task."""
    monkeypatch.setenv("ATOS_THREADS_PER_WORKER", "4")
    run_code(document, directory)


@pytest.mark.part("pages")
def test_commands_run(tmp_path, monkeypatch, capsys):
    """Where nothing lies but what they make themselves."""
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "command-line.md").read_text()
    lines = "".join(COMMANDS.findall(text)).splitlines()
    assert {line.split()[1] for line in lines} == set(find_commands()) - {"reproduce"}  # which takes minutes
    for line in lines:
        words = shlex.split(line)
        assert words[0] == "atos"
        assert main(words[1:]) == 0, f"{line}\n{capsys.readouterr().err}"
    for block in BLOCK.findall(text):  # what they have saved
        exec(block, {})


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_links_lead_somewhere(document):
    for target, heading in LINK.findall(FENCED.sub("", document.read_text())):
        if target.startswith("http"):
            continue
        path = (document.parent / target) if target else document
        assert path.exists(), f"{document.name}: {target}"
        if heading:
            headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
            assert heading in {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}, f"{target}#{heading}"


def test_every_algorithm_has_a_section():
    lines = re.findall(r"^### .*$", (ROOT / "docs" / "guide.md").read_text(), re.MULTILINE)
    headings = [name for line in lines for name in re.findall(r"`atos\.(\w+)`", line)]
    assert set(headings) == set(find_algorithms())


def test_every_error_is_explained():
    text = (ROOT / "docs" / "errors.md").read_text()
    assert [name for name in errors.__all__ if f"## {name}\n" not in text] == []


def test_every_name_is_in_the_reference():
    pages = "\n".join(path.read_text() for path in (ROOT / "docs" / "api").glob("*.md"))
    described = set(re.findall(r"^\.\. (?:auto)?(?:class|data|function|module):: (?:atos_py\.)?(\w+)", pages, re.MULTILINE))
    assert ".. automodule:: atos_py.errors\n" in pages
    assert set(atos_py.__all__) - set(errors.__all__) - described == set()


def test_figure_is_that_of_the_table():
    drawn = runpy.run_path(str(ROOT / "docs" / "draw_results.py"))
    assert drawn["drawing"]() == drawn["FIGURE"].read_text(), "run python docs/draw_results.py"


def test_names_exist():
    """Whatever the documents call atos.something is there, but for the names of two files."""
    for document in DOCUMENTS:
        for name in re.findall(r"\batos\.([A-Za-z_]+)", document.read_text()):
            assert hasattr(atos_py, name) or name in ("h", "md"), f"{document.name}: atos.{name}"


# PTX, and functions of the CUDA driver that the core must not call: names in the design that the sources need not have.
NOT_OURS = {"bar.sync", "bar.warp.sync", "cuMemset", "ld.global.nc"}
C_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
PYTHON_COMMENT = re.compile(r'""".*?"""|#[^\n]*', re.DOTALL)


@functools.cache
def paths() -> frozenset[str]:
    """Return every file and folder that the documents may name."""
    folders = ("atos_py", "benchmarks", "csrc", "docs", "examples", "tests")
    return frozenset(f"/{path.relative_to(ROOT).as_posix()}" for folder in folders for path in (ROOT / folder).rglob("*"))


@functools.cache
def sources() -> tuple[str, ...]:
    """Return the sources without their comments, where a name proves nothing."""
    c = [path for folder in ("csrc", "tests/model") for path in (ROOT / folder).rglob("*.*") if path.suffix != ".py"]
    python = [path for folder in ("atos_py", "tests/model") for path in (ROOT / folder).rglob("*.py")]
    return tuple(
        comment.sub("", path.read_text())
        for files, comment in ((c, C_COMMENT), (python, PYTHON_COMMENT))
        for path in files
        if "__pycache__" not in path.parts
    )


def unknown_names(span: str) -> list[str]:
    """Return the names in a code span that neither a file nor a source has; `a::b`: one that defines `a` and has `b`."""
    if span in NOT_OURS or any(path.endswith(f"/{span}") for path in paths()):
        return []
    unknown = []
    for name, call in re.findall(r"([A-Za-z_]\w*(?:(?:\.|::|/)\w+)*)(\(?)", span):
        owner, _, member = name.rpartition("::")
        parts = [rf"\b{re.escape(member)}\b{r'[(<]' if call else ''}"]
        if owner:
            parts.append(rf"\b(?:struct|class|enum) (?:alignas\(\d+\) )?{owner}\b")
        if not any(all(re.search(part, text) for part in parts) for text in sources()):
            unknown.append(name)
    return unknown


def test_names_in_the_design_are_those_of_the_sources():
    pages = [ROOT / "docs" / "design.md", *(ROOT / "docs" / "protocol").glob("*.md")]
    text = re.sub(r"^```.*?^```", "", "\n".join([page.read_text() for page in pages]), flags=re.MULTILINE | re.DOTALL)
    spans = set(re.findall(r"`([^`]+)`", text))
    assert len(spans) > 400
    assert {span: unknown for span in spans if (unknown := unknown_names(span))} == {}


@pytest.mark.parametrize(
    "span",
    ["hand_on", "QueueRef::settle", "Slot::next_action", "headroom()", "csrc/crew.h", "protocol/crew.h", "fence.acq_rel.cta"],
)
def test_a_name_that_the_sources_lack_is_found(span):
    assert unknown_names(span)


def test_files_of_the_core_exist_where_they_are_named():
    named = {
        (name(path), match)
        for path in [*DOCUMENTS, *(ROOT / "atos_py").rglob("*.py")]
        for match in re.findall(r"(?<![\w/])csrc(?:/[a-z_]+)*(?:\.\w+)?", path.read_text())
    }
    assert len(named) > 10
    assert {(path, match) for path, match in named if not (ROOT / match).exists()} == set()


# These take a broken installation or a GPU that fails.
WITHOUT_EXAMPLE = {"BuildError", "DeviceError", "DeviceFaultError", "DeviceStuckError", "MissingPackageError"}


def public_docstrings() -> Iterator[tuple[str, object]]:
    """Yield each public function and class, and the methods of the classes; `Worker` and `Group` have one example."""
    public = {name: getattr(atos_py, name) for name in atos_py.__all__}
    public |= {f"generate.{name}": getattr(generate, name) for name in generate.__all__}
    public |= {f"acc.{name}": getattr(acc, name) for name in acc.__all__}
    public |= {f"acc.programs.{name}": getattr(acc.programs, name) for name in acc.programs.__all__}
    for module in (distributed, features, linalg):
        public |= {f"{module.__name__.partition('.')[2]}.{name}": getattr(module, name) for name in module.__all__}
    for name, thing in public.items():
        if inspect.isclass(thing) or inspect.isfunction(thing):
            yield name, thing
        if inspect.isclass(thing) and thing not in (atos_py.Worker, atos_py.Group):
            own = [base for base in thing.__mro__ if base.__module__.startswith("atos_py")]
            for member, value in [pair for base in own for pair in vars(base).items()]:
                if not member.startswith("_") and (isinstance(value, classmethod) or inspect.isfunction(value)):
                    yield f"{name}.{member}", getattr(thing, member)


@pytest.mark.part("pages")
@pytest.mark.parametrize(
    ("name", "thing"), list(public_docstrings()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_examples_of_docstrings_run(name, thing, directory, monkeypatch, capsys):
    monkeypatch.setenv("ATOS_DEVICE", "cpu")
    names = {"np": np, "atos": atos_py, "Path": Path}
    (test,) = doctest.DocTestFinder(recurse=False, exclude_empty=False).find(thing, name, globs=names)
    assert bool(test.examples) != (name in WITHOUT_EXAMPLE)
    failed, _ = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).run(test)
    assert not failed, capsys.readouterr().out
