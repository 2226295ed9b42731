"""Builds the core: a shared library for the host, and the worker loops as LTO-IR for each architecture."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from setuptools import Command, Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
OUT = ROOT / "atos_py" / "_lib"
# The first serves every GPU that the others do not: LTO-IR links for its own architecture and all later ones.
ARCHITECTURES = ("75", "80", "90")
WORKERS = ("thread", "warp", "cta")
ITEM_BYTES = (4, 8, 16)
HOST_FLAGS = ["-std=c++17", "-O3", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread", "-Wall", "-Wextra", "-Werror"]
DEVICE_FLAGS = ["-std=c++17", "-O3", "-rdc=true", "-fatbin", "-Werror", "all-warnings"]


def find_cuda() -> Path | None:
    """Return the root of a CUDA toolkit: named by CUDA_HOME, on the PATH, or from the wheels of PyPI."""
    on_path = shutil.which("nvcc")  # may be a wrapper, far from its toolkit: the headers have to be there too
    candidates = [
        os.environ.get("CUDA_HOME"),
        Path(on_path).resolve().parent.parent if on_path else None,
        "/usr/local/cuda",
        *(Path(entry) / "nvidia" / "cu13" for entry in [sysconfig.get_path("purelib"), *sys.path]),
    ]
    return next((Path(c) for c in candidates if c and all((Path(c) / part).is_file() for part in ("bin/nvcc", "include/cuda.h"))), None)


def newer(target: Path, sources: list[Path]) -> bool:
    return target.exists() and target.stat().st_mtime > max(source.stat().st_mtime for source in sources)


def build_core() -> None:
    """Compile what is older than its sources."""
    OUT.mkdir(exist_ok=True)
    sources = [*sorted((ROOT / "csrc").iterdir()), Path(__file__)]
    cuda = find_cuda()
    shutil.copyfile(ROOT / "csrc" / "atos.h", OUT / "atos.h")
    library = OUT / "libatos.so"
    if not newer(library, sources):
        include = [f"-I{cuda / 'include'}"] if cuda else []
        host = [str(source) for source in sources if source.suffix == ".cpp"]
        run([os.environ.get("CXX", "c++"), *HOST_FLAGS, *include, *host, "-ldl", "-o", str(library)])
    if cuda is None:
        print("nvcc was not found: building for the CPU alone", file=sys.stderr)
        return
    targets = [f"-gencode=arch=compute_{a},code=lto_{a}" for a in ARCHITECTURES]
    for number, worker in enumerate(WORKERS):
        for size in ITEM_BYTES:
            fatbin = OUT / f"core_{worker}_{size}.fatbin"
            if not newer(fatbin, sources):
                defines = [f"-DATOS_WORKER={number}", f"-DATOS_ITEM_BYTES={size}"]
                run([str(cuda / "bin" / "nvcc"), *DEVICE_FLAGS, *targets, *defines, str(ROOT / "csrc" / "kernels.cu"), "-o", str(fatbin)])


def run(command: list[str]) -> None:
    print(" ".join(command), flush=True)
    subprocess.run(command, check=True)


class BuildCore(Command):
    """`python setup.py build_core`: builds into the checkout."""

    description = "compile the core into atos_py/_lib"
    user_options: list[tuple[str, str, str]] = []

    def initialize_options(self) -> None: ...
    def finalize_options(self) -> None: ...
    def run(self) -> None:
        build_core()


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


setup(cmdclass={"build_core": BuildCore, "build_py": BuildPackage, "bdist_wheel": Wheel}, distclass=BinaryDistribution)
