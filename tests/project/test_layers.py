"""Imports of the package point one way, from a package to those before it, and no modules import each other in a circle."""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import atos_py as atos

ROOT = Path(atos.__file__).parent
ORDER = [
    "errors", "support", "core", "arrays", "compile", "runtime",
    "operators", "graph", "distributed", "algorithms", "several", "tools", "models", "cli",
]  # fmt: skip


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in ROOT.rglob("*.py")}


def imports(module: str) -> Iterator[str]:
    """Yield the modules that one imports: anywhere in it, also in a function or for type checking alone."""
    package = module if MODULES[module].name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(MODULES[module].read_text())):
        if isinstance(node, ast.ImportFrom):
            base = ".".join(package.split(".")[: len(package.split(".")) - node.level + 1]) if node.level else ""
            base = ".".join(filter(None, [base, node.module]))
            for alias in node.names:
                yield f"{base}.{alias.name}" if f"{base}.{alias.name}" in MODULES else base
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


EDGES = [(module, target) for module in MODULES for target in imports(module) if target in MODULES and target != module]


def test_the_rules_name_each_folder_once():
    text = (ROOT.parent / "CONTRIBUTING.md").read_text()
    assert text.count(" | ".join(f"`{package}`" for package in ORDER)) == 1
    folders = [name for row in re.findall(r"^\| (`(?:atos_py|csrc)[^|]*) \|", text, re.MULTILINE) for name in row.split(", ")]
    parts = [path.name for path in (ROOT.parent / "csrc").iterdir() if path.is_dir()]
    models = [path.parent.name for path in (ROOT / "models").glob("*/__init__.py")]
    packages = [*(f"atos_py/{name}" for name in ORDER[1:]), *(f"atos_py/models/{name}" for name in models)]
    expected = ["atos_py/", *packages, *[f"csrc/{name}" for name in parts]]
    assert sorted(folders) == sorted(f"`{name}`" for name in expected)


def test_imports_are_found():
    assert ("atos_py.runtime.queue", "atos_py.arrays.array") in EDGES
    assert len(EDGES) > 300


def test_imports_point_to_packages_before():
    layer = {module: ORDER.index(module.split(".")[1]) for module in MODULES if module.count(".") and "__main__" not in module}
    assert [(module, target) for module, target in EDGES if module in layer and layer.get(target, 99) > layer[module]] == []


def test_models_are_imported_by_nothing_but_the_command_line():
    """So they are loaded when they are first used, and what is below is read without them."""
    users = {module.split(".")[1] for module, target in EDGES if target.split(".")[1:2] == ["models"]}
    assert users == {"models", "cli"}


def test_only_the_door_loads_the_room_for_several():
    """No module imports `several`, and one loads it by its name, so that programs for one device do not load it."""
    assert {module.split(".")[1] for module, target in EDGES if target.split(".")[1:2] == ["several"]} == {"several"}
    doors = [module for module, path in MODULES.items() if 'import_module("atos_py.several' in path.read_text()]
    assert doors == ["atos_py.algorithms.forms"]


def places_that_ask(module: str) -> int:
    """Return in how many places a module asks for a partition: by a type of what lies in parts, or by comparison with None."""
    places = 0
    for node in ast.walk(ast.parse(MODULES[module].read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass"):
            places += bool(IN_PARTS.search(ast.unparse(node.args[1])))
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is | ast.IsNot):
            places += bool(ASKED.search(ast.unparse(node)))
    return places


IN_PARTS = re.compile(
    r"\b(Partition|HostPartition|PartitionedArray|HostArray|MirroredArray|PrivateArray|HostPlaces|Ownership)\b"
)
ASKED = re.compile(r"\b_?(partition|ownership|places|owner) is (not )?None$")


def test_few_places_outside_the_room_for_several_ask_for_a_partition():
    """Code outside `several` asks in 6 places whether something lies in parts; who removes one lowers the number, to none."""
    found = {module: count for module in MODULES if ".several" not in module and (count := places_that_ask(module))}
    assert [module for module in found if module.startswith("atos_py.algorithms")] == []
    assert sum(found.values()) == 6, found


def test_operators_have_more_than_one_client():
    """A module of `operators` has at least two clients; one with a single client lies in the package of that client."""
    clients: dict[str, set[str]] = {module: set() for module in MODULES if module.startswith("atos_py.operators.")}
    for module, target in EDGES:
        if target in clients:
            clients[target].add(".".join(module.split(".")[1:3]))
    assert [module for module, found in clients.items() if len(found) < 2] == []


def test_no_circles():
    graph: dict[str, set[str]] = {}
    for module, target in EDGES:
        graph.setdefault(module, set()).add(target)
    assert list(TopologicalSorter(graph).static_order())


def test_no_name_hides_a_module():
    """A function of a package that has the name of a module in it would take its place as an attribute."""
    hidden = []
    for module in MODULES:
        package, _, name = module.rpartition(".")
        found = vars(importlib.import_module(package)).get(name) if package else None
        if found is not None and found is not sys.modules.get(module):
            hidden.append(module)
    assert hidden == []


def test_few_modules_lie_outside_packages():
    assert {path.name for path in ROOT.glob("*.py")} == {"__init__.py", "__main__.py", "errors.py"}


def test_dir_shows_the_public_names():
    assert set(dir(atos)) == {*atos.__all__, "__version__"}


def test_files_are_short():
    """A file with one idea needs no more; installed without the sources, only the package is looked at."""
    core = ROOT.parent / "csrc"
    files = [*ROOT.rglob("*.py"), *(path for path in core.rglob("*") if path.suffix in {".h", ".cpp", ".cuh", ".cu"})]
    assert len(files) > 100
    assert {path.name: lines for path in files if (lines := len(path.read_text().splitlines())) > 450} == {}
