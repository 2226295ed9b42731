"""The version is the same wherever it is stated, and the forms of the issue tracker are whole."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from repository import ROOT

import atos_py


def load(path: Path) -> Any:
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_changelog_begins_with_this_version_or_what_leads_to_the_next():
    versions = re.findall(r"^## \[([^\]]+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert versions[0] in ("Unreleased", atos_py.__version__)
    assert versions[1:] == [] or atos_py.__version__ in versions


def test_citation():
    citation = load(ROOT / "CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert (citation["version"], citation["license"]) == (atos_py.__version__, "Apache-2.0")
    dois = {paper.get("doi") for paper in [citation["preferred-citation"], *citation["references"]]}
    assert {"10.1145/3545008.3545056", "10.48550/arXiv.2112.00132"} <= dois


@pytest.mark.parametrize("path", sorted(ROOT.glob(".github/ISSUE_TEMPLATE/*.yml")), ids=lambda path: path.name)
def test_issue_forms(path):
    form = load(path)
    if path.name == "config.yml":
        assert form == {"blank_issues_enabled": False}
        return
    assert {"name", "description", "body"} <= form.keys()
    names = [part["id"] for part in form["body"] if part["type"] != "markdown"]
    assert len(names) == len(set(names))
    assert {part["type"] for part in form["body"]} <= {"markdown", "textarea", "input", "dropdown", "checkboxes"}
    assert all(part["attributes"] for part in form["body"])


def test_hooks_are_those_of_the_environment():
    """None fetches anything: they run the versions of ruff and mypy that `make test` runs."""
    hooks = load(ROOT / ".pre-commit-config.yaml")["repos"]
    assert [repository["repo"] for repository in hooks] == ["local"]
    assert {hook["language"] for hook in hooks[0]["hooks"]} == {"system"}
