"""What a task that writes outside of all memory leaves behind on a CPU: a sentence that says how to find the line."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import faulthandler, resource, sys
import numpy as np, atos_py as atos
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

@atos.task
def far_outside(worker, item, out):
    out[item << 40] = 1

if {early}:
    faulthandler.enable()
queue = atos.Queue(4, device="cpu")
queue.launch_thread(far_outside, np.zeros(1))
if {late}:
    faulthandler.enable()
queue.push(3)
queue.launch_thread(far_outside, np.zeros(1){debug})
"""
SENTENCE = "atos_py: a task has read or written memory that is not its own"


def run(early: bool = False, late: bool = False, debug: str = "") -> subprocess.CompletedProcess[str]:
    code = PROGRAM.format(early=early, late=late, debug=debug)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("early", "late"), [(False, False), (True, False), (False, True)])
def test_a_crash_says_what_to_do(early, late):
    ended = run(early, late)
    assert ended.returncode == -signal.SIGSEGV
    assert ended.stderr.count(SENTENCE) == 1
    assert "Run it with ATOS_DEBUG=1" in ended.stderr
    assert ("Fatal Python error: Segmentation fault" in ended.stderr) == (early or late)


def test_a_launch_with_checks_names_the_line():
    ended = run(debug=", debug=True")
    assert ended.returncode == 1
    assert SENTENCE not in ended.stderr
    assert "TaskError" in ended.stderr


def test_a_fault_outside_of_tasks_is_none_of_theirs():
    code = "import ctypes, atos_py as atos\n" + PROGRAM.format(early=False, late=False, debug=", debug=True").replace(
        "queue.push(3)", "ctypes.string_at(0)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == -signal.SIGSEGV
    assert SENTENCE not in ended.stderr
