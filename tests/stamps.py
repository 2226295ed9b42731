"""Stamps: parts of the tests that a run leaves out, since they have passed with the files and the versions that there are now.

`tests/stamps.txt` has a line for each part: its name, a hash of the files that it depends on, the versions of the compilers and
packages that it uses, how many tests passed and were skipped, and the date. Only a whole run of the part that passed writes its
line (`make test-all`). A run of all tests leaves out each part whose line still holds, but for a few cases where `Part` says
so, and tells at its end which and why; a run of tests that are named on the command line leaves out nothing.

A test belongs to a part by the marker ``part``. The wheel's kernels are no tests of pytest: the Makefile asks for their stamp,
and writes it, by ``python tests/stamps.py``.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pairwise import each_value
from repository import CXX, ROOT

from atos_py.tools.cuda_toolkit import find_cuda

if TYPE_CHECKING:
    import pytest

FILE = ROOT / "tests" / "stamps.txt"


class Part(NamedTuple):
    """What the tests of a part depend on: files, by patterns, and the versions of compilers and packages."""

    files: tuple[str, ...]
    versions: tuple[str, ...]
    keeps_some: bool = False  # whether cases with each value of a test's parameters run in any case


CORE = ("csrc/**/*", "third_party/**/*")
CPP = (*CORE, "tests/core/*.cpp", "tests/core/*.h")
MODEL = ("csrc/**/*", "tests/model/**/*", "tests/project/test_model.py")
KERNELS = (
    *("csrc/**/*.cu", "csrc/**/*.cuh", "csrc/**/*.h", "setup.py", "atos_py/compile/**/*.py"),
    *("tests/fake_arrays.py", "tests/kernel_limits.py"),
)
LINKERS = ("nvcc", "python", "numba", "llvmlite", "numba-cuda", "nvidia-nvvm", "nvidia-nvjitlink")
TASKS = ("linalg", "operators", "graph", "features", "algorithms")  # packages that have tasks

PARTS = {
    "model": Part(MODEL, ("c++",)),
    "mutants": Part((*MODEL, *CPP, "tests/core/test_races.py", "tests/mutation/mutants.py"), ("c++",)),
    "cpp": Part((*CPP, "tests/core/test_core_cpp.py", "tests/cpp_tests.py"), ("c++", "aarch64-linux-gnu-g++", "qemu-aarch64")),
    "clang": Part((*CORE, "setup.py", "tests/project/test_build.py"), ("clang++", "ziglang", "nvcc")),
    "kernels": Part(
        (*KERNELS, "tests/compile/test_kernels.py", "atos_py/algorithms/bfs/tasks.py"),
        LINKERS,
        keeps_some=True,
    ),
    "programs": Part(
        (
            *(*KERNELS, "examples/*.py", "tests/compile/test_*kernels*.py"),
            *(f"atos_py/{name}/**/*.py" for name in ("arrays", "acc", *TASKS)),
            *(f"tests/{name}/**/*.py" for name in ("features", "algorithms", "acc")),
            *(f"tests/{name}.py" for name in ("cases", "cpu_harness", "shared_tasks", "thread_teams")),
        ),
        (*LINKERS, "numpy"),
    ),
    "wheel": Part(
        (
            *(*CORE, "setup.py", "Makefile", "tests/installed.py", "atos_py/tools/prelink.py", "atos_py/tools/workloads.py"),
            *(f"atos_py/{name}/**/*.py" for name in ("core", "arrays", "compile", "runtime", *TASKS)),
        ),
        ("nvcc", "python", "numba", "llvmlite", "numba-cuda", "numpy"),  # its linkers are those of the nvcc
    ),
}
TOOLS = {
    "c++": CXX,
    "clang++": ["clang++"],
    "aarch64-linux-gnu-g++": ["aarch64-linux-gnu-g++"],
    "qemu-aarch64": ["qemu-aarch64"],
    "nvcc": [str((find_cuda() or Path()) / "bin" / "nvcc")],
}
# What says which tests there are, and how they run.
HARNESS = ("tests/conftest.py", "tests/stamps.py", "tests/repository.py", "tests/pairwise.py")


def files_of(patterns: tuple[str, ...]) -> Iterator[Path]:
    """Go over the files that there are of some patterns, each once, in order."""
    found = {path for pattern in patterns for path in ROOT.glob(pattern) if path.is_file()}
    return (path for path in sorted(found - {FILE}) if not {"__pycache__", "_lib"} & set(path.parts))


@cache
def hash_files(patterns: tuple[str, ...]) -> str:
    """Return a hash of the names and the contents of the files of some patterns."""
    content = hashlib.sha256()
    for path in files_of(patterns):
        content.update(f"{path.relative_to(ROOT).as_posix()}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return content.hexdigest()[:32]


@cache
def version_of(name: str) -> str:
    """Return the first two numbers of the version of a compiler or a package; "none" if it is not there."""
    if name == "python":
        return "{}.{}".format(*sys.version_info)
    try:
        said = metadata.version(name) if name not in TOOLS else said_by(TOOLS[name])
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
    part = PARTS[name]
    return hash_files((*part.files, *HARNESS)), {each: version_of(each) for each in part.versions}


def read() -> dict[str, Stamp]:
    lines = FILE.read_text().splitlines() if FILE.is_file() else []
    return {name: Stamp(**json.loads(rest)) for name, _, rest in (line.partition(" ") for line in lines)}


def write(name: str, passed: int, skipped: int = 0) -> None:
    """Note that all tests of a part have passed as it is now."""
    stamps = {**read(), name: Stamp(*now_of(name), passed, skipped, time.strftime("%Y-%m-%d", time.gmtime()))}
    FILE.write_text("".join(f"{each} {json.dumps(stamps[each]._asdict())}\n" for each in PARTS if each in stamps))


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


class LeaveOut:
    """The plugin of pytest that leaves parts out, and stamps those of which all tests have passed.

    ``ATOS_STAMP=all`` runs all parts and stamps them, ``ATOS_STAMP="model kernels"`` those two and nothing else. What is left
    out is decided once, and pytest-xdist's workers are told by the environment.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.asked = os.environ.get("ATOS_STAMP", "").split()
        if unknown := set(self.asked) - {"all", *PARTS}:
            raise SystemExit(f"ATOS_STAMP names parts of the tests: all, {', '.join(PARTS)} (got {', '.join(sorted(unknown))})")
        self.is_worker = "PYTEST_XDIST_WORKER" in os.environ
        option = config.option
        # A run of all tests there are: otherwise a stamp would stand for tests that did not run.
        some = option.keyword or option.markexpr or option.deselect or option.ignore or option.ignore_glob
        some = some or "ATOS_TEST_PASSED" in os.environ or "ATOS_TEST_SECONDS" in os.environ  # of resumed.py
        self.is_whole = config.args_source is config.ArgsSource.TESTPATHS and not some
        self.reasons = {} if self.asked or not self.is_whole or self.is_worker else {name: why_run(name) for name in PARTS}
        if not self.is_worker:
            os.environ["ATOS_LEFT_OUT"] = " ".join(name for name, reason in self.reasons.items() if reason is None)
        self.left_out = os.environ["ATOS_LEFT_OUT"].split()
        self.outcomes: dict[str, Counter[str]] = defaultdict(Counter)

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        kept = []
        of_test: dict[tuple[str, str], list[pytest.Item]] = defaultdict(list)
        for item in items:
            marker = item.get_closest_marker("part")
            part = marker.args[0] if marker else None
            if part:
                item.user_properties.append(("part", part))
            if self.asked and self.asked != ["all"]:
                if part in self.asked:
                    kept.append(item)
            elif part not in self.left_out:
                kept.append(item)
            elif PARTS[part].keeps_some:
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

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if exitstatus == 0 and self.asked and self.is_whole and not self.is_worker:
            for name, counts in self.outcomes.items():
                if counts["passed"] and set(counts) <= {"passed", "skipped"}:
                    write(name, counts["passed"], counts["skipped"])

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        stamps = read()
        for name, reason in self.reasons.items():
            stamp = stamps.get(name)
            if reason is None and stamp:
                but = ", but for cases with each value of their parameters" if PARTS[name].keeps_some else ""
                how = ", ".join(f"{each} {version}" for each, version in stamp.versions.items())
                said = f"left out{but}: {stamp.passed} tests passed on {stamp.date} with the same files, {how}"
            else:
                said = f"not left out: {reason}"
            terminalreporter.write_line(f"part {name}: {said}")
        for name in self.outcomes if self.asked else ():
            terminalreporter.write_line(f"part {name}: {'stamped' if name in stamps and not why_run(name) else 'not stamped'}")


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
