"""Parts of the tests that a run leaves out: a change of any of their inputs brings them back, and nothing else stamps them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import stamps
from repository import ROOT
from stamps import HARNESS

# Of the parts of single files one with few inputs.
PARTS = {name: stamps.parts()[name] for name in (*stamps.PARTS, "tests/support/test_files.py")}
FIRST = {next(stamps.files_of((pattern,))) for part in PARTS.values() for pattern in (*part.files, *HARNESS)}
INPUTS = [(name, pattern) for name, part in PARTS.items() for pattern in dict.fromkeys((*part.files, *HARNESS))]


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A checkout with one file of each pattern, in which every part has its stamp."""
    for first in FIRST:
        copy = tmp_path / first.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(first, copy)
    monkeypatch.setattr(stamps, "ROOT", tmp_path)
    monkeypatch.setattr(stamps, "FILE", tmp_path / "tests" / "stamps.txt")
    monkeypatch.setattr(stamps, "version_of", dict.fromkeys(sum((part.versions for part in PARTS.values()), ()), "1.2").get)
    monkeypatch.setattr(stamps, "parts", lambda: PARTS)
    stamps.forget()
    for name in PARTS:
        stamps.write(name, 7)
    yield tmp_path
    stamps.forget()


def why_each() -> dict[str, str | None]:
    stamps.forget()
    return {name: stamps.why_run(name) for name in PARTS}


def test_what_has_passed_as_it_is_now_is_left_out(tree):
    assert set(why_each().values()) == {None}


@pytest.mark.parametrize(("name", "pattern"), INPUTS)
def test_a_change_of_any_input_brings_its_part_back(tree, name, pattern):
    path = next(stamps.files_of((pattern,)))
    depends = {other for other, part in PARTS.items() if path in set(stamps.files_of((*part.files, *HARNESS)))}
    with path.open("a") as file:
        file.write("\n")
    reasons = why_each()
    assert reasons[name] == "files that it depends on have changed"
    assert {each for each, reason in reasons.items() if reason} == depends


@pytest.mark.parametrize("change", [Path.unlink, lambda path: path.rename(path.with_name("another" + path.suffix))])
def test_a_file_that_is_gone_or_has_another_name_brings_its_part_back(tree, change):
    change(next(stamps.files_of(("tests/model/**/*",))))
    assert why_each()["model"] == "files that it depends on have changed"


def test_a_new_file_brings_its_part_back(tree):
    (tree / "csrc" / "new.h").touch()
    assert why_each()["model"] == "files that it depends on have changed"


@pytest.mark.parametrize(("name", "tool"), [(name, tool) for name, part in PARTS.items() for tool in part.versions])
def test_another_version_brings_back_what_it_touches(tree, monkeypatch, name, tool):
    monkeypatch.setattr(stamps, "version_of", lambda each: "1.3" if each == tool else "1.2")
    reasons = why_each()
    assert reasons[name] == f"{tool} is 1.3, and was 1.2 when its tests passed"
    assert {each for each, reason in reasons.items() if reason} == {
        each for each, part in PARTS.items() if tool in part.versions
    }


def test_a_part_without_a_stamp_runs(tree):
    stamps.FILE.unlink()
    assert set(why_each().values()) == {"it has no stamp"}


def test_what_is_made_beside_the_sources_does_not_count(tree):
    for directory in ("tests/model/__pycache__", "atos_py/_lib"):
        (tree / directory).mkdir(parents=True, exist_ok=True)
        (tree / directory / "made.py").touch()
    assert set(why_each().values()) == {None}


def test_versions_have_two_numbers():
    known = [stamps.version_of(each) for part in PARTS.values() for each in part.versions]
    assert all(re.fullmatch(r"\d+\.\d+|none", version) for version in known)
    assert stamps.version_of("numba") != "none"
    assert stamps.version_of("no-such-package") == "none"


def test_the_tests_of_a_part_are_among_its_files():
    """With the modules of tests/ that they import."""
    assert {"tests/compile/test_kernels.py", "tests/fake_arrays.py"} <= set(PARTS["kernels"].files)
    assert {"tests/core/test_core_cpp.py", "tests/cpp_tests.py"} <= set(PARTS["cpp"].files)
    assert {"tests/core/test_races.py", "tests/project/test_model.py"} <= set(PARTS["mutants"].files)
    assert {"tests/compile/test_program_kernels.py", "tests/fake_arrays.py", "examples/barnes_hut.py"} <= set(
        stamps.parts()["tests/compile/test_program_kernels.py::programs"].files
    )


def test_each_file_of_tests_of_a_package_is_a_part_and_tests_of_the_project_always_run():
    files = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py")}
    packages = {path.name for path in (ROOT / "atos_py").iterdir()}
    parts = {name for name in stamps.parts() if name.endswith(".py")}
    assert parts == {file for file in files if file.split("/")[1] in packages}
    assert {file.split("/")[1] for file in files - parts} == {"project"}


