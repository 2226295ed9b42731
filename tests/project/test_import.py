"""`import atos_py` loads no more than the errors; a public name brings its modules when it is first used."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import atos_py as atos
from atos_py import errors
from atos_py.support.moved_modules import MOVED

HEAVY = {"cffi", "llvmlite", "matplotlib", "networkx", "numba", "numpy", "scipy"}
STUB = Path(atos.__file__).with_suffix(".pyi")


def loaded_by(code: str) -> set[str]:
    """Return the modules that a program loads beside those that each process of this Python has."""
    run = "import sys; before = set(sys.modules)\n{}\nprint(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", run.format(code)], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def of_package(modules: set[str]) -> set[str]:
    """Return the folders and files of the package that some modules lie in."""
    return {name.split(".")[1] for name in modules if name.startswith("atos_py.")}


@pytest.mark.parametrize(
    "code", ["import atos_py", "from atos_py import AtosError, errors", "import atos_py as a; dir(a), a.__all__"]
)
def test_import_loads_no_more_than_the_errors(code: str) -> None:
    loaded = loaded_by(code)
    assert {name for name in loaded if name.count(".") > 1} == {"atos_py.support.moved_modules"}
    assert of_package(loaded) == {"errors", "support"}
    assert loaded & HEAVY == set()


def test_a_program_of_tasks_loads_no_algorithms_and_no_compiler() -> None:
    """Numba comes with the first launch."""
    loaded = loaded_by("""
import atos_py as atos
@atos.task(workload=lambda v, seen: v)
def mark(worker, v, i, seen):
    atos.atomic_add(seen, 0, 1)
seen, queue = atos.zeros(1, device="cpu"), atos.Queue(10, device="cpu")
queue.push([3])
""")
    assert of_package(loaded) & {"algorithms", "acc", "cli", "features", "models", "nx_backend", "tools"} == set()
    assert loaded & HEAVY == {"cffi", "numpy"}


def test_an_algorithm_loads_no_other() -> None:
    loaded = loaded_by("import atos_py as atos; atos.color")
    assert {name.split(".")[2] for name in loaded if name.startswith("atos_py.algorithms.")} & set(dir(atos)) == set()
    assert "atos_py.algorithms.coloring" in loaded


def test_the_command_line_loads_no_models() -> None:
    assert "models" not in of_package(loaded_by("from atos_py.cli import find_commands; find_commands()"))


@pytest.mark.parametrize("code", ["import atos_py as a; a.{0}", "import atos_py.{0}", "from atos_py import {0}"])
@pytest.mark.parametrize("name", ["acc", "distributed", "features", "linalg"])
def test_public_packages_are_found_in_each_way(name: str, code: str) -> None:
    assert f"atos_py.{name}" in loaded_by(code.format(name))


def test_names_of_the_stub_are_the_public_ones() -> None:
    """Type checkers take a name of a stub for public if it is imported as itself, or by a star."""
    imports = [node for node in ast.parse(STUB.read_text()).body if isinstance(node, ast.ImportFrom)]
    stars = [node.module for node in imports if node.names[0].name == "*"]
    names = [each for node in imports for each in node.names if each.name != "*"]
    assert stars == ["errors"]
    assert [each.asname for each in names] == [each.name for each in names]
    assert sorted({*errors.__all__, *(each.name for each in names)}) == atos.__all__


def test_every_name_is_that_of_its_module() -> None:
    """So that none is taken from a module that has merely imported it."""
    for name, module in atos._MODULES.items():
        found = getattr(atos, name)
        source = sys.modules[f"atos_py.{module or name}"]
        assert found is source if module is None else found is getattr(source, name)
        public = getattr(source, "__all__", None)
        assert module is None or public is None or name in public, name


def test_stubs_of_public_paths_name_where_they_lead() -> None:
    stubs = {path.stem: path.read_text() for path in STUB.parent.glob("*.pyi") if path != STUB}
    assert stubs.keys() == {"acc", "features", "linalg", "nx_backend"}
    for name, text in stubs.items():
        now = MOVED[f"atos_py.{name}"]
        assert text.splitlines()[-1] == f"from {now.removeprefix('atos_py')} import *"
        assert import_module(f"atos_py.{name}") is import_module(now)


def test_star() -> None:
    names: dict[str, object] = {}
    exec("from atos_py import *", names)
    assert names.keys() - {"__builtins__"} == set(atos.__all__)
    assert names["bfs"] is atos.bfs


def test_a_name_that_is_not_there() -> None:
    assert not hasattr(atos, "pagernk")
    with pytest.raises(AttributeError, match="module 'atos_py' has no attribute 'pagernk'") as caught:
        atos.pagernk  # noqa: B018
    assert (caught.value.name, caught.value.obj) == ("pagernk", atos)  # from which Python suggests another
    with pytest.raises(ImportError, match="cannot import name 'pagernk' from 'atos_py'"):
        exec("from atos_py import pagernk")


def test_help_tells_of_the_names() -> None:
    done = subprocess.run([sys.executable, "-c", "import atos_py; help(atos_py)"], capture_output=True, text=True, check=True)
    for line in ("    class Queue(", "    bfs(graph:", "    UNREACHED = ", "    0.2.0"):
        assert f"\n{line}" in done.stdout, line


@pytest.mark.parametrize("use_jedi", [True, False])
def test_completion_in_ipython(use_jedi: bool) -> None:
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell()
    shell.user_ns["atos"] = atos
    shell.Completer.use_jedi = use_jedi
    for line, name in (
        ("atos.connected_c", "connected_components"),
        ("atos.linalg.chol", "cholesky"),
        ("atos.AtosE", "AtosError"),
    ):
        with pytest.importorskip("IPython.core.completer").provisionalcompleter():
            found = [each.text.lstrip(".") for each in shell.Completer.completions(line, len(line))]
        assert found == [name]
