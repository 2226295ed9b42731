"""How the core finds the functions of NVIDIA's driver: with a stand-in for libcuda.so.1, which a process of its own loads."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from repository import CXX, HAS_CXX, ROOT

from atos_py.core.devices import why_no_gpu

# As much of the driver as is called before there is a GPU. Like NVIDIA's, it refuses a version that is newer than its own.
STAND_IN = r"""
#include <cstring>
extern "C" {
int cuInit(unsigned) { return INIT; }
int cuDriverGetVersion(int *version) { *version = VERSION; return 0; }
int cuDeviceGetCount(int *count) { *count = GPUS; return 0; }
int cuGetErrorString(int, const char **words) { *words = "out of order"; return 0; }
void another() {}
int PROC(const char *name, void **function, int version, unsigned long long flags, int *) {
  *function = nullptr;
  if (REFUSES) return REFUSES;
  if (version > VERSION || flags != 1) return 1; // 1: the null stream is the legacy one
  if (!strcmp(name, ABSENT)) return ABSENT_RESULT;
  *function = !strcmp(name, "cuInit") ? (void *)cuInit : !strcmp(name, "cuDriverGetVersion") ? (void *)cuDriverGetVersion
      : !strcmp(name, "cuDeviceGetCount") ? (void *)cuDeviceGetCount
      : !strcmp(name, "cuGetErrorString") ? (void *)cuGetErrorString : (void *)another;
  return 0;
}
}
"""
DRIVER_580 = {
    "VERSION": "13000",
    "INIT": "0",
    "GPUS": "0",
    "PROC": "cuGetProcAddress_v2",
    "REFUSES": "0",
    "ABSENT": '""',
    "ABSENT_RESULT": "500",
}
TOO_OLD = "the NVIDIA driver is too old: it is for CUDA {} and has no {}; driver 580 (CUDA 13.0) or newer is needed"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, "the NVIDIA driver finds no GPU"),
        ({"GPUS": "2"}, "None"),
        ({"GPUS": "1", "VERSION": "14020"}, "None"),
        ({"VERSION": "12040"}, TOO_OLD.format("12.4", "cuEventElapsedTime")),
        ({"VERSION": "11040", "PROC": "cuGetProcAddress"}, TOO_OLD.format("11.4", "cuGetProcAddress_v2")),
        ({"ABSENT": '"cuMemCreate"'}, TOO_OLD.format("13.0", "cuMemCreate")),
        ({"ABSENT": '"cuMemAlloc"', "ABSENT_RESULT": "0"}, TOO_OLD.format("13.0", "cuMemAlloc")),
        ({"INIT": "999"}, "the NVIDIA driver does not start: out of order"),
        ({"REFUSES": "34"}, "the NVIDIA driver does not start: error 34"),  # as the stubs do that programs are linked with
    ],
)
def test_what_a_driver_lacks_is_said(changes, says, tmp_path):
    if "this build" in (why_no_gpu() or ""):
        pytest.skip("the core was built without CUDA's headers")
    if not HAS_CXX:
        pytest.skip(f"there is no {CXX[0]}")
    source = tmp_path / "driver.cpp"
    source.write_text(STAND_IN)
    values = DRIVER_580 | changes
    defines = [f"-D{name}={value}" for name, value in values.items()]
    command = [*CXX, "-shared", "-fPIC", *defines, source, "-o", tmp_path / "libcuda.so.1"]
    subprocess.run(command, check=True)
    program = "from atos_py.core.devices import devices, why_no_gpu; print(why_no_gpu(), *devices())"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path), "PYTHONPATH": str(ROOT)},
    )
    gpus = [f"cuda:{i}" for i in range(int(values["GPUS"]))] if says == "None" else []
    assert done.stdout.strip() == " ".join([says, *gpus, "cpu"]), done.stderr