def test_no_two_files_of_tests_have_one_name():
    """pytest imports such files as one module, and so refuses the second."""
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert len(set(names)) == len(names), [name for name in names if names.count(name) > 1]


def test_kernels_depend_on_what_they_are_linked_from_alone():
    files = stamps.parts()["tests/algorithms/test_coloring.py::programs"].files
    assert {"atos_py/algorithms/coloring/tasks.py", "atos_py/compile/linker.py", "csrc/**/*.cu"} <= set(files)
    assert {file.split("/")[1] for file in files if file.startswith("atos_py/")} <= set(stamps.LINKED)


def test_versions_count_where_they_are_used():
    parts = stamps.parts()
    assert {"numba", "numpy", "c++"} <= set(parts["tests/runtime/test_queue.py"].versions)
    assert "numba-cuda" not in parts["tests/runtime/test_queue.py"].versions
    assert "numba-cuda" in parts["tests/compile/test_codegen_cuda.py"].versions
    assert "torch" in parts["tests/arrays/test_libraries.py"].versions


CONFTEST = """
from stamps import LeaveOut

def pytest_configure(config):
    config.pluginmanager.register(LeaveOut(config))
"""
TESTS = """
import pytest

@pytest.mark.part('model')
@pytest.mark.parametrize("number", range(5))
def test_model(number):
    {}

@pytest.mark.part('kernels')
@pytest.mark.parametrize("a", range(3))
@pytest.mark.parametrize("b", range(3))
@pytest.mark.parametrize("c", range(3))
def test_kernels(a, b, c):
    pass

def test_other():
    pass
"""


# Three packages and their tests. What it tests stands for what it runs in a process of its own.
PACKAGE = {
    "atos_py/__init__.py": "",
    "atos_py/graph/csr.py": "class Graph: pass\n",
    "atos_py/algorithms/bfs.py": "from ..graph.csr import Graph\n",
    "atos_py/algorithms/coloring.py": "def color(): pass\n",
    "tests/graph/test_graph.py": "def test_graph():\n    assert 'atos.Graph'\n",
    "tests/algorithms/test_bfs.py": """
import pytest

def test_bfs():
    assert 'from atos_py.algorithms import bfs'

@pytest.mark.part("programs")
def test_kernels():
    pass

@pytest.mark.gpu
def test_on_a_gpu():
    pass
""",
    "tests/algorithms/test_coloring.py": "def test_coloring():\n    assert 'atos.color'\n",
}


@pytest.fixture
def project(tmp_path):
    """A project of its own with the stamps of this one, and a test of each kind."""
    (tmp_path / "tests").mkdir()
    for name in ("stamps.py", "dependencies.py", "pairwise.py", "repository.py"):
        shutil.copy(ROOT / "tests" / name, tmp_path / "tests")
    toolkit = "atos_py/tools/cuda_toolkit.py"
    for name, content in {**PACKAGE, toolkit: (ROOT / toolkit).read_text()}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    (tmp_path / "tests" / "conftest.py").write_text(CONFTEST)
    (tmp_path / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\ntestpaths = ["tests"]\naddopts = "--strict-markers"\n'
        'markers = ["part(name): a part", "gpu: a GPU"]\n'
    )
    (tmp_path / "csrc").mkdir()
    (tmp_path / "csrc" / "source.h").write_text("// first\n")
    (tmp_path / "tests" / "test_all.py").write_text(TESTS.format("pass"))
    return tmp_path


