"""Runs that take items from the host, in processes that end, are interrupted or fork."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest
from repository import ROOT

SCRIPT = """
import os, signal, sys, warnings
import numpy as np
import atos_py as atos

@atos.task
def count(worker, v, counts):
    if worker.rank == 0:
        atos.atomic_add(counts, v, 1)

device = atos.device(sys.argv[1])
queue = atos.Queue(100, device=device)
counts = atos.zeros(10, dtype=np.int32, device=device)
"""


def python(device, code):
    return subprocess.Popen(
        [sys.executable, "-u", "-c", SCRIPT + code, str(device)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def run(device, code):
    process = python(device, code)
    try:
        said, errors = process.communicate(timeout=90)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    assert process.returncode == 0, errors
    assert errors == ""
    return said


@pytest.mark.parametrize("end", ["", "del run", "run.close()", "sys.exit()", "kept = [run]; kept.append(kept); del run"])
def test_the_interpreter_ends_with_an_open_run(device, end):
    assert run(device, f"run = queue.start(count, counts)\nrun.push([1, 2])\nprint('open')\n{end}\n") == "open\n"


def test_two_runs_and_a_thread_that_waits(device):
    code = """
import threading
other = atos.Queue(100, device="cpu")
first, second = queue.start(count, counts), other.start(count, atos.zeros(10, dtype=np.int32, device="cpu"))
threading.Thread(target=lambda: second.wait(3600), daemon=True).start()
print("open")
"""
    assert run(device, code) == "open\n"


def test_a_forked_process_leaves_the_run_alone():
    """On the CPU, since a forked process cannot use a GPU."""
    code = """
run = queue.start(count, counts)
run.push([1])
warnings.simplefilter("ignore")  # from Python 3.12 on, a fork beside other threads
child = os.fork()
if child == 0:
    for call in (lambda: run.push([2]), run.close, run.wait, lambda: run.wait(1)):
        try:
            call()
        except atos.InvalidArgumentError as error:
            print("forked from" in str(error))
    run.stop()
    del run
    sys.exit()
assert os.waitpid(child, 0)[1] == 0
run.push([3])
run.close()
print(run.wait().tasks_run, counts[:4])
"""
    assert run("cpu", code) == "True\n" * 4 + "2 [0 1 0 1]\n"


def test_ctrl_c_stops_a_run_that_is_waited_for(device):
    code = """
signal.signal(signal.SIGINT, signal.default_int_handler)
@atos.task
def again(worker, v):
    if worker.rank == 0:
        worker.push(v)

run = queue.start(again)
run.push([1, 2])
run.close()
print("ready")
try:
    run.wait()
except KeyboardInterrupt:
    print(repr(run))
print("ready")
try:
    with run:
        pass
except KeyboardInterrupt:
    print(repr(run), sorted(queue.peek().tolist()))
"""
    process = python(device, code)
    assert process.stdout is not None
    for _ in range(2):
        while process.stdout.readline() != "ready\n":
            assert process.poll() is None
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
    said, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    assert said == "<run of again: ended> [1, 2]\n"
