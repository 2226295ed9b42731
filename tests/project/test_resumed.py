"""Runs that go on where they were stopped: nothing runs twice, nothing is forgotten, and other sources begin anew."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from repository import ROOT

CONFTEST = """
from resumed import GoOn

def pytest_configure(config):
    config.pluginmanager.register(GoOn())

def pytest_collection_modifyitems(items):
    assert len(items) == 4, "a choice of cases has to see all"
"""
TESTS = """
import os
import time
import pathlib
import pytest

@pytest.mark.parametrize("name", ["a", "b@c", "d e", "f"])
def test_each(name):
    with open("ran.txt", "a") as file:
        file.write(name)
    assert name not in os.environ.get("FAILS", "")
"""


HARNESS = ("resumed", "stamps", "dependencies", "pairwise", "repository")


@pytest.fixture
def project(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "atos_py" / "tools").mkdir(parents=True)
    for name in (*(f"tests/{name}.py" for name in HARNESS), "atos_py/tools/cuda_toolkit.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "tests" / "conftest.py").write_text(CONFTEST)
    (tmp_path / "tests" / "test_all.py").write_text(TESTS)
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\ntestpaths = ['tests']\n")
    return tmp_path


def run(project: Path, *arguments: str, **settings: str) -> tuple[int, str, str]:
    """Run the project's tests: the exit status, what it said, and the names of the tests that ran, in order of the alphabet."""
    ran = project / "ran.txt"
    ran.unlink(missing_ok=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "ATOS_"))}
    environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "ATOS_TEST_PASSED": "build/passed.txt", **settings}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, "".join(sorted(ran.read_text())) if ran.exists() else ""


@pytest.fixture(params=[(), ("-p", "xdist", "-n", "2")], ids=["one", "several"])
def workers(request):
    if request.param:
        pytest.importorskip("xdist", reason="pytest-xdist is not installed")
    return request.param


def test_what_has_passed_does_not_run_again_and_what_failed_does(project, workers):
    assert run(project, *workers, FAILS="d e")[::2] == (1, " @abcdef")
    log = (project / "build" / "passed.txt.log").read_text()
    assert log.count("begins tests/test_all.py::test_each[") == 4
    assert log.count("fails ") == 1
    assert "fails tests/test_all.py::test_each[d e]\n" in log
    assert "assert 'd e' not in" in log
    status, said, ran = run(project, *workers)
    assert (status, ran) == (0, " de")
    assert "3 tests left out, which have passed with these sources: build/passed.txt" in said
    assert run(project, *workers)[::2] == (0, "")


def test_other_sources_begin_anew(project):
    run(project)
    (project / "tests" / "another.py").touch()
    assert run(project)[::2] == (0, " @abcdef")


def test_no_test_begins_after_the_time(project, workers):
    status, said, ran = run(project, *workers, ATOS_TEST_SECONDS="0")
    assert (status, ran) == (75, "")
    assert "4 tests left, for which there was no time: run this again" in said
    assert run(project, *workers, ATOS_TEST_SECONDS="600")[::2] == (0, " @abcdef")
