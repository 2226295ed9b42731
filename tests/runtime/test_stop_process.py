"""Ctrl-C, tasks that never end, and suspended processes, each in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import Any

import pytest
from repository import ROOT

import atos_py as atos

SCRIPT = """
import signal, sys, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's job in the background ignores it
import numpy as np
import atos_py as atos

@atos.task
def wait(worker, v, flag):
    while flag[0] == 0:
        pass

@atos.task
def again(worker, v):
    if worker.rank == 0:
        worker.push(v)

device = sys.argv[1]
flag = atos.zeros(1, dtype=np.int32, device=device)
queue = atos.Queue(100, device=device)
queue.push([1, 2, 3])
"""


def python(device: atos.Device, code: str, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-u", "-c", SCRIPT + code, str(device)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        **options,
    )


def test_ctrl_c(device):
    code = """
print("ready")
try:
    queue.launch_cta(again)
except KeyboardInterrupt:
    print(sorted(queue.peek().tolist()))
queue.launch_cta(again)
"""
    process = python(device, code)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(2)  # it compiles meanwhile; an interrupt of that would end the process as well
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "[1, 2, 3]\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    assert "KeyboardInterrupt" in said


@pytest.mark.parametrize("persistent", [True, False])
def test_a_task_that_loops_for_ever_is_reported_and_the_process_ends(device, persistent):
    code = f"""
try:
    queue.launch_cta(wait, flag, timeout=0.1, persistent={persistent})
except atos.LaunchTimeoutError as error:
    print(error.stuck, error.pending)
    print(error)
for call in (lambda: len(queue), lambda: queue.push(1), lambda: queue.launch_cta(wait, flag), queue.clear):
    try:
        call()
    except atos.DeviceStuckError as error:
        print(error)
"""
    said, errors = python(device, code).communicate(timeout=60)
    lines = said.splitlines()
    assert lines[0] == "True None", errors
    assert "the launch of wait was to stop, since it took longer than its timeout of 0.1 s" in lines[1]
    assert "a task seems to loop for ever inside itself" in lines[1]
    assert len(lines) == 6
    assert all("still runs" in line for line in lines[2:])
    assert errors == ""


def test_an_interrupt_of_a_launch_that_is_stuck_says_so(device):
    code = """
flag[0] = 1
queue.launch_cta(wait, flag)
flag[0] = 0
queue.push(1)
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, 0.2)
try:
    queue.launch_cta(wait, flag)
except KeyboardInterrupt as interrupt:
    print(interrupt.__cause__.stuck)
    print(interrupt.__cause__)
"""
    said, errors = python(device, code).communicate(timeout=60)
    assert said.startswith("True\nthe launch of wait was to stop, since it was interrupted, but"), errors


def test_a_task_that_ends_after_all_gives_the_queue_back():
    """On the CPU, where the host can let it go."""
    code = """
try:
    queue.launch_cta(wait, flag, timeout=0.1, num_blocks=1)
except atos.LaunchTimeoutError as error:
    assert error.stuck
flag[0] = 1
while True:
    try:
        print(queue.peek().tolist())
        break
    except atos.DeviceStuckError:
        time.sleep(0.01)
print(queue.launch_cta(wait, flag).tasks_run)
"""
    said, errors = python(atos.Device("cpu"), code).communicate(timeout=60)
    assert said == "[2, 3]\n2\n", errors


def test_a_process_that_was_suspended_is_not_stuck():
    """It is suspended after its launch was asked to stop, for more than the time of grace; the task ends soon after."""
    code = """
import os
asked = threading.Event()

@atos.task
def hold(worker, v, flags):
    flags[0] = 1
    while flags[1] == 0:
        pass

def stop_when_it_runs(*_):
    if flags[0]:
        asked.set()
        raise KeyError

def suspend():
    asked.wait()
    time.sleep(0.1)
    began = time.monotonic()
    os.kill(os.getpid(), signal.SIGSTOP)
    while time.monotonic() < began + 1:  # this thread may go on for a moment
        time.sleep(0.01)
    time.sleep(0.1)
    flags[1] = 1

flags = atos.zeros(2, dtype=np.int32, device="cpu")
threading.Thread(target=suspend).start()
try:
    queue.launch_cta(hold, flags, progress=stop_when_it_runs, num_blocks=1)
except KeyError as error:
    print(error.__cause__.stuck, error.__cause__.pending, len(queue))
"""
    process = python(atos.Device("cpu"), code)
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status), process.communicate()
    time.sleep(1.5)
    process.send_signal(signal.SIGCONT)
    said, errors = process.communicate(timeout=60)
    assert said == "False 2 2\n", errors
