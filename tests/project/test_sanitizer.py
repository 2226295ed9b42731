"""The GPU core under compute-sanitizer: no access outside of what is allocated, no race in shared memory."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from repository import ROOT

pytestmark = pytest.mark.gpu


def find_sanitizer() -> str | None:
    """Return where compute-sanitizer is: on the PATH, with the toolkit, or from PyPI's nvidia-cuda-sanitizer-api."""
    roots = [Path(os.environ[name]) / "bin" for name in ("CUDA_HOME", "CUDA_PATH") if name in os.environ]
    wheels = importlib.util.find_spec("nvidia")
    roots += [Path(root) / "cu13" / "bin" for root in (wheels and wheels.submodule_search_locations) or ()]
    places = [os.environ["PATH"], *map(str, roots), "/usr/local/cuda/bin"]
    return shutil.which("compute-sanitizer", path=os.pathsep.join(places))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("tool", ["memcheck", "racecheck"])
def test_core(tool: str) -> None:
    sanitizer = find_sanitizer()
    if sanitizer is None:
        pytest.skip("there is no compute-sanitizer")
    script = ROOT / "tests" / "sanitized.py"
    done = subprocess.run(
        [sanitizer, "--tool", tool, sys.executable, str(script)], capture_output=True, text=True, timeout=280, check=False
    )
    # Warnings of racecheck are about lanes of one warp, which shuffles keep in step without its knowing.
    summary = re.search(r"^=+ (?:ERROR SUMMARY: 0 errors|RACECHECK SUMMARY: .*\b0 errors?\b.*)$", done.stdout, re.MULTILINE)
    assert done.returncode == 0, done.stdout[:4000] + done.stderr[-2000:]
    assert summary, done.stdout[:4000] + done.stdout[-400:]
