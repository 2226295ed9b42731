"""The root of the checkout, for tests that read or run what is in it; they lie in folders of different depth."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
CSRC = ROOT / "csrc"
