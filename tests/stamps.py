"""Stamps: parts of the tests that a run leaves out, since they have passed with the files and the versions that there are now.

The tests of a file in the folder of a package are a part, named by the file. What they depend on is read from their sources
(`dependencies.py`). Tests that take minutes and depend on less have the marker ``part``, and are parts by that name; `PARTS`
says what they depend on. Other tests of the whole project, in `tests/project`, always run, and so does what needs a GPU.

`tests/stamps.txt` has a line for each part: its name, a hash of the files that it depends on, the versions of the compilers and
packages that it uses, how many tests passed and were skipped, and the date. Only a whole run of the part that passed writes its
line (`make test-all`). A run of all tests leaves out each part whose line still holds, but for a few cases where `Part` says
so, and tells at its end which and why; a run of tests that are named on the command line leaves out nothing.

The wheel's kernels are no tests of pytest: the Makefile asks for their stamp, and writes it, by ``python tests/stamps.py``.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import runpy
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import dependencies
from pairwise import each_value
from repository import CXX, ROOT

if TYPE_CHECKING:
    import pytest

FILE = ROOT / "tests" / "stamps.txt"
TESTS_FAILED, NO_TESTS_COLLECTED = 1, 5  # what pytest ends with


class Part(NamedTuple):
    """What the tests of a part depend on: files, by patterns, and the versions of compilers and packages.

    The files of its tests and what they import of tests/ need not be named.
    """

    files: tuple[str, ...]
    versions: tuple[str, ...]
    keeps_some: bool = False  # whether cases with each value of a test's parameters run in any case


CORE = ("csrc/**/*", "third_party/**/*")
CPP = (*CORE, "tests/core/*.cpp", "tests/core/*.h")
MODEL = ("csrc/**/*", "tests/model/**/*")
DEVICE = ("csrc/**/*.cu", "csrc/**/*.cuh", "csrc/**/*.h", "setup.py")
RUN = ("c++", "python", "numba", "llvmlite", "numpy")  # what runs tasks on CPUs
LINKERS = ("nvcc", "python", "numba", "llvmlite", "numba-cuda", "nvidia-nvvm", "nvidia-nvjitlink")
TASKS = ("operators", "graph", "algorithms")  # packages that have tasks
# Packages on which kernels depend: those of tasks, and what compiles and links them. The others run them.
LINKED = ("compile", "arrays", "models", *TASKS)

PARTS = {
    "model": Part(MODEL, ("c++",)),
    "mutants": Part((*MODEL, *CPP, "tests/mutation/mutants.py"), ("c++",)),
    "cpp": Part(CPP, ("c++", "aarch64-linux-gnu-g++", "qemu-aarch64")),
    "builds": Part((*CORE, "setup.py"), ("c++", "clang++", "ziglang", "nvcc")),
    "kernels": Part(
        (*DEVICE, "atos_py/compile/**/*.py", "atos_py/algorithms/bfs/tasks.py"),
        LINKERS,
        keeps_some=True,
    ),
    "numbers": Part(("atos_py/compile/**/*.py",), ("python", "numba", "llvmlite", "numpy")),
    "pages": Part(
        (*CORE, "setup.py", "atos_py/**/*.py", "docs/**/*.md", "*.md"),
        (*RUN, "networkx", "scipy", "pandas", "matplotlib", "torch", "cupy"),
    ),
    "notebooks": Part(
        (*CORE, "setup.py", "atos_py/**/*.py", "examples/*.py"),
        (*RUN, "scipy", "matplotlib", "ipykernel", "nbclient", "sphinx-gallery"),
    ),
    "wheel": Part(
        (
            *(*CORE, "setup.py", "Makefile", "tests/installed.py", "tests/compile/shipped_kernels.*"),
            *("atos_py/tools/prelink.py", "atos_py/tools/workloads.py"),
            *(f"atos_py/{name}/**/*.py" for name in ("core", "arrays", "compile", "runtime", *TASKS)),
        ),
        ("nvcc", "python", "numba", "llvmlite", "numba-cuda", "numpy"),  # its linkers are those of the nvcc
    ),
}
PROGRAMS = "programs"  # the marker of tests that link tasks of the package or of examples: a part for each file that has some
MARK = re.compile(r"\bmark\.part\(\"(\w+)\"\)")
# What says which tests there are, and how they run.
HARNESS = ("tests/conftest.py", "tests/stamps.py", "tests/dependencies.py", "tests/repository.py", "tests/pairwise.py")


def nvcc() -> str:
    cuda = runpy.run_path(str(ROOT / "atos_py" / "tools" / "cuda_toolkit.py"))["find_cuda"]()
    return str((cuda or Path()) / "bin" / "nvcc")


TOOLS = {
    "c++": lambda: CXX,
    "clang++": lambda: ["clang++"],
    "aarch64-linux-gnu-g++": lambda: ["aarch64-linux-gnu-g++"],
    "qemu-aarch64": lambda: ["qemu-aarch64"],
    "nvcc": lambda: [nvcc()],
}


def is_of_package(file: str) -> bool:
    """Whether a file of tests lies in the folder of a package, so that it is a part of its own."""
    place = Path(file).parts
    return len(place) > 2 and place[0] == "tests" and (ROOT / "atos_py" / place[1]).is_dir()


def relative(paths: Iterable[Path]) -> list[str]:
    return sorted(path.relative_to(ROOT).as_posix() for path in paths)


@cache
def parts() -> dict[str, Part]:
    """Return all parts: those of `PARTS`, and those of single files."""
    tests = sorted((ROOT / "tests").rglob("test_*.py"))
    marked = {path: set(MARK.findall(path.read_text())) for path in tests}
    found = {}
    for name, part in PARTS.items():
        of_part = set().union(*(dependencies.test_modules(path) for path in tests if name in marked[path]))
        found[name] = part._replace(files=(*part.files, *relative(of_part)))
    for path, name in zip(tests, relative(tests), strict=True):
        files = dependencies.files_of_test(path) if PROGRAMS in marked[path] or is_of_package(name) else frozenset()
        if PROGRAMS in marked[path]:
            linked = [each for each in relative(files) if not each.startswith("atos_py/") or each.split("/")[1] in LINKED]
            found[f"{name}::{PROGRAMS}"] = Part((*DEVICE, *linked), (*LINKERS, "numpy"))
        if is_of_package(name):
            others, for_gpus = dependencies.versions_of_test(path)
            versions = dict.fromkeys([*RUN, *others, *(LINKERS if for_gpus else ())])
            found[name] = Part((*CORE, "setup.py", *relative(files)), tuple(versions))
    return found


@cache
def matches(pattern: str) -> frozenset[Path]:
    """Return the files that there are of a pattern."""
    found = ROOT.glob(pattern) if "*" in pattern else [ROOT / pattern]
    return frozenset(path for path in found if path.is_file() and not {"__pycache__", "_lib"} & set(path.parts))


def files_of(patterns: tuple[str, ...]) -> Iterator[Path]:
    """Go over the files that there are of some patterns, each once, in order."""
    return iter(sorted(frozenset().union(*map(matches, patterns)) - {FILE}))


@cache
def hash_file(path: Path) -> bytes:
    return hashlib.sha256(f"{path.relative_to(ROOT).as_posix()}\0".encode() + path.read_bytes()).digest()


@cache
def hash_files(patterns: tuple[str, ...]) -> str:
    """Return a hash of the names and the contents of the files of some patterns."""
    return hashlib.sha256(b"".join(map(hash_file, files_of(patterns)))).hexdigest()[:32]


def forget() -> None:
    """Forget what files there are, and what is in them."""
    for function in (matches, hash_file, hash_files):
        function.cache_clear()


@cache
def version_of(name: str) -> str:
    """Return the first two numbers of the version of a compiler or a package; "none" if it is not there."""
    if name == "python":
        return "{}.{}".format(*sys.version_info)
    try:
        said = metadata.version(name) if name not in TOOLS else said_by(TOOLS[name]())
    except (OSError, subprocess.SubprocessError, metadata.PackageNotFoundError):
        return "none"
    found = re.search(r"(?:release|version) (\d+\.\d+)", said) or re.search(r"\b(\d+\.\d+)", said)
    return found[1] if found else "none"


def said_by(command: Sequence[str]) -> str:
    return subprocess.run([*command, "--version"], capture_output=True, text=True, check=True).stdout


class Stamp(NamedTuple):
    """A line of the file."""

    files: str
    versions: dict[str, str]
    passed: int
    skipped: int
    date: str


def now_of(name: str) -> tuple[str, dict[str, str]]:
    """Return the hash of a part's files and the versions that it depends on, as they are now."""
    part = parts()[name]
    return hash_files((*part.files, *HARNESS)), {each: version_of(each) for each in part.versions}


