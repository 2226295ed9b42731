"""What the tests of a file depend on: modules of the package, modules of tests/, and other files, as the sources tell.

Nothing is imported. A module of the package counts with all that it imports, directly or not, but for the `__init__.py` of the
package itself, which imports everything: of its names, each ``atos.NAME`` in a test stands for the modules that define it.
Programs that a test runs in processes of their own are strings in it, so that a test file is searched as text.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from repository import ROOT

TESTS, PACKAGE = ROOT / "tests", ROOT / "atos_py"


def name_of(path: Path) -> str:
    """Return the name of a module of the package by its file."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}
ALGORITHMS = frozenset(module for module in MODULES if module.startswith("atos_py.algorithms."))
REGISTRY = re.compile(r"\bfind_algorithms\(")  # which imports all algorithms, by their names
SEVERAL = frozenset(module for module in MODULES if module.startswith("atos_py.several"))  # for algorithms in parts
COMMAND = re.compile(r"""["' ]-m["', ]+atos_py\b""")
# Packages whose versions count where they are used; those that compile and link for GPUs all together.
OTHERS = ("cupy", "jax", "networkx", "scipy", "torch")
FOR_GPUS = re.compile(r"cubin|compile_cuda|cuda\.core|numba[._]cuda|prelink")


@cache
def text_of(path: Path) -> str:
    return path.read_text()


@cache
def imports(module: str) -> frozenset[str]:
    """Return the modules of the package that one imports: anywhere in it, in a function, for type checking, by the registry."""
    package = module if MODULES[module].name == "__init__.py" else module.rpartition(".")[0]
    found = set()
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.ImportFrom):
            base = ".".join(package.split(".")[: len(package.split(".")) - node.level + 1]) if node.level else ""
            base = ".".join(filter(None, [base, node.module]))
            found |= {f"{base}.{alias.name}" if f"{base}.{alias.name}" in MODULES else base for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    if REGISTRY.search(text_of(MODULES[module])) and not module.endswith(".registry"):
        found |= ALGORITHMS
    if "@algorithm(" in (text := text_of(MODULES[module])) and "in_parts=True)" in text:
        found |= SEVERAL
    return frozenset(found & MODULES.keys() - {module})


@cache
def tree_of(module: str) -> ast.Module:
    return ast.parse(text_of(MODULES[module]))


@cache
def definitions() -> dict[str, set[str]]:
    """Return for each name the modules that define it, and those that have it for their name."""
    found: dict[str, set[str]] = defaultdict(set)
    for module in MODULES:
        found[module.rpartition(".")[2]].add(module)
        for node in tree_of(module).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found[node.name].add(module)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    found[getattr(target, "id", "")].add(module)
    return found


@cache
def named_in(path: Path) -> frozenset[str]:
    """Return the modules of the package that the text of a test names."""
    text, found = text_of(path), set()
    for name in re.findall(r"\batos_py(?:\.\w+)*", text):
        while name not in MODULES:
            name = name.rpartition(".")[0]
        found.add(name)
    for base, names in re.findall(r"\bfrom (atos_py[\w.]*) import (\([^)]*\)|[^\n]*)", text):
        for name in re.findall(r"\w+", names):
            found |= {f"{base}.{name}"} & MODULES.keys() or (definitions().get(name, set()) if base == "atos_py" else set())
    for name in re.findall(r"\batos(?:_py)?\.(\w+)", text):
        found |= definitions().get(name, set())
    if REGISTRY.search(text):
        found |= ALGORITHMS
    if COMMAND.search(text):
        found.add("atos_py.__main__")
    return frozenset(found)


def modules_of(paths: Iterable[Path]) -> set[str]:
    """Return the modules of the package that tests depend on, those that others import included."""
    found: set[str] = set()
    waiting = [module for path in paths for module in named_in(path)]
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting += imports(module) if module != "atos_py" else ()
            waiting += [parent for parent in [module.rpartition(".")[0]] if parent in MODULES]  # it is imported before
    return found


@cache
def files_in(folder: Path) -> frozenset[Path]:
    return frozenset(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


@cache
def test_modules(path: Path) -> frozenset[Path]:
    """Return a test file, what of tests/ it imports, also through others, and what lies in its folder beside tests."""
    found = {path}
    waiting = [path]
    while waiting:
        now = waiting.pop()
        near = set() if now.parent == TESTS else {each for each in files_in(now.parent) if not each.name.startswith("test_")}
        for name in re.findall(r"\b(?:from|import) (\w+)", text_of(now)) if now.suffix == ".py" else ():
            near |= {other for other in (TESTS / f"{name}.py", TESTS / name / "__init__.py") if other.is_file()}
        waiting += near - found
        found |= near
    return frozenset(found)


def other_files(paths: Iterable[Path]) -> set[Path]:
    """Return the files that tests name by their place in the checkout, and all in folders that they name."""
    found = set()
    for path in paths:
        if path == TESTS / "repository.py":  # whose functions name folders for others
            continue
        if "load_example(" in text_of(path):
            found |= set((ROOT / "examples").glob("*.py"))
        text = text_of(path)
        for words in re.findall(r"""\bROOT((?: / ["'][\w.]+["'])+)""", text):
            named = ROOT.joinpath(*re.findall(r"[\w.]+", words))
            if named.is_file():
                found.add(named)
            elif named.is_dir() and named not in (TESTS, PACKAGE, ROOT / "shared"):
                found |= files_in(named)
    return found


@cache
def files_of_test(path: Path) -> frozenset[Path]:
    """Return the files that the tests of a file depend on, but for the core, on which all do."""
    tests = test_modules(path)
    texts = {each for each in tests if each.suffix == ".py"}
    return frozenset({*tests, *(MODULES[module] for module in modules_of(texts)), *other_files(texts)})


@cache
def others_in(path: Path) -> frozenset[str]:
    return frozenset(re.findall(rf"""\b(?:import |from |importorskip\(["'])({"|".join(OTHERS)})\b""", text_of(path)))


def versions_of_test(path: Path) -> tuple[list[str], bool]:
    """Return which other packages the tests of a file use, and whether they compile for GPUs."""
    sources = [each for each in files_of_test(path) if each.suffix == ".py"]
    tests = [each for each in test_modules(path) if each.suffix == ".py"]
    return sorted(set().union(*map(others_in, sources))), any(FOR_GPUS.search(text_of(each)) for each in tests)
