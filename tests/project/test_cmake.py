"""CMake's build of the core: it has every C++ test and every source, and the flags of setup.py."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from cpp_tests import FILES, TESTS
from repository import CSRC, ROOT


@pytest.fixture(scope="module")
def configured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not (shutil.which("cmake") and shutil.which("c++")):
        pytest.skip("there is no cmake, or no compiler")
    version = subprocess.run(["cmake", "--version"], capture_output=True, text=True, check=True).stdout
    if tuple(int(part) for part in re.findall(r"\d+", version)[:2]) < (3, 25):
        pytest.skip("the presets need CMake 3.25")
    directory = tmp_path_factory.mktemp("cmake")
    done = subprocess.run(
        ["cmake", "--preset", "default", "-B", directory], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return directory


def test_ctest_knows_each_test_by_name(configured):
    command = ["ctest", "--test-dir", configured, "--show-only=json-v1"]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["tests"]
    assert sorted(test["name"] for test in found) == sorted(f"{file}.{name}" for file, name in TESTS)


def test_editors_know_how_each_source_is_compiled(configured):
    commands = json.loads((configured / "compile_commands.json").read_text())
    sources = {Path(command["file"]) for command in commands}
    assert sources >= {*CSRC.rglob("*.cpp"), *FILES}


def test_flags_are_those_of_setup():
    setup, cmake = (ROOT / "setup.py").read_text(), (ROOT / "CMakeLists.txt").read_text()
    host, device = (re.search(rf"^{name}_FLAGS = .*$", setup, re.MULTILINE)[0] for name in ("HOST", "DEVICE"))
    flags = set(re.findall(r'"(-[^"{]+)"', host + device)) - {"-fPIC", "-shared", "-pthread"}  # settings and libraries there
    assert len(flags) > 5
    assert flags - set(re.split(r"[\s()]+", cmake)) == set()
    architectures = re.search(r"^ARCHITECTURES = \((.*)\)$", setup, re.MULTILINE)[1]
    assert re.findall(r"arch=compute_(\d+),code=lto_\1", cmake) == re.findall(r"\d+", architectures)
