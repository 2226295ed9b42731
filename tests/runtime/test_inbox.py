"""Launches that take items from the host while their workers run: `Queue.start` and the `Run` that it returns."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from item_types import DTYPES
from shared_tasks import TASKS, again, assert_each_once, forest_on_host, nodes_as_items, on_device

import atos_py as atos
from atos_py.errors import (
    DeviceStuckError,
    InvalidArgumentError,
    LaunchConfigError,
    LaunchTimeoutError,
    QueueFullError,
    TaskCompileError,
    TaskError,
    UnsupportedTypeError,
)

ROOM = 1 << 15  # items in an inbox


@atos.task
def count(worker, v, counts):
    if worker.rank == 0:
        atos.atomic_add(counts, v, 1)


def eventually(holds: Callable[[], bool]) -> None:
    """Wait until something holds, which may take a moment."""
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.001)


@pytest.fixture
def counted(device) -> tuple[atos.Queue, atos.Array]:
    """A queue, and an array in which `count` counts its items."""
    return atos.Queue(1000, device=device), atos.zeros(3 * ROOM, dtype=np.int32, device=device)


@pytest.mark.parametrize("dtype", TASKS)
def test_what_is_sent_runs_with_all_that_it_pushes(device, worker, dtype):
    """Trees whose roots are sent one by one and in large pieces, through a queue that has to grow for them."""
    roots = 3000
    forest = forest_on_host(20_000, roots, most=3)
    there, counts = on_device(forest, device)
    queue = atos.Queue(500, dtype=DTYPES[dtype], device=device)
    items = nodes_as_items(np.arange(roots), queue.dtype)
    queue.push(items[:5])
    with queue.start(TASKS[dtype], there, counts, worker=worker) as run:
        for item in items[5:50]:
            run.push(item[()] if queue.dtype.names else item)
        for begin in range(50, roots, 700):
            run.push(items[begin : begin + 700])
    stats = run.wait()
    assert_each_once(counts.seen.to_numpy())
    assert (stats.tasks_run, stats.tasks_pushed, len(queue)) == (20_000, 20_000 - roots, 0)
    assert (stats.schedule, stats.worker) == ("persistent, relaxed", worker)


def test_more_than_the_inbox_holds(counted):
    queue, counts = counted
    with queue.start(count, counts) as run:
        run.push(np.arange(len(counts)))
        for begin in range(0, len(counts), ROOM - 7):
            run.push(np.arange(begin, min(begin + ROOM - 7, len(counts))))
    assert np.all(counts.to_numpy() == 2)


def test_threads_push_side_by_side(counted):
    queue, counts = counted
    with queue.start(count, counts, worker="warp") as run:

        def feed(first: int) -> None:
            for begin in range(first, len(counts), 4 * 500):
                run.push(np.arange(begin, min(begin + 500, len(counts))))

        threads = [threading.Thread(target=feed, args=(500 * k,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert_each_once(counts.to_numpy())


def test_items_run_before_the_run_is_closed(counted):
    """Also those that come when all workers have waited for a while, and while some are busy."""
    queue, counts = counted
    with queue.start(count, counts) as run:
        for v in range(5):
            run.push(v)
            eventually(lambda v=v: counts[v] == 1)
            eventually(lambda: run.waiting == 0)
            time.sleep(0.01)


@pytest.mark.parametrize("keep", [1, 64])
def test_busy_workers_look_too(device, worker, keep):
    """All workers have items again and again; what is sent ends that."""

    def until(worker, v, counts):
        if worker.rank == 0:
            if v == 1:
                atos.atomic_add(counts, 0, 1)
            elif counts[0] == 0:
                worker.push(v)

    counts = atos.zeros(1, dtype=np.int32, device=device)
    queue = atos.Queue(200_000, device=device)
    queue.push(np.full(50_000, 2))
    with queue.start(atos.task(until), counts, worker=worker, fetch_size=keep, num_blocks=1) as run:
        run.push(1)
    assert counts[0] == 1


def test_a_run_may_have_nothing_to_do(device):
    queue = atos.Queue(10, device=device)
    with queue.start(again) as run:
        run.push([])
        assert repr(run) == "<run of again: open>"
    assert repr(run) == "<run of again: ended>"
    assert run.wait().tasks_run == 0
    assert queue.start(again).stop() is None


def test_idle_functions_run_while_nothing_is_sent(device):
    def wait(worker, counts):
        if worker.rank == 0 and atos.atomic_add(counts, 0, 1) == 5:
            worker.push(2)

    counts = atos.zeros(4, dtype=np.int32, device=device)
    queue = atos.Queue(100, device=device)
    with queue.start(count, counts, idle=wait) as run:
        eventually(lambda: counts[2] == 1)
        run.push([3, 3])
        eventually(lambda: counts[3] == 2)
    assert run.wait().tasks_run == 3


def test_queues_at_their_limit_take_what_they_can(device):
    """Items in the inbox neither fill nor grow a queue."""
    counts = atos.zeros(5000, dtype=np.int32, device=device)
    queue = atos.Queue(64, max_capacity=64, device=device)
    with queue.start(count, counts, num_blocks=2) as run:
        run.push(np.arange(5000))
    assert_each_once(counts.to_numpy())
    assert queue.capacity == 64


def test_nothing_runs_twice_where_a_full_queue_moves(device, worker):
    """Workers stop for a full ring that no second one may follow; the host moves it and starts them again."""

    def add(worker, v, counts):
        if worker.rank == 0:
            atos.atomic_add(counts, v, 1)
            if v == 0:
                for child in range(100, 900):
                    worker.push(child)

    counts = atos.zeros(1000, dtype=np.int32, device=device)
    queue = atos.Queue(500, max_capacity=990, device=device)
    with queue.start(atos.task(add), counts, worker=worker) as run:
        run.push(np.arange(1, 50))
        eventually(lambda: run.waiting == 0)
        run.push(0)
        eventually(lambda: counts[899] == 1)
        run.push(np.arange(50, 100))
        run.push(np.arange(900, 1000))
    stats = run.wait()
    assert_each_once(counts.to_numpy())
    assert (stats.tasks_run, len(queue)) == (1000, 0)


def test_a_stop_leaves_the_rest_in_the_queue(device):
    queue = atos.Queue(1000, device=device)
    queue.push([1, 2])
    run = queue.start(again)
    run.push(np.arange(3, 100))
    run.stop()
    stats = run.wait()
    assert run.wait() is stats
    assert sorted(queue.peek()) == list(range(1, 100))
    assert stats.tasks_run == queue.tasks_run


def test_a_stop_keeps_what_exceeds_the_queue(device):
    """Items that no worker has taken, since the queue was full of others, are not lost."""
    queue = atos.Queue(100, max_capacity=100, device=device)
    queue.push(np.arange(100))
    run = queue.start(again)
    run.push(np.arange(100, 300))
    run.stop()
    with pytest.raises(QueueFullError, match=r"leave 300 unfinished") as full:
        run.wait()
    assert full.value.pending == 300
    assert full.value.lost == 0
    queue.max_capacity = 1000
    with pytest.raises(LaunchTimeoutError):
        queue.launch_cta(again, timeout=0.01)
    assert sorted(queue.peek()) == list(range(300))


def test_timeouts_stop_a_run(device):
    queue = atos.Queue(100, device=device)
    queue.push([1, 2])  # a push to the run could come after its end
    run = queue.start(again, timeout=0.05)
    with pytest.raises(LaunchTimeoutError, match=r"its timeout of 0\.05 s; 2 tasks are unfinished"):
        run.wait(60)
    assert len(queue) == 2
    with pytest.raises(LaunchTimeoutError, match=r"its timeout of 0\.05 s"):
        run.push(3)


def test_an_exception_in_the_block_stops(device):
    queue = atos.Queue(100, device=device)
    run = queue.start(again)

    def fail() -> None:
        with run:
            run.push([1, 2])
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert len(queue) == 2
    with pytest.raises(InvalidArgumentError, match="was stopped and takes no more items: 0 of 3 were handed over"):
        run.push([1, 2, 3])


def test_waiting_for_an_open_run_is_refused(device):
    run = atos.Queue(10, device=device).start(again)
    with pytest.raises(
        InvalidArgumentError, match=r"the run of again is open, so that it would not end: close\(\) or stop\(\)"
    ):
        run.wait()
    with pytest.raises(
        LaunchTimeoutError, match=r"the run of again goes on: it is open, and has not ended within 0\.01 s"
    ) as late:
        run.wait(0.01)
    assert (late.value.pending, late.value.stuck) == (None, False)
    run.push(1)
    run.close()
    with pytest.raises(LaunchTimeoutError, match="goes on: it has work to do"):
        run.wait(0.01)
    with pytest.raises(InvalidArgumentError, match="was closed and takes no more items: 0 of 1 were handed over"):
        run.push(1)
    with pytest.raises(InvalidArgumentError, match="was closed"):
        run.push([])
    run.stop()
    assert run.wait(60).tasks_run > 0
    run.close()  # again, and after the end


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_timeouts_that_make_no_sense(timeout):
    run = atos.Queue(10, device="cpu").start(again)
    with pytest.raises(InvalidArgumentError, match="timeout must be"):
        run.wait(timeout)


def test_items_that_do_not_fit_are_refused(counted):
    queue, counts = counted
    with queue.start(count, counts) as run:
        with pytest.raises(InvalidArgumentError, match="item -1 does not fit uint32"):
            run.push([1, -1])
        with pytest.raises(UnsupportedTypeError):
            run.push("item")
        run.push(4)
    assert counts.to_numpy().sum() == 1


def test_other_calls_of_the_queue_wait(device):
    queue = atos.Queue(100, device=device)
    run = queue.start(again)
    run.push([1, 2, 3])
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(len(queue)))
    thread.start()
    time.sleep(0.1)
    assert found == []
    run.stop()
    thread.join()
    assert found == [3]


def test_a_run_begins_when_the_queue_is_free(device):
    """`start` is a call of the queue as any other."""
    queue, counts = atos.Queue(100, device=device), atos.zeros(10, dtype=np.int32, device=device)
    first = queue.start(again)
    first.push([1, 2])
    late = threading.Timer(0.2, first.stop)
    late.start()
    with queue.start(count, counts) as second:
        second.push(3)
    late.join()
    assert first.wait().tasks_run > 0
    assert counts.to_numpy().tolist() == [0, 1, 1, 1, 0, 0, 0, 0, 0, 0]


def test_errors_of_a_launch_are_raised_by_start(device):
    queue = atos.Queue(10, device=device)
    with pytest.raises(InvalidArgumentError, match=r"worker must be one of thread, warp, cta .*'block'"):
        queue.start(again, worker="block")
    for options in ({"barrier": True}, {"persistent": False}):
        with pytest.raises(LaunchConfigError, match="takes items while it runs is persistent and has no barrier"):
            queue.start(again, **options)
    with pytest.raises(LaunchConfigError, match="a queue without priorities"):
        atos.Queue(10, buckets=4, device=device).start(again)
    with pytest.raises(UnsupportedTypeError, match="a launch has no option 'color'"):
        queue.start(again, color=True)
    with pytest.raises(UnsupportedTypeError, match=r"launch a task made with @atos\.task"):
        queue.start(len)
    with pytest.raises(LaunchConfigError):
        queue.start(again, num_blocks=1_000_000)
    with pytest.raises(TaskCompileError):
        queue.start(atos.task(lambda worker, v: v.nothing()))
    queue.push(1)
    assert len(queue) == 1


def test_checks_that_fail_reach_the_caller(counted):
    queue, counts = counted
    run = queue.start(count, counts, debug=True)
    run.push(len(counts))
    with pytest.raises(TaskError, match="index") as failed:
        run.wait(60)
    assert failed.value.item == len(counts)
    with pytest.raises(TaskError), queue.start(count, counts, debug=True) as run:
        run.push([1, len(counts)])
    with pytest.raises(TaskError):
        run.push(1)


def test_a_full_queue_reaches_the_caller(device):
    def burst(worker, v):
        for _ in worker.split(range(1000)):
            worker.push(v)

    queue = atos.Queue(100, max_capacity=100, device=device)
    run = queue.start(atos.task(burst))
    run.push(1)
    with pytest.raises(QueueFullError):
        run.wait(60)


def test_coroutines_wait(counted):
    queue, counts = counted

    async def main() -> list[int]:
        run = queue.start(count, counts)
        waiting = asyncio.ensure_future(asyncio.wait_for(run, 60))
        given_up = asyncio.ensure_future(asyncio.wait_for(run, 60))
        await asyncio.sleep(0.01)
        given_up.cancel()
        await asyncio.sleep(0)
        run.push([1, 2, 3])
        run.close()
        return [(await waiting).tasks_run, (await run).tasks_run]

    assert asyncio.run(main()) == [3, 3]


def test_a_run_that_is_dropped_is_stopped(counted):
    queue, counts = counted
    run = queue.start(count, counts)
    run.push([1, 2])
    del run
    gc.collect()
    assert len(queue) + counts.to_numpy().sum() == 2


@atos.task
def hold(worker, v, flags):
    """Say that it runs, and wait to be let go."""
    flags[0] = 1
    while flags[1] == 0:
        pass


def test_what_was_sent_to_a_run_that_is_stuck_is_kept():
    flags = atos.zeros(2, dtype=np.int32, device="cpu")
    queue = atos.Queue(100, device="cpu")
    run = queue.start(hold, flags, num_blocks=1)
    run.push(7)
    eventually(lambda: flags[0] == 1)
    run.push([1, 2, 3])
    run.stop()
    with pytest.raises(LaunchTimeoutError, match=r"was to stop, since stop\(\) was called, but") as stuck:
        run.wait(60)
    assert stuck.value.stuck
    with pytest.raises(DeviceStuckError):
        len(queue)
    flags[1] = 1

    def is_free() -> bool:
        try:
            return len(queue) == 3
        except DeviceStuckError:
            return False

    eventually(is_free)
    assert queue.peek().tolist() == [1, 2, 3]


def test_progress_is_shown_in_the_thread_of_the_run(device):
    seen: list[Any] = []
    queue = atos.Queue(10, device=device)
    run = queue.start(again, progress=lambda *numbers: seen.append((threading.current_thread().name, numbers)))
    run.push(1)
    eventually(lambda: bool(seen))
    run.stop()
    run.wait()
    assert {name for name, _ in seen} == {"run of again"}


def test_an_array_may_be_read_made_and_dropped_meanwhile(counted):
    queue, counts = counted
    with queue.start(count, counts) as run:
        for v in range(20):
            run.push(v)
            more = atos.asarray(np.arange(1000), device=queue.device)
            assert more.to_numpy().sum() == 499_500
            del more
    assert counts.to_numpy().sum() == 20
