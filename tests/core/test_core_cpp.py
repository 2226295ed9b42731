"""The C++ tests in tests/core, each of them by name: as they are, under the sanitizers that the compiler has, and for aarch64.

The last need g++-aarch64-linux-gnu and qemu-user, and a machine that is none. QEMU runs that code with the memory order of
this machine: it shows that the core compiles and works there, not that nothing relies on x86's order.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from cpp_tests import FILES, TESTS
from repository import CSRC, CXX, ROOT

THIRD_PARTY = ROOT / "third_party"
FLAGS = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-pthread", f"-I{CSRC}", f"-I{THIRD_PARTY}"]
VARIANTS = {
    "plain": ["-O0"],
    "thread": ["-O1", "-g", "-fsanitize=thread"],
    "address": ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    "aarch64": ["-O3"],
}
COMPILERS = {"aarch64": ["aarch64-linux-gnu-g++"]}
RUNNERS = {"aarch64": ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"]}
# More memory than there is shall be refused by the library, not by the sanitizer.
SANITIZERS = dict.fromkeys(("TSAN_OPTIONS", "ASAN_OPTIONS"), "allocator_may_return_null=1:halt_on_error=1")
# Files that a variant leaves out: a simulation in a single thread has no data races, and ThreadSanitizer takes minutes for it.
LEFT_OUT = {"thread": {"test_recovery", "test_queue_recovery"}}
# The first sets a limit of memory, which QEMU does not keep to; the others take it minutes.
NOT_EMULATED = {
    "more_than_the_spill_area_holds_is_counted_as_lost",
    "full_queues_lose_nothing_of_4_bytes",
    "full_queues_lose_nothing_of_16_bytes",
}


def cases() -> list[Any]:
    result = []
    for variant in VARIANTS:
        for file, name in TESTS:
            if (variant == "aarch64" and name in NOT_EMULATED) or file in LEFT_OUT.get(variant, ()):
                continue
            result.append(pytest.param(variant, file, name, id=f"{variant}-{file.removeprefix('test_')}-{name}"))
    return result


class NotBuiltError(Exception):
    """There is no compiler for a variant, or nothing that runs its programs."""


class Variant:
    """The programs of all test files in one variant: a variant is compiled as a whole, once, by a pool of threads.

    What waits for something in the pool was submitted after it, so that there is always something that can run.
    """

    def __init__(self, name: str, directory: Path, pool: ThreadPoolExecutor) -> None:
        self.name, self.directory, self.runner = name, directory, RUNNERS.get(name, [])
        self.compiler = [*COMPILERS.get(name, CXX), *FLAGS, *VARIANTS[name]]
        self.works = pool.submit(self._try)
        # The library is compiled once; GPUs stay out of it, so that it needs no CUDA headers.
        self.core = {source: pool.submit(self._compile, source) for source in sorted(CSRC.rglob("*.cpp"))}
        tests = {source: pool.submit(self._compile, source) for source in FILES if source.stem not in LEFT_OUT.get(name, ())}
        self.programs = {source.stem: pool.submit(self._link, source.stem, compiled) for source, compiled in tests.items()}

    def run(self, file: str, name: str) -> subprocess.CompletedProcess[str]:
        """Run a test."""
        return subprocess.run(
            [*self.runner, self.programs[file].result(), name],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=600,  # under a sanitizer, on cores that others use too, some take minutes
            check=False,
            env={**os.environ, **SANITIZERS},
        )

    def _try(self) -> None:
        for tool in (self.compiler[0], *self.runner[:1]):
            if shutil.which(tool) is None:
                raise NotBuiltError(f"there is no {tool}")
        nothing = self.directory / "nothing.cpp"
        nothing.write_text("int main() { return 0; }")
        commands = [*self.compiler, nothing, "-o", self.directory / "nothing"], [*self.runner, self.directory / "nothing"]
        if any(subprocess.run(command, capture_output=True, check=False).returncode for command in commands):
            words = " ".join(VARIANTS[self.name])
            raise NotBuiltError(f"the compiler cannot build, or the machine not run, programs with {words}")

    def _make(self, output: Path, *arguments: object) -> Path:
        self.works.result()
        command = [*self.compiler, *map(str, arguments), "-o", str(output)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"
        return output

    def _compile(self, source: Path) -> Path:
        within = CSRC if source.is_relative_to(CSRC) else source.parent
        return self._make(self.directory / f"{'_'.join(source.relative_to(within).parts)}.o", "-c", source)

    def _link(self, name: str, compiled: Future[Path]) -> Path:
        objects = [compiled.result(), *(each.result() for each in self.core.values())]
        return self._make(self.directory / name, *objects, "-ldl")


# One process has them all: each would build all programs.
pytestmark = pytest.mark.xdist_group("core")


@pytest.fixture(scope="module")
def outcomes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Any, Future[Any]]]:
    """Futures of the chosen C++ tests, by variant, file and name; a pool runs as many tests at a time as there are cores."""
    chosen = [
        tuple(item.callspec.params[each] for each in ("variant", "file", "name"))
        for item in request.session.items
        if item.path == request.path and hasattr(item, "callspec")
    ]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        ends = {}
        for name in dict.fromkeys(case[0] for case in chosen):
            variant = Variant(name, tmp_path_factory.mktemp(name), pool)
            ends.update({case: pool.submit(variant.run, *case[1:]) for case in chosen if case[0] == name})
        yield ends


def test_there_are_cpp_tests():
    assert len(TESTS) > 50
    assert len(set(TESTS)) == len(TESTS)


@pytest.mark.part("cpp")
@pytest.mark.timeout(1800)  # the first of a variant waits for its programs
@pytest.mark.parametrize(("variant", "file", "name"), cases())
def test_cpp(outcomes, variant, file, name):
    try:
        done = outcomes[variant, file, name].result()
    except NotBuiltError as error:
        pytest.skip(str(error))
    assert done.returncode == 0, f"{file} {name} ({variant}) ended with {done.returncode}\n{done.stderr[-8000:]}"
    assert done.stdout.strip() == f"{name}: ok"
