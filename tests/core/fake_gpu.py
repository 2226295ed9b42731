"""A stand-in for NVIDIA's driver, whose GPUs have the host's memory, for programs that run in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from repository import CSRC, CXX, HAS_CXX, ROOT

from atos_py.core.devices import why_no_gpu

SOURCE = Path(__file__).parent / "fake_driver" / "driver.cpp"
# Before each program. `trace` returns what the driver was called for since the last time, `run` launches a queue.
PRELUDE = """
import ctypes, gc
import numpy as np
import atos_py as atos
from atos_py.core.library import check, ffi, lib

driver = ctypes.CDLL("libcuda.so.1")
driver.fake_calls.restype = driver.fake_module.restype = ctypes.c_char_p

def trace():
    gc.collect()
    return driver.fake_calls().decode().splitlines()

def launch(queue, **given):
    program, stats = ffi.new("atos_program **"), ffi.new("atos_stats *")
    check(lib.atos_program_load(0, ffi.from_buffer(b".entry all(\\0"), b"all", program))
    options = {"worker": lib.ATOS_CTA, "persistent": 1, "fetch": 1, "threads": 32, **given}
    status = lib.atos_queue_launch(queue._handle, program[0], ffi.new("atos_launch *", options), stats)
    lib.atos_program_unload(program[0])
    return status, stats

def run(queue, inbox=ffi.NULL):
    status, stats = launch(queue, inbox=inbox)
    check(status)
    return stats.tasks_run
"""


class FakeGpu:
    """Runs programs with the stand-in, which is compiled in a directory."""

    def __init__(self, directory: Path) -> None:
        if "this build" in (why_no_gpu() or ""):
            pytest.skip("the core was built without CUDA's headers")
        if not HAS_CXX:
            pytest.skip(f"there is no {CXX[0]}")
        self.directory = directory
        flags = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-shared", "-fPIC", "-pthread", f"-I{CSRC}"]
        subprocess.run([*CXX, *flags, SOURCE, "-o", directory / "libcuda.so.1"], check=True)

    def run(self, program: str, **settings: Any) -> str:
        """Return what a program prints; `settings` are those of the stand-in, in small letters."""
        wanted = {f"FAKE_{name.upper()}": str(value) for name, value in settings.items()}
        found = {"LD_LIBRARY_PATH": str(self.directory), "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [sys.executable, "-c", PRELUDE + program],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env={**os.environ, **wanted, **found},
        )
        assert done.returncode == 0, done.stderr
        return done.stdout
