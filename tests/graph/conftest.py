"""Fixtures of the tests of graph files."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from graph_files import Write

from atos_py.graph.formats import text as text_files


@pytest.fixture(params=["plain", "gzip"])
def write(request: pytest.FixtureRequest, tmp_path: Path) -> Write:
    """Write a file, gzipped in half of the tests."""

    def write(name: str, content: str | bytes) -> Path:
        raw = content.encode() if isinstance(content, str) else content
        path = tmp_path / (name + ".gz" if request.param == "gzip" else name)
        path.write_bytes(gzip.compress(raw) if request.param == "gzip" else raw)
        return path

    return write


@pytest.fixture
def tiny_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every file span many blocks."""
    monkeypatch.setattr(text_files, "_BLOCK_BYTES", 64)
