"""Fixtures of the tests of queues and launches."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Path that a checkpoint is saved at."""
    return tmp_path / "run.atos"
