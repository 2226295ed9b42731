"""The wheel and the sdist: what is in them, what they say of themselves, and that the wheel works without a compiler."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest
from repository import ROOT

import atos_py
from atos_py.compile.codegen import ITEM_BYTES
from atos_py.tools import cuda_toolkit as toolkit

DIRECTORIES = ("atos_py", "benchmarks", "csrc", "docs", "examples", "tests", "third_party")
MADE = shutil.ignore_patterns("__pycache__", "gallery", "sg_execution_times.rst")
BUILD = "import sys, build_backend as b; out = sys.argv[1]; print(b.build_sdist(out), b.build_wheel(out), sep='\\n')"


def files(root: Path, *directories: str) -> set[str]:
    """Return what is in the directories, but for what is made there."""
    paths = (path for directory in directories for path in (root / directory).rglob("*") if path.is_file())
    return {str(path.relative_to(root)) for path in paths if not {"__pycache__", "_lib"} & set(path.parts)}


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout with its core, so that a build leaves nothing behind in it and has nothing to compile."""
    copy = tmp_path_factory.mktemp("tree")
    for directory in DIRECTORIES:
        shutil.copytree(ROOT / directory, copy / directory, ignore=MADE)
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, copy)
    (copy / "tests" / "__pycache__").mkdir()
    (copy / "tests" / "__pycache__" / "left_over.pyc").touch()
    return copy


