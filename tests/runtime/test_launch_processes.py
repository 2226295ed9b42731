"""Launches and the process around them: threads beside each other, forked children, and nothing left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest
from shared_tasks import SCHEDULES, assert_each_once, count_item, forest_on_host, grow, launch, on_device

import atos_py as atos


def test_queues_of_several_threads_run_side_by_side(device, worker):
    forest = forest_on_host(3000, 3)
    failures: list[Any] = []

    def work(number: int) -> None:
        try:
            for turn in range(4):
                there, counts = on_device(forest, device)
                queue = atos.Queue(4000, device=device)
                queue.push([0, 1, 2])
                persistent, barrier = SCHEDULES[(number + turn) % 4]
                launch(queue, worker, grow, there, counts, persistent=persistent, barrier=barrier, num_blocks=2)
                assert_each_once(counts.seen.to_numpy())
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(240)
        assert not thread.is_alive()
    assert failures == []


def test_one_queue_in_several_threads(device):
    forest = forest_on_host(2000, 1)
    there, counts = on_device(forest, device)
    queue = atos.Queue(10_000, device=device)
    ran: list[int] = []

    def work() -> None:
        for _ in range(5):
            queue.push([0])
            ran.append(queue.launch_cta(grow, there, counts).tasks_run)
            assert len(queue) <= 2  # what others pushed and have not launched: nothing in between is seen

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(240)
        assert not thread.is_alive()
    assert sum(ran) == 15 * 2000
    assert set(counts.seen.to_numpy().tolist()) == {15}


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_small_launches_do_not_add_up(device):
    counts = atos.zeros(3, dtype=np.int64, device=device)
    queue = atos.Queue(16, device=device)

    def some(n: int) -> None:
        for number in range(n):
            queue.push([number])
            persistent, barrier = SCHEDULES[number % 4]
            assert queue.launch_cta(count_item, counts, persistent=persistent, barrier=barrier).tasks_run == 1

    some(200)
    before, threads = resident_bytes(), len(os.listdir("/proc/self/task"))
    some(2000)
    assert resident_bytes() - before < 4 << 20
    assert len(os.listdir("/proc/self/task")) <= threads
    assert counts[0] == 2200
    if device.kind == "cuda":  # where other processes take memory too, now and then; what launches leave is there each time
        for _ in range(10):
            on_gpu = device.memory[0]
            some(2000)
            lost = on_gpu - device.memory[0]
            if lost < 4 << 20:
                break
        assert lost < 4 << 20


def test_threads_that_launched_leave_nothing_behind(device):
    """A Python thread that ends takes the workers of its launches along; what it had of a GPU's driver is for the next."""
    counts = atos.zeros(3, dtype=np.int64, device=device)

    def work() -> None:
        queue = atos.Queue(16, device=device)
        for persistent in True, False:
            queue.push([1])
            queue.launch_cta(count_item, counts, num_blocks=4, persistent=persistent)

    work()
    threads = len(os.listdir("/proc/self/task"))
    for ended in range(1, 41):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        if ended == 10:
            before = resident_bytes()
    assert resident_bytes() - before < 8 << 20
    assert counts[0] == 82
    for _ in range(100):  # the latest may be about to end
        if len(os.listdir("/proc/self/task")) <= threads + 30:
            break
        time.sleep(0.1)
    else:
        pytest.fail(f"{len(os.listdir('/proc/self/task'))} threads are left, of {threads} before")


FORK = """
import multiprocessing, os, signal, sys
import numpy as np
import atos_py as atos

@atos.task(workload=lambda v, out: 3 if v < 1000 else 0)
def spread(worker, v, i, out):
    atos.atomic_add(out, 0, 1)
    worker.push(3 * v + i + 1)

def total():
    queue, out = atos.Queue(5000, device="cpu"), np.zeros(1, np.int64)
    queue.push([0])
    stats = [queue.launch_cta(spread, out, num_blocks=2, persistent=p, barrier=b).num_workers
             for p in (True, False) for b in (True, False) for _ in [queue.push([0])]]
    assert stats == [2] * 4
    return int(out[0])
"""


def run_script(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK + code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_a_forked_process_launches_on_its_own():
    code = """
expected = total()
context = multiprocessing.get_context("fork")
with context.Pool(2) as pool:
    assert pool.starmap(total, [()] * 4) == [expected] * 4
process = context.Process(target=total)
process.start()
process.join(60)
print(process.exitcode, total() == expected)
"""
    assert run_script(code) == "0 True\n"


def test_a_forked_process_does_not_wait_for_its_parents_threads():
    """A queue that a thread of the parent's uses at the fork says so in the child."""
    code = """
import threading, time
@atos.task
def endless(worker, v, running):
    running[0] = 1
    worker.push(v)

queue, running = atos.Queue(10, device="cpu"), np.zeros(1, np.int32)
queue.push([1])
def run():
    try:
        queue.launch_thread(endless, running, timeout=3)
    except atos.LaunchTimeoutError:
        print("stopped", len(queue))
thread = threading.Thread(target=run)
thread.start()
while not running[0]:
    time.sleep(0.01)
child = os.fork()
if child == 0:
    signal.alarm(10)
    for use in (len, atos.Queue.peek, lambda queue: queue.push([1]), lambda queue: queue.launch_cta(endless, running)):
        try:
            use(queue)
        except atos.DeviceStuckError as error:
            assert "fork" in str(error)
        else:
            os._exit(1)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
thread.join()
"""
    assert run_script(code) == "0\nstopped 1\n"


@pytest.mark.parametrize(
    "launches",
    [False, True],
    ids=["without a launch", "after a launch"],
)
def test_a_forked_process_exits_as_any_other(launches):
    """Exit handlers run in the child, which has none of its parent's threads."""
    code = f"""
total()
child = os.fork()
if child == 0:
    signal.alarm(5)
    if {launches}:
        total()
    sys.exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert run_script(code) == "7\n"
