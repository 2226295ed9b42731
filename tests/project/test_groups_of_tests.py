"""Tests of one group run in one process, since they share what takes minutes to compile."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

TESTS = """
import os
import pathlib
import pytest

pytestmark = pytest.mark.xdist_group("one")

@pytest.mark.parametrize("number", range(20))
def test_process(number):
    pathlib.Path(__file__).with_name(f"{os.getpid()}.process").touch()
"""


def test_a_group_has_one_process(tmp_path):
    pytest.importorskip("xdist", reason="pytest-xdist is not installed")
    (tmp_path / "test_of_group.py").write_text(TESTS)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    command = [*(sys.executable, "-m", "pytest", "-p", "xdist", "-n", "2", "--dist", "loadgroup"), "test_of_group.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list(tmp_path.glob("*.process"))) == 1
