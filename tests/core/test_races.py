"""ThreadSanitizer sees each operation of protocol/atomic.cuh that has less order than it needs, by a race in a C++ test."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from mutation.mutants import MUTANTS
from repository import CSRC, CXX, HAS_CXX

HERE = Path(__file__).parent
FLAGS = ["-std=c++17", "-O0", "-fsanitize=thread", "-pthread"]
# Faults, and the test in which each is a race.
RACES = {
    "A01": ("test_order", "a_push_hands_memory_over_with_4_bytes"),
    "A02": ("test_order", "a_push_hands_memory_over_with_4_bytes"),
    "A03": ("test_order", "the_end_hands_memory_over"),
    "A04": ("test_order", "quiescent_workers_hand_memory_over"),
    "A05": ("test_order", "the_end_hands_memory_over"),
    "A06": ("test_split_item", "owners_and_helpers"),
}


@pytest.fixture(scope="module")
def has_sanitizer(tmp_path_factory):
    """Skip where no program under ThreadSanitizer can be built or run."""
    source = tmp_path_factory.mktemp("thread") / "nothing.cpp"
    source.write_text("int main() { return 0; }")
    program = source.with_suffix("")
    if not HAS_CXX or any(
        subprocess.run(command, capture_output=True, check=False).returncode
        for command in ([*CXX, *FLAGS, source, "-o", program], [program])
    ):
        pytest.skip("the compiler cannot build, or the machine not run, programs under ThreadSanitizer")


@pytest.mark.part("mutants")
@pytest.mark.parametrize("fault", RACES)
def test_thread_sanitizer_sees_what_is_ordered_too_little(has_sanitizer, tmp_path, fault):
    mutant, (file, name) = MUTANTS[fault], RACES[fault]
    directory = shutil.copytree(CSRC, tmp_path / "csrc")
    changed = directory / mutant.file
    changed.write_text(changed.read_text().replace(mutant.old, mutant.new))
    program = tmp_path / "program"
    build = [*CXX, *FLAGS, f"-I{directory}", HERE / f"{file}.cpp", "-o", program]
    subprocess.run(build, check=True, capture_output=True)
    done = subprocess.run(
        [program, name],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=120,
        check=False,
        env={**os.environ, "TSAN_OPTIONS": "allocator_may_return_null=1:halt_on_error=1"},
    )
    assert done.returncode != 0
    assert "ThreadSanitizer: data race" in done.stderr
