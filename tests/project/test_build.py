"""The core as setup.py builds it: what the library exports, and that it works whatever C++ library it has and meets."""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from repository import CXX, HAS_CXX, ROOT

from atos_py.tools import cuda_toolkit as toolkit


def find_clang() -> str | None:
    """Return the command of another compiler than gcc, as far as there is one: clang++, which PyPI has as ziglang.

    ziglang has libc++, which it compiles for two minutes. Where gcc's C++ library is there it takes that, as clang++ does.
    """
    if shutil.which("clang++"):
        return "clang++"
    if importlib.util.find_spec("ziglang") is None:
        return None
    words = [sys.executable, "-m", "ziglang", "c++"]
    if gcc := shutil.which("g++"):

        def said(*options: str) -> str:
            done = subprocess.run([gcc, *options], capture_output=True, text=True, check=True)
            return done.stdout + done.stderr

        searched = said("-E", "-x", "c++", "-v", os.devnull).split()
        directories = dict.fromkeys(word for word in searched if "/c++/" in word and Path(word).is_dir())
        # Before C's headers, which theirs include in turn, and so not as system headers, of which no warning comes.
        words += ["-nostdinc++", *[f"-I{directory}" for directory in directories], "-nostdlib++"]
        words += [said(f"-print-file-name={name}").strip() for name in ("libstdc++.so", "libgcc_s.so.1")]
    return shlex.join(words)


CLANG = find_clang()

# Functions of libstdc++ that every use of a queue calls, as an incompatible libstdc++ would have them.
INCOMPATIBLE = """
#include <stdlib.h>
void _ZNSt18condition_variable10notify_oneEv(void *waiting) { (void)waiting; abort(); }
void _ZNSt18condition_variable10notify_allEv(void *waiting) { (void)waiting; abort(); }
void _ZdlPv(void *pointer) { (void)pointer; abort(); }
"""
USE_A_QUEUE = """
import ctypes, sys
library, header, other = sys.argv[1:]
ctypes.CDLL(other, ctypes.RTLD_GLOBAL)
import cffi
ffi = cffi.FFI()
ffi.cdef(open(header).read())
lib = ffi.dlopen(library)
info, queue, count = ffi.new("atos_device_info *"), ffi.new("atos_queue **"), ffi.new("uint64_t *")
assert lib.atos_device_query(lib.ATOS_CPU, info) == lib.ATOS_OK
assert info.multiprocessor_count > 0 and 0 < info.free_bytes <= info.total_bytes
assert lib.atos_queue_create(lib.ATOS_CPU, 4, 4, queue) == lib.ATOS_OK
assert lib.atos_queue_push(queue[0], ffi.new("uint32_t[3]"), 3) == lib.ATOS_OK
assert lib.atos_queue_pending(queue[0], count) == lib.ATOS_OK
print(count[0])
"""
RUN_A_QUEUE = """
import ctypes
ctypes.CDLL("libstdc++.so.6", ctypes.RTLD_GLOBAL)
import scipy.sparse.csgraph
import atos_py as atos

@atos.task
def count_down(worker, v, seen):
    atos.atomic_add(seen, 0, 1)
    if v > 0:
        worker.push(v - 1)

seen = atos.zeros(1, dtype="int64", device="cpu")
queue = atos.Queue(4, device="cpu")
queue.push(9)
queue.launch_cta(count_down, seen, num_blocks=2)
print(int(seen[0]), atos.device("cpu").name)
"""


