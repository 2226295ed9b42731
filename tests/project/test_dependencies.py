"""What tests depend on is found in their sources, names of `atos`, strings, and imports of imports included."""

from __future__ import annotations

import inspect
import sys
import threading
from pathlib import Path

import dependencies
import pytest
from repository import ROOT

import atos_py as atos

TESTS = ROOT / "tests"


def depends(path: str) -> set[str]:
    return {each.relative_to(ROOT).as_posix() for each in dependencies.files_of_test(TESTS / path)}


def of_text(tmp_path: Path, text: str) -> set[str]:
    """Return the modules that a test of this text depends on."""
    path = tmp_path / f"test_{len(list(tmp_path.iterdir()))}.py"
    path.write_text(text)
    return dependencies.modules_of([path])


@pytest.mark.parametrize("name", sorted(atos.__all__))
def test_a_public_name_stands_for_the_modules_that_define_it(name):
    value = getattr(atos, name)
    module = value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", "")
    found = dependencies.definitions()[name]
    assert found
    assert not module.startswith("atos_py.") or module in found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import atos_py as atos\natos.color(graph)", "atos_py.algorithms.coloring.api"),
        ("CODE = '''\nimport atos_py as atos\nprint(atos.color(graph))\n'''", "atos_py.algorithms.coloring.api"),
        ("import atos_py\natos_py.color(graph)", "atos_py.algorithms.coloring.tasks"),
        ("from atos_py import acc", "atos_py.models.acc.programs"),
        ("from atos_py import (\n    color,\n    bfs,\n)", "atos_py.algorithms.coloring.api"),
        ("from atos_py.compile import linker as link", "atos_py.compile.linker"),
        ("    from atos_py.compile import linker as link", "atos_py.compile.linker"),
        ("from atos_py.algorithms.coloring import assign", "atos_py.algorithms.coloring.tasks"),
        ("[sys.executable, '-m', 'atos_py', 'color']", "atos_py.cli.bench"),
        ("from atos_py.cli import find_commands", "atos_py.algorithms.coloring.api"),
        ("from atos_py.algorithms.registry import find_algorithms\nfind_algorithms()", "atos_py.algorithms.coloring.api"),
    ],
)
def test_what_a_text_names(tmp_path, text, expected):
    assert expected in of_text(tmp_path, text)


def test_what_a_text_does_not_name(tmp_path):
    assert of_text(tmp_path, "import atos_py as atos\natos.Queue(9)") & dependencies.ALGORITHMS == set()
    assert of_text(tmp_path, "import numpy as np") == set()


def test_files_beside_modules():
    assert {"tests/core/fake_driver/driver.cpp", "tests/core/fake_gpu.py"} <= depends("core/test_driver.py")
    assert "tests/tasks_over_devices.py" in depends("runtime/test_buckets_over_devices.py")
    assert {"tests/distributed/member.py", "examples/multi_node.py"} <= depends("distributed/test_processes.py")
    assert "tests/core/bfs_task.cu" in depends("algorithms/test_gpu_searches.py")
    assert "docs/networkx.md" in depends("models/nx_backend/test_networkx_backend.py")
    assert "benchmarks/stress.py" in depends("runtime/test_stress.py")
    assert "examples/barnes_hut.py" in depends("compile/test_program_kernels.py")


def test_a_module_counts_with_all_that_it_imports():
    found = depends("algorithms/test_coloring.py")
    assert {"atos_py/algorithms/coloring/tasks.py", "atos_py/runtime/launch.py", "atos_py/errors.py"} <= found
    assert "atos_py/algorithms/pagerank/api.py" not in found
    assert "atos_py/cli/bench.py" not in found


def modules_run_by(function):
    """Call a function, and return the files of the package whose code it runs, in any thread, but for code at their import."""
    ran = set()

    def note(frame, event, _argument):
        if event == "call":
            ran.add((frame.f_code.co_filename, frame.f_code.co_name))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    package = str(ROOT / "atos_py")
    return {Path(file) for file, name in ran if file.startswith(package) and name != "<module>"}


def test_what_runs_is_what_is_found(tmp_path):
    """For calls that reach most of the package below algorithms, also where tasks were compiled before."""

    def run():
        graph = atos.generate.road(9, device="cpu")
        atos.verify_coloring(graph, atos.color(graph).colors)
        atos.verify_pagerank(graph, atos.pagerank(graph), 1e-3)
        graph.save(tmp_path / "graph.npz")

    text = "import atos_py as atos\n" + inspect.getsource(run)
    found = {dependencies.MODULES[module] for module in of_text(tmp_path, text)}
    ran = modules_run_by(run)
    assert len(ran) > 50
    asked = {dependencies.MODULES["atos_py.support.moved_modules"]}  # by each import that finds nothing
    assert ran - found - asked == set()
