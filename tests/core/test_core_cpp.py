"""The C++ tests in tests/core, each of them by name: as they are, under the sanitizers that the compiler has, and for aarch64.

The last need g++-aarch64-linux-gnu and qemu-user, and a machine that is none. QEMU runs that code with the memory order of
this machine: it shows that the core compiles and works there, not that nothing relies on x86's order.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
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
            if variant == "aarch64" and name in NOT_EMULATED:
                continue
            result.append(pytest.param(variant, file, name, id=f"{variant}-{file.removeprefix('test_')}-{name}"))
    return result


# One process has them all: each would build all programs.
pytestmark = pytest.mark.xdist_group("core")


@pytest.fixture(scope="session")
def executable(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A function that returns the executable of a test file in a variant; a variant is compiled as a whole, once."""
    built: dict[str, dict[str, Path | str]] = {}  # what the compiler said in place of what it did not build

    def run(command: list[Any]) -> str | None:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
        return None if done.returncode == 0 else f"{' '.join(map(str, command))}\n{done.stderr}"

    def build(variant: str) -> dict[str, Path | str]:
        directory, flags = tmp_path_factory.mktemp(variant), [*COMPILERS.get(variant, CXX), *FLAGS, *VARIANTS[variant]]
        nothing = directory / "nothing.cpp"
        nothing.write_text("int main() { return 0; }")
        if run([*flags, nothing, "-o", directory / "nothing"]) or run([*RUNNERS.get(variant, []), directory / "nothing"]):
            return {}
        # The library is compiled once; GPUs stay out of it, so that it needs no CUDA headers.
        core, tests = sorted(CSRC.rglob("*.cpp")), FILES
        objects = {source: directory / f"{'_'.join(source.relative_to(CSRC).parts)}.o" for source in core}
        objects |= {source: directory / f"{source.stem}.o" for source in tests}
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            compiled = pool.map(lambda source: run([*flags, "-c", source, "-o", objects[source]]), objects)
            said = dict(zip(objects, compiled, strict=True))
            library = [objects[source] for source in core]
            broken = "".join(said[source] or "" for source in core)

            def link(source: Path) -> Path | str:
                program = directory / source.stem
                return broken or said[source] or run([*flags, objects[source], *library, "-ldl", "-o", program]) or program

            return dict(zip([source.stem for source in tests], pool.map(link, tests), strict=True))

    def get(variant: str, file: str) -> Path:
        for tool in (COMPILERS.get(variant, CXX)[0], *RUNNERS.get(variant, [])[:1]):
            if shutil.which(tool) is None:
                pytest.skip(f"there is no {tool}")
        if variant not in built:
            built[variant] = build(variant)
        if not built[variant]:
            pytest.skip(f"the compiler cannot build, or the machine not run, programs with {' '.join(VARIANTS[variant])}")
        program = built[variant][file]
        if isinstance(program, str):
            pytest.fail(program)
        return program

    return get


def test_there_are_cpp_tests():
    assert len(TESTS) > 50
    assert len(set(TESTS)) == len(TESTS)


@pytest.mark.part("cpp")
@pytest.mark.timeout(500)
@pytest.mark.parametrize(("variant", "file", "name"), cases())
def test_cpp(executable, variant, file, name):
    program = executable(variant, file)
    done = subprocess.run(
        [*RUNNERS.get(variant, []), program, name],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=300,  # under a sanitizer, on cores that others use too, some take minutes
        check=False,
        env={**os.environ, **SANITIZERS},
    )
    assert done.returncode == 0, f"{file} {name} ({variant}) ended with {done.returncode}\n{done.stderr[-8000:]}"
    assert done.stdout.strip() == f"{name}: ok"
