"""The options of a launch and the limits of a device: what is refused, in which words, and that the queue stays as it was."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from shared_tasks import count_item

import atos_py as atos
from atos_py.errors import DeviceNotFoundError, InvalidArgumentError, LaunchConfigError, TaskCompileError, UnsupportedTypeError

WRONG_OPTIONS = [
    ({"num_threads": 33}, LaunchConfigError, r"num_threads must be a multiple of 32, at most 1024 \(got 33\)"),
    ({"num_threads": 1}, LaunchConfigError, "multiple of 32"),
    ({"num_threads": 0}, InvalidArgumentError, r"num_threads must be from 1 to 1024 \(got 0\)"),
    ({"num_threads": -32}, InvalidArgumentError, r"num_threads must be from 1 to 1024 \(got -32\)"),
    ({"num_threads": 1056}, InvalidArgumentError, r"num_threads must be from 1 to 1024 \(got 1056\)"),
    ({"num_threads": 2**64}, InvalidArgumentError, "num_threads"),
    ({"num_threads": 32.0}, UnsupportedTypeError, r"num_threads must be an integer \(got 32.0\)"),
    ({"num_threads": True}, UnsupportedTypeError, "num_threads must be an integer"),
    ({"num_blocks": 0}, InvalidArgumentError, r"num_blocks must be from 1 to 2147483647 \(got 0\)"),
    ({"num_blocks": -1}, InvalidArgumentError, "num_blocks"),
    ({"num_blocks": 2**31}, InvalidArgumentError, "num_blocks"),
    ({"num_blocks": "2"}, UnsupportedTypeError, "num_blocks must be an integer"),
    ({"fetch_size": 0}, InvalidArgumentError, r"fetch_size must be from 1 to 4096 \(got 0\)"),
    ({"fetch_size": -1}, InvalidArgumentError, "fetch_size"),
    ({"fetch_size": 4097}, InvalidArgumentError, r"fetch_size must be from 1 to 4096 \(got 4097\)"),
    ({"fetch_size": 1.5}, UnsupportedTypeError, "fetch_size must be an integer"),
    ({"shared_memory": -1}, InvalidArgumentError, r"shared_memory must be from 0 to 1048576 \(got -1\)"),
    ({"shared_memory": 2**21}, InvalidArgumentError, "shared_memory"),
    ({"shared_memory": None}, UnsupportedTypeError, "shared_memory must be an integer"),
    ({"streams": 0}, InvalidArgumentError, r"streams must be from 1 to 32 \(got 0\)"),
    ({"streams": 33}, InvalidArgumentError, "streams"),
    ({"streams": "2"}, UnsupportedTypeError, "streams must be an integer"),
    ({"experiment": 3}, UnsupportedTypeError, r"experiment must be an atos.Experiment, such as atos.* \(got 3\)"),
    ({"experiment": {"counters": True}}, UnsupportedTypeError, "experiment must be an atos.Experiment"),
    ({"device": "tpu"}, InvalidArgumentError, "a device is 'cpu', 'cpu:N', 'cuda' or 'cuda:N'"),
    ({"device": "cuda:99"}, DeviceNotFoundError, "cuda:99"),
    ({"device": atos.Device("cuda", 99)}, LaunchConfigError, "make a queue there"),
    (
        {"fetch": 3},
        UnsupportedTypeError,
        "a launch has no option 'fetch'; did you mean 'fetch_size'[?] it has idle, each_round, persistent",
    ),
    (
        {"qqq": 3},
        UnsupportedTypeError,
        "a launch has no option 'qqq'; it has idle, each_round, persistent, barrier, fetch_size",
    ),
    ({"idle": 3}, UnsupportedTypeError, "idle must be a function"),
    ({"idle": lambda worker, x, y: None}, TaskCompileError, "idle function"),
]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    WRONG_OPTIONS,
    ids=[f"{next(iter(options))}-{i}" for i, (options, *_) in enumerate(WRONG_OPTIONS)],
)
def test_options_that_make_no_sense(device, options, error, message):
    queue = atos.Queue(10, device=device)
    queue.push([1, 2])
    with pytest.raises(error, match=message):
        queue.launch_cta(count_item, atos.zeros(3, dtype=np.int64, device=device), **options)
    assert queue.peek().tolist() == [1, 2]


def names_of_task(worker, v, seen, total):
    """Have parameters that a caller may take for options."""
    seen[v] = total


@pytest.mark.parametrize("verb", ["launch", "launch_thread", "launch_warp", "launch_cta", "start"])
def test_arguments_of_a_task_are_given_by_position(device, verb):
    queue, seen = atos.Queue(capacity=10, device=device), atos.zeros(4, dtype=np.int32, device=device)
    task, launch = atos.task(names_of_task), getattr(queue, verb)
    queue.push([1])
    positional = (
        r"no option 'seen', but the task names_of_task has a parameter of this name: .* as in launch\(names_of_task, seen\)"
    )
    for tasks in (task, (atos.task(count_item.body), task)):
        with pytest.raises(UnsupportedTypeError, match=positional):
            launch(tasks, seen=seen, total=1)
    with pytest.raises(
        UnsupportedTypeError, match=r"no option 'sehen'; .*experiment; arguments of the task are given by position"
    ):
        launch(task, sehen=seen)
    if verb.startswith("launch_"):
        with pytest.raises(UnsupportedTypeError, match=r"launch\(task, worker=...\) has the option 'worker'"):
            launch(task, seen, 1, worker="cta")
    assert queue.peek().tolist() == [1]


def test_the_kind_of_workers_may_be_an_option(device):
    """Of `launch`, which otherwise is the launch with that name."""
    queue = atos.Queue(capacity=10, device=device)
    for worker, fetch_size in (("thread", 1), ("warp", 32), ("cta", 128)):
        seen = atos.zeros(4, dtype=np.int32, device=device)
        queue.push([1, 3])
        stats = queue.launch(atos.task(names_of_task), seen, 5, worker=worker, num_blocks=2)
        assert (stats.worker, stats.fetch_size, stats.tasks_run, seen[:].tolist()) == (worker, fetch_size, 2, [0, 5, 0, 5])
    queue.push([2])
    assert queue.launch(atos.task(names_of_task), seen, 5).worker == "cta"
    queue.push([2])
    for worker in ("block", None, 3):
        with pytest.raises(InvalidArgumentError, match=f"worker must be one of thread, warp, cta .got {worker!r}"):
            queue.launch(atos.task(names_of_task), seen, 5, worker=worker)
    assert len(queue) == 1


def test_only_tasks_are_launched(device):
    queue = atos.Queue(10, device=device)
    for wrong in (lambda worker, v: None, None, count_item.body):
        with pytest.raises(UnsupportedTypeError, match=r"launch a task made with @atos.task"):
            queue.launch_cta(wrong)


def test_a_task_that_does_not_compile_leaves_the_queue(device):
    queue = atos.Queue(10, device=device)
    queue.push([1, 2])
    with pytest.raises(TaskCompileError, match="undefined_name"):
        queue.launch_cta(atos.task(lambda worker, v: undefined_name(v)))  # noqa: F821
    with pytest.raises(TaskCompileError, match="takes 3 arguments"):
        queue.launch_cta(count_item)
    assert queue.peek().tolist() == [1, 2]


def test_the_device_may_be_named(device):
    counts = atos.zeros(3, dtype=np.int64, device=device)
    queue = atos.Queue(10, device=device)
    queue.push([1, 2])
    assert queue.launch_cta(count_item, counts, device=str(device)).tasks_run == 2
    assert queue.launch_cta(count_item, counts, device=device).tasks_run == 0


@pytest.mark.parametrize("num_blocks", [1000, 2**31 - 1])
def test_more_threads_than_the_cpu_can_have(num_blocks):
    """More than a launch may have, or than fit in little memory, in a process of its own; the tasks are still there."""
    code = f"""
