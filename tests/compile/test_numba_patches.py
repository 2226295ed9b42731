"""The patches of Numba: each is needed, and does what it is for."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from numba.core import codegen
from test_arguments import FakeArray

import atos_py as atos
from atos_py.compile.arguments import describe

pytest.importorskip("numba.cuda", reason="numba-cuda is not installed")

SCRIPT = """
import warnings
import numpy as np

for name in ("row_stack", "in1d", "trapz", "round_"):  # as in NumPy 2.5
    vars(np).pop(name, None)
true = np.__getattr__
def missing(name):
    if name in ("row_stack", "in1d", "trapz", "round_"):
        raise AttributeError(name)
    return true(name)
np.__getattr__ = missing

import atos_py as atos
from atos_py.compile.codegen.target_cuda import compile_cuda

@atos.task
def nothing(worker, item):
    pass

assert compile_cuda(nothing, None, (), np.dtype(np.uint32), (9, 0)).modules
assert not hasattr(np, "row_stack")
print("compiled")
"""


def test_a_numpy_without_the_names_that_numba_cuda_uses():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.stdout == "compiled\n", done.stderr[-2000:]


SCIPY = """
import sys
import numpy as np
import atos_py as atos

@atos.task
def nothing(worker, item):
    pass

queue = atos.Queue(4, device="cpu")
queue.push(1)
assert queue.launch_thread(nothing).tasks_run == 1
import atos_py.compile.codegen.target_cuda
print("scipy.linalg" in sys.modules)

import numba
print(numba.njit(lambda a: np.dot(a, a))(np.eye(2))[0, 0])
"""


def test_scipy_is_imported_where_it_is_used(tmp_path, monkeypatch):
    pytest.importorskip("scipy", reason="SciPy is not installed")
    monkeypatch.setenv("ATOS_CACHE_DIR", str(tmp_path))
    done = subprocess.run([sys.executable, "-c", SCIPY], capture_output=True, text=True, check=False)
    assert done.stdout == "False\n1.0\n", done.stderr[-2000:]


@atos.task
def calls_helpers(worker, item, out):
    """Call a helper that calls another."""
    out[item] = helper(item)


def helper(x):
    return double(x) + 1


def double(x):
    return 2 * x


def test_helpers_are_no_machine_code_of_their_own(monkeypatch):
    from atos_py.compile.codegen import target_cpu

    def compiled() -> list[str]:
        names: list[str] = []
        with monkeypatch.context() as patched:
            true = codegen.JITCodeLibrary._finalize_specific
            patched.setattr(codegen.JITCodeLibrary, "_finalize_specific", lambda self: names.append(self.name) or true(self))
            target_cpu.compile_cpu(calls_helpers, None, (describe(FakeArray(np.zeros(4))),), np.dtype(np.uint32))
        return names

    compiled()  # which starts what Numba has for itself
    (name,) = compiled()
    assert name.startswith("atos_")