@pytest.fixture(scope="session")
def built(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The sdist and the wheel."""
    out = tmp_path_factory.mktemp("dist")
    done = subprocess.run([sys.executable, "-c", BUILD, out], cwd=tree, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    sdist, wheel = done.stdout.splitlines()[-2:]
    return out / sdist, out / wheel


@pytest.fixture(scope="session")
def sdist(built: tuple[Path, Path]) -> Path:
    return built[0]


@pytest.fixture(scope="session")
def wheel(built: tuple[Path, Path]) -> Path:
    return built[1]


def about(wheel: Path, file: str) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(f".dist-info/{file}"))
        return Parser().parsestr(archive.read(name).decode())


def test_wheel_holds_the_package_and_its_core(wheel, tree):
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    core = {f"atos_py/_lib/{path.name}" for path in (ROOT / "atos_py" / "_lib").iterdir()}
    assert names == files(tree, "atos_py") | core | {"_atos_networkx.py"}
    assert {f"atos_py/_lib/{name}" for name in ("atos.h", "built.json", "libatos.so")} <= core


def test_wheel_holds_the_worker_loops(wheel):
    """As LTO-IR, and as machine code for the first kernels of tasks."""
    if not list((ROOT / "atos_py" / "_lib").glob("*.fatbin")):
        pytest.skip("the core was built without nvcc")
    with zipfile.ZipFile(wheel) as archive:
        for worker in ("thread", "warp", "cta"):
            for size in ITEM_BYTES:
                for kind in ("core", "ready"):
                    content = archive.read(f"atos_py/_lib/{kind}_{worker}_{size}.fatbin")
                    assert content[:4] == b"\x50\xed\x55\xba"  # the magic number of a fatbin
                    assert len(content) > 10_000


def test_wheel_is_for_any_python_on_this_machine(wheel):
    tag = f"py3-none-linux_{platform.machine()}"
    assert wheel.name == f"atos_py-{atos_py.__version__}-{tag}.whl"
    assert (about(wheel, "WHEEL")["Tag"], about(wheel, "WHEEL")["Root-Is-Purelib"]) == (tag, "false")


def test_wheel_installs_the_console_command(wheel):
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/entry_points.txt"))
        assert "[console_scripts]\natos = atos_py.__main__:main\n" in archive.read(name).decode()


def test_metadata(wheel):
    metadata = about(wheel, "METADATA")
    assert metadata["Version"] == atos_py.__version__
    assert metadata["License-Expression"] == "Apache-2.0"
    assert set(metadata.get_all("License-File")) == {"LICENSE", "third_party/dlpack/LICENSE"}
    assert {"cu13", "plot", "dev"} <= set(metadata.get_all("Provides-Extra"))
    required = {re.split("[<>]", line)[0] for line in metadata.get_all("Requires-Dist") if "extra ==" not in line}
    assert required == {"cffi", "numba", "numpy"}
    assert metadata.get_payload().strip() == (ROOT / "README.md").read_text().strip()


def test_sdist_holds_what_a_clone_holds(sdist, tree):
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert files(tree, *DIRECTORIES) - names == set()
    assert {"setup.py", "build_backend.py", "Makefile", "LICENSE", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md"} <= names
    assert {".clang-format", "CMakeLists.txt", "CMakePresets.json"} <= names
    assert [name for name in names if "/_lib" in name or "__pycache__" in name] == []


def test_twine_finds_nothing_wrong(built):
    pytest.importorskip("twine")
    done = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *built], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_installed_wheel_runs_without_a_compiler(wheel, tmp_path):
    """The dependencies are this environment's; `make wheel-test` makes one of its own."""
    target = tmp_path / "installed"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", target, wheel]
    subprocess.run(pip, check=True, timeout=120)
    environment = {"PATH": "", "PYTHONPATH": str(target), "ATOS_CACHE_DIR": str(tmp_path / "cache")}
    script = shutil.copy(ROOT / "tests" / "installed.py", tmp_path)
    done = subprocess.run([sys.executable, script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert str(target) in done.stdout


@pytest.mark.parametrize(
    ("found", "environment", "expected"),
    [
        (None, {}, [toolkit.NVCC_WHEELS]),
        (None, {"NVCC_WHEELS": ""}, []),
        (None, {"ATOS_CPU_ONLY": "1"}, []),
        (None, {"ATOS_CPU_ONLY": "0"}, [toolkit.NVCC_WHEELS]),
        (None, {"NVCC_WHEELS": "another"}, ["another"]),
        (Path("/usr/local/cuda"), {}, []),
    ],
)
def test_build_fetches_nvcc_where_there_is_none(found, environment, expected, monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    backend = pytest.importorskip("build_backend", reason="no setuptools")
    monkeypatch.setattr(backend.runpy, "run_path", lambda path: {**vars(toolkit), "find_cuda": lambda: found})
    monkeypatch.delenv("NVCC_WHEELS", raising=False)
    monkeypatch.delenv("ATOS_CPU_ONLY", raising=False)
    for name, value in environment.items():
        monkeypatch.setitem(os.environ, name, value)
    assert backend.get_requires_for_build_wheel() == expected
    assert backend.get_requires_for_build_editable() == expected


@pytest.mark.parametrize(("asked", "expected"), [("1", {"atos.h", "built.json", "libatos.so"}), ("", None)])
def test_a_build_for_the_cpu_alone_leaves_nvcc_alone(asked, expected, tmp_path):
    """With compilers that make empty files."""
    tree = tmp_path / "tree"
    for part in ("csrc", "atos_py/__init__.py", "atos_py/tools/cuda_toolkit.py", "setup.py", "pyproject.toml"):
        source, target = ROOT / part, tree / part
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
    nvcc = tmp_path / "cuda" / "bin" / "nvcc"
    header = tmp_path / "cuda" / "include" / "cuda.h"
    for path in (nvcc, header):
        path.parent.mkdir(parents=True)
    header.write_text("#define CUDA_VERSION 13000\n")
    nvcc.write_text('#!/bin/sh\nfor last; do :; done\ntest "$last" = --version || touch "$last"\n')
    nvcc.chmod(0o700)
    environment = os.environ | {"CXX": str(nvcc), "CUDA_HOME": str(tmp_path / "cuda"), "ATOS_CPU_ONLY": asked}
    command = [sys.executable, "setup.py", "-q", "build_core"]
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    built = {path.name for path in (tree / "atos_py" / "_lib").iterdir()}
    assert built == expected if expected else len(built) == 3 + 12 + 12
    assert ("built for the CPU alone, as ATOS_CPU_ONLY asks" in done.stderr) == (asked == "1")


def test_a_word_that_asks_for_neither_build_is_refused(monkeypatch):
    monkeypatch.setenv("ATOS_CPU_ONLY", "yes")
    with pytest.raises(ValueError, match=r"ATOS_CPU_ONLY is 1, for a build for the CPU alone, or 0 \(got 'yes'\)"):
        toolkit.cpu_only()
