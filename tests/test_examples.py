"""The examples run, on every device, and say what they found."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import atos_py as atos

ROOT = Path(__file__).parents[1]
BFS = ROOT / "examples" / "bfs.py"
DEVICES = [
    pytest.param("cpu"),
    pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(len(atos.devices()) < 2, reason="there is no GPU")]),
]


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, cwd=ROOT, timeout=300)


@pytest.mark.parametrize("device", DEVICES)
def test_bfs_on_a_generated_graph(device):
    done = run(BFS, "--device", device)
    assert done.returncode == 0, done.stderr
    assert "of 90,000 vertices reached" in done.stdout
    assert "verified" in done.stdout


@pytest.mark.parametrize("device", DEVICES)
def test_bfs_on_a_file(device, tmp_path):
    path = tmp_path / "path.gr"
    path.write_text("p sp 4 3\na 1 2 5\na 2 3 5\na 3 4 5\n")
    done = run(BFS, path, "--source", 1, "--device", device)
    assert done.returncode == 0, done.stderr
    assert "3 of 4 vertices reached, the farthest over 2 edges" in done.stdout


def test_bfs_is_short():
    assert len(BFS.read_text().splitlines()) < 60