def read() -> dict[str, Stamp]:
    lines = FILE.read_text().splitlines() if FILE.is_file() else []
    return {name: Stamp(**json.loads(rest)) for name, _, rest in (line.partition(" ") for line in lines)}


def write(name: str, passed: int, skipped: int = 0) -> None:
    """Note that all tests of a part have passed as it is now."""
    stamps = {**read(), name: Stamp(*now_of(name), passed, skipped, time.strftime("%Y-%m-%d", time.gmtime()))}
    FILE.write_text("".join(f"{each} {json.dumps(stamps[each]._asdict())}\n" for each in parts() if each in stamps))


def why_run(name: str) -> str | None:
    """Return why a part has to run; None if its stamp holds."""
    stamp = read().get(name)
    if stamp is None:
        return "it has no stamp"
    files, versions = now_of(name)
    for each, version in versions.items():
        if version != (before := stamp.versions.get(each)):
            return f"{each} is {version}, and was {before} when its tests passed"
    return None if files == stamp.files else "files that it depends on have changed"


def named_parts(words: Sequence[str]) -> list[str]:
    """Return the parts that the words of ATOS_STAMP name."""
    names = parts()
    if unknown := set(words) - {"all", "outdated", PROGRAMS, *names}:
        known = f"all, outdated, {PROGRAMS}, {', '.join(PARTS)}, or files of tests"
        raise SystemExit(f"ATOS_STAMP names parts of the tests: {known} (got {', '.join(sorted(unknown))})")
    return [
        name
        for name in names
        if {"all", name, name.rpartition("::")[2]} & set(words) or ("outdated" in words and name != "wheel" and why_run(name))
    ]


