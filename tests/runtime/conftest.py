"""What the tests of queues and launches share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a checkpoint is saved."""
    return tmp_path / "run.atos"