def run(project: Path, *arguments: str, stamp: str = "", **settings: str) -> tuple[str, str]:
    """Run the project's tests: what it said at the end, and of the parts."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "ATOS_"))}
    environment |= {"ATOS_STAMP": stamp, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **settings}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    return lines[-1].strip("= "), "\n".join(line for line in lines if line.startswith(("part ", "parts ")))


@pytest.mark.parametrize("workers", [(), ("-p", "xdist", "-n", "2", "--dist", "loadgroup")], ids=["one", "several"])
def test_a_whole_run_stamps_what_passed_and_the_next_leaves_it_out(project, workers):
    if workers:
        pytest.importorskip("xdist", reason="pytest-xdist is not installed")
    said, parts = run(project, *workers)
    assert said.startswith("38 passed")
    assert "part model: not left out: it has no stamp" in parts
    assert "parts of 4 files: not left out: it has no stamp" in parts
    said, parts = run(project, *workers, stamp="all")
    assert said.startswith("38 passed")
    assert sorted(parts.splitlines()) == ["part kernels: stamped", "part model: stamped", "parts of 4 files: stamped"]
    said, parts = run(project, *workers)
    assert said.startswith("5 passed")  # of 27 kernels 3 with each value, the test of no part, and the one that needs a GPU
    assert re.search(
        r"^part model: left out: 5 tests passed on \d{4}-\d\d-\d\d with the same files, c\+\+ ", parts, re.MULTILINE
    )
    assert re.search(r"^part kernels: left out, but for cases with each value .*: 27 tests passed", parts, re.MULTILINE)
    assert re.search(r"^parts of 4 files: left out: 4 tests passed, ", parts, re.MULTILINE)
    (project / "csrc" / "source.h").write_text("// second\n")
    said, parts = run(project, *workers)
    assert said.startswith("38 passed")
    assert "part model: not left out: files that it depends on have changed" in parts


CHANGED = "not left out: files that it depends on have changed"


@pytest.mark.parametrize(
    ("file", "back"),
    [
        ("atos_py/graph/csr.py", ["algorithms/test_bfs.py", "algorithms/test_bfs.py::programs", "graph/test_graph.py"]),
        ("atos_py/algorithms/bfs.py", ["algorithms/test_bfs.py", "algorithms/test_bfs.py::programs"]),
        ("atos_py/algorithms/coloring.py", ["algorithms/test_coloring.py"]),
        ("tests/graph/test_graph.py", ["graph/test_graph.py"]),
        ("tests/graph/helper.py", ["graph/test_graph.py"]),
    ],
)
def test_a_change_brings_back_the_files_that_depend_on_it_and_no_others(project, file, back):
    run(project, stamp="all")
    with (project / file).open("a") as opened:
        opened.write("\n")
    parts = run(project)[1]
    assert f"parts of {len(back)} files: {CHANGED} ({', '.join(f'tests/{name}' for name in back)})" in parts
    assert f"parts of {4 - len(back)} files: left out" in parts
    said, parts = run(project, stamp="outdated")
    assert said.startswith(f"{len(back)} passed")
    assert "parts of 4 files: left out" in run(project)[1]
    assert " deselected" in run(project, stamp="outdated")[0]


def test_named_parts_alone_run_and_are_stamped(project):
    said, parts = run(project, stamp="model")
    assert said.startswith("5 passed")
    assert parts == "part model: stamped"
    assert "part kernels: not left out: it has no stamp" in run(project)[1]
    said, parts = run(project, stamp="programs tests/graph/test_graph.py")
    assert said.startswith("2 passed")
    assert parts == "parts of 2 files: stamped"


def test_tests_that_are_named_are_not_left_out(project):
    run(project, stamp="all")
    said, parts = run(project, "tests/test_all.py")
    assert said.startswith("33 passed")
    assert parts == ""
    assert run(project, "tests/graph")[0].startswith("1 passed")


@pytest.mark.parametrize("arguments", [("tests/test_all.py",), ("-k", "model"), ("-m", "part"), ("--deselect", "tests/x.py")])
def test_a_run_of_some_tests_stamps_nothing(project, arguments):
    assert "model: not stamped" in run(project, *arguments, stamp="all")[1]
    assert not (project / "tests" / "stamps.txt").exists()


@pytest.mark.parametrize("setting", ["ATOS_TEST_PASSED", "ATOS_TEST_SECONDS"])
def test_a_run_that_goes_on_where_one_was_stopped_stamps_nothing(project, setting):
    assert "model: not stamped" in run(project, stamp="model", **{setting: "600"})[1]


@pytest.mark.parametrize("line", ["assert number < 4", "pytest.skip('no compiler')"])
def test_what_did_not_pass_is_not_stamped(project, line):
    (project / "tests" / "test_all.py").write_text(TESTS.format(line))
    _, parts = run(project, stamp="model")
    assert "part model: not stamped" in parts or "part model" not in parts
    assert not (project / "tests" / "stamps.txt").exists()


def test_parts_that_passed_are_stamped_where_another_failed(project):
    (project / "tests" / "test_all.py").write_text(TESTS.format("assert number < 4"))
    said, parts = run(project, stamp="all")
    assert said.startswith("1 failed")
    assert "part model: not stamped" in parts
    assert "part kernels: stamped" in parts


def test_a_run_that_ends_at_a_failure_stamps_nothing(project):
    (project / "tests" / "test_all.py").write_text(TESTS.format("assert number < 4"))
    assert run(project, "-x", stamp="all")[0].startswith("1 failed")
    assert not (project / "tests" / "stamps.txt").exists()


def test_a_word_that_is_no_part_is_refused(project):
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "ATOS_"))}
    environment = {**inherited, "ATOS_STAMP": "modell"}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "ATOS_STAMP names parts of the tests: all, outdated, programs, model, mutants" in done.stdout + done.stderr


def test_what_is_no_test_of_pytest_is_stamped_by_a_command(project):
    def say(*arguments: str) -> tuple[int, str]:
        command = [sys.executable, "tests/stamps.py", *arguments]
        done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
        assert done.stderr == ""
        return done.returncode, done.stdout

    assert say("wheel") == (1, "part wheel: not left out: it has no stamp\n")
    assert say("wheel", "2") == (0, "")
    assert say("wheel")[0] == 0
    (project / "csrc" / "source.h").touch()
    assert say("wheel")[0] == 0
    (project / "csrc" / "source.h").write_text("// second\n")
    assert say("wheel") == (1, "part wheel: not left out: files that it depends on have changed\n")
