"""Builds the core: a shared library for the host, and the worker loops as LTO-IR for each architecture.

What is built is noted in atos_py/_lib/built.json with a hash of what it was made from, so that a copy of the tree, whose times
are new, is not built again.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

from setuptools import Command, Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py
from setuptools.errors import CompileError, PlatformError

ROOT = Path(__file__).parent
SOURCES = ROOT / "csrc"
KERNEL = SOURCES / "device" / "kernel.cu"
THIRD_PARTY = ROOT / "third_party"
OUT = ROOT / "atos_py" / "_lib"
# The first serves every GPU that the others do not: LTO-IR links for its own architecture and all later ones.
ARCHITECTURES = ("75", "80", "90")
# For these, and the GPUs of this machine, the worker loops are machine code too, for the first kernels of tasks.
READY_ARCHITECTURES = ("90",)
WORKERS = ("thread", "warp", "cta")
ITEM_BYTES = (4, 8, 16, 32)
HOST_FLAGS = ["-std=c++17", "-O3", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread", "-Wall", "-Wextra"]
DEVICE_FLAGS = ["-std=c++17", "-O3", "-rdc=true", "-fatbin", "--compress-mode=size"]
READY_FLAGS = ["-DATOS_READY", "-maxrregcount=64"]  # registers of which a block of 1,024 threads can have as many
# Users may have compilers newer than this package, with new warnings. Warnings are errors where a change is tested (.ci/run);
# what is built is the same with and without.
WARNINGS_ARE_ERRORS = os.environ.get("ATOS_WERROR") == "1"

# nvcc needs gcc, or clang++ with the C++ library of gcc. The clang++ in PyPI's ziglang has its own, which nvcc refuses.
NVCC_HOST = ["-ccbin", "clang++"] if shutil.which("clang++") and not shutil.which("gcc") else []


def build_core() -> None:
    """Compile what was not made from these sources with these flags."""
    OUT.mkdir(exist_ok=True)
    record = OUT / "built.json"
    known = json.loads(record.read_text()) if record.is_file() else {"files": {}}
    shutil.copyfile(SOURCES / "include" / "atos.h", OUT / "atos.h")
    toolkit = runpy.run_path(str(ROOT / "atos_py" / "tools" / "cuda_toolkit.py"))
    cuda = None if toolkit["cpu_only"]() else toolkit["find_cuda"]()

    def current(name: str, content: str) -> bool:
        return (OUT / name).is_file() and known["files"].get(name) == content

    commands: dict[str, list[str]] = {}
    contents: dict[str, str] = {}
    with_cuda = digest(".cpp", ".h", ".cuh", ".map", flags=[*HOST_FLAGS, platform.machine(), "cuda"])
    without = digest(".cpp", ".h", ".cuh", ".map", flags=[*HOST_FLAGS, platform.machine()])
    # A library that was built where there is a toolkit is not replaced by one that knows no GPU.
    contents["libatos.so"] = with_cuda if cuda or current("libatos.so", with_cuda) else without
    include = [f"-I{SOURCES}", f"-I{THIRD_PARTY}", *([f"-I{cuda / 'include'}"] if cuda else [])]
    host = [str(source) for source in sorted(SOURCES.rglob("*.cpp"))]
    exports = f"-Wl,--version-script={SOURCES / 'exports.map'}"
    strict = ["-Werror"] if WARNINGS_ARE_ERRORS else []
    compiler = shlex.split(os.environ.get("CXX") or "c++")  # may be several words: "python -m ziglang c++"
    commands["libatos.so"] = [*compiler, *HOST_FLAGS, *strict, exports, *include, *host, "-ldl", "-o"]
    ready = sorted({*READY_ARCHITECTURES, *(toolkit["found_architectures"](cuda) if cuda else [])})
    targets = {
        "core": [f"-gencode=arch=compute_{a},code=lto_{a}" for a in ARCHITECTURES],
        "ready": [*READY_FLAGS, *[f"-gencode=arch=compute_{a},code=sm_{a}" for a in ready]],
    }
    for (number, worker), size, kind in product(enumerate(WORKERS), ITEM_BYTES, targets):
        name = f"{kind}_{worker}_{size}.fatbin"
        flags = [*DEVICE_FLAGS, *targets[kind], f"-DATOS_WORKER={number}", f"-DATOS_ITEM_BYTES={size}"]
        contents[name] = digest(".cu", ".h", ".cuh", flags=flags)
        if cuda:
            strict = ["-Werror", "all-warnings"] if WARNINGS_ARE_ERRORS else []
            commands[name] = [str(cuda / "bin" / "nvcc"), *NVCC_HOST, *flags, *strict, f"-I{SOURCES}", str(KERNEL), "-o"]
        elif not current(name, contents[name]):  # of other sources than the library, if there at all
            (OUT / name).unlink(missing_ok=True)

    outdated = [name for name in commands if not current(name, contents[name])]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda name: run([*commands[name], str(OUT / name)], f"compiling {name}"), outdated))
    if any(name.endswith(".fatbin") for name in outdated):
        known["nvcc"] = nvcc_version(commands["core_cta_4.fatbin"][0])
    known["cpu_only"] = toolkit["cpu_only"]()
    if not any(OUT.glob("*.fatbin")):
        known.pop("nvcc", None)
        why = "as ATOS_CPU_ONLY asks" if known["cpu_only"] else "since nvcc was not found"
        print(f"built for the CPU alone, {why}", file=sys.stderr)
    known["architectures"], known["ready"] = list(ARCHITECTURES), ready
    known["files"] = {name: content for name, content in contents.items() if (OUT / name).is_file()}
    record.write_text(json.dumps(known, indent=1) + "\n")


def digest(*endings: str, flags: list[str]) -> str:
    """Return a hash of the sources with these endings, and of the flags."""
    content = hashlib.sha256(" ".join(flags).encode())
    for path in sorted([*SOURCES.rglob("*"), *THIRD_PARTY.rglob("*")]):
        if path.suffix in endings:
            content.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return content.hexdigest()


def nvcc_version(nvcc: str) -> str:
    text = subprocess.run([nvcc, "--version"], check=True, capture_output=True, text=True).stdout
    found = re.search(r"V([\d.]+)", text)
    return found[1] if found else "unknown"


def run(command: list[str], what: str) -> None:
    """Run a command, and say what it does; how, if it fails."""
    print(what, flush=True)
    try:
        status = subprocess.run(command, check=False).returncode
    except FileNotFoundError:
        raise PlatformError(
            f"there is no C++ compiler {command[0]!r}, which builds the core: install g++ or clang++ (on Debian: "
            "apt install g++), or name another in CXX; PyPI has one too: pip install ziglang, and CXX='python -m ziglang c++'"
        ) from None
    if status:
        raise CompileError(f"{what} failed, for the reason above, with status {status} of: {shlex.join(command)}")


class BuildCore(Command):
    """`python setup.py build_core`: builds into the checkout."""

    description = "compile the core into atos_py/_lib"
    user_options: ClassVar[list[Any]] = []

    def initialize_options(self) -> None: ...
    def finalize_options(self) -> None: ...
    def run(self) -> None:
        build_core()


class BuildKernels(BuildCore):
    """`python setup.py build_kernels`: compiles the tasks of the package's own algorithms too, for wheels."""

    description = "compile the package's own tasks into atos_py/_lib: for CPUs, and where Numba for GPUs is installed for those"

    def run(self) -> None:
        super().run()
        run([sys.executable, "-m", "atos_py.tools.prelink"], "compiling the tasks of the package")


class BuildPackage(build_py):
    def run(self) -> None:
        build_core()
        super().run()


class Wheel(bdist_wheel):
    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]  # the library is reached through cffi, whatever the Python


class BinaryDistribution(Distribution):
    def has_ext_modules(self) -> bool:
        return True


setup(
    cmdclass={"build_core": BuildCore, "build_kernels": BuildKernels, "build_py": BuildPackage, "bdist_wheel": Wheel},
    distclass=BinaryDistribution,
)
