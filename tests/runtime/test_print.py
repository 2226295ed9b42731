"""What tasks print: whole lines on the standard output, of a process of its own, which flushes them at its end."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
import numpy as np
import atos_py as atos

WIDTH = 7

def tell(name, x):
    print(name, x)

@atos.task
def show(worker, item, numbers, flags):
    if worker.rank == 0:
        v = item.vertex
        print("100% of", v, WIDTH, numbers[v], 0.5 * v, flags[v], flags[v] != 0, item, (v,), np.uint64(2**64 - 1))
        tell("helper", numbers[v] > 1)
        print()

device, kind, debug = sys.argv[1:]
queue = atos.Queue(10, dtype=np.dtype([("vertex", "u4"), ("distance", "f4")]), device=device)
queue.push([(0, 0.25), (1, 1e-9)])
numbers = atos.asarray(np.array([0.1, 2.5], np.float32), device=device)
flags = atos.asarray(np.array([-1, 0], np.int8), device=device)
getattr(queue, "launch_" + kind)(show, numbers, flags, debug=debug == "True")
numbers.to_numpy()
"""
EXPECTED = [
    "",
    "",
    "100% of 0 7 0.1 0 -1 True (0, 0.25) (0,) 18446744073709551615",
    "100% of 1 7 2.5 0.5 0 False (1, 1e-09) (1,) 18446744073709551615",
    "helper False",
    "helper True",
]


@pytest.mark.parametrize("debug", [False, True])
def test_tasks_print_lines(device, worker, debug):
    command = [sys.executable, "-c", PROGRAM, str(device), worker, str(debug)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert sorted(done.stdout.splitlines()) == EXPECTED
    assert done.stderr == ""
