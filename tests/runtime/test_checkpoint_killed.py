"""Checkpoints of runs that are killed again and again, while they run and while they save: the runs end right."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import atos_py as atos

KILLED = """
import os, random, signal, sys, time
import numpy as np
import numba  # so that forked children need not import it
import atos_py as atos

# Devices are touched in children only: CUDA does not survive a fork.
path, device, seed, wanted = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
last = 1 << 16

@atos.task
def spread(worker, v, ran, last):
    if worker.rank == 0:
        atos.atomic_add(ran, v, 1)
        for child in (2 * v, 2 * v + 1):
            if child < last:
                worker.push(child)

def live(path):
    ran = atos.zeros(last, dtype=np.int32, device=device)
    if os.path.exists(path):
        queue = atos.Queue.load(path, device=device, ran=ran)
    else:
        queue = atos.Queue(4, max_capacity=4, device=device)
        queue.push(1)
    while len(queue):
        if len(queue) > queue.capacity:
            queue.max_capacity = len(queue) * 9 // 8
        try:
            queue.launch_warp(spread, ran, last, num_blocks=2, fetch_size=4, timeout=0.01)
        except atos.QueueFullError as full:
            assert full.lost == 0
        except atos.LaunchTimeoutError as stopped:
            assert not stopped.stuck
        queue.save(path, ran=ran)

def check(path, whole):
    ran = atos.zeros(last, dtype=np.int32, device="cpu")
    queue = atos.Queue.load(path, device="cpu", ran=ran)
    ran = ran.to_numpy()
    # Whatever the moment was, each task ran once or not at all, and what waits is what was pushed and did not run.
    assert set(ran.tolist()) <= {0, 1} and queue.tasks_run == ran.sum()
    pushed = np.ones(last, bool)
    pushed[0] = False
    pushed[2:] = ran[np.arange(2, last) // 2] == 1
    assert sorted(queue.peek().tolist()) == np.flatnonzero(pushed & (ran == 0)).tolist()
    assert not whole or (ran[1:] == 1).all()

def child(work, *args):
    number = os.fork()
    if number == 0:
        try:
            work(*args)
        except BaseException as error:
            print(type(error), error, file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    return number

def wait(number):
    code = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
    assert code in (0, -signal.SIGKILL), code
    return code == 0

wait(child(live, path))  # which also compiles the task, and keeps it on disk
start = time.monotonic()
os.remove(path)
wait(child(live, path))
took = time.monotonic() - start
moments, kills, ends = random.Random(seed), 0, 0
while kills < wanted or not ends:
    number = child(live, path)
    time.sleep(moments.uniform(0, took))
    os.kill(number, signal.SIGKILL)
    ended = wait(number)
    if os.path.exists(path):
        assert wait(child(check, path, ended))
    kills += not ended
    if ended:
        ends += 1
        os.remove(path)
left = set(os.listdir(os.path.dirname(path))) - {"run.atos"}
assert len(left) <= 1 and all(name.startswith(".run.atos.") and name.endswith(".part") for name in left), left
print("killed", kills, "ended", ends)
"""


@pytest.mark.parametrize("seed", [1, 2])
def test_a_run_that_is_killed_again_and_again_ends_right(device, path, seed):
    command = [sys.executable, "-c", KILLED, str(path), str(device), str(seed), "8"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("killed")


SAVING = """
import sys
import numpy as np, atos_py as atos
queue = atos.Queue(10, device="cpu")
queue.push([1])
number = 0
while True:
    number += 1
    queue.save(sys.argv[1], values=np.full(1 << 20, number))
    print(number, flush=True)
"""


def test_a_kill_while_saving_leaves_an_earlier_file(path):
    """One that is whole, and no more than one unfinished one beside it, which the next save removes."""
    values = np.zeros(1 << 20, np.int64)
    for pause in (0.05, 0.11, 0.17):
        with subprocess.Popen([sys.executable, "-c", SAVING, str(path)], stdout=subprocess.PIPE, text=True) as saver:
            assert saver.stdout.readline() == "1\n"
            time.sleep(pause)
            saver.kill()
            saved_last = int(["1", *saver.stdout.read().split()][-1])
        atos.Queue.load(path, device="cpu", values=values)
        assert set(values.tolist()) <= {saved_last, saved_last + 1}
        assert len(set(values.tolist())) == 1
        left = {file.name for file in path.parent.iterdir()} - {"run.atos"}
        assert len(left) <= 1
        assert all(re.fullmatch(r"\.run\.atos\.[0-9a-f]{16}\.part", name) for name in left)
    atos.Queue(1, device="cpu").save(path)
    assert [file.name for file in path.parent.iterdir()] == ["run.atos"]


def test_threads_that_save_to_one_file(path):
    """Each writes a whole file; the last one stays."""
    queues = [atos.Queue(10, device="cpu") for _ in range(4)]

    def save_often(number: int) -> None:
        queues[number].push(number)
        for _ in range(10):
            queues[number].save(path, values=np.full(1000, number))

    threads = [threading.Thread(target=save_often, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    values = np.zeros(1000, np.int64)
    assert atos.Queue.load(path, device="cpu", values=values).peek().tolist() == [values[0]]
    assert [file.name for file in path.parent.iterdir()] == ["run.atos"]