def build(tree: Path, compiler: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Build the core of a copy, for the CPU alone: without PyPI's packages, which may have nvcc."""
    environment = {**os.environ, "CXX": compiler, "ATOS_CPU_ONLY": "1", **settings}
    command = [sys.executable, "setup.py", "build_core"]
    return subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of what a core is built from, without one."""
    copy = tmp_path / "tree"
    for directory in ("atos_py", "csrc", "third_party"):
        shutil.copytree(ROOT / directory, copy / directory, ignore=shutil.ignore_patterns("_lib", "__pycache__"))
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    return copy


def test_the_library_exports_its_interface_alone():
    nm = shutil.which("nm")
    if nm is None:
        pytest.skip("there is no nm")
    library = ROOT / "atos_py" / "_lib" / "libatos.so"
    said = subprocess.run([nm, "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    names = [line.split()[-1] for line in said.splitlines()]
    assert "atos_queue_launch" in names
    assert [name for name in names if not name.startswith("atos_")] == []


@pytest.mark.part("builds")
@pytest.mark.skipif(not HAS_CXX, reason="there is no C++ compiler")
def test_a_core_with_its_own_libstdcxx_beside_another_one(tree, tmp_path):
    compiler = script(tmp_path / "static", f'exec {shlex.join(CXX)} "$@" -O0 -static-libstdc++ -static-libgcc')
    done = build(tree, compiler)
    if "cannot find -lstdc++" in done.stderr:
        pytest.skip("there is no static libstdc++")
    assert done.returncode == 0, done.stderr
    (tmp_path / "other.c").write_text(INCOMPATIBLE)
    other = tmp_path / "libother.so"
    subprocess.run([*CXX, "-x", "c", "-shared", "-fPIC", tmp_path / "other.c", "-o", other], check=True)
    core = tree / "atos_py" / "_lib"
    environment = {**os.environ, "PYTHONPATH": str(tree), "ATOS_CACHE_DIR": str(tmp_path / "cache")}
    for code, arguments, expected in (
        (USE_A_QUEUE, [core / "libatos.so", core / "atos.h", other], "3\n"),
        (RUN_A_QUEUE, [], "10 CPU threads\n"),
    ):
        command = [sys.executable, "-c", code, *arguments]
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, expected), done.stderr


def test_the_library_is_built_anew_when_its_exports_change(tree, tmp_path):
    calls = tmp_path / "calls"
    compiler = script(tmp_path / "notes", f'echo called >> "{calls}"; for last; do :; done; : > "$last"')
    contents = []
    for _ in range(3):
        assert build(tree, compiler).returncode == 0
        contents.append(json.loads((tree / "atos_py" / "_lib" / "built.json").read_text())["files"]["libatos.so"])
        if len(contents) == 2:
            with (tree / "csrc" / "exports.map").open("a") as file:
                file.write("/* changed */\n")
    assert contents[0] == contents[1] != contents[2]
    assert calls.read_text().split() == ["called", "called"]


@pytest.mark.part("builds")
@pytest.mark.skipif(CLANG is None, reason="there is neither clang++ nor ziglang")
def test_clang_builds_the_core_without_a_warning(tree, tmp_path):
    compiler = script(tmp_path / "fast", f'exec {CLANG} "$@" -O0 -fno-sanitize=undefined -Wno-deprecated-declarations')
    done = build(tree, compiler, ATOS_WERROR="1", ZIG_GLOBAL_CACHE_DIR=str(tmp_path / "zig"))
    assert done.returncode == 0, done.stderr
    environment = {**os.environ, "PYTHONPATH": str(tree), "ATOS_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-c", RUN_A_QUEUE]
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "10 CPU threads\n"), done.stderr


@pytest.mark.part("builds")
@pytest.mark.skipif(CLANG is None, reason="there is neither clang++ nor ziglang")
def test_clang_has_no_warning_about_the_core_for_gpus(tmp_path):
    cuda = toolkit.find_cuda()
    if cuda is None:
        pytest.skip("there are no CUDA headers")
    includes = [f"-I{directory}" for directory in (ROOT / "csrc", ROOT / "third_party", cuda / "include")]
    flags = ["-std=c++17", "-O0", "-Wall", "-Wextra", "-Werror", "-pthread", *includes]
    environment = {**os.environ, "ZIG_GLOBAL_CACHE_DIR": str(tmp_path / "zig")}

    def said_of(source):
        command = [*shlex.split(CLANG), *flags, "-c", source, "-o", tmp_path / f"{source.stem}.o"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        return done.returncode and done.stderr

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        said = [text for text in pool.map(said_of, sorted((ROOT / "csrc").glob("cuda/*.cpp"))) if text]
    assert said == []


def test_a_compiler_of_several_words_is_run(tree, tmp_path):
    compiler = script(tmp_path / "words", f'echo "$1 $2" > "{tmp_path / "said"}"; for last; do :; done; : > "$last"')
    assert build(tree, f"{compiler} 'one word' c++").returncode == 0
    assert (tmp_path / "said").read_text() == "one word c++\n"


@pytest.mark.parametrize(("asked", "expected"), [("1", True), ("0", False), ("", False)])
def test_warnings_are_errors_where_changes_are_tested_alone(tree, tmp_path, asked, expected):
    compiler = script(tmp_path / "notes", f'echo "$@" > "{tmp_path / "said"}"; for last; do :; done; : > "$last"')
    assert build(tree, compiler, ATOS_WERROR=asked).returncode == 0
    assert ("-Werror" in (tmp_path / "said").read_text().split()) == expected


def test_no_compiler_is_told_in_a_sentence(tree):
    done = build(tree, "no-such-compiler")
    assert done.returncode == 1
    assert "there is no C++ compiler 'no-such-compiler', which builds the core: install g++ or clang++" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_a_compiler_refuses_is_told_without_a_traceback(tree, tmp_path):
    done = build(tree, script(tmp_path / "refuses", "echo the reason >&2; exit 3"))
    assert done.returncode == 1
    assert done.stderr.startswith("the reason\nerror: compiling libatos.so failed, for the reason above, with status 3 of: ")
    assert "Traceback" not in done.stderr