def part_of(item: pytest.Item) -> str | None:
    """Return the part that a test belongs to."""
    file, marker = item.nodeid.partition("::")[0], item.get_closest_marker("part")
    if marker:
        return f"{file}::{PROGRAMS}" if marker.args[0] == PROGRAMS else marker.args[0]
    return file if is_of_package(file) and not item.get_closest_marker("gpu") else None


class LeaveOut:
    """The plugin of pytest that leaves parts out, and stamps those of which all tests have passed.

    ``ATOS_STAMP=all`` runs all tests and stamps all parts, ``ATOS_STAMP="model kernels"`` those two and nothing else, and
    ``ATOS_STAMP=outdated`` those whose stamps do not hold. What is left out is decided once, and pytest-xdist's workers are
    told by the environment.
    """

    def __init__(self, config: pytest.Config) -> None:
        words = os.environ.get("ATOS_STAMP", "").split()
        self.is_worker = "PYTEST_XDIST_WORKER" in os.environ
        option = config.option
        # A run of all tests there are: otherwise a stamp would stand for tests that did not run.
        some = option.keyword or option.markexpr or option.deselect or option.ignore or option.ignore_glob
        some = some or "ATOS_TEST_PASSED" in os.environ or "ATOS_TEST_SECONDS" in os.environ  # of resumed.py
        self.is_whole = config.args_source is config.ArgsSource.TESTPATHS and not some
        self.reasons: dict[str, str | None] = {}
        if not self.is_worker:
            asked = named_parts(words) if words else []
            self.reasons = {name: why_run(name) for name in parts()} if self.is_whole and not words else {}
            left_out = [name for name, reason in self.reasons.items() if reason is None]
            os.environ["ATOS_LEFT_OUT"] = json.dumps([asked, left_out])
        asked, left_out = json.loads(os.environ["ATOS_LEFT_OUT"])
        self.stamps, self.takes_all = bool(words), not words or "all" in words
        self.asked, self.left_out = set(asked), set(left_out)
        self.outcomes: dict[str, Counter[str]] = defaultdict(Counter)

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        kept = []
        of_test: dict[tuple[str, str], list[pytest.Item]] = defaultdict(list)
        for item in items:
            part = part_of(item)
            if part:
                item.user_properties.append(("part", part))
            if not self.takes_all:
                if part in self.asked:
                    kept.append(item)
            elif part not in self.left_out:
                kept.append(item)
            elif part in PARTS and PARTS[part].keeps_some:
                of_test[part, item.nodeid.partition("[")[0]].append(item)
        for cases in of_test.values():
            parameters: list[Any] = [item.callspec.params if hasattr(item, "callspec") else {} for item in cases]
            kept += [cases[place] for place in each_value(parameters)] if len(cases) > 1 else cases
        if len(kept) < len(items):
            chosen = set(kept)
            config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
            items[:] = [item for item in items if item in chosen]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        part = dict(report.user_properties).get("part")
        if part and (report.when == "call" or not report.passed):
            self.outcomes[part][report.outcome] += 1

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if exitstatus == NO_TESTS_COLLECTED and not self.takes_all and not self.asked:
            session.exitstatus = 0  # nothing is outdated
        ran_all = exitstatus in (0, TESTS_FAILED) and not session.shouldfail and not session.shouldstop
        if ran_all and self.stamps and self.is_whole and not self.is_worker:
            for name, counts in self.outcomes.items():
                if counts["passed"] and set(counts) <= {"passed", "skipped"}:
                    write(name, counts["passed"], counts["skipped"])

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        stamps = read()
        files: dict[str, list[str]] = defaultdict(list)  # by the reason, those that are left out and those that are not
        for name, reason in self.reasons.items():
            stamp = stamps.get(name)
            if name not in PARTS:
                if name in self.outcomes or (reason is None and stamp):
                    files[f"not left out: {reason}" if reason else "left out"].append(name)
            elif reason is None and stamp:
                but = ", but for cases with each value of their parameters" if PARTS[name].keeps_some else ""
                how = ", ".join(f"{each} {version}" for each, version in stamp.versions.items())
                said = f"left out{but}: {stamp.passed} tests passed on {stamp.date} with the same files, {how}"
                terminalreporter.write_line(f"part {name}: {said}")
            else:
                terminalreporter.write_line(f"part {name}: not left out: {reason}")
        for said, names in sorted(files.items()):
            if said == "left out":
                passed, dates = sum(stamps[name].passed for name in names), sorted(stamps[name].date for name in names)
                said += f": {passed} tests passed, {dates[0]} to {dates[-1]}, with the same files and versions"
            few = f" ({', '.join(sorted(names))})" if len(names) <= 5 else ""
            terminalreporter.write_line(f"parts of {len(names)} files: {said}{few}")
        stamped = [name for name in self.outcomes if self.stamps and name in stamps and not why_run(name)]
        for name in sorted(self.outcomes) if self.stamps else ():
            if name in PARTS or name not in stamped:
                terminalreporter.write_line(f"part {name}: {'stamped' if name in stamped else 'not stamped'}")
        if of_files := set(stamped) - set(PARTS):
            terminalreporter.write_line(f"parts of {len(of_files)} files: stamped")


def main() -> None:
    """``stamps.py NAME``: end with 0 if the stamp of a part holds; ``stamps.py NAME COUNT``: write it."""
    name, *count = sys.argv[1:]
    if count:
        write(name, int(count[0]))
    elif reason := why_run(name):
        print(f"part {name}: not left out: {reason}")
        sys.exit(1)
    else:
        print(f"part {name}: left out: {read()[name].passed} passed on {read()[name].date} with the same files")


if __name__ == "__main__":
    main()
