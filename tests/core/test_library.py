"""The compiled core as Python sees it."""

from __future__ import annotations

import subprocess
import sys


def test_memory_is_given_back_while_cffi_is_busy():
    """Garbage may be collected while cffi holds its lock, here before anything else was given back: no deadlock."""
    program = """
import numpy as np
import atos_py as atos
from atos_py.core.library import ffi

group = atos.distributed.init(0, 1)
parts = atos.Graph.from_edges([0], [1], device="cpu").partition()
made = [atos.zeros(3, device="cpu"), atos.Pool(np.int32, 1, device="cpu")]
made += [atos.Queue(1, device="cpu"), atos.Queue(1, owner=parts)]
with ffi._lock:
    made.clear()
print("done")
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (ran.stdout, ran.stderr) == ("done\n", "")
