"""The patches of Numba: each is needed, and does what it is for."""

from __future__ import annotations

import subprocess
import sys

import pytest

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
