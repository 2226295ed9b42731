"""Tasks that push into another queue: everything arrives once, growth and overflow are that queue's own."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest
from item_types import DTYPES
from shared_tasks import arrive, assert_each_once, every_schedule, forest_on_host, launch, on_device

import atos_py as atos
from atos_py.errors import (
    AtosError,
    InvalidArgumentError,
    LaunchTimeoutError,
    QueueFullError,
    TaskCompileError,
    TaskError,
    UnsupportedTypeError,
)
from atos_py.runtime.launch_plan import LaunchPlan


def plan(v, forest, counts, other):
    arrive(v, forest, counts)
    return forest.first[v + 1] - forest.first[v], forest.first[v]


@atos.task(workload=plan)
def grow_and_send(worker, v, i, first, forest, counts, other):
    """Push the children of a node, and into the other queue those with odd numbers."""
    child = first + i
    if child % 2 == 1:
        other.push(child)
    worker.push(child)


@every_schedule
def test_everything_arrives_once(device, worker, persistent, barrier):
    """Twice, so that slots are used again; the other queue grows."""
    forest = forest_on_host(3000, 10)
    queue, other = atos.Queue(100, device=device), atos.Queue(7, device=device)
    for _ in range(2):
        there, counts = on_device(forest, device)
        queue.push(np.arange(10))
        stats = launch(queue, worker, grow_and_send, there, counts, other, persistent=persistent, barrier=barrier)
        assert_each_once(counts.seen.to_numpy())
        assert (stats.tasks_run, stats.tasks_pushed, len(queue)) == (3000, 2990, 0)
        assert sorted(other.peek().tolist()) == list(range(11, 3000, 2))
        assert other.capacity >= len(other)
        other.clear()


def test_what_was_there_comes_first_and_all_can_run(device):
    forest = forest_on_host(300, 10)
    there, counts = on_device(forest, device)
    queue, other = atos.Queue(100, device=device), atos.Queue(1000, device=device)
    queue.push(np.arange(10))
    other.push([7, 8])
    launch(queue, "cta", grow_and_send, there, counts, other)
    assert other.peek()[:2].tolist() == [7, 8]
    seen = atos.zeros(300, dtype=np.int32, device=device)

    @atos.task
    def count(worker, v, seen):
        if worker.rank == 0:
            atos.atomic_add(seen, v, 1)

    other.launch_warp(count, seen)
    assert seen.to_numpy().tolist() == [int(v in (7, 8) or (v > 9 and v % 2 == 1)) for v in range(300)]


@atos.task
def send_number(worker, v, other):
    if worker.rank == 0:
        other.push(v)


@atos.task
def send_2_fields(worker, v, other):
    if worker.rank == 0:
        other.push((v, v + 0.5))


@atos.task
def send_4_fields(worker, v, other):
    if worker.rank == 0:
        other.push((v, v + 0.5, 2 * v, 0.25))


@pytest.mark.parametrize(
    ("dtype", "task", "expected"),
    [
        ("uint32", send_number, lambda v: v),
        ("int64", send_number, lambda v: v),
        ("8 bytes", send_2_fields, lambda v: (v, v + 0.5)),
        ("16 bytes", send_2_fields, lambda v: (v, v + 0.5)),
        ("32 bytes", send_4_fields, lambda v: (v, v + 0.5, 2 * v, 0.25)),
    ],
)
def test_items_of_every_size(device, dtype, task, expected):
    queue, other = atos.Queue(10, device=device), atos.Queue(3, dtype=DTYPES[dtype], device=device)
    queue.push(np.arange(50))
    queue.launch_cta(task, other)
    assert sorted(other.peek().tolist()) == list(map(expected, range(50)))


@pytest.mark.parametrize("persistent", [True, False])
def test_a_full_one_is_reported_and_nothing_is_lost(device, worker, persistent):
    forest = forest_on_host(3000, 10)
    there, counts = on_device(forest, device)
    queue = atos.Queue(5000, device=device)
    other = atos.Queue(20, max_capacity=20, device=device)
    queue.push(np.arange(10))
    with pytest.raises(QueueFullError, match=r"pushed into another queue, which holds .* more than its capacity of 20") as full:
        launch(queue, worker, grow_and_send, there, counts, other, persistent=persistent)
    assert (full.value.capacity, full.value.pending, full.value.lost) == (20, len(other), 0)
    other.max_capacity = 10_000
    launch(queue, worker, grow_and_send, there, counts, other, persistent=persistent)
    assert_each_once(counts.seen.to_numpy())
    assert sorted(other.peek().tolist()) == list(range(11, 3000, 2))


def test_functions_without_an_item_push_too(device):
    queue, other = atos.Queue(10, device=device), atos.Queue(10, device=device)
    left = atos.full(1, 5, dtype=np.int32, device=device)

    @atos.task
    def nothing(worker, v, left, other):
        pass

    def send(worker, left, other):
        if worker.rank == 0 and atos.atomic_add(left, 0, -1) > 0:
            other.push(77)
            worker.push(0)

    queue.launch_warp(nothing, left, other, idle=send, num_blocks=1)
    assert other.peek().tolist() == [77] * 5


def test_several_others_beside_other_arguments(device):
    queue, even, odd = (atos.Queue(100, device=device) for _ in range(3))

    @atos.task
    def sort(worker, v, shift, even, results, odd):
        if worker.rank == 0:
            results[v] = shift
            if v % 2 == 0:
                even.push(v + shift)
            else:
                odd.push(v)

    results = atos.zeros(50, dtype=np.int64, device=device)
    queue.push(np.arange(50))
    queue.launch_warp(sort, 1000, even, results, odd)
    assert sorted(even.peek().tolist()) == list(range(1000, 1050, 2))
    assert sorted(odd.peek().tolist()) == list(range(1, 50, 2))
    assert (results.to_numpy() == 1000).all()


def test_what_is_refused(device):
    queue, plain = atos.Queue(10, device=device), atos.Queue(10, device=device)

    @atos.task
    def send(worker, v, other):
        other.push(v)

    @atos.task
    def send_pair(worker, v, other):
        other.push((v, v))

    @atos.task
    def take(worker, v, other):
        other.pop()

    queue.push(1)
    with pytest.raises(InvalidArgumentError, match="pushes into another queue, of the same device"):
        queue.launch_warp(send, queue)
    with pytest.raises(InvalidArgumentError, match="argument 0 is a queue that has buckets"):
        queue.launch_warp(send, atos.Queue(10, device=device, buckets=4))
    sorted_by_task = atos.Queue(10, device=device)
    sorted_by_task.push(1, task=send)
    with pytest.raises(InvalidArgumentError, match="tells the items of several tasks apart"):
        queue.launch_warp(send, sorted_by_task)
    with pytest.raises(InvalidArgumentError, match="at most 4 other queues"):
        queue.launch_warp(send, *[atos.Queue(1, device=device) for _ in range(5)])
    with pytest.raises(TaskCompileError, match=r"queue\.push takes an integer \(uint32\) here"):
        queue.launch_warp(send_pair, plain)
    with pytest.raises(TaskCompileError, match="another queue has no 'pop' in a task; it offers push"):
        queue.launch_warp(take, plain)
    assert (len(queue), len(plain)) == (1, 0)


def test_what_does_not_fit_is_a_failure_with_checks(device):
    queue, other = atos.Queue(10, device=device), atos.Queue(10, device=device)

    @atos.task
    def send(worker, v, other):
        other.push(v - 5)

    queue.push(3)
    with pytest.raises(TaskError, match="-2"):
        queue.launch_thread(send, other, debug=True)


def test_two_threads_send_to_each_other(device):
    """Each launch locks both queues, in one order."""
    one, two = atos.Queue(10, device=device), atos.Queue(10, device=device)

    @atos.task
    def send(worker, v, other):
        if worker.rank == 0:
            other.push(v)

    failures: list[Any] = []

    def work(mine: atos.Queue, other: atos.Queue) -> None:
        try:
            for k in range(100):
                mine.push(k)
                mine.launch_warp(send, other, num_blocks=1)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=pair) for pair in ((one, two), (two, one))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
        assert not thread.is_alive()
    assert failures == []
    assert sorted([*one.peek().tolist(), *two.peek().tolist()]) == sorted([*range(100), *range(100)])


def test_a_queue_is_no_member_of_a_tuple(device):
    from collections import namedtuple

    pair = namedtuple("pair", "first second")

    @atos.task
    def nothing(worker, v, both):
        pass

    with pytest.raises(UnsupportedTypeError, match="by themselves, queues"):
        atos.Queue(10, device=device).launch_warp(nothing, pair(1, atos.Queue(10, device=device)))


def test_a_launch_that_is_stuck_holds_the_other_queue_until_its_workers_end():
    """On the CPU alone: a GPU is held as a whole."""

    @atos.task
    def send_and_wait(worker, v, flags, other):
        other.push(v)
        while flags[0] == 0:
            pass
        other.push(v + 1)

    flags = atos.zeros(1, dtype=np.int32, device="cpu")
    queue, other = atos.Queue(10, device="cpu"), atos.Queue(10, device="cpu")
    other.push(5)
    queue.push(7)
    with pytest.raises(LaunchTimeoutError) as stuck:
        queue.launch_warp(send_and_wait, flags, other, num_blocks=1, timeout=0.05)
    assert stuck.value.stuck
    for held in (queue, other):
        with pytest.raises(AtosError, match="still runs"):
            held.push(1)
    flags[0] = 1
    for _ in range(1000):
        try:
            assert other.peek().tolist() == [5, 7, 8]
            break
        except AtosError:
            time.sleep(0.01)
    else:
        pytest.fail("the other queue is held for ever")
    other.push(9)
    assert len(other) == 4


def test_kinds_that_the_other_queue_gets_before_the_launch_are_noticed(device, monkeypatch):
    """Its items are larger then than those that the task was compiled for."""

    @atos.task
    def send(worker, v, other):
        if worker.rank == 0:
            other.push(v)

    queue, other = atos.Queue(10, device=device), atos.Queue(10, device=device)
    queue.push(3)
    real = LaunchPlan.make_ready

    def make_ready(*args):
        if len(other) == 0:
            other.push(1, task=send)  # as another thread might
        return real(*args)

    monkeypatch.setattr(LaunchPlan, "make_ready", make_ready)
    with pytest.raises(InvalidArgumentError, match="tells the items of several tasks apart"):
        queue.launch_warp(send, other)
    assert (queue.peek().tolist(), other.peek().tolist()) == ([3], [1])