import resource
import numpy as np, atos_py as atos
queue = atos.Queue(2000, max_capacity=2000, device="cpu")  # the addresses into which another might grow are given back
@atos.task
def task(worker, v):
    if v == 5000:
        for child in range(1000):
            worker.push(child)
queue.launch_cta(task)
taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + (1 << 30),) * 2)
for persistent in (True, False):
    for barrier in (True, False):
        queue.push(np.arange(1000))
        try:
            queue.launch_cta(task, num_blocks={num_blocks}, persistent=persistent, barrier=barrier, fetch_size=1)
        except atos.LaunchConfigError as error:
            print(error)
        assert queue.peek().tolist() == list(range(1000))
        assert queue.launch_cta(task, num_blocks=2).tasks_run == 1000
        queue.push(5000)  # which alone needs one thread only, but what it pushes needs them all
        try:
            queue.launch_cta(task, num_blocks={num_blocks}, persistent=persistent, barrier=barrier, fetch_size=1)
        except atos.LaunchConfigError as error:
            print(error)
        assert queue.peek().tolist() == [5000]
        queue.clear()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 8
    for line in done.stdout.splitlines():
        assert line.startswith(f"{num_blocks} threads asked for, but ")


def test_stats_in_words(device):
    counts = atos.zeros(3, dtype=np.int64, device=device)
    queue = atos.Queue(3000, device=device)
    queue.push(np.arange(1234))
    stats = queue.launch_warp(count_item, counts, persistent=False, barrier=True, fetch_size=5)
    text = str(stats)
    for part in (
        "count_item: 1,234 tasks run, 0 pushed in",
        "discrete, barrier; 1 round;",
        "fetch size 5",
        f"on {device}",
        "warp workers",
    ):
        assert part in text
    fields = stats.to_dict()
    assert (fields["tasks_run"], fields["worker"], fields["rounds"]) == (1234, "warp", 1)
    assert stats.throughput == pytest.approx(1234 / stats.milliseconds * 1e3)


@pytest.mark.parametrize("persistent", [True, False])
def test_auto_is_the_default_number_of_blocks(device, persistent):
    """A kernel of a discrete launch has the blocks that there are items for, of which the task sees the workers."""

    @atos.task
    def note(worker, v, counts):
        counts[v] = worker.count

    counts, queue = atos.zeros(2, dtype=np.int64, device=device), atos.Queue(8, device=device)
    for k, blocks in enumerate(("auto", None)):
        queue.push([k])
        stats = queue.launch_cta(note, counts, persistent=persistent, num_blocks=blocks)
    assert counts[0] == counts[1] == (stats.num_blocks if persistent else 1)
